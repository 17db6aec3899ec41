"""Gathering by time windows of one size: an Input Set is a time window, its key where it starts."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.model.event import Event
from clew.model.operator import Assigned, Context
from clew.operators.gathered import Divided, Gathered, Gatherer, Kept
from clew.operators.moments import Moments
from clew.operators.windows import Spans, Windows


class Windowed(Gathered):
    """Gathers records by tumbling or sliding time windows `[start, end)`, which are complete when `end - 1` has passed.

    A record is late when the last of its time windows has ended by the time of its event. If only some of them have,
    it is in the others.
    """

    def __init__(
        self,
        gatherer: Gatherer,
        windows: Windows,
        by: str | Sequence[str] = "ts",
        *,
        late: str = "drop",
        nulls: str = "error",
        bounds: bool = True,
    ) -> None:
        super().__init__(gatherer, by, late=late, nulls=nulls, bounds=bounds)
        self.windows = windows

    def open(self, ctx: Context) -> None:
        """Nothing is kept."""
        super().open(ctx)
        self._starts: list[int] = []
        """A heap of the open Input Sets' keys."""

    def divide(self, event: Event, found: Moments) -> Divided:
        """By time window, each row once for each of them that has not ended."""
        spans = self._spans(found.type)
        last = spans.starts(found.times)
        is_open = pc.greater(last, event.time - spans.size)
        late = pc.indices_nonzero(pc.invert(is_open))
        if spans.overlaps == 1:
            rows = pc.indices_nonzero(is_open)
            starts = last.take(rows) if len(late) else last
        else:
            rows, starts = _overlapping(spans, found.times, last, event.time)
        counts = {each["values"]: each["counts"] for each in starts.value_counts().to_pylist()}
        if len(counts) > 1:
            rows = rows.take(pc.array_sort_indices(starts))  # A stable sort: rows stay in their order.
        places, begin = {}, 0
        for start in sorted(counts):
            places[start] = begin, counts[start]
            begin += counts[start]
        return Divided(found, late, rows, places)

    def choose(self, event: Event, divided: Divided, ctx: Context) -> Iterator[Assigned]:
        """All time windows, with the last moment as the time of what they will give."""
        size = self._spans(divided.moments.type).size
        for start in divided.places:
            yield Assigned(start, time=start + size - 1)

    def begin(self, input_set: Any, event: Event, note: Any) -> Kept:
        """Nothing but its start is known."""
        heapq.heappush(self._starts, input_set)
        return Kept(self.gatherer.begin(), self.divided(event)[0].moments.type)

    def complete(self, ctx: Context) -> Sequence[Any] | None:
        """The first time window, if its last moment has passed on all inputs."""
        while self._starts and self._starts[0] not in self._kept:
            heapq.heappop(self._starts)
        if not self._starts:
            return None
        start = self._starts[0]
        is_over = ctx.frontier().passed(start + self._spans(self._kept[start].type).size - 1)
        return [start] if is_over else None

    def groups(self, input_sets: Sequence[Any], ctx: Context) -> list[list[Any]]:
        """Each by itself, by start."""
        return [[start] for start in sorted(input_sets)]

    def close(self, input_sets: Sequence[Any], kept: Sequence[Kept], ctx: Context) -> tuple[int, int]:
        """From the start, as long as all of them."""
        start: int = input_sets[0]
        return start, start + self._spans(kept[0].type).size

    def _spans(self, kind: pa.DataType) -> Spans:
        return self.windows.spans(bool(pa.types.is_timestamp(kind)))


def _overlapping(spans: Spans, times: pa.Array, last: pa.Array, now: int) -> tuple[pa.Array, pa.Array]:
    """Each row with the start of each of its time windows that has not ended; by row, where starts are equal."""
    all_rows = pa.array(range(len(times)), pa.uint64())
    ends_after = pc.max_element_wise(times, now)
    rows, starts = [], []
    for step in range(spans.overlaps):
        each = pc.subtract(last, step * spans.every)
        is_open = pc.greater(each, pc.subtract(ends_after, spans.size))
        rows.append(all_rows.filter(is_open))
        starts.append(each.filter(is_open))
    found = pa.table({"row": pa.concat_arrays(rows), "start": pa.concat_arrays(starts)})
    found = found.take(pc.sort_indices(found, [("row", "ascending")]))
    return found["row"].combine_chunks(), found["start"].combine_chunks()
