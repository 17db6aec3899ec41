"""Signed multisets: how often each element is there, where fewer than none is possible.

Invariant: no stored count is zero. Under `+` they form an abelian group. (Progress thesis, section 4.1.3.)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any


class Changes(Mapping[Any, int]):
    """An immutable signed multiset: elements with counts that are not zero.

    >>> changes = Changes([("a", 2), ("b", -1), ("a", 1)])
    >>> changes
    Changes({'a': 3, 'b': -1})
    >>> changes + Changes({"b": 1}), -changes, changes.positive(), changes.count("c")
    (Changes({'a': 3}), Changes({'a': -3, 'b': 1}), Changes({'a': 3}), 0)
    """

    __slots__ = ("_counts",)

    def __init__(self, items: Mapping[Any, int] | Iterable[tuple[Hashable, int]] = ()) -> None:
        counts: dict[Any, int] = {}
        for element, count in items.items() if isinstance(items, Mapping) else items:
            counts[element] = counts.get(element, 0) + count
        self._counts = {element: count for element, count in counts.items() if count}

    def count(self, element: Hashable) -> int:
        """How often the element is there; 0 if it is not."""
        return self._counts.get(element, 0)

    def positive(self) -> Changes:
        """Only what is there more often than never."""
        return Changes({element: count for element, count in self._counts.items() if count > 0})

    def negative(self) -> Changes:
        """Only what is there less often than never."""
        return Changes({element: count for element, count in self._counts.items() if count < 0})

    def __add__(self, other: Changes) -> Changes:
        if not isinstance(other, Changes):
            return NotImplemented
        return Changes([*self._counts.items(), *other._counts.items()])

    def __neg__(self) -> Changes:
        return Changes({element: -count for element, count in self._counts.items()})

    def __sub__(self, other: Changes) -> Changes:
        if not isinstance(other, Changes):
            return NotImplemented
        return self + -other

    def __getitem__(self, element: Any) -> int:
        return self._counts[element]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self._counts == (other._counts if isinstance(other, Changes) else dict(other))

    def __hash__(self) -> int:
        return hash(frozenset(self._counts.items()))

    def __repr__(self) -> str:
        return f"Changes({self._counts!r})"
