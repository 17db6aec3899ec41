"""Rows at a steady pace: a source for tests, examples and measurements."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from clew.connect.settings import counted, positive
from clew.model.operator import Context
from clew.model.source import Source


def rate(per_second: float, count: int | None = None, *, rows_per_event: int = 1) -> Source:
    """So many rows per second: `id` counts from 1, `at` is when it is due, in seconds since the epoch; replayable.

    The pace is fixed when the run begins: after a crash, or behind a slow pipeline, the rows that are overdue come at
    once. An event is given when the last of its rows is due. Ends after `count` rows, or never.

    >>> source = rate(100, count=5, rows_per_event=2)
    >>> [(batch.to_pydict(), offset) for batch, offset in source.read(1_700_000_000.0, 4)]
    [({'id': [5], 'at': [1700000000.04]}, 5)]
    """
    return Rate(per_second, count, rows_per_event)


class Rate(Source):
    """See `rate`."""

    def __init__(self, per_second: float, count: int | None, rows_per_event: int) -> None:
        self.per_second = positive("rate()", "per_second", per_second)
        self.count = None if count is None else counted("rate()", "count", count)
        self.rows_per_event = counted("rate()", "rows_per_event", rows_per_event)
        self.poll_s = min(0.05, max(0.001, self.rows_per_event / self.per_second / 4))

    def __repr__(self) -> str:
        return f"<rate {self.per_second:g} per second>"

    def plan(self, ctx: Context) -> float | None:
        """The one read action: when the first row is due."""
        return None if super().plan(ctx) is None else ctx.now

    def read(self, action: float, offset: int | None) -> Iterator[Any]:
        """The rows behind the first so many."""
        given = offset or 0
        while self.count is None or given < self.count:
            last = given + self.rows_per_event
            if self.count is not None:
                last = min(last, self.count)
            while time.time() < self._due(action, last):
                yield None
            ids = range(given + 1, last + 1)
            given = last
            yield _batch(ids, [self._due(action, each) for each in ids]), given

    def _due(self, start: float, row: int) -> float:
        return start + (row - 1) / self.per_second


_SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.float64())])


def _batch(ids: range, at: list[float]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(ids, pa.int64()), pa.array(at, pa.float64())], schema=_SCHEMA)
