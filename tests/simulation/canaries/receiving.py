"""Canaries of input channels: the obsolete filter, sessions and the three cursors."""

from __future__ import annotations

from typing import Any

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import leaky, pairs, windows

from clew.protocol.effects import Effect, Session
from clew.protocol.inbound import InChannel
from clew.protocol.logio import OperatorKernel

TAKEN_AGAIN = r"took event \d+ of [\w.>-]+; expected \d+"


class Forgiving(InChannel):
    """Not broken by itself: keeps its books in order even if an event is taken twice, so that the outcome shows it."""

    __slots__ = ()

    def assign(self, number: int, pairs: int) -> None:
        last, needed = self.assigned, self.needed.get(number, 0)
        super().assign(number, pairs)
        self.assigned = max(last, number)
        if pairs:
            self.needed[number] = needed + pairs


@canary("no obsolete filter", windows, TAKEN_AGAIN)
class NoFilter(Forgiving):
    """An event that was received before is taken again when its sender restarts and resends it."""

    __slots__ = ()

    def accepts(self, session: Session, number: int, effects: list[Effect]) -> bool:
        if session != self.session:
            return False
        if number > self.seen + 1:
            self.connect(effects)
            return False
        self.seen = max(self.seen, number)
        return True


@canary("filter by the durable cursor", windows, TAKEN_AGAIN)
class FiltersByDurable(Forgiving):
    """The filter compares with the durable cursor, so that an event that waits for its commit is taken twice."""

    __slots__ = ()

    def accepts(self, session: Session, number: int, effects: list[Effect]) -> bool:
        if session != self.session or number <= self.durable:
            return False
        if number > self.seen + 1:
            self.connect(effects)
            return False
        self.seen = max(self.seen, number)
        return True


@canary("late message of an old session", windows, TAKEN_AGAIN)
class AnySession(InChannel):
    """What was on its way to a dead predecessor is taken if it is new, so that the events before it are skipped."""

    __slots__ = ()

    def accepts(self, session: Session, number: int, effects: list[Effect]) -> bool:
        if number <= self.seen:
            return False
        self.seen = number
        return True


@canary("a gap in ids accepted", leaky, TAKEN_AGAIN)
class AcceptsGaps(InChannel):
    """An event is taken although the one before it was lost on the way, which then never arrives."""

    __slots__ = ()

    def accepts(self, session: Session, number: int, effects: list[Effect]) -> bool:
        if session != self.session or number <= self.seen:
            return False
        self.seen = number
        return True


@canary("restarted sender ignored", pairs, r"stuck: nothing can happen any more")
class IgnoresGreeting(InChannel):
    """A receiver does not connect again when its sender has restarted, so that nothing arrives any more."""

    __slots__ = ()

    def greeted(self, incarnation: int, effects: list[Effect]) -> None:
        if incarnation == 1:
            super().greeted(incarnation, effects)


@canary("released when assigned", pairs, r"undone event [\w.]+/\d+ is gone")
class ReleasesWhenAssigned(InChannel):
    """An event is released before its Input Set is generated, so that a restart finds it removed at its sender."""

    __slots__ = ()

    def assign(self, number: int, pairs: int) -> None:
        super().assign(number, pairs)
        self.released.add(number)


@canary(
    "end-of-input mark done before finish", pairs, r"stuck: nothing can happen any more; not finished: (pairs|report)"
)
class EndDoneBeforeFinish(OperatorKernel):
    """An end mark is done when it is taken, so that a restart before `finish` waits for it for ever."""

    def _seal(self) -> Any:
        transaction = super()._seal()
        if not self.is_finished:
            for channel, cursor in transaction.cursors.items():
                transaction.cursors[channel] = cursor._replace(ended=False)
        return transaction
