"""A growing set of event ids that is dense from below: a floor and a few ranges above it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


class IdSet:
    """Ids 1..floor and ranges above it; costs what its gaps cost, not what it holds.

    >>> ids = IdSet()
    >>> for number in (1, 3, 2, 6): ids.add(number)
    >>> ids.floor, ids.ranges(), 5 in ids
    (3, [(6, 6)], False)
    """

    __slots__ = ("_firsts", "_lasts", "floor")

    def __init__(self, floor: int = 0, above: Iterable[int] = ()) -> None:
        self.floor = floor
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for number in above:
            self.add(number)

    def add(self, number: int) -> None:
        """Takes one id in."""
        if number == self.floor + 1:
            self.floor = number
            if self._firsts and self._firsts[0] == number + 1:
                self.floor = self._lasts.pop(0)
                self._firsts.pop(0)
        elif number > self.floor:
            self._add_range(number, number)

    def add_range(self, first: int, last: int) -> None:
        """Takes a range in, both ends included.

        >>> ids = IdSet(2, [5]); ids.add_range(3, 4); ids
        IdSet(5)
        """
        if first <= self.floor + 1:
            self.floor = max(self.floor, last)
            while self._firsts and self._firsts[0] <= self.floor + 1:
                self.floor = max(self.floor, self._lasts.pop(0))
                self._firsts.pop(0)
        elif first <= last:
            self._add_range(first, last)

    def update(self, other: IdSet) -> None:
        """Takes in all ids of another set."""
        self.add_range(1, other.floor)
        for first, last in zip(other._firsts, other._lasts, strict=True):
            self.add_range(first, last)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        if number <= self.floor:
            return True
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and number <= self._lasts[place]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IdSet):
            return NotImplemented
        return (self.floor, self._firsts, self._lasts) == (other.floor, other._firsts, other._lasts)

    __hash__ = None  # type: ignore[assignment]  # An IdSet changes.

    def __repr__(self) -> str:
        above = "".join(f", {first}..{last}" for first, last in self.ranges())
        return f"IdSet({self.floor}{above})"

    def copy(self) -> IdSet:
        """An independent set with the same ids."""
        twin = IdSet(self.floor)
        if self._firsts:
            twin._firsts = self._firsts.copy()
            twin._lasts = self._lasts.copy()
        return twin

    def ranges(self) -> list[tuple[int, int]]:
        """The ids above the floor as ranges, both ends included.

        >>> IdSet(2, [5, 6, 9]).ranges()
        [(5, 6), (9, 9)]
        """
        return list(zip(self._firsts, self._lasts, strict=True))

    @staticmethod
    def of_ranges(floor: int, ranges: Iterable[tuple[int, int]]) -> IdSet:
        """The set with this floor and these ranges above it.

        >>> IdSet.of_ranges(2, [(5, 6)])
        IdSet(2, 5..6)
        """
        ids = IdSet(floor)
        for first, last in ranges:
            ids.add_range(first, last)
        return ids

    @staticmethod
    def common(sets: Iterable[IdSet]) -> IdSet:
        """What is in all of them; nothing, if there are none.

        >>> IdSet.common([IdSet(4, [6]), IdSet(2, [4, 6])])
        IdSet(2, 4..4, 6..6)
        """
        result: IdSet | None = None
        for ids in sets:
            result = ids.copy() if result is None else _both(result, ids)
        return result if result is not None else IdSet()

    def minus(self, other: IdSet) -> list[tuple[int, int]]:
        """The ranges of ids that are in this set and not in the other.

        >>> IdSet(5, [8]).minus(IdSet(2, [4]))
        [(3, 3), (5, 5), (8, 8)]
        """
        found = []
        gaps = other._all()
        for first, last in self._all():
            for low, high in gaps:
                if high < first:
                    continue
                if low > last:
                    break
                if low > first:
                    found.append((first, low - 1))
                first = high + 1
            if first <= last:
                found.append((first, last))
        return found

    def _all(self) -> list[tuple[int, int]]:
        return ([(1, self.floor)] if self.floor > 0 else []) + self.ranges()

    def _add_range(self, first: int, last: int) -> None:
        low = bisect_right(self._lasts, first - 2)  # The first range that touches [first, last].
        high = low
        while high < len(self._firsts) and self._firsts[high] <= last + 1:
            first = min(first, self._firsts[high])
            last = max(last, self._lasts[high])
            high += 1
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]


def _both(one: IdSet, other: IdSet) -> IdSet:
    result = IdSet()
    theirs = other._all()
    for first, last in one._all():
        for low, high in theirs:
            if max(first, low) <= min(last, high):
                result.add_range(max(first, low), min(last, high))
    return result
