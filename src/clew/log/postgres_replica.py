"""A replica's log in the shared tables of a PostgreSQL schema.

Every commit locks its replica's row when it looks at the incarnation; a successor's increment conflicts with that lock.
The successor first terminates the recorded connection of its predecessor, so that it never waits for a paused process.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

from clew.errors import Fenced, LogError
from clew.log.body_files import BodyFiles
from clew.log.encoding import Rows
from clew.log.postgres_schema import Connection, Place, add_later_table
from clew.log.processes import Process, is_alive, is_elsewhere
from clew.log.sql import Row, compose, insertion
from clew.log.sql_replica import SqlReplicaLog
from clew.log.sql_writing import Applied
from clew.model.names import Replica

_PATIENCE_S = 30.0

Holder = list[Any]
"""The process that holds a log: process id, start, boot, namespace, machine."""

_INCARNATION = "SELECT incarnation FROM replicas WHERE id ="

_RECORDED = (
    "FROM pg_stat_activity AS activity JOIN replicas ON activity.pid = replicas.backend_pid "
    "AND activity.backend_start = replicas.backend_start "
    "WHERE replicas.id = %s AND activity.pid <> pg_backend_pid()"
)


class PostgresSession:
    """A connection as seen by one replica: its own rows of the shared tables."""

    def __init__(
        self, place: Place, connection: Connection, replica_id: int, lock: threading.RLock | None = None
    ) -> None:
        self.place = place
        self.connection = connection
        self.replica_id = replica_id
        self.lock = lock or threading.RLock()
        self._texts: dict[str, bytes] = {}

    def query(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of the answer."""
        with self.lock, self.place.errors_named():
            return self.connection.execute(self._text(statement), parameters, binary=True).fetchall()

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        """Executes a statement once per row of parameters."""
        with self.connection.cursor() as cursor:
            cursor.executemany(self._text(statement), rows)

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return bool(self.query("SELECT 1 WHERE to_regclass(?) IS NOT NULL", (name,)))

    def insert(self, table: str, columns: str, rows: Sequence[Row]) -> None:
        """Adds rows that are not there yet."""
        self.many(insertion(table, columns), rows)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read inside is of one moment."""
        with self.lock, self.place.errors_named():
            self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield
            finally:
                self.connection.execute("COMMIT")

    def _text(self, statement: str) -> bytes:
        text = self._texts.get(statement)
        if text is None:
            text = self._texts[statement] = compose(statement, self.replica_id).encode()
        return text


class PostgresReplicaLog(SqlReplicaLog):
    """One replica's log in PostgreSQL, open for one incarnation."""

    def __init__(self, place: Place, replica: Replica, bodies: Path | None, threshold: int) -> None:
        connection = place.connect()
        try:
            with place.errors_named():
                add_later_table(connection)
                replica_id = _replica_id(connection, replica)
                incarnation, self._holders = _take_over(place, connection, replica, replica_id)
            self._place = place
            self._session = PostgresSession(place, connection, replica_id)
            self.is_predecessor_dead = not self._holders
            files = None if bodies is None else BodyFiles(bodies, incarnation)
            super().__init__(replica, incarnation, self._session, files, threshold)
        except BaseException:
            connection.close()
            raise

    def _commit(self, rows: Rows) -> Applied:
        session = self._session
        connection = session.connection
        with session.lock:
            try:
                with self._place.errors_named():
                    applied = self._begin_and_apply(session, connection, rows)
            except Fenced:
                self._roll_back(connection)
                raise
            except BaseException as error:
                self._roll_back(connection)
                if connection.closed and isinstance(error, LogError):
                    self._raise_if_fenced()
                raise
            try:
                status = connection.execute("COMMIT").statusmessage
                if status != "COMMIT":
                    raise psycopg.DatabaseError(f"the server answered {status}")
            except BaseException as error:
                unknown = self._unknown(self._place.without_secret(error))
                connection.close()
                raise unknown from None
        return applied

    def _begin_and_apply(self, session: PostgresSession, connection: Connection, rows: Rows) -> Applied:
        begun = connection.execute(f"BEGIN; {_INCARNATION} {session.replica_id} FOR SHARE".encode())
        begun.nextset()
        self._check_incarnation(_number(begun.fetchone()))
        with connection.pipeline():
            return self._apply(session, rows)

    def _roll_back(self, connection: Connection) -> None:
        with contextlib.suppress(psycopg.Error):
            connection.execute("ROLLBACK")

    def _raise_if_fenced(self) -> None:
        """The connection is gone, before the commit was asked for. A successor may be the one who ended it."""
        self._lost = LogError(
            f"the connection of {self.replica} (incarnation {self.incarnation}) to its log in {self._place} is gone; "
            f"nothing was changed. This process must exit; its successor will go on from the log."
        )
        with contextlib.closing(self._place.connect()) as connection, self._place.errors_named():
            found = connection.execute(f"{_INCARNATION} {self._session.replica_id}".encode()).fetchone()
            self._check_incarnation(_number(found))

    def close(self) -> None:
        """Lets go of the log. Its contents stay; only that this process no longer holds it is noted."""
        connection = self._session.connection
        with contextlib.suppress(psycopg.Error):
            connection.execute(
                "UPDATE replicas SET holders = %s WHERE id = %s AND incarnation = %s",
                (json.dumps(self._holders), self._session.replica_id, self.incarnation),
            )
        connection.close()


def _replica_id(connection: Connection, replica: Replica) -> int:
    connection.execute(
        "INSERT INTO replicas (operator, idx, incarnation) VALUES (%s, %s, 0) ON CONFLICT DO NOTHING", replica
    )
    found = connection.execute("SELECT id FROM replicas WHERE operator = %s AND idx = %s", replica).fetchone()
    return _number(found)


def _number(found: Row | None) -> int:
    return 0 if found is None else int(found[0])


def _take_over(place: Place, connection: Connection, replica: Replica, replica_id: int) -> tuple[int, list[Holder]]:
    """Terminates the predecessor's connection and takes the next incarnation.

    Also gives the earlier holders whose processes may still live: outside systems they can still reach.
    """
    deadline = time.monotonic() + _PATIENCE_S
    connection.execute(f"SELECT pg_terminate_backend(activity.pid) {_RECORDED}".encode(), (replica_id,))
    while connection.execute(f"SELECT 1 {_RECORDED}".encode(), (replica_id,)).fetchone():
        if time.monotonic() > deadline:
            raise LogError(
                f"the log of {replica} in {place} is held by a connection that was terminated but is still there after "
                f"{_PATIENCE_S:.0f} seconds. Look at pg_stat_activity on the server, then start again."
            )
        time.sleep(0.005)
    this = [*Process.current(), socket.gethostname()]
    with connection.transaction():
        found = connection.execute("SELECT holders FROM replicas WHERE id = %s FOR UPDATE", (replica_id,)).fetchone()
        holders = [holder for holder in json.loads(found[0] if found else "[]") if not _is_dead(holder)]
        taken = connection.execute(
            "UPDATE replicas SET incarnation = incarnation + 1, backend_pid = pg_backend_pid(), backend_start = "
            "(SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()), holders = %s "
            "WHERE id = %s RETURNING incarnation",
            (json.dumps([*holders, this]), replica_id),
        ).fetchone()
    return _number(taken), holders


def _is_dead(holder: Holder) -> bool:
    """Whether a process is known to be gone: one of another machine never is."""
    process, machine = Process(*holder[:4]), holder[4]
    if machine != socket.gethostname() or is_elsewhere(process):
        return False
    return not is_alive(process)
