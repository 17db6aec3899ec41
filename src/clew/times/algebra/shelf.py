"""A shelf: items put aside under a time, in the order of their arrival, until everything up to some time is taken.

The times on it wait in a heap, by a key that sorts along the order: what is at or before a bound has no greater key. In
a total order nothing else has, so that taking costs only what is taken. Without such a key each time is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key
from heapq import heappop, heappush
from typing import Any

from clew.times.antichain import maximal
from clew.times.order import Order


class Shelf:
    """Items by time.

    >>> from clew.times.order import Integers
    >>> shelf = Shelf(Integers(), [(3, "a"), (1, "b"), (2, "c"), (1, "d")])
    >>> shelf.take(2)
    [(1, 'b'), (2, 'c'), (1, 'd')]
    >>> shelf.take(2), shelf.maximal()
    ([], (3,))
    """

    def __init__(self, order: Order, items: Iterable[tuple[Any, Any]] = ()) -> None:
        self.order = order
        self.arrived = 0
        self.by_time: dict[Any, list[tuple[int, Any]]] = {}
        self.heap: list[tuple[Any, int, Any]] = []  # Key, number of arrival and time; empty if times have no keys.
        self.compared = cmp_to_key(lambda one, other: 0 if one == other else -1 if order.leq(one, other) else 1)
        for time, item in items:
            self.put(time, item)

    def put(self, time: Any, item: Any) -> None:
        """Puts an item aside."""
        waiting = self.by_time.get(time)
        if waiting is None:
            waiting = self.by_time[time] = []
            key = self._key(time)
            if key is not None:
                heappush(self.heap, (key, self.arrived, time))
        waiting.append((self.arrived, item))
        self.arrived += 1

    def take(self, bound: Any) -> list[tuple[Any, Any]]:
        """Takes away all items at or before a time: pairs of time and item, in the order of their arrival."""
        found = self._take_times(bound)
        if len(found) == 1:
            return [(found[0], item) for _, item in self.by_time.pop(found[0])]
        taken = [(number, time, item) for time in found for number, item in self.by_time.pop(time)]
        taken.sort(key=lambda one: one[0])
        return [(time, item) for _, time, item in taken]

    def maximal(self) -> tuple[Any, ...]:
        """The maximal ones among the times on the shelf, in the order of their first items."""
        return maximal(self.order, self.by_time)

    def ascending(self, times: Iterable[Any]) -> list[Any]:
        """Times of a total order, sorted by it."""
        return sorted(times, key=self.compared)

    def _key(self, time: Any) -> Any:
        key = self.order.sort_key(time)
        return self.compared(time) if key is None and self.order.is_total else key

    def _take_times(self, bound: Any) -> list[Any]:
        leq, key = self.order.leq, self._key(bound)
        if key is None:
            return [time for time in self.by_time if leq(time, bound)]
        found: list[tuple[Any, int, Any]] = []
        left: list[tuple[Any, int, Any]] = []
        while self.heap and not key < self.heap[0][0]:
            entry = heappop(self.heap)
            (found if leq(entry[2], bound) else left).append(entry)
        for entry in left:
            heappush(self.heap, entry)
        return [entry[2] for entry in found]
