"""What the operators on batches must do, said without their code (sections 4.3 and 4.4 of the time-aware seed)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from clew.testing.time_specifications import Expected, Pairs, Specification, distinct, minus, pairs_of, watermarks_of
from clew.times import Order
from clew.times.algebra import DT, WM, TimedEvent


class IncrementalSpecification(Expected):
    """For each batch and each time in it, what was there before, all batches up to this one, one after the other."""

    def __init__(self, order: Order, before: Pairs = ()) -> None:
        self.order = order
        self.before = before

    def assumes(self, stream: Sequence[TimedEvent]) -> bool:
        """What monotonicity and productivity mean for times inside of batches (16, 17 of the seed)."""
        marks: list[Any] = []
        for event in stream:
            if isinstance(event, WM):
                marks.append(event.time)
                continue
            for time, _ in event.data:
                if not self.order.leq(time, event.time) or any(self.order.leq(time, mark) for mark in marks):
                    return False
        return True

    def data(self, stream: Sequence[TimedEvent]) -> Iterator[DT]:
        batches = [data for _, data in pairs_of(stream)]
        for n, batch in enumerate(batches, start=1):
            for time in distinct(time for time, _ in batch):
                yield DT(time, (*self.before, *(pair for one in batches[:n] for pair in one)))


class BatchSpecification(Specification):
    """Batches of whole collections: each time in the batch of the first watermark that completes it (10, 11).

    What no watermark completes is in the batches of its maximal times, each time in the first of these, in the order in
    which they first occur, that is at or after it.
    """

    def __init__(self, order: Order, waiting: Pairs = ()) -> None:
        self.order = order
        self.waiting = waiting

    def unsound(self, stream: Sequence[TimedEvent], came: Sequence[TimedEvent]) -> Iterator[str]:
        pairs = [*self.waiting, *pairs_of(stream)]
        done: list[Any] = []
        for label, batch in pairs_of(came):
            times = distinct(time for time, _ in batch)
            for time in times:
                if time in done:
                    yield f"{time!r} is in two batches, the second is DT({label!r}, {batch!r})"
                inside, whole = ([data for other, data in some if other == time] for some in (batch, pairs))
                if minus(inside, whole) or minus(whole, inside):
                    yield f"DT({label!r}, {batch!r}) has {inside!r} at {time!r}, and the stream has {whole!r} there"
            done += times
            wanted = self.times_of(stream, label)
            if minus(times, wanted) or minus(wanted, times):
                yield f"DT({label!r}, {batch!r}) has the times {times!r}, and the batch of {label!r} is {wanted!r}"
        for mark in minus(watermarks_of(came), watermarks_of(stream)):
            yield f"{mark!r} came out more often than it went in"

    def times_of(self, stream: Sequence[TimedEvent], label: Any) -> list[Any]:
        """The times that the batch of this label consists of."""
        times = distinct([*self.waiting_times(), *(time for time, _ in pairs_of(stream))])
        marks = [mark.time for mark in watermarks_of(stream)]
        if label in marks:
            earlier = marks[: marks.index(label)]
        else:
            left = [time for time in times if not any(self.order.leq(time, mark) for mark in marks)]
            ends = [time for time in left if not any(self.order.less(time, other) for other in left)]
            earlier = [*marks, *(ends[: ends.index(label)] if label in ends else ends)]
        return [
            time
            for time in times
            if self.order.leq(time, label) and not any(self.order.leq(time, mark) for mark in earlier)
        ]

    def missing(self, stream: Sequence[TimedEvent], came: Sequence[TimedEvent]) -> Iterator[str]:
        found = [time for _, batch in pairs_of(came) for time, _ in batch]
        for time, data in [*self.waiting, *pairs_of(stream)]:
            if time not in found:
                yield f"DT({time!r}, {data!r}) is in no batch"
        for mark in minus(watermarks_of(stream), watermarks_of(came)):
            yield f"{mark!r} should have come out and did not"

    def waiting_times(self) -> list[Any]:
        return [time for time, _ in self.waiting]


class IncrementalBatchesSpecification(Specification):
    """For each time, once: what was there before, then whole collections, among them all at or before it (20, 21)."""

    def __init__(self, order: Order, waiting: Pairs = (), before: Pairs = ()) -> None:
        self.order = order
        self.waiting = waiting
        self.before = before

    def unsound(self, stream: Sequence[TimedEvent], came: Sequence[TimedEvent]) -> Iterator[str]:
        pairs = [*self.waiting, *pairs_of(stream)]
        times = distinct(time for time, _ in pairs)
        for time in minus([time for time, _ in pairs_of(came)], times):
            yield f"data at {time!r} came out more often than it should"
        for time, found in pairs_of(came):
            inside = list(found)
            if inside[: len(self.before)] != list(self.before):
                yield f"DT({time!r}, {inside!r}) does not begin with what was there before, {self.before!r}"
            rest = inside[len(self.before) :]
            if strange := minus(rest, pairs):
                yield f"DT({time!r}, {inside!r}) has {strange!r}, which the stream does not have"
            wanted = [pair for pair in pairs if self.order.leq(pair[0], time)]
            if lacking := minus(wanted, rest):
                yield f"DT({time!r}, {inside!r}) lacks {lacking!r}, though it is at or before {time!r}"
        for mark in minus(watermarks_of(came), watermarks_of(stream)):
            yield f"{mark!r} came out more often than it went in"

    def missing(self, stream: Sequence[TimedEvent], came: Sequence[TimedEvent]) -> Iterator[str]:
        found = [time for time, _ in pairs_of(came)]
        for time in distinct([*self.waiting_times(), *(time for time, _ in pairs_of(stream))]):
            if time not in found:
                yield f"no accumulated batch came out at {time!r}"
        for mark in minus(watermarks_of(stream), watermarks_of(came)):
            yield f"{mark!r} should have come out and did not"

    def waiting_times(self) -> list[Any]:
        return [time for time, _ in self.waiting]
