"""Canaries that break what only the judges of the end, or of a single step, can see."""

from __future__ import annotations

from typing import Any

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import checkable, expiring, pairs, traced

from clew.model.names import Channel
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Effect, Send, Session
from clew.protocol.inbound import InChannel
from clew.protocol.logio import OperatorKernel
from clew.protocol.outbound import OutPort


@canary(
    "complete before the writes are done",
    checkable,
    r"report: is complete before write to/\d+ is done",
)
class CompletesEarly(OperatorKernel):
    """A replica says that it has nothing left to do while writes are under way, so that its host may end too soon."""

    def _complete(self, effects: list[Effect]) -> None:
        if self.is_finish_durable and not self.is_complete:
            self.is_complete = True
            effects.append(does.Complete())


@canary(
    "resend in wrong order, once",
    pairs,
    r"event [\w.]+/\d+ is sent after out/\d+ in one session",
)
class ResendsBackwardsOnce(OutPort):
    """What is sent again after a restart goes out newest first, in the first session of the new incarnation."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.resending: set[Channel] = set()
        self.resent: set[Channel] = set()

    def connected(self, channel: Channel, session: Session, assigned: int) -> None:
        super().connected(channel, session, assigned)
        if session.incarnation > 1 and channel not in self.resent:
            self.resending.add(channel)

    def pump(self, is_allowed: Any, effects: list[Effect]) -> None:
        begun: list[Effect] = []
        super().pump(is_allowed, begun)
        sent = [effect for effect in begun if isinstance(effect, Send) and effect.channel in self.resending]
        effects.extend(effect for effect in begun if effect not in sent)
        effects.extend(reversed(sent))
        self.resent |= self.resending
        self.resending.clear()


@canary(
    "events removed that a scope keeps",
    traced,
    r"although a (lineage )?scope keeps it",
)
class ReleasesCaptured(InChannel):
    """Events are released with their Input Sets although lineage is captured, so that its records are gone."""

    __slots__ = ()

    def __init__(self, channel: Channel, is_held: bool) -> None:
        super().__init__(channel, False)


@canary(
    "state version left out of lineage",
    traced,
    r"sorted\.out/\d+: another state is in its lineage than was used",
)
class LosesStateVersion(OperatorKernel):
    """The state that a generation used is not captured, although it made the output as much as any event did."""

    def _change(self, changes: was.Changes) -> None:
        super()._change(changes)
        self.pending.state_versions.clear()


@canary(
    "last state change not stored",
    pairs,
    r"pairs: the durable state is .*; a run without failures ends with",
)
class LosesLastState(OperatorKernel):
    """The state that `finish` changed is not stored, so that whoever goes on from this log has an old one."""

    def _generation(self, keys: tuple[bytes, ...], given: was.Generated, is_finish: bool) -> None:
        super()._generation(keys, given, is_finish)
        if is_finish:
            self.pending.state.clear()


@canary(
    "a kernel that raises",
    pairs,
    r"pairs: the kernel raised KeyError",
)
class Raises(OperatorKernel):
    """A kernel fails on an input that only a restart brings."""

    def on_pulled(self, given: was.Pulled, effects: list[Effect]) -> None:
        raise KeyError("undone")


@canary(
    "another read effect captured",
    traced,
    r"sorted\.out/\d+: another read effect is in its lineage than was used",
)
class AltersReadEffect(OperatorKernel):
    """Another effect is captured than the one that a generation used, so that its lineage shows wrong records."""

    def _uses(self, reads: tuple[was.SideRead, ...], serials: tuple[int, ...], version: int) -> None:
        super()._uses(tuple(read._replace(effect=read.effect.slice(0, 0)) for read in reads), serials, version)


@canary(
    "expired lineage never removed",
    expiring,
    r"its log still has \d+ \w[\w ]* that nobody needs",
)
class NeverExpires(OperatorKernel):
    """What the log says has expired is not removed, so that a long run has an unbounded log."""

    def on_surveyed(self, given: was.Surveyed, effects: list[Effect]) -> None:
        self.is_surveying = False
