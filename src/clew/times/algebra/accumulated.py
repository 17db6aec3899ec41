"""Accumulated batches: immutable sequences that share one growing list, and each new one costs what it adds."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload


class Accumulated(Sequence[tuple[Any, Any]]):
    """Pairs (time, data), to be read like a tuple of them and equal to it; `at` finds the data of one time quickly.

    >>> one = Accumulated([(1, "a")])
    >>> two = one.followed_by([(2, "b"), (1, "c")])
    >>> one, two
    (((1, 'a'),), ((1, 'a'), (2, 'b'), (1, 'c')))
    >>> two.at(1), one.at(1), list(one.times())
    (['a', 'c'], ['a'], [1])
    """

    __slots__ = ("_length", "_store")

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        self._store = _Store(list(pairs))
        self._length = len(self._store.pairs)

    def followed_by(self, pairs: Iterable[tuple[Any, Any]]) -> Accumulated:
        """These pairs and then others. The list is shared, unless it has grown beyond this sequence already."""
        if self._length < len(self._store.pairs):
            return Accumulated([*self, *pairs])
        longer = Accumulated()
        longer._store = self._store
        longer._store.pairs.extend(pairs)
        longer._length = len(longer._store.pairs)
        return longer

    def at(self, time: Any) -> list[Any]:
        """The data at exactly this time, in order."""
        pairs = self._store.pairs
        return [pairs[place][1] for place in self._places(time)]

    def counts_at(self, time: Any) -> Counter[Any]:
        """How often each value occurs at exactly this time; kept until more data comes for it. Not to be changed."""
        places = self._places(time)
        kept = self._store.counts.get(time)
        if kept is not None and kept[0] == len(places):
            return kept[1]
        counts = Counter(self.at(time))
        self._store.counts[time] = len(places), counts
        return counts

    def times(self) -> Iterator[Any]:
        """The different times, in the order of their first occurrence."""
        for time, places in self._store.places().items():
            if places[0] >= self._length:
                return
            yield time

    def _places(self, time: Any) -> list[int]:
        places = self._store.places().get(time, [])
        return places if not places or places[-1] < self._length else places[: bisect_left(places, self._length)]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        pairs = self._store.pairs
        return (pairs[place] for place in range(self._length))

    @overload
    def __getitem__(self, index: int) -> tuple[Any, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Any, Any]]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return tuple(self._store.pairs[place] for place in range(*index.indices(self._length)))
        return self._store.pairs[range(self._length)[index]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Accumulated | tuple):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Accumulated, (tuple(self),)


class _Store:
    """The shared list, which only grows, and the places of each time in it, found when first asked for."""

    __slots__ = ("_places", "_seen", "counts", "pairs")

    def __init__(self, pairs: list[tuple[Any, Any]]) -> None:
        self.pairs = pairs
        self.counts: dict[Any, tuple[int, Counter[Any]]] = {}
        self._places: dict[Any, list[int]] = {}
        self._seen = 0

    def places(self) -> dict[Any, list[int]]:
        for place in range(self._seen, len(self.pairs)):
            self._places.setdefault(self.pairs[place][0], []).append(place)
        self._seen = len(self.pairs)
        return self._places
