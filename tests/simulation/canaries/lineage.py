"""Canaries of lineage capture: each output is traced to the events that made it, no more and no fewer."""

from __future__ import annotations

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import traced

from clew.protocol import inputs as was
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
