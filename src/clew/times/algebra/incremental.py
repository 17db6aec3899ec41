"""Incremental: hands out, for each time of a batch, all that came in batches so far (section 4.2 of the seed)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.times.algebra.accumulated import Accumulated
from clew.times.algebra.batch import Batch
from clew.times.algebra.logic import Logic, Machine
from clew.times.algebra.stream import DT, WM, TimedEvent, no_event
from clew.times.order import Order


@dataclass(frozen=True)
class Incremental(Logic):
    """`DT(w, batch)` becomes one `DT(t, all)` for each different time t in the batch; watermarks pass.

    `all` is every pair of `before` and of the batches so far, this one included, also pairs at times that are not at or
    before t. It is an `Accumulated`, which reads like a tuple. The times come in the order of their last occurrence.

    >>> from clew.times.algebra.logic import produce
    >>> for event in produce(Incremental(), [DT(2, ((2, "a"), (1, "b"))), WM(2)]): print(event)
    DT(2, ((2, 'a'), (1, 'b')))
    DT(1, ((2, 'a'), (1, 'b')))
    WM(2)
    """

    before: Sequence[tuple[Any, Any]] = ()

    def begin(self) -> Machine:
        return _Incremental(self.before)


class _Incremental(Machine):
    def __init__(self, before: Sequence[tuple[Any, Any]]) -> None:
        self.all = Accumulated(before)

    def step(self, item: TimedEvent) -> Iterable[TimedEvent]:
        match item:
            case WM():
                return (item,)
            case DT(_, batch):
                self.all = self.all.followed_by(batch)
                return [DT(time, self.all) for time in last_occurrences(time for time, _ in batch)]
        raise no_event(item, "Incremental")


def incremental_batches(
    order: Order, waiting: Sequence[tuple[Any, Any]] = (), before: Sequence[tuple[Any, Any]] = ()
) -> Logic:
    """Batch, then Incremental (section 4.4): at the completion of each time, all that was complete by then."""
    return Batch(order, waiting) >> Incremental(before)


def last_occurrences(times: Iterable[Any]) -> list[Any]:
    """Each different time once, in the order of the last occurrences.

    >>> last_occurrences([1, 2, 1, 3])
    [2, 1, 3]
    """
    return list(dict.fromkeys(reversed(list(times))))[::-1]
