"""The base of operators that gather records by time: what is late, what is complete, and what leaves.

Invariant: what is kept in memory is what belongs to open Input Sets. Which records are late depends on their event
alone, never on how far the frontier was when it came, so the same events give the same results in every run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import BuildError, MoveError
from clew.model.event import Event, as_batch
from clew.model.operator import Assigned, Context, Operator, Yielded
from clew.operators.late import PORT, Late, late_error, late_policy
from clew.operators.moments import Moments, check_kind, check_time, column_of, moments_of
from clew.times.order import Integers, Order

START, END = "window_start", "window_end"
"""The columns that say which time window a result belongs to."""


class Gatherer(ABC):
    """What is kept of the records of an Input Set, and what they give when it is complete."""

    inputs: Sequence[str] = ("in",)

    def columns(self, port: str) -> Sequence[str]:
        """The columns that records on an input port must have."""
        return ()

    def prepared(self, batch: pa.RecordBatch, port: str) -> pa.RecordBatch:
        """The records of an event, row by row, as they are added."""
        return batch

    @abstractmethod
    def begin(self) -> Any:
        """What is kept of no records."""

    @abstractmethod
    def add(self, kept: Any, batch: pa.RecordBatch, port: str, turn: int) -> None:
        """Adds prepared records; turns count up, through all Input Sets."""

    @abstractmethod
    def result(self, kept: Sequence[Any], ctx: Context) -> Any:
        """The records that leave, from what was kept of one Input Set, or of several that became one."""


class Divided(NamedTuple):
    """The records of one event, divided: those that are late, and those of each part."""

    moments: Moments
    late: pa.Array
    """Rows, in their order."""
    rows: pa.Array
    """Of all parts, one part after the other, each in its order in the event."""
    places: Mapping[Any, tuple[int, int]]
    """By part: where its rows begin, and how many they are."""
    parts: Sequence[Any] = ()
    """What else is known of each part."""

    def of(self, batch: pa.RecordBatch, parts: Sequence[Any]) -> pa.RecordBatch:
        """The records of some parts, in their order in the event."""
        slices = [self.rows.slice(*self.places[part]) for part in parts]
        if sum(map(len, slices)) == batch.num_rows:
            return batch
        if len(slices) == 1:
            return batch.take(slices[0])
        rows = pa.concat_arrays(slices)
        return batch.take(rows.take(pc.array_sort_indices(rows)))


@dataclass(slots=True)
class Kept:
    """The event state of one Input Set."""

    content: Any
    type: pa.DataType
    """Of the bounds."""
    key: tuple[Any, ...] = ()
    """The values of the key columns, of a session."""


class Gathered(Operator):
    """Gathers records by the time in one of their columns; subclasses say into which Input Sets."""

    is_timely = True

    def __init__(
        self, gatherer: Gatherer, by: str | Sequence[str], *, late: str = "drop", nulls: str = "error", bounds: bool
    ) -> None:
        self.gatherer = gatherer
        self.inputs = tuple(gatherer.inputs)
        columns: tuple[Any, ...] = tuple(by) if isinstance(by, list | tuple) else (by,) * len(self.inputs)
        if len(columns) != len(self.inputs) or not all(isinstance(name, str) and name for name in columns):
            raise BuildError(
                f"by={by!r} is to name the column of times of the input {' and '.join(self.inputs)}; expected a name"
                f"{' or a pair of names' if len(self.inputs) > 1 else ''}. Pass by='ts', say."
            )
        self.by = dict(zip(self.inputs, columns, strict=True))
        self.late = late_policy(f"an operator by the time in {' and '.join(sorted(set(columns)))}", late)
        self.outputs = ("out", PORT) if self.late is Late.PORT else ("out",)
        if nulls not in ("error", "drop"):
            raise BuildError(
                f"nulls={nulls!r} was passed for records without a time; expected 'error' to stop at one, or 'drop' to "
                f"leave them out and count them."
            )
        self.nulls = nulls
        self.bounds = bounds

    def order(self, inputs: Mapping[str, Order]) -> Order:
        """That of its inputs: moments or whole numbers."""
        found = super().order(inputs)
        if not isinstance(found, Integers):
            raise BuildError(f"it gathers records by time, so it expects moments or whole numbers, but has {found!r}")
        return found

    # What subclasses say

    def divide(self, event: Event, found: Moments) -> Divided:
        """The records of an event, late ones apart; depends on the event alone."""
        raise NotImplementedError

    def choose(self, event: Event, divided: Divided, ctx: Context) -> Iterable[Assigned]:
        """The Input Sets of the parts; with a note, if the parts of an Input Set are not known by its key."""
        raise NotImplementedError

    def begin(self, input_set: Any, event: Event, note: Any) -> Kept:
        """The event state of an Input Set that begins with this event."""
        raise NotImplementedError

    def complete(self, ctx: Context) -> Sequence[Any] | None:
        """A group of Input Sets that nothing can be added to any more."""
        raise NotImplementedError

    def groups(self, input_sets: Sequence[Any], ctx: Context) -> Iterable[Sequence[Any]]:
        """All Input Sets that are open, in groups, in the order of their times."""
        raise NotImplementedError

    def close(self, input_sets: Sequence[Any], kept: Sequence[Kept], ctx: Context) -> tuple[int, int]:
        """Forgets what the state knows of them, and says where their time window starts and ends."""
        raise NotImplementedError

    # The moves

    def open(self, ctx: Context) -> None:
        """Nothing is kept."""
        self._kept: dict[Any, Kept] = {}
        self._late: dict[Any, tuple[pa.RecordBatch, Mapping[str, Any]]] = {}
        self._turn = 0
        self._last: tuple[Event, Divided, pa.RecordBatch] | None = None

    def assign(self, event: Event, ctx: Context) -> list[Hashable | Assigned]:
        """To the time windows of its records, and to a set of its own if late ones leave."""
        if event.batch is None or not event.batch.num_rows:
            return []
        for name in self.gatherer.columns(event.input):
            column_of(event, name, "by which it is gathered")
        check_time(event)
        divided, _ = self.divided(event)
        check_kind(event, divided.moments, self.by[event.input], ctx)
        assigned: list[Hashable | Assigned] = []
        if divided.moments.without:
            ctx.count("nulls", divided.moments.without)
        if len(divided.late):
            match self.late:
                case Late.DROP:
                    ctx.count("late", len(divided.late))
                case Late.PORT:
                    assigned.append((PORT, event.input, event.id))
                case Late.ERROR:
                    raise late_error(event, divided.moments, divided.late, self.by[event.input])
        if divided.places:
            assigned.extend(self.choose(event, divided, ctx))
        return assigned

    def update(self, input_set: Any, event: Event, note: Any = None) -> None:
        """Adds the event's records of this time window."""
        divided, prepared = self.divided(event)
        if isinstance(input_set, tuple):
            attributes = dict(event.attributes)
            if len(self.inputs) > 1:
                attributes["input"] = event.input
            self._late[input_set] = divided.moments.batch.take(divided.late), attributes
            return
        kept = self._kept.get(input_set)
        if kept is None:
            kept = self._kept[input_set] = self.begin(input_set, event, note)
        self._turn += 1
        records = divided.of(prepared, (input_set,) if note is None else note)
        self.gatherer.add(kept.content, records, event.input, self._turn)

    def ready(self, ctx: Context) -> Sequence[Sequence[Any]]:
        """Late records at once, and what is complete."""
        for key in self._late:
            return ([key],)
        group = self.complete(ctx)
        return () if group is None else (group,)

    def generate(self, input_sets: Sequence[Any], ctx: Context) -> Iterator[Yielded]:
        """What the gathered records give, at the last moment of their time window."""
        if input_sets[0] in self._late:
            yield PORT, *self._late.pop(input_sets[0])
            return
        kept = [self._kept.pop(key) for key in input_sets]
        start, end = self.close(input_sets, kept, ctx)
        ctx.at(end - 1)
        batch = as_batch(self.gatherer.result([each.content for each in kept], ctx))
        if batch.num_rows:
            yield "out", with_bounds(batch, start, end, kept[0].type) if self.bounds else batch

    def finish(self, input_sets: Sequence[Any], ctx: Context) -> Iterator[Yielded]:
        """Everything that is open, as if it were complete."""
        late = [key for key in input_sets if key in self._late]
        kept = [key for key in input_sets if key in self._kept]
        for group in (*([key] for key in late), *self.groups(kept, ctx)):
            ctx.uses(*group)
            yield from self.generate(group, ctx)

    def divided(self, event: Event) -> tuple[Divided, pa.RecordBatch]:
        """The division of an event, and its records as prepared: once for all its moves, and again after a crash."""
        if self._last is not None:
            last, divided, prepared = self._last
            if last.batch is event.batch and last.time == event.time and last.input == event.input:
                return divided, prepared
        found = moments_of(event, self.by[event.input], drops_nulls=self.nulls == "drop")
        divided, prepared = self.divide(event, found), self.gatherer.prepared(found.batch, event.input)
        self._last = event, divided, prepared
        return divided, prepared


def with_bounds(batch: pa.RecordBatch, start: int, end: int, kind: pa.DataType) -> pa.RecordBatch:
    """The records with the bounds of their time window as first columns.

    >>> with_bounds(as_batch([{"x": 1}]), 0, 10, pa.int64()).to_pylist()
    [{'window_start': 0, 'window_end': 10, 'x': 1}]
    """
    names = batch.schema.names
    if START in names or END in names:
        raise MoveError(
            f"the records of a time window have a column {START if START in names else END!r} already, so its bounds "
            f"cannot be added. Pass bounds=False, or rename the column."
        )
    bounds = [pa.repeat(pa.scalar(bound, pa.int64()).cast(kind), batch.num_rows) for bound in (start, end)]
    return pa.RecordBatch.from_arrays([*bounds, *batch.columns], names=[START, END, *names])
