"""How replicas stand in the log of a run with snapshots: as they were at the last complete epoch."""

from __future__ import annotations

from typing import NamedTuple

from clew.errors import LogNotFound
from clew.log.contract import ReplicaRows
from clew.log.epochs import EPOCHS
from clew.log.postgres import PostgresReader
from clew.log.snapshot_rows import snapshot_at
from clew.log.sqlite import SqliteReader
from clew.log.standing import Standing
from clew.model.names import Replica
from clew.runtime.snapshot_reading import rows_together


class Epoch(NamedTuple):
    """How far a run with snapshots is."""

    number: int
    """The last complete epoch; 0: there is none yet."""
    generation: int


def last_epoch(reader: SqliteReader | PostgresReader) -> Epoch:
    """The last complete epoch of a log, and the generation of the run that is the latest."""
    try:
        counters = reader.rows(EPOCHS).counters
    except LogNotFound:
        return Epoch(0, 0)
    return Epoch(counters.get("epoch", 0), counters.get("generation", 0))


def standings(reader: SqliteReader | PostgresReader, replicas: list[Replica]) -> tuple[Epoch, dict[Replica, Standing]]:
    """The last complete epoch, and how these replicas stood at it."""
    number, rows = rows_together(replicas, reader.rows, lambda: last_epoch(reader).number)
    epoch = Epoch(number, last_epoch(reader).generation)
    return epoch, {each: _standing(each, found, reader, epoch) for each, found in rows.items()}


def _standing(replica: Replica, rows: ReplicaRows, reader: SqliteReader | PostgresReader, epoch: Epoch) -> Standing:
    found = snapshot_at(replica, rows.state, epoch.number)
    written = {name: number for name, number in rows.counters.items() if name.startswith("written:")}
    counters = {**found.counters, **{name: max(n, found.counters.get(name, 0)) for name, n in written.items()}}
    return Standing(
        incarnation=epoch.generation,
        counters=counters,
        cursors=found.cursors,
        open_sets=len(found.opened),
        undone_pairs=len(found.pairs),
        state_keys=len(found.state),
        timers=len(found.timers),
        stored_outputs=len(found.outputs),
        lineage_rows=0,
        holder=reader.standing(replica).holder,
    )
