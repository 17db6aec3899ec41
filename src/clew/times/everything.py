"""The frontier before anything is known: every time may still arrive."""

from __future__ import annotations

from clew.times.antichain import Antichain
from clew.times.order import Order, Time


class Everything(Antichain):
    """Covers every time, also in an order that has no least one.

    >>> from clew.times.order import Integers
    >>> unknown = Everything(Integers())
    >>> unknown.passed(-1000), unknown.meet(Antichain(Integers(), [3])), bool(unknown)
    (False, Everything(), True)
    """

    __slots__ = ()

    def __init__(self, order: Order) -> None:
        super().__init__(order)

    def covers(self, time: Time) -> bool:
        return True

    def is_at_most(self, other: Antichain) -> bool:
        return True

    def meet(self, other: Antichain) -> Antichain:
        return self

    def join(self, other: Antichain) -> Antichain:
        return other

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Everything) and self.order == other.order

    def __hash__(self) -> int:
        return hash(Everything)

    def __repr__(self) -> str:
        return "Everything()"
