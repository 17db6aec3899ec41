"""Bulk: collects items and hands them to a function so many at a time (section 3.1 of the seed); it knows no time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.times.algebra.logic import Logic, Machine


@dataclass(frozen=True)
class Bulk(Logic):
    """Gives `f` each n items, the newest first, and hands out what it returns; at the end the rest, even if empty.

    `buffer` is what was collected before, the newest first. It may be as long as n or longer: the next item empties it.

    >>> from clew.times.algebra.logic import produce
    >>> list(produce(Bulk(list, 3), "abcde"))
    ['c', 'b', 'a', 'e', 'd']
    >>> list(produce(Bulk(lambda items: [len(items)], 2), "abcd"))
    [2, 2, 0]
    """

    f: Callable[[list[Any]], Iterable[Any]]
    n: int
    buffer: Sequence[Any] = ()

    def begin(self) -> Machine:
        return _Bulk(self)


class _Bulk(Machine):
    def __init__(self, operator: Bulk) -> None:
        self.f = operator.f
        self.n = operator.n
        self.oldest_first = list(reversed(operator.buffer))

    def step(self, item: Any) -> Iterable[Any]:
        self.oldest_first.append(item)
        if len(self.oldest_first) < self.n:
            return ()
        collected, self.oldest_first = self.oldest_first, []
        return self.f(collected[::-1])

    def exit(self) -> Iterable[Any]:
        return self.f(self.oldest_first[::-1])
