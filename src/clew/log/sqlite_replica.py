"""A replica's log in an SQLite file of its own.

A successor first ends its predecessor's process, since a paused process may hold the lock of the file; then it takes
the next incarnation. Every commit looks at the incarnation inside its own transaction.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.log.body_files import BodyFiles
from clew.log.encoding import Rows
from clew.log.processes import Process, end, is_alive, is_elsewhere
from clew.log.sql import Row, compose, insertion
from clew.log.sql_replica import SqlReplicaLog
from clew.log.sql_writing import Applied
from clew.log.sqlite_files import LATER_TABLE, connect_to_read, connect_to_write, damage_named, named
from clew.model.names import Replica

_PATIENCE_S = 60.0


class SqliteSession:
    """A connection to one SQLite file, for use by one thread at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.connection = connection
        self.lock = threading.RLock()
        self._texts: dict[str, str] = {}

    def query(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of the answer."""
        with self.lock, damage_named(self.path):
            return self.connection.execute(self._text(statement), parameters).fetchall()

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        """Executes a statement once per row of parameters."""
        self.connection.executemany(self._text(statement), rows)

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def insert(self, table: str, columns: str, rows: Sequence[Row]) -> None:
        """Adds rows that are not there yet."""
        text = self._texts.get(table)
        if text is None:
            text = self._texts[table] = compose(insertion(table, columns), None)
        self.connection.executemany(text, rows)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read inside is of one moment."""
        with self.lock, damage_named(self.path):
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                self.connection.execute("COMMIT")

    def close(self) -> None:
        """Closes the connection."""
        with self.lock:
            self.connection.close()

    def _text(self, statement: str) -> str:
        text = self._texts.get(statement)
        if text is None:
            text = self._texts[statement] = compose(statement, None)
        return text


class SqliteReplicaLog(SqlReplicaLog):
    """One replica's log in an SQLite file, open for one incarnation."""

    def __init__(self, path: Path, replica: Replica, bodies: Path, threshold: int) -> None:
        self._path = path
        with contextlib.ExitStack() as undoing, damage_named(path):
            writing = connect_to_write(path)
            undoing.callback(writing.close)
            incarnation, self.is_predecessor_dead = _take_over(writing)
            reading = connect_to_read(path)
            undoing.callback(reading.close)
            self._writing = SqliteSession(path, writing)
            self._read_session = SqliteSession(path, reading)
            super().__init__(replica, incarnation, self._read_session, BodyFiles(bodies, incarnation), threshold)
            undoing.pop_all()

    def _commit(self, rows: Rows) -> Applied:
        session = self._writing
        connection = session.connection
        with session.lock:
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    self._check_incarnation(connection.execute("SELECT incarnation FROM owner").fetchone()[0])
                    applied = self._apply(session, rows)
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.DatabaseError as error:
                raise named(self._path, error) from error
            try:
                connection.execute("COMMIT")
            except BaseException as error:
                unknown = self._unknown(error)
                connection.close()
                raise unknown from error
        return applied

    def close(self) -> None:
        """Lets go of the log. Its contents stay; only that this process no longer holds it is noted."""
        with contextlib.suppress(sqlite3.Error):
            self._writing.connection.execute(
                "UPDATE owner SET pid = 0, started = 0, boot = '', namespace = '' WHERE incarnation = ?",
                (self.incarnation,),
            )
        self._read_session.close()
        self._writing.close()


def _take_over(connection: sqlite3.Connection) -> tuple[int, bool]:
    """Ends every predecessor that can be ended and takes the next incarnation.

    Also says whether all of them are known to be dead: one in this very process may still be at work in a thread, one
    in another container cannot be seen. Such are remembered for the successors.
    """
    this = Process.current()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        _, holders = _holders(connection)
        for holder in holders:
            if holder.pid != this.pid:
                end(holder)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            continue
        try:
            incarnation, found = _holders(connection)
            if found != holders:  # Somebody else took over in between: that one is the predecessor now.
                connection.execute("ROLLBACK")
                continue
            connection.execute(LATER_TABLE)
            remaining = {holder for holder in holders if is_alive(holder) or is_elsewhere(holder)}
            connection.execute("DELETE FROM past")
            connection.executemany("INSERT INTO past VALUES (?, ?, ?, ?)", remaining)
            connection.execute(
                "UPDATE owner SET incarnation = ?, pid = ?, started = ?, boot = ?, namespace = ?",
                (incarnation + 1, *this),
            )
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return incarnation + 1, not remaining


def _holders(connection: sqlite3.Connection) -> tuple[int, list[Process]]:
    """The current incarnation, and the processes that have or may have the log open; nobody has pid 0."""
    ((incarnation,),) = connection.execute("SELECT incarnation FROM owner").fetchall()
    processes = connection.execute(
        "SELECT pid, started, boot, namespace FROM owner WHERE pid <> 0 "
        "UNION SELECT pid, started, boot, namespace FROM past"
    )
    return incarnation, [Process(*row) for row in processes]
