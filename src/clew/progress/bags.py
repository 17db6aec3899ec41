"""Signed multisets of times that can be changed and know their minimal elements.

Invariant: `least()` is the set of minimal times among those with a positive count; a negative count hides nothing but
itself. (Infimum of a signed multiset: progress thesis, section 4.1.4.)
"""

from __future__ import annotations

from heapq import heappop, heappush

from clew.times import EventTime, Integers, Order, Time, minimal


class Bag:
    """Times of any order. A change costs what it does to the minimal elements; losing one costs a look at all."""

    __slots__ = ("_is_stale", "_least", "counts", "order")

    def __init__(self, order: Order) -> None:
        self.order = order
        self.counts: dict[Time, int] = {}
        self._least: tuple[Time, ...] = ()
        self._is_stale = False

    def change(self, time: Time, count: int) -> None:
        """Adds `count` of this time; it may be negative, and so may the sum."""
        old = self.counts.get(time, 0)
        new = old + count
        if new:
            self.counts[time] = new
        else:
            self.counts.pop(time, None)
        if old <= 0 < new and not self._is_stale:
            leq = self.order.leq
            if not any(leq(low, time) for low in self._least):
                self._least = (*(low for low in self._least if not leq(time, low)), time)
        elif new <= 0 < old and time in self._least:
            self._is_stale = True

    def least(self) -> tuple[Time, ...]:
        """The minimal times with a positive count."""
        if self._is_stale:
            self._least = minimal(self.order, [time for time, count in self.counts.items() if count > 0])
            self._is_stale = False
        return self._least


class NumberBag:
    """Whole numbers: the same with a heap, so that the loss of the smallest costs little."""

    __slots__ = ("_heap", "_heaped", "counts")

    def __init__(self) -> None:
        self.counts: dict[Time, int] = {}
        self._heap: list[int] = []
        self._heaped: set[int] = set()

    def change(self, time: Time, count: int) -> None:
        """Adds `count` of this time; it may be negative, and so may the sum."""
        new = self.counts.get(time, 0) + count
        if new:
            self.counts[time] = new
            if new > 0 and time not in self._heaped:
                self._heaped.add(time)
                heappush(self._heap, time)
        else:
            self.counts.pop(time, None)

    def least(self) -> tuple[Time, ...]:
        """The smallest time with a positive count, if there is one."""
        heap, counts = self._heap, self.counts
        while heap:
            if counts.get(heap[0], 0) > 0:
                return (heap[0],)
            self._heaped.discard(heappop(heap))
        return ()


def bag_of(order: Order) -> Bag | NumberBag:
    """The quickest bag for an order."""
    return NumberBag() if type(order) in (Integers, EventTime) else Bag(order)
