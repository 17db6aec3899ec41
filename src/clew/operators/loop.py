"""Loops: into one, round once more, and out of it; inside, a time is the outer time and the number of the round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.errors import BuildError, MoveError
from clew.model.event import Event
from clew.model.operator import Context, Yielded
from clew.operators.stateless import Stateless
from clew.times.order import Integers, Order, Product
from clew.times.summary import IDENTITY, Add, Componentwise, Enter, Leave


class EnterLoop(Stateless):
    """Passes every event into a loop: what has the time t has (t, 0) inside."""

    summaries: Mapping[str, Enter] = {"in": Enter()}

    def order(self, inputs: Mapping[str, Order]) -> Order:
        """The outer order, and a number."""
        return Product(inputs["in"], Integers())

    def apply(self, event: Event, ctx: Context) -> Iterator[Yielded]:
        """The same records and attributes."""
        yield "out", event.batch, event.attributes


class Again(Stateless):
    """Passes every event round once more: what has the time (t, r) has (t, r + 1) then. It closes the loop."""

    is_feedback = True
    summaries: Mapping[str, Componentwise] = {"in": Componentwise(IDENTITY, Add(1))}

    def __init__(self, rounds_max: int | None = None) -> None:
        self.rounds_max = rounds_max

    def order(self, inputs: Mapping[str, Order]) -> Order:
        """The order inside the loop."""
        return _inside(inputs["in"])

    def apply(self, event: Event, ctx: Context) -> Iterator[Yielded]:
        """The same records and attributes, unless they have gone round too often."""
        rounds = event.time[1] + 1
        if self.rounds_max is not None and rounds > self.rounds_max:
            raise MoveError(
                f"event {event} would begin round {rounds} of a loop that may have {self.rounds_max}; expected that "
                f"nothing goes round any more by then. Let its body send back only what has changed, or raise "
                f"rounds_max."
            )
        yield "out", event.batch, event.attributes


class LeaveLoop(Stateless):
    """Passes every event out of a loop: what has the time (t, r) inside has t."""

    summaries: Mapping[str, Leave] = {"in": Leave()}

    def order(self, inputs: Mapping[str, Order]) -> Order:
        """The outer order."""
        return _inside(inputs["in"]).orders[0]

    def apply(self, event: Event, ctx: Context) -> Iterator[Yielded]:
        """The same records and attributes."""
        yield "out", event.batch, event.attributes


def _inside(order: Order) -> Product:
    if not isinstance(order, Product) or len(order.orders) != 2:
        raise BuildError(f"it is in no loop: its times are of {order}")
    return order
