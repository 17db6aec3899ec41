"""A replica's log in a database: what its owner can do, whichever database it is.

A transaction is encoded before the database's transaction begins, so that nothing slow or foreign runs inside it. A
commit that failed before the database was asked to commit has changed nothing; one that failed while it was asked is
unknown, and then this log refuses all further work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from clew.errors import CommitUnknown, Fenced, LogError
from clew.log.body_files import BodyFiles
from clew.log.encoding import Rows, rows_of
from clew.log.numbers import Names, Numbers
from clew.log.sql import Session
from clew.log.sql_expiry import find_expired
from clew.log.sql_reading import (
    read_effect,
    read_file_names,
    read_outputs,
    read_recovered,
    read_state,
    read_state_items,
)
from clew.log.sql_writing import Applied, apply
from clew.model.event import Event
from clew.model.history import Expired, Output, Recovered, Stored, Transaction
from clew.model.names import Replica
from clew.model.ranges import IdSet


class SqlReplicaLog(ABC):
    """One replica's log, open for one incarnation."""

    is_predecessor_dead: bool
    """Whether no earlier incarnation can do anything any more, not even outside the log."""

    def __init__(
        self, replica: Replica, incarnation: int, reading: Session, files: BodyFiles | None, threshold: int
    ) -> None:
        self.replica = replica
        self.incarnation = incarnation
        self._reading = reading
        self._names = Names()
        self._numbers = Numbers(reading)
        self._files = files
        self._threshold = threshold
        self._staged: dict[int, str] = {}
        """Body files by the identity of their event."""
        self._staged_events: list[Event] = []
        """Kept so that their identities stay their own."""
        self._staged_last: Transaction | None = None
        self._lost: LogError | None = None
        """Why this incarnation can do no more."""
        self._state_floor = 0
        self._has_versions = bool(reading.query("SELECT 1 FROM state_versions WHERE {own} LIMIT 1"))
        kept = read_file_names(reading) if files is not None else frozenset()
        self._has_files = bool(kept)
        if files is not None:
            files.sweep(kept)

    def recover(self) -> Recovered:
        """Everything the incarnation needs to go on."""
        return read_recovered(self._reading, self._names, self.incarnation)

    def stage(self, transaction: Transaction) -> None:
        """Writes large bodies to files and makes these durable."""
        files = self._files
        self._staged_last = transaction
        if files is None:
            return
        threshold = self._threshold
        large = [output.event for output in transaction.outputs if len(output.event.body) > threshold]
        if transaction.stored:
            large += [stored.event for stored in transaction.stored if len(stored.event.body) > threshold]
        large = [event for event in large if id(event) not in self._staged]
        if large:
            self._has_files = True
            for event in large:
                self._staged[id(event)] = files.create(event.body)
                self._staged_events.append(event)
            files.sync()

    def commit(self, transaction: Transaction) -> None:
        """Applies a transaction atomically and durably, or raises `Fenced`, or `CommitUnknown`."""
        if self._lost is not None:
            raise type(self._lost)(*self._lost.args)
        if self._staged_last is not transaction:
            self.stage(transaction)
        self._staged_last = None
        try:
            applied = self._commit(rows_of(self.replica, transaction, self._numbers, self._staged))
        except BaseException as error:
            self._numbers.undo()
            if isinstance(error, Fenced):
                self._lost = error
            raise
        self._numbers.settle()
        self._state_floor = applied.state_floor
        if self._staged:
            self._staged.clear()
            self._staged_events.clear()
        if self._files is not None and applied.unused_files:
            self._files.remove(applied.unused_files)

    @abstractmethod
    def _commit(self, rows: Rows) -> Applied:
        """Applies the rows in one transaction of the database, in which the incarnation is checked too."""

    def _apply(self, session: Session, rows: Rows) -> Applied:
        self._has_versions = self._has_versions or bool(rows.state_versions)
        return apply(
            session, rows, has_files=self._has_files, has_versions=self._has_versions, state_floor=self._state_floor
        )

    def _read_file(self, name: str) -> bytes:
        if self._files is None:
            raise no_directory(self.replica, name)
        return self._files.read(name)

    def _check_incarnation(self, found: int) -> None:
        if found != self.incarnation:
            raise Fenced(
                f"incarnation {self.incarnation} of {self.replica} has been replaced by incarnation {found}, which now "
                f"owns its log; nothing was changed. This process must exit."
            )

    def _unknown(self, reason: object) -> CommitUnknown:
        unknown = CommitUnknown(
            f"whether the last commit of {self.replica} (incarnation {self.incarnation}) is durable is not known: "
            f"{reason}. This process must exit; its successor will find out from the log."
        )
        self._lost = unknown
        return unknown

    def state(self, key: bytes) -> bytes | None:
        """The committed value of one state key."""
        return read_state(self._reading, key)

    def state_items(self) -> list[tuple[bytes, bytes]]:
        """All committed state, ordered by key."""
        return read_state_items(self._reading)

    def outputs(self, port: str, first: int, limit: int) -> list[Output]:
        """Up to `limit` outputs of a port (or write actions of a connection) from id `first` on."""
        return read_outputs(self._reading, self._names, self.replica, port, first, limit, self._read_file)

    def effect(self, action: int, first: int, limit: int) -> list[Stored]:
        """Up to `limit` batches of a read action's stored effect from index `first` on."""
        return read_effect(self._reading, self._names, action, first, limit, self._read_file)

    def expired(self, released: Mapping[str, IdSet], targets: Mapping[str, float | None]) -> Expired:
        """What may be removed, given what receivers have released on each output port."""
        return find_expired(
            self._reading,
            self._names,
            lambda port: self._names.port_number(self._reading, self.replica, port),
            released,
            targets,
        )

    @abstractmethod
    def close(self) -> None:
        """Lets go of the log without changing it."""


def no_directory(replica: Replica, name: str) -> LogError:
    """The error for a body that is in a directory which nobody named."""
    return LogError(
        f"a body of {replica} is in the file {name!r} of a shared directory, and no directory was given. Open the log "
        f"with the directory of bodies that it was made with."
    )
