"""Scripted sources: a list of events that a source gives, one after another."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from clew.errors import BuildError
from clew.model.event import as_batch
from clew.model.operator import Context
from clew.model.source import Source

Change = Callable[[pa.RecordBatch, int], Any]


def scripted(
    events: Iterable[Any],
    *,
    replayable: bool = True,
    actions: int = 1,
    change: Change | None = None,
) -> Source:
    """A source that gives these events: records in any of the usual shapes, or None for a moment without any.

    The events are divided over so many read actions. A replayable source can begin again at any event. One that is
    not replayable gives other data each time that an action is executed: `change(batch, reading)` makes them, given a
    number that differs from execution to execution; unless told otherwise it adds the number as column `reading`.

    >>> source = scripted([[{"x": 1}], [{"x": 2}], [{"x": 3}]], actions=2)
    >>> [(batch.to_pylist(), offset) for batch, offset in source.read(0, 1)]
    [([{'x': 2}], 2)]
    """
    script = [None if event is None else as_batch(event) for event in events]
    if type(actions) is not int or actions < 1:
        raise BuildError(
            f"scripted() was told to divide its events over {actions!r} read actions; expected a whole number from 1 "
            f"up. Pass such a number of actions."
        )
    length = -(-len(script) // actions)
    parts = [script[length * number : length * (number + 1)] for number in range(actions)]
    return _Replayable(parts) if replayable else _NotReplayable(parts, change or _add_reading)


class _Replayable(Source):
    """Gives the same events again, from any offset: how many events of the action were given."""

    def __init__(self, parts: list[list[pa.RecordBatch | None]]) -> None:
        self.parts = parts
        self.paused: set[tuple[int, int]] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Replayable:
        return copy.copy(self)  # The script is never changed, and copying all of it for each start would be slow.

    def open(self, ctx: Context) -> None:
        self.paused = set()

    def plan(self, ctx: Context) -> int | None:
        action: int = ctx.state.get("planned", 0)
        if action == len(self.parts):
            return None
        ctx.state["planned"] = action + 1
        return action

    def read(self, action: int, offset: int | None) -> Iterator[tuple[pa.RecordBatch, int] | None]:
        part = self.parts[action]
        for index in range(offset or 0, len(part)):
            batch = part[index]
            if batch is not None:
                yield batch, index + 1
            elif (action, index) not in self.paused:  # Once, or whoever asks again from the last offset never gets on.
                self.paused.add((action, index))
                yield None


class _NotReplayable(_Replayable):
    """Gives other data in each execution of an action, as an outside system that has changed meanwhile would."""

    is_replayable = False

    def __init__(self, parts: list[list[pa.RecordBatch | None]], change: Change) -> None:
        super().__init__(parts)
        self.change = change
        self.reading = 0

    def open(self, ctx: Context) -> None:
        super().open(ctx)
        self.reading = ctx.random.getrandbits(31)  # A successor must not read what its predecessor read.

    def read(self, action: int, offset: int | None) -> Iterator[tuple[pa.RecordBatch, int] | None]:
        if offset is None:
            self.reading += 1
        reading = self.reading
        for item in super().read(action, offset):
            yield None if item is None else (as_batch(self.change(item[0], reading)), item[1])


def _add_reading(batch: pa.RecordBatch, reading: int) -> pa.RecordBatch:
    return batch.append_column("reading", pa.array([reading] * batch.num_rows, pa.int64()))
