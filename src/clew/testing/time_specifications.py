"""What time-aware operators must do, said of a whole stream and of all that came out, without their code.

Each specification restates the soundness and completeness of the time-aware seed (sections 4.3, 4.4 and 5) as plain
sums over the stream, for finite monotone streams with the end of input. A watermark that does not come out is missing,
too, and nothing may come out more often than it should.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from clew.times import Disjoint, Order
from clew.times.algebra import DT, WM, Cyclic, TimedEvent

Pairs = Sequence[tuple[Any, Any]]


class Specification(ABC):
    """What an operator must do with a finite monotone stream; `order` is that of the times it takes."""

    order: Order

    @property
    def out_order(self) -> Order:
        """The order of the times that come out; the same unless told otherwise."""
        return self.order

    def assumes(self, stream: Sequence[TimedEvent]) -> bool:
        """Whether the operator must do anything right with this stream, besides that it is monotone."""
        return True

    @abstractmethod
    def unsound(self, stream: Sequence[TimedEvent], came: Sequence[TimedEvent]) -> Iterable[str]:
        """What came out and should not have, in words."""

    @abstractmethod
    def missing(self, stream: Sequence[TimedEvent], came: Sequence[TimedEvent]) -> Iterable[str]:
        """What should have come out and did not, in words."""

    def closing(self, stream: Sequence[TimedEvent]) -> list[WM]:
        """Watermarks that complete everything in the stream and everything that waited before it."""
        return [WM(time) for time in distinct([*(event.time for event in stream), *self.waiting_times()])]

    def assumes_endless(self, stream: Cyclic, patience: int) -> bool:
        """Whether productivity must be preserved on this productive stream; see `first_broken` for `patience`."""
        return True

    def waiting_times(self) -> list[Any]:
        """The times of data that waited in the operator before the stream."""
        return []


class Expected(Specification):
    """A specification that says exactly which data must come out, in any order, and which watermarks."""

    @abstractmethod
    def data(self, stream: Sequence[TimedEvent]) -> Iterable[DT]:
        """All data that must come out, each as often as it must."""

    def watermarks(self, stream: Sequence[TimedEvent]) -> Iterable[WM]:
        """All watermarks that must come out; those that go in, unless told otherwise."""
        return watermarks_of(stream)

    def unsound(self, stream: Sequence[TimedEvent], came: Sequence[TimedEvent]) -> Iterator[str]:
        for extra in minus(came, [*self.data(stream), *self.watermarks(stream)]):
            yield f"{extra!r} came out, and nothing in the stream accounts for it{_instead(extra, self.data(stream))}"

    def missing(self, stream: Sequence[TimedEvent], came: Sequence[TimedEvent]) -> Iterator[str]:
        for lacking in minus([*self.data(stream), *self.watermarks(stream)], came):
            yield f"{lacking!r} should have come out and did not"


class MapSpecification(Expected):
    """Each data item changed by f, its time as it was."""

    def __init__(self, order: Order, f: Callable[[Any, Any], Any]) -> None:
        self.order = order
        self.f = f

    def data(self, stream: Sequence[TimedEvent]) -> Iterator[DT]:
        return (DT(time, self.f(time, data)) for time, data in pairs_of(stream))


class FlattenSpecification(Expected):
    """Each element of each data item, at its time."""

    def __init__(self, order: Order) -> None:
        self.order = order

    def data(self, stream: Sequence[TimedEvent]) -> Iterator[DT]:
        return (DT(time, one) for time, data in pairs_of(stream) for one in data)


class UnionSpecification(Expected):
    """All data without sides; each watermark of one side that the other side reached, too. `order` is of each side."""

    def __init__(self, order: Order) -> None:
        self.side = order
        self.order = Disjoint(order, order)

    @property
    def out_order(self) -> Order:
        return self.side

    def data(self, stream: Sequence[TimedEvent]) -> Iterable[DT]:
        return [DT(sided[1], data) for sided, data in pairs_of(stream)]

    def watermarks(self, stream: Sequence[TimedEvent]) -> Iterable[WM]:
        marks = watermarks_of(stream)
        return [WM(mark.time[1]) for mark in marks if self._is_reached(mark, marks)]

    def _is_reached(self, mark: WM, marks: Iterable[WM]) -> bool:
        """Whether the other side has a watermark at or after this one."""
        side, time = mark.time
        return any(other.time[0] != side and self.side.leq(time, other.time[1]) for other in marks)

    def assumes_endless(self, stream: Cyclic, patience: int) -> bool:
        """Each watermark is reached by the other side (31 of the seed)."""
        marks = watermarks_of(stream.unrolled(2 * patience))
        return all(self._is_reached(mark, marks) for mark in watermarks_of(stream.unrolled(patience)))

    def closing(self, stream: Sequence[TimedEvent]) -> list[WM]:
        return [WM((side, time)) for time in distinct(event.time[1] for event in stream) for side in ("L", "R")]


class JoinSpecification(UnionSpecification):
    """What f makes of each left and right item of the same time, unless None; watermarks as in a union."""

    def __init__(self, order: Order, f: Callable[[Any, Any], Any]) -> None:
        super().__init__(order)
        self.f = f

    def data(self, stream: Sequence[TimedEvent]) -> Iterable[DT]:
        lefts = [(sided[1], data) for sided, data in pairs_of(stream) if sided[0] == "L"]
        rights = [(sided[1], data) for sided, data in pairs_of(stream) if sided[0] == "R"]
        joined = [(time, self.f(left, right)) for time, left in lefts for other, right in rights if time == other]
        return [DT(time, result) for time, result in joined if result is not None]


class HistogramSpecification(Expected):
    """For each time of data how often each value occurs at or before it; each item counts once.

    `waiting` and `before` are the buffers of `histogram`; `counted` is data that counts for every time, as in
    `TotalHistogram`.
    """

    def __init__(self, order: Order, waiting: Pairs = (), before: Pairs = (), counted: Sequence[Any] = ()) -> None:
        self.order = order
        self.waiting = waiting
        self.before = before
        self.counted = counted

    def data(self, stream: Sequence[TimedEvent]) -> Iterator[DT]:
        pairs = [*self.waiting, *pairs_of(stream)]
        for time in distinct(time for time, _ in pairs):
            counts: dict[Any, int] = {}
            for data in self.counted:
                counts[data] = counts.get(data, 0) + 1
            for other, data in [*self.before, *pairs]:
                if self.order.leq(other, time):
                    counts[data] = counts.get(data, 0) + 1
            yield DT(time, counts)

    def waiting_times(self) -> list[Any]:
        return [time for time, _ in self.waiting]


def pairs_of(stream: Iterable[TimedEvent]) -> list[tuple[Any, Any]]:
    """The data of a stream as pairs (time, data)."""
    return [(event.time, event.data) for event in stream if isinstance(event, DT)]


def watermarks_of(stream: Iterable[TimedEvent]) -> list[WM]:
    """The watermarks of a stream."""
    return [event for event in stream if isinstance(event, WM)]


def distinct(times: Iterable[Any]) -> list[Any]:
    """Each time once."""
    return list(dict.fromkeys(times))


def minus(some: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """The items of the first that are left when each item of the second takes an equal one away."""
    left = list(others)
    extra = []
    for item in some:
        if item in left:
            left.remove(item)
        else:
            extra.append(item)
    return extra


def _instead(extra: TimedEvent, data: Iterable[DT]) -> str:
    if not isinstance(extra, DT):
        return ""
    wanted = [one.data for one in data if one.time == extra.time]
    return (
        f"; at {extra.time!r} there should be {wanted!r}" if wanted else f"; at {extra.time!r} there should be nothing"
    )
