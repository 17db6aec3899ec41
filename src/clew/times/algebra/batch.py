"""Batch: holds data back until a watermark completes its time, then hands out all that became complete as one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clew.times.algebra.logic import Logic, Machine
from clew.times.algebra.shelf import Shelf
from clew.times.algebra.stream import DT, WM, TimedEvent, no_event
from clew.times.order import Order


@dataclass(frozen=True)
class Batch(Logic):
    """Section 4.2 of the seed: a watermark w brings `DT(w, batch)`, unless the batch would be empty, and then itself.

    A batch is a tuple of pairs (time, data) in the order of arrival. The end of the input completes all that is left:
    one batch for each maximal time, in the order of their first data; what is below several of them goes with the
    first. `waiting` is what was held back before.

    >>> from clew.times.algebra.logic import produce
    >>> from clew.times.order import Integers
    >>> for event in produce(Batch(Integers()), [DT(2, "a"), DT(1, "b"), DT(5, "c"), WM(2), WM(3)]): print(event)
    DT(2, ((2, 'a'), (1, 'b')))
    WM(2)
    WM(3)
    DT(5, ((5, 'c'),))
    """

    order: Order
    waiting: Sequence[tuple[Any, Any]] = ()

    def begin(self) -> Machine:
        return _Batch(self)


class _Batch(Machine):
    def __init__(self, operator: Batch) -> None:
        self.check = operator.order.check
        self.shelf = Shelf(operator.order, ((self.check(time), data) for time, data in operator.waiting))

    def step(self, item: TimedEvent) -> Iterable[TimedEvent]:
        match item:
            case DT(time, data):
                self.shelf.put(self.check(time), data)
                return ()
            case WM(time):
                time = self.check(time)
                batch = tuple(self.shelf.take(time))
                return (DT(time, batch), WM(time)) if batch else (WM(time),)
        raise no_event(item, "Batch")

    def exit(self) -> Iterator[TimedEvent]:
        for time in self.shelf.maximal():
            yield DT(time, tuple(self.shelf.take(time)))
