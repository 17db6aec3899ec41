"""Parts: what a simulated world is built from; the canaries exchange one part for a broken one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from clew.errors import RunError
from clew.log.contract import Store
from clew.log.epochs import EpochLog
from clew.log.memory import MemoryStore
from clew.log.snapshots import SnapshotLog
from clew.model.graph import Graph
from clew.protocol.barriers import SnapshotOperator, SnapshotSource
from clew.protocol.eligible import check_snapshots
from clew.protocol.epochs import EpochKernel
from clew.protocol.logio import OperatorKernel
from clew.protocol.moves import Moves
from clew.protocol.settings import Settings
from clew.protocol.source import SourceKernel


@dataclass(frozen=True, slots=True)
class Parts:
    """The kernels, the store and the sizes of a world."""

    operator: type[OperatorKernel] = OperatorKernel
    source: type[SourceKernel] = SourceKernel
    moves: type[Moves] = Moves
    store: Callable[[Graph], Store] = field(default=lambda graph: MemoryStore(graph.describe(), "5eed"))
    settings: Settings | None = None
    """None: sizes are chosen by the seed, mostly small ones."""
    epochs: type[EpochKernel] | None = None
    """None: every replica recovers alone, from its log."""
    snapshots: type[SnapshotLog] = SnapshotLog
    epoch_log: type[EpochLog] = EpochLog
    every_s: float | None = None
    """How long an epoch lasts, at least; None: chosen by the seed."""


HEALTHY = Parts()
SNAPSHOT = Parts(operator=SnapshotOperator, source=SnapshotSource, epochs=EpochKernel)
"""All replicas recover together, from the last complete epoch."""


def parts_for(graph: Graph, recovery: str) -> Parts:
    """The parts of a run of this pipeline that recovers in this way; raises if the pipeline cannot."""
    if recovery == "snapshot":
        check_snapshots(graph)
        return SNAPSHOT
    if recovery != "log":
        raise RunError(f"recovery={recovery!r} cannot be simulated; expected 'log' or 'snapshot'. Choose one of them.")
    return HEALTHY


def small_sizes(chance: random.Random) -> Settings:
    """Small sizes find more than large ones."""
    return Settings(
        window=chance.choice([1, 2, 4, 16, 64]),
        window_bytes=chance.choice([1, 100, 1 << 20]),
        commit_bytes=chance.choice([1, 100, 1 << 20]),
        cache_bytes=chance.choice([1, 100, 1 << 20]),
        commit_max=chance.choice([1, 2, 8, 128]),
        cache_max=chance.choice([1, 4, 128]),
        read_max=chance.choice([1, 3, 16]),
        backlog_max=chance.choice([4, 32, 256]),
        pull_max=chance.choice([1, 5, 64]),
        survey_every=chance.choice([1, 4, 64]),
        tries=chance.choice([1, 2, 3]),
        caution_moves=chance.choice([1, 4, 256]),
    )
