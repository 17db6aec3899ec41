"""Incremental histograms: for each time how often each value occurs at or before it (section 5.1 of the seed).

`histogram` is right in every partial order: each collection at or before t counts once for t, also if several paths
lead there. It keeps all data and counts again for each time: in a partial order any of them may be needed once more.
`TotalHistogram` does the same in a total order, on monotone streams, with one running histogram. `path_histogram` is
the other meaning that the seed mentions: what is below t counts once for each path that leads up from it to t.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clew.errors import BuildError
from clew.times.algebra.accumulated import Accumulated
from clew.times.algebra.incremental import incremental_batches, last_occurrences
from clew.times.algebra.logic import Logic, Machine
from clew.times.algebra.mapping import Map
from clew.times.algebra.shelf import Shelf
from clew.times.algebra.stream import DT, WM, TimedEvent, no_event
from clew.times.antichain import maximal
from clew.times.changes import Changes
from clew.times.order import Order, Poset


def histogram(order: Order, waiting: Sequence[tuple[Any, Any]] = (), before: Sequence[tuple[Any, Any]] = ()) -> Logic:
    """The incremental histogram in any order: batch, incremental, and a count of what is at or before each time.

    >>> from clew.times.algebra.logic import produce
    >>> from clew.times.order import Integers
    >>> for event in produce(histogram(Integers()), [DT(1, "a"), DT(2, "a"), WM(2)]):
    ...     print(event.time, dict(event.data) if isinstance(event, DT) else "is complete")
    1 {'a': 1}
    2 {'a': 2}
    2 is complete
    """
    return incremental_batches(order, waiting, before) >> Map(CountUpTo(order))


@dataclass(frozen=True)
class CountUpTo:
    """The function from a time and pairs (time, data) to the histogram of the data at or before the time."""

    order: Order

    def __call__(self, bound: Any, pairs: Sequence[tuple[Any, Any]]) -> Changes:
        found = pairs if isinstance(pairs, Accumulated) else Accumulated(pairs)
        counts: Counter[Any] = Counter()
        for time in found.times():
            if self.order.leq(time, bound):
                counts.update(found.counts_at(time))
        return Changes(counts)


def path_histogram(
    order: Order, waiting: Sequence[tuple[Any, Any]] = (), before: Sequence[tuple[Any, Any]] = ()
) -> Logic:
    """The histogram that adds to the data of a time the histograms of all times directly before it."""
    return incremental_batches(order, waiting, before) >> Map(CountEachPath(order))


@dataclass(frozen=True)
class CountEachPath:
    """The function from a time and pairs (time, data) to the sum of its data and of what is so for times before it.

    >>> from clew.times.order import Poset
    >>> diamond = Poset("olrt", ["ol", "or", "lt", "rt"])
    >>> CountEachPath(diamond)("t", [("o", "a"), ("l", "b"), ("r", "c"), ("t", "d")])
    Changes({'d': 1, 'b': 1, 'a': 2, 'c': 1})
    """

    order: Order

    def __call__(self, bound: Any, pairs: Sequence[tuple[Any, Any]]) -> Changes:
        found = pairs if isinstance(pairs, Accumulated) else Accumulated(pairs)
        below = [time for time in found.times() if self.order.leq(time, bound)]
        # Along the order: a time with fewer others before it comes first.
        below.sort(key=lambda time: sum(self.order.leq(other, time) for other in below))
        histograms: dict[Any, Changes] = {}
        for time in dict.fromkeys((*below, bound)):
            total = Changes(found.counts_at(time))
            for direct in maximal(self.order, [other for other in histograms if self.order.less(other, time)]):
                total = total + histograms[direct]
            histograms[time] = total
        return histograms[bound]


@dataclass(frozen=True)
class TotalHistogram(Logic):
    """Figure 7 of the seed, for total orders; a watermark that completes nothing passes too.

    `counted` are the data already counted, `waiting` the pairs not yet complete. On a stream that is not monotone it
    counts late data, and everything counted before, for the late time: Figure 8 shows the difference.
    """

    order: Order
    counted: Sequence[Any] = ()
    waiting: Sequence[tuple[Any, Any]] = ()

    def __post_init__(self) -> None:
        if not _compares_all(self.order):
            raise BuildError(
                f"TotalHistogram needs a total order of times and was given {self.order!r}, in which some times cannot "
                f"be compared. Use histogram(order), which is right in every order."
            )

    def begin(self) -> Machine:
        return _TotalHistogram(self)


def _compares_all(order: Order) -> bool:
    if isinstance(order, Poset):
        return all(order.leq(one, two) or order.leq(two, one) for one in order.elements for two in order.elements)
    return order.is_total


class _TotalHistogram(Machine):
    def __init__(self, operator: TotalHistogram) -> None:
        self.check = operator.order.check
        self.counts = Counter(operator.counted)
        self.shelf = Shelf(operator.order, ((self.check(time), data) for time, data in operator.waiting))

    def step(self, item: TimedEvent) -> Iterable[TimedEvent]:
        match item:
            case DT(time, data):
                self.shelf.put(self.check(time), data)
                return ()
            case WM(time):
                time = self.check(time)
                return [*self._count(self.shelf.take(time)), WM(time)]
        raise no_event(item, "TotalHistogram")

    def exit(self) -> Iterator[TimedEvent]:
        for last in self.shelf.maximal():
            yield from self._count(self.shelf.take(last))

    def _count(self, pairs: list[tuple[Any, Any]]) -> list[TimedEvent]:
        by_time: dict[Any, list[Any]] = {}
        for time, data in pairs:
            by_time.setdefault(time, []).append(data)
        histograms = {}
        for time in self.shelf.ascending(by_time):
            self.counts.update(by_time[time])
            histograms[time] = Changes(self.counts)
        return [DT(time, histograms[time]) for time in last_occurrences(time for time, _ in pairs)]
