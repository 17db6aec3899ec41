"""Operators on streams as state machines, what they produce, their composition and skipping (section 3 of the seed).

A `Logic` describes an operator and never changes; `begin()` gives a machine, which has the state. A machine takes one
item at a time with `step`, which gives the items that come out, and is asked for its `exit` once, when the input ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from clew.errors import BuildError


class Machine(ABC):
    """One run of an operator."""

    @abstractmethod
    def step(self, item: Any) -> Iterable[Any]:
        """Takes an item in; what comes out because of it. The only method that changes the machine."""

    def exit(self) -> Iterable[Any]:
        """What comes out when the input has ended; asked once, last. Nothing unless told otherwise."""
        return ()


class Logic(ABC):
    """A description of a machine. `one >> other` is the operator that gives what `one` produces to `other`."""

    @abstractmethod
    def begin(self) -> Machine:
        """A new machine in its initial state."""

    def __rshift__(self, other: Logic) -> Logic:
        if not isinstance(other, Logic):
            return NotImplemented
        return Composed(self, other)

    def skip(self, n: int) -> Logic:
        """The operator without the first n items that come out of it."""
        return Skip(self, n)


def produce(operator: Logic, stream: Iterable[Any], *, exit: bool = True) -> Iterator[Any]:
    """What the operator makes of a stream, lazily, so the stream need not end; its exit too, unless told otherwise.

    Each item is asked for only when the ones before it gave nothing more to hand out. If from some place on an infinite
    stream makes the operator give out nothing, asking for the next item does not come back.

    >>> from itertools import count, islice
    >>> from clew.times.algebra.bulk import Bulk
    >>> list(produce(Bulk(lambda numbers: [sum(numbers)], 2), [1, 2, 3]))
    [3, 3]
    >>> list(islice(produce(Bulk(lambda numbers: [sum(numbers)], 2), count()), 3))
    [1, 5, 9]
    """
    machine = operator.begin()
    for item in stream:
        yield from machine.step(item)
    if exit:
        yield from machine.exit()


@dataclass(frozen=True)
class Composed(Logic):
    """Two operators in a row; the exit of the first is more input of the second, whose own exit follows."""

    first: Logic
    second: Logic

    def begin(self) -> Machine:
        return _InARow(self.first.begin(), self.second.begin())

    def __repr__(self) -> str:
        return f"{self.first!r} >> {self.second!r}"


class _InARow(Machine):
    def __init__(self, first: Machine, second: Machine) -> None:
        self.first = first
        self.second = second

    def step(self, item: Any) -> Iterable[Any]:
        out: list[Any] = []
        for between in self.first.step(item):
            out.extend(self.second.step(between))
        return out

    def exit(self) -> Iterator[Any]:
        for between in self.first.exit():
            yield from self.second.step(between)
        yield from self.second.exit()


@dataclass(frozen=True)
class Skip(Logic):
    """An operator without the first n items that come out of it, those of its exit included.

    >>> from clew.times.algebra.bulk import Bulk
    >>> list(produce(Bulk(list, 2).skip(3), "abcde"))
    ['c', 'e']
    """

    operator: Logic
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise BuildError(f"skip was given n = {self.n}; the number of items to skip is 0 or more.")

    def begin(self) -> Machine:
        return _Skipping(self.operator.begin(), self.n)


class _Skipping(Machine):
    def __init__(self, inner: Machine, left: int) -> None:
        self.inner = inner
        self.left = left

    def step(self, item: Any) -> Iterable[Any]:
        if not self.left:
            return self.inner.step(item)
        out = list(self.inner.step(item))
        skipped = min(self.left, len(out))
        self.left -= skipped
        return out[skipped:]

    def exit(self) -> Iterable[Any]:
        return islice(self.inner.exit(), self.left, None)
