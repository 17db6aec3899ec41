"""Collecting: a sink whose result is its state, to be looked at when the run is over, or before."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from clew.model.event import Event
from clew.model.operator import Context, Operator
from clew.operators.shape import together

COUNT = "count"


class Collect(Operator):
    """Keeps the records of every event in the log; for results that fit into memory."""

    outputs = ()

    def assign(self, event: Event, ctx: Context) -> Sequence[Hashable]:
        """To no Input Set: the event is finished with as soon as its records are in the state."""
        number = ctx.state.get(COUNT, 0) + 1
        ctx.state[COUNT] = number
        ctx.state[number] = event.batch
        return ()

    def update(self, input_set: Any, event: Event, note: Any = None) -> None:
        """Is never asked to."""

    def generate(self, input_sets: Sequence[Any], ctx: Context) -> Iterable[tuple[str, Any]]:
        """Is never asked to."""
        return ()


def collected(state: Iterable[tuple[Any, Any]]) -> pa.Table:
    """The records in the state of a collecting sink, in the order in which their events came.

    >>> from clew.model.event import as_batch
    >>> collected([(2, as_batch([{"x": 5}])), (1, as_batch([{"x": 4}])), ("count", 2)]).to_pylist()
    [{'x': 4}, {'x': 5}]
    """
    batches = [value for key, value in sorted((key, value) for key, value in state if key != COUNT)]
    return together(batches) if batches else pa.table({})
