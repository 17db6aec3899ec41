"""Canaries of lineage capture: each output is traced to the events that made it, no more and no fewer."""

from __future__ import annotations

from clew.protocol import inputs as was
from clew.protocol.logio import OperatorKernel
from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import traced


@canary("lineage recorded for the wrong set", traced, r"sorted\.out/\d+: captured lineage is .*the inputs truly used")
class WrongLineage(OperatorKernel):
    """Lineage is recorded for the whole group although the operator said which Input Set an output came from."""

    def _lineage(self, emission: was.Emission, number: int, serials: tuple[int, ...], sources: set[int]) -> None:
        super()._lineage(emission._replace(keys=None), number, serials, sources)
