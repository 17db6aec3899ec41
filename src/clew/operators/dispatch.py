"""Dispatchers: divide a stream over the replicas of an operator, one output port for each (section 7.1 of LOG.io)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import BuildError, MoveError
from clew.model.event import Event
from clew.model.operator import Context, Operator, Yielded
from clew.operators.hashing import hash_of, hashes_of
from clew.operators.shape import Shape, shaped
from clew.operators.stateless import Stateless

Key = str | Sequence[str] | Callable[[Any], Any] | None
"""What decides to which replica a record goes: a column, several columns, a function, or nothing."""

_FEW = 16
"""Up to so many records, one after another is faster than all at once."""


def port_of(replica: int) -> str:
    """The dispatcher's output port for a replica.

    >>> port_of(2)
    'out-2'
    """
    return f"out-{replica}"


def dispatcher(replicas: int, key: Key = None, shape: Shape = Shape.TABLE) -> Operator:
    """The operator that divides a stream over so many replicas: by key, or in turn if there is none."""
    if shape is not Shape.TABLE and not callable(key):
        raise BuildError(
            f"parallel() was given the key {key!r} with {shape.value}=True, which says what a function as key is "
            f"given; expected a function. Pass one, or leave {shape.value} out."
        )
    return RoundRobin(replicas) if key is None else KeyDispatch(replicas, key, shape)


class RoundRobin(Stateless):
    """Sends whole events to the replicas in turn, passing over a replica that is behind.

    A replica is behind when it has more than `slack` unacknowledged events more than the one that has fewest: because
    it is slow, or because it has failed and is recovering. The choice is part of a move, so it is made once.

    >>> RoundRobin(3).outputs
    ('out-0', 'out-1', 'out-2')
    """

    def __init__(self, replicas: int, slack: int = 2) -> None:
        self.outputs = tuple(map(port_of, range(replicas)))
        self.slack = slack

    def apply(self, event: Event, ctx: Context) -> Iterator[Yielded]:
        """The event, to one replica."""
        turn = event.id - 1  # Ids have no gaps, so that nothing else needs to be remembered.
        ports = [self.outputs[(turn + step) % len(self.outputs)] for step in range(len(self.outputs))]
        backlogs = [ctx.backlog(port) for port in ports]
        limit = min(backlogs) + self.slack
        port = next(port for port, backlog in zip(ports, backlogs, strict=True) if backlog <= limit)
        yield port, event.batch, event.attributes


class KeyDispatch(Stateless):
    """Sends each record to the replica that its key belongs to, so that equal keys always meet in one replica.

    The records of an event that go to one replica stay one event, in their order. A function as key is given what
    `shape` says, and gives one key for each record.
    """

    def __init__(self, replicas: int, key: Key, shape: Shape = Shape.TABLE) -> None:
        self.outputs = tuple(map(port_of, range(replicas)))
        self.f = key if callable(key) else None
        self.columns = None if callable(key) else _columns(key)
        self.shape = shape

    def apply(self, event: Event, ctx: Context) -> Iterator[Yielded]:
        """The parts of the event, one for each replica that gets any of its records."""
        batch: Any = event.batch
        hashes = self._hashes(event, batch) if batch.num_rows else [0]
        for replica, part in _divided(batch, hashes, len(self.outputs)):
            yield self.outputs[replica], part, event.attributes

    def _hashes(self, event: Event, batch: pa.RecordBatch) -> list[int] | pa.UInt64Array:
        if self.columns is None:
            return self._hashes_given(event)
        found = [_column(event, batch, name) for name in self.columns]
        if batch.num_rows > _FEW:
            return hashes_of(found)
        values = [column.to_pylist() for column in found]
        return [hash_of(value) for value in (values[0] if len(values) == 1 else zip(*values, strict=True))]

    def _hashes_given(self, event: Event) -> list[int] | pa.UInt64Array:
        """The hashes of the keys that the function gives."""
        assert self.f is not None
        if self.shape is Shape.ROWS:
            return [hash_of(self.f(row)) for row in event.rows]
        keys = self.f(shaped(event.table, self.shape))
        if type(keys).__module__.startswith(("pandas", "numpy")) and hasattr(keys, "tolist"):
            is_plain = type(keys).__module__ == "numpy" or keys.dtype == object
            keys = keys.tolist() if is_plain else pa.array(keys, from_pandas=True)  # Arrow knows NaT and NA.
        if not isinstance(keys, pa.Array | pa.ChunkedArray | list | tuple) or len(keys) != event.table.num_rows:
            found = f" of {len(keys)}" if hasattr(keys, "__len__") else ""
            raise MoveError(
                f"the key function of parallel() returned a {type(keys).__name__}{found} for event {event}; expected "
                f"an array, series or list with a key for each of its {event.table.num_rows} records. Return one, or "
                f"pass rows=True for a function that is given one row at a time."
            )
        return [hash_of(key) for key in keys] if isinstance(keys, list | tuple) else hashes_of([keys])


def _columns(key: Any) -> tuple[str, ...]:
    columns = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, Sequence) else ()
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise BuildError(
            f"parallel() was given the key {key!r}; expected the name of a column, a list of such names, or a function "
            f"that gives the key of each record. Pass one of these, or no key if any replica may get any event."
        )
    return columns


def _column(event: Event, batch: pa.RecordBatch, name: str) -> pa.Array:
    place = batch.schema.get_field_index(name)
    if place < 0:
        raise MoveError(
            f"event {event} has no column {name!r}, by which it is to be divided over replicas; its columns are "
            f"{', '.join(batch.schema.names) or 'none'}. Name one of these in parallel(key=...), or make the column in "
            f"an operator before it."
        )
    return batch.column(place)


def _divided(
    batch: pa.RecordBatch, hashes: list[int] | pa.UInt64Array, replicas: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The records of each replica that gets any, in their order."""
    if isinstance(hashes, list):
        targets = [number % replicas for number in hashes]
        if len(set(targets)) == 1:
            yield targets[0], batch
            return
        places = pa.array(targets, pa.uint16())
    else:
        count = pa.scalar(replicas, pa.uint64())
        places = pc.subtract(hashes, pc.multiply(pc.divide(hashes, count), count)).cast(pa.uint16())
    counts = {each["values"]: each["counts"] for each in places.value_counts().to_pylist()}
    if len(counts) == 1:
        yield next(iter(counts)), batch
        return
    ordered = batch.take(pc.array_sort_indices(places))  # A stable sort: what was before stays before.
    start = 0
    for replica in sorted(counts):
        yield replica, ordered.slice(start, counts[replica])
        start += counts[replica]
