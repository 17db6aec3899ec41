"""Canaries of lineage: each output is traced to what made it, for as long as a scope keeps it, and no longer."""

from __future__ import annotations

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import expiring, traced

from clew.model.names import Channel
from clew.protocol import inputs as was
from clew.protocol.effects import Effect
from clew.protocol.inbound import InChannel
from clew.protocol.logio import OperatorKernel


@canary("lineage recorded for the wrong set", traced, r"sorted\.out/\d+: captured lineage is .*the inputs truly used")
class WrongLineage(OperatorKernel):
    """Lineage is recorded for the whole group although the operator said which Input Set an output came from."""

    def _lineage(self, emission: was.Emission, number: int, serials: tuple[int, ...], sources: set[int]) -> None:
        super()._lineage(emission._replace(keys=None), number, serials, sources)


@canary("lineage removed that a scope keeps", traced, r"although a scope keeps it|which out/\d+ came from")
class ForgetsCaptured(OperatorKernel):
    """Input Sets are removed when they are generated although a scope keeps them, so that nothing can be traced."""

    def _close(self, key: bytes, sources: set[int]) -> None:
        serial = self.sets[key].serial
        super()._close(key, sources)
        self.pending.forget_sets.append(serial)


@canary(
    "read effect left out of lineage", traced, r"sorted\.out/\d+: \d+ read actions are in its lineage; \d+ were used"
)
class LosesReadEffect(OperatorKernel):
    """What a generation read is not captured, although it made the output as much as any event did."""

    def _uses(self, reads: tuple[was.SideRead, ...], serials: tuple[int, ...], version: int) -> None:
        super()._uses((), serials, version)


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
