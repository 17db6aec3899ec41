"""Canaries: deliberately broken parts of the protocol and the log, each caught by a schedule that the tests show.

A checker that has never been seen to fail proves nothing. Each canary breaks one promise on a tiny pipeline; the same
search that finds nothing wrong with the healthy parts must find it, and the right checker must go red.
"""

from tests.simulation.canaries import (
    borders,
    commits,
    giving_up,
    lineage,
    parallel,
    receiving,
    recovery,
    sending,
    sources,
    stores,
    timing,
    triggering,
    writing,
)
from tests.simulation.canaries.canary import CANARIES, Canary
from tests.simulation.canaries.habitats import HABITATS, Habitat
from tests.simulation.canaries.hunt import Catch, Hunt

__all__ = [
    "CANARIES",
    "HABITATS",
    "Canary",
    "Catch",
    "Habitat",
    "Hunt",
    "borders",
    "commits",
    "giving_up",
    "lineage",
    "parallel",
    "receiving",
    "recovery",
    "sending",
    "sources",
    "stores",
    "timing",
    "triggering",
    "writing",
]
