"""Histograms: how often each value of a column occurs in a time window, or in all time up to its end.

A running histogram is that of the progress texts for times in a row (section 5.1, Figure 7): the counts of all windows
so far are in the state, each closed window adds its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from clew.errors import BuildError
from clew.model.operator import Context
from clew.model.values import encode_key
from clew.operators.aggregate import Aggregates, Partial

COUNT = "count"


class Counts(Aggregates):
    """Counts how often each value of a column occurs, for each key by itself if there are keys.

    >>> counts = Counts("item")
    >>> kept = counts.begin()
    >>> counts.add(kept, counts.prepared(pa.record_batch({"item": ["a", "b", "a"]}), "in"), "in", 1)
    >>> counts.result([kept], None).to_pylist()
    [{'item': 'a', 'count': 2}, {'item': 'b', 'count': 1}]
    """

    def __init__(self, column: Any, keys: Sequence[str] = ()) -> None:
        if not isinstance(column, str) or not column or column in keys or column == COUNT or COUNT in keys:
            raise BuildError(
                f"histogram was given the column {column!r} and the keys {list(keys)!r}; expected the name of a column "
                f"that is not a key, and no column {COUNT!r}, which is that of the result. Rename one of them before."
            )
        super().__init__({COUNT: COUNT}, (*keys, column))


class RunningCounts(Counts):
    """The counts of all time so far, in the order of the state's keys; the state has one key for each value."""

    def result(self, kept: Sequence[Partial], ctx: Context | None) -> pa.Table:
        """The counts of the time windows so far, with this one; it writes what has changed only."""
        assert ctx is not None
        counts = super().result(kept, ctx)
        columns = [counts[name].to_pylist() for name in self.keys]
        for key, count in zip(zip(*columns, strict=True), counts[COUNT].to_pylist(), strict=True):
            ctx.state[key] = ctx.state.get(key, 0) + count
        keys = sorted(ctx.state, key=encode_key)
        found = {
            name: _array([key[place] for key in keys], counts.schema.field(name).type)
            for place, name in enumerate(self.keys)
        }
        return pa.table({**found, COUNT: pa.array([ctx.state[key] for key in keys], pa.int64())})


def _array(values: list[object], kind: pa.DataType) -> pa.Array:
    """In the type of the last time window, or what holds older values as well."""
    try:
        return pa.array(values, kind)
    except pa.ArrowInvalid:
        return pa.array(values)
