"""Canaries of output ports: order, windows, sessions and retention."""

from __future__ import annotations

from typing import Any

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import fan_out, pairs

from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.protocol.effects import Effect, Send, Session
from clew.protocol.outbound import OutPort


@canary("resend in wrong order", pairs, r"event [\w.]+/\d+ is sent after out/\d+ in one session")
class ResendsBackwards(OutPort):
    """What is sent again goes out newest first, so that the receiver finds a gap each time and never gets on."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.resending: set[Channel] = set()

    def connected(self, channel: Channel, session: Session, assigned: int) -> None:
        super().connected(channel, session, assigned)
        if session.incarnation > 1:
            self.resending.add(channel)

    def pump(self, is_allowed: Any, effects: list[Effect]) -> None:
        begun: list[Effect] = []
        super().pump(is_allowed, begun)
        sent = [effect for effect in begun if isinstance(effect, Send) and effect.channel in self.resending]
        effects.extend(effect for effect in begun if effect not in sent)
        effects.extend(reversed(sent))
        self.resending.difference_update(effect.channel for effect in sent)


@canary("an id skipped after a restart", pairs, r"is logged, expected id \d+")
class SkipsId(OutPort):
    """A restarted sender leaves out an id, although receivers take ids without gaps only."""

    __slots__ = ()

    def restore(self, last: int) -> None:
        super().restore(last)
        self.last += bool(last)


@canary("window never reopened", pairs, r"stuck: nothing can happen any more")
class IgnoresAcks(OutPort):
    """Acknowledgements do not reopen the window, so that a sender stops for ever when it is full."""

    __slots__ = ()

    def acked(self, channel: Channel, *given: Any) -> None:
        receiver = self._receiver(channel)
        before = receiver.acked
        super().acked(channel, *given)
        receiver.acked = before


@canary("forgets what one of two receivers released", fan_out, r"forgets out/\d+\.\.\d+, not released by")
class ForgetsForOne(OutPort):
    """An event goes as soon as one receiver has released it, although another may still read it after a crash."""

    __slots__ = ()

    def released(self) -> IdSet:
        union = IdSet()
        for receiver in self.channels:
            union.update(receiver.released)
        return union


@canary("nothing ever removed", pairs, r"numbers: its log still has \d+ outputs that nobody needs")
class NeverForgets(OutPort):
    """What every receiver has released stays, so that a long run has an unbounded log."""

    __slots__ = ()

    def forgettable(self) -> list[tuple[str, int, int]]:
        return []


@canary("connection of a dead receiver", pairs, r"stuck: nothing can happen any more")
class TakesOldConnection(OutPort):
    """A late connection of a dead receiver replaces its successor's, so that events go to nobody."""

    __slots__ = ()

    def connected(self, channel: Channel, session: Session, assigned: int) -> None:
        receiver = self._receiver(channel)
        receiver.session = session
        receiver.sent = assigned
        receiver.acked = max(receiver.acked, assigned)
