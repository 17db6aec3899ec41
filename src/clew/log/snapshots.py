"""The log of a replica in a run with snapshots: commits go to memory, what an epoch changed becomes durable together.

A snapshot is one transaction of the replica's durable log, whose state rows are versions of rows by epoch. So
incarnations, fencing and both stores are those of every log. Invariants: an epoch is in the durable log whole or not
at all; as long as no later epoch is complete, what the last complete one was can be read back; a write mark that must
not be lost is durable before the commit that holds it returns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from clew.errors import LogError
from clew.log.contract import ReplicaLog
from clew.log.snapshot_events import Schemas
from clew.log.snapshot_memory import SnapshotMemory
from clew.log.snapshot_rows import Changes, rows_of_changes, transaction_of_rows
from clew.log.versions import Versions, rows_at
from clew.model.connection import Kind, WriteConnection
from clew.model.event import Event
from clew.model.history import Expired, Output, Recovered, Stored, Transaction
from clew.model.names import Channel
from clew.model.ranges import IdSet

_MARK = "written:"
_EMPTY = Transaction()


class Capture(NamedTuple):
    """What an epoch changed, taken from memory and not stored yet."""

    epoch: int
    is_final: bool
    """Whether the replica has finished: the snapshot stands for all later epochs too."""
    generation: int
    number: int
    """Counts the captures of a generation; they are stored in this order."""
    changes: Changes


class SnapshotLog:
    """One replica's log for one generation of a run, of which its owner's commits reach the disk epoch by epoch.

    Commits, captures and reads are for the thread that has a usual log's commits; `store` may run on another one at
    the same time. `incarnation` is the generation of the run, which all replicas share.
    """

    def __init__(
        self,
        durable: ReplicaLog,
        generation: int,
        epoch: int,
        *,
        write_connections: frozenset[str] = frozenset(),
        durable_writes: frozenset[str] = frozenset(),
    ) -> None:
        """Begins with what the durable log holds of an epoch that is complete; 0: with nothing.

        The marks of `durable_writes` become durable with the commit that holds them, as an idempotent connection needs.
        """
        self.replica = durable.replica
        self.is_predecessor_dead = bool(getattr(durable, "is_predecessor_dead", False))
        self._durable = durable
        self._write_connections = write_connections
        self._durable_writes = durable_writes
        self._storing = threading.Lock()
        """Held while an epoch is stored."""
        self._writing = threading.Lock()
        """Held during a commit of the durable log, which is for one thread at a time."""
        self._begin(generation, epoch)

    def _begin(self, generation: int, epoch: int) -> None:
        durable = self._durable
        found = durable.recover()
        if found.cursors or found.open_sets or "position" in found.counters:
            raise LogError(
                f"the log of {self.replica} was written with recovery='log'; expected a new log, or one of a run with "
                f"recovery='snapshot'. Run it with recovery='log', or name another log."
            )
        items = durable.state_items()
        rows = rows_at(items, epoch)
        self.incarnation = generation
        self._schemas = Schemas(rows)
        self._versions = Versions((key for key, _ in items), epoch)
        self._complete = self._captured_epoch = epoch
        self._captured = self._stored = 0
        self._settled = {name: number for name, number in found.counters.items() if name.startswith(_MARK)}
        self._memory = memory = SnapshotMemory(self._write_connections)
        memory.commit(transaction_of_rows(self.replica, rows, self._schemas))
        memory.capture()  # What came from the durable log has not changed.
        settled = {name: max(number, memory.counters.get(name, 0)) for name, number in self._settled.items()}
        memory.commit(Transaction(counters=settled))

    @classmethod
    def of(cls, durable: ReplicaLog, writes: Mapping[str, WriteConnection], generation: int, epoch: int) -> Self:
        """The log of a replica with these write connections."""
        idempotent = (name for name, connection in writes.items() if connection.kind == Kind.IDEMPOTENT)
        return cls(
            durable, generation, epoch, write_connections=frozenset(writes), durable_writes=frozenset(idempotent)
        )

    # What every log can do

    def recover(self) -> Recovered:
        """Everything that the generation needs to go on, bodies and state excepted."""
        return self._memory.recover(self.incarnation)

    def stage(self, transaction: Transaction) -> None:
        """There is nothing to prepare."""

    def commit(self, transaction: Transaction) -> None:
        """Takes a transaction into memory; an empty one asks whether the durable log is still this owner's."""
        counters = transaction.counters
        if self._write_connections and counters:
            self._settle_marks(counters)
        elif not counters and transaction == _EMPTY:
            with self._writing:
                self._durable.commit(transaction)
        self._memory.commit(transaction)

    def state(self, key: bytes) -> bytes | None:
        """The value of one state key."""
        return self._memory.state.get(key)

    def state_items(self) -> list[tuple[bytes, bytes]]:
        """All state, ordered by key."""
        return sorted(self._memory.state.items())

    def outputs(self, port: str, first: int, limit: int) -> list[Output]:
        """Up to `limit` outputs of a port, or write actions of a connection, from id `first` on."""
        kept = self._memory.outputs.get(port, {})
        found = (kept.get(number) for number in range(first, first + limit))
        return [output for output in found if output is not None]

    def effect(self, action: int, first: int, limit: int) -> list[Stored]:
        """Up to `limit` batches of a stored effect."""
        return self._memory.effects.get(action, [])[first : first + limit]

    def expired(self, released: Mapping[str, IdSet], targets: Mapping[str, float | None]) -> Expired:
        """Nothing is kept for lineage."""
        return Expired((), (), (), ())

    def close(self) -> None:
        """Lets go of the durable log, after an epoch that is being stored."""
        with self._storing, self._writing:
            self._durable.close()

    # What only a log with snapshots can do

    def events(self, wanted: Iterable[tuple[Channel, int]]) -> list[Event]:
        """These events of undone pairs, in the order asked for; what is not there is left out."""
        return self._memory.events(wanted)

    def capture(self, epoch: int, is_final: bool) -> Capture:
        """What changed since the last capture; quick, whatever the size of the state."""
        assert epoch > self._captured_epoch, f"{self.replica}: epoch {epoch} ends after {self._captured_epoch}"
        self._captured_epoch = epoch
        self._captured += 1
        return Capture(epoch, is_final, self.incarnation, self._captured, self._memory.capture())

    def store(self, capture: Capture) -> None:
        """Makes an epoch durable, or raises `Fenced`, or `CommitUnknown`. Captures are stored in their order."""
        with self._storing:
            if (capture.generation, capture.number) != (self.incarnation, self._stored + 1):
                raise LogError(
                    f"{self.replica}: capture {capture.number} of generation {capture.generation} (epoch "
                    f"{capture.epoch}) cannot be stored; expected capture {self._stored + 1} of generation "
                    f"{self.incarnation}, since each holds only what changed. Store captures in their order, and none "
                    f"of an earlier generation."
                )
            changes = rows_of_changes(self.replica, capture.changes, self._schemas)
            plan = self._versions.plan(capture.epoch, changes, min(self._complete, capture.epoch))
            counters = {"epoch": capture.epoch, "final": int(capture.is_final), "generation": capture.generation}
            transaction = Transaction(state=plan.state, counters=counters)
            with self._writing:
                self._durable.stage(transaction)
                self._durable.commit(transaction)
            self._versions.stored(plan)
            self._schemas.saved()
            self._stored = capture.number

    def completed(self, epoch: int) -> None:
        """No epoch before this one will be gone back to: with the next store goes what only those need."""
        self._complete = max(self._complete, epoch)

    def _settle_marks(self, counters: Mapping[str, int]) -> None:
        """After the end there is no epoch that could take a mark along, so then every mark is settled."""
        is_finished = bool(self._memory.counters.get("finished"))
        wanted = self._write_connections if is_finished else self._durable_writes
        marks = {name: counters[name] for name in (_MARK + connection for connection in wanted) if name in counters}
        if marks:
            self._settle(marks)

    def _settle(self, marks: Mapping[str, int]) -> None:
        news = {name: number for name, number in marks.items() if number > self._settled.get(name, 0)}
        if news:
            transaction = Transaction(counters=news)
            with self._writing:
                self._durable.stage(transaction)
                self._durable.commit(transaction)
            self._settled.update(news)
