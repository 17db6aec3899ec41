"""The base of operators that work on so many events at a time, whatever is in them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from clew.errors import BuildError
from clew.model.event import Event
from clew.model.operator import Context, Operator


class Counted(Operator):
    """Every `every` events are an Input Set, the last one may have fewer: subclasses write `apply`.

    The state counts the events; Input Sets are numbered from 1.
    """

    _waiting: dict[int, list[pa.RecordBatch]]

    def __init__(self, every: int) -> None:
        if type(every) is not int or every < 1:
            raise BuildError(
                f"{type(self).__name__} collects {every!r} events at a time; expected a whole number from 1 up. "
                f"Pass how many events make one output."
            )
        self.every = every

    def apply(self, batches: list[pa.RecordBatch], ctx: Context) -> Iterable[tuple[str, Any]]:
        """Outputs from the records of so many events, in the order in which they came."""
        raise NotImplementedError

    def open(self, ctx: Context) -> None:
        """Nothing is waiting."""
        self._waiting = {}

    def assign(self, event: Event, ctx: Context) -> Sequence[Hashable]:
        """To the set that is being filled."""
        count = ctx.state.get("count", 0)
        ctx.state["count"] = count + 1
        return (count // self.every + 1,)

    def update(self, input_set: Any, event: Event, note: Any = None) -> None:
        """Adds the records to the set."""
        self._waiting.setdefault(input_set, []).append(event.batch)

    def ready(self, ctx: Context) -> Sequence[Sequence[Any]]:
        """When a set is full."""
        for key, batches in self._waiting.items():
            if len(batches) == self.every:
                return ([key],)
        return ()

    def generate(self, input_sets: Sequence[Any], ctx: Context) -> Iterator[tuple[str, Any]]:
        """What `apply` makes of each set."""
        for key in input_sets:
            yield from self.apply(self._waiting.pop(key), ctx)
