"""The PostgreSQL store: one schema for the logs of all replicas, for pipelines on a cluster.

Large bodies go into the database, or, above a size, to a directory that all machines share, if one is declared.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clew.errors import LogExists, LogNotFound
from clew.log.body_files import DEFAULT_THRESHOLD, BodyFiles
from clew.log.contract import ReplicaRows
from clew.log.manifest import Manifest, check_same_pipeline
from clew.log.numbers import Names
from clew.log.postgres_replica import PostgresReplicaLog, PostgresSession
from clew.log.postgres_schema import Connection, Place, create_schema, read_manifest
from clew.log.sql_reading import read_events, read_rows
from clew.log.sql_replica import no_directory
from clew.log.standing import Holder, Standing, read_standing
from clew.model.event import Event
from clew.model.names import Replica, is_name


def open_postgres(
    dsn: str,
    description: Mapping[str, Any] | None = None,
    *,
    schema: str = "clew",
    bodies: str | Path | None = None,
    threshold: int = DEFAULT_THRESHOLD,
) -> PostgresStore:
    """The log in this schema, made if it is not there and the pipeline's description is given."""
    options: dict[str, Any] = {"schema": schema, "bodies": bodies, "threshold": threshold}
    if description is not None:
        try:
            return PostgresStore.open_existing(dsn, description, **options)
        except LogNotFound:
            with contextlib.suppress(LogExists):  # Another process may be as quick.
                return PostgresStore.create(dsn, description, **options)
    return PostgresStore.open_existing(dsn, description, **options)


class PostgresStore:
    """The logs of all replicas of one pipeline, in one schema of a PostgreSQL database."""

    def __init__(self, place: Place, manifest: Manifest, bodies: str | Path | None, threshold: int) -> None:
        self._place = place
        self.log_id = manifest.log_id
        self.description = manifest.description
        self.threshold = threshold
        self._bodies = None if bodies is None else Path(bodies) / manifest.log_id
        self._readers: list[PostgresReader] = []
        self._logs: weakref.WeakSet[PostgresReplicaLog] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"<PostgresStore {self._place}>"

    @classmethod
    def create(
        cls,
        dsn: str,
        description: Mapping[str, Any],
        *,
        schema: str = "clew",
        bodies: str | Path | None = None,
        threshold: int = DEFAULT_THRESHOLD,
    ) -> PostgresStore:
        """Makes a new log in a schema that does not exist or is empty."""
        place = Place(dsn, schema)
        manifest = Manifest.new(description)
        create_schema(place, manifest)
        return cls(place, manifest, bodies, threshold)

    @classmethod
    def open_existing(
        cls,
        dsn: str,
        description: Mapping[str, Any] | None = None,
        *,
        schema: str = "clew",
        bodies: str | Path | None = None,
        threshold: int = DEFAULT_THRESHOLD,
    ) -> PostgresStore:
        """Opens a log that is there; of this pipeline, if a description is given. An error changes nothing."""
        place = Place(dsn, schema)
        with contextlib.closing(place.connect()) as connection:
            manifest = read_manifest(place, connection)
        if description is not None:
            check_same_pipeline(str(place), manifest.description, description)
        return cls(place, manifest, bodies, threshold)

    def open(self, replica: Replica) -> PostgresReplicaLog:
        """The replica's log under the next incarnation, made if it is not there."""
        log = PostgresReplicaLog(self._place, replica, _directory(self._bodies, replica), self.threshold)
        self._logs.add(log)
        return log

    def connect(self) -> Connection:
        """A connection of its own to the database."""
        return self._place.connect()

    def reader(self) -> PostgresReader:
        """Reads all logs."""
        reader = PostgresReader(self._place, self._bodies)
        self._readers.append(reader)
        return reader

    def close(self) -> None:
        """Lets go of all logs and readers."""
        for log in list(self._logs):
            log.close()
        for reader in self._readers:
            reader.close()
        self._readers.clear()


class PostgresReader:
    """Reads the logs in a schema, of running and of finished pipelines."""

    def __init__(self, place: Place, bodies: Path | None) -> None:
        self._place = place
        self._bodies = bodies
        self._connection = place.connect()
        with place.errors_named():
            self._connection.execute("SET default_transaction_read_only TO on")
        self._lock = threading.RLock()
        self._open: dict[Replica, tuple[PostgresSession, Names]] = {}

    def replicas(self) -> list[Replica]:
        """The replicas that have a log."""
        with self._lock, self._place.errors_named():
            rows = self._connection.execute("SELECT operator, idx FROM replicas").fetchall()
        return sorted(Replica(operator, idx) for operator, idx in rows if is_name(operator))

    def events(self, sender: Replica, port: str, ids: Iterable[int]) -> list[Event]:
        """These output events with their bodies; what is not there is left out."""
        found = self._session(sender)
        if found is None:
            return []
        session, names = found
        return read_events(session, names, sender, port, ids, lambda name: self._read_file(sender, name))

    def rows(self, replica: Replica) -> ReplicaRows:
        """All rows of one replica's log except bodies, as they are at one moment."""
        session, names = self._found(replica)
        with session.snapshot():
            ((incarnation,),) = self._connection.execute(
                "SELECT incarnation FROM replicas WHERE id = %s", (session.replica_id,)
            ).fetchall()
            return read_rows(session, names, incarnation)

    def standing(self, replica: Replica) -> Standing:
        """How the replica stands, and which connection to the server holds its log."""
        session, names = self._found(replica)
        with session.snapshot():
            ((incarnation, pid, is_alive),) = self._connection.execute(
                "SELECT incarnation, backend_pid, EXISTS (SELECT 1 FROM pg_stat_activity AS activity "
                "WHERE activity.pid = backend_pid AND activity.backend_start = replicas.backend_start) "
                "FROM replicas WHERE id = %s",
                (session.replica_id,),
            ).fetchall()
            holder = Holder(f"connection {pid} of the server", is_alive) if pid else None
            return read_standing(session, names, incarnation, holder)

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def _found(self, replica: Replica) -> tuple[PostgresSession, Names]:
        found = self._session(replica)
        if found is None:
            raise LogNotFound(
                f"{self._place} holds no log of {replica}; there are logs of "
                f"{', '.join(map(str, self.replicas())) or 'nobody'}. Ask for one of these."
            )
        return found

    def _session(self, replica: Replica) -> tuple[PostgresSession, Names] | None:
        with self._lock, self._place.errors_named():
            if replica not in self._open:
                found = self._connection.execute(
                    "SELECT id FROM replicas WHERE operator = %s AND idx = %s", replica
                ).fetchone()
                if found is None:
                    return None
                session = PostgresSession(self._place, self._connection, found[0], self._lock)
                self._open[replica] = (session, Names())
            return self._open[replica]

    def _read_file(self, replica: Replica, name: str) -> bytes:
        directory = _directory(self._bodies, replica)
        if directory is None:
            raise no_directory(replica, name)
        return BodyFiles(directory, 0).read(name)


def _directory(bodies: Path | None, replica: Replica) -> Path | None:
    return None if bodies is None else bodies / f"{replica.operator}.{replica.index}"
