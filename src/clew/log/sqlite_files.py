"""SQLite files: the tables of one replica's log, how a file is made, and how one is judged without touching it.

A file appears under its name only when it is complete, so a file without its tables is damaged, never unfinished.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from clew.errors import LogDamaged, LogError
from clew.log.body_files import sync_directory
from clew.log.contract import FORMAT
from clew.log.encoding import AT_HAND
from clew.log.manifest import check_format
from clew.model.names import Replica

APPLICATION_ID = 0x436C6577
"""Marks an SQLite file as a log of Clew."""

_SMALLEST = 512
"""The smallest size of an SQLite database, in bytes."""

_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)\.([0-9]+)\.db\Z")

TABLES = f"""
CREATE TABLE owner (
    one INTEGER PRIMARY KEY CHECK (one = 1), log TEXT NOT NULL, operator TEXT NOT NULL, idx INTEGER NOT NULL,
    incarnation INTEGER NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL, boot TEXT NOT NULL,
    namespace TEXT NOT NULL);
CREATE TABLE past (pid INTEGER NOT NULL, started INTEGER NOT NULL, boot TEXT NOT NULL, namespace TEXT NOT NULL);
CREATE TABLE ports (id INTEGER PRIMARY KEY, operator TEXT NOT NULL, idx INTEGER NOT NULL, name TEXT NOT NULL);
CREATE TABLE channels (
    id INTEGER PRIMARY KEY, sender TEXT NOT NULL, sender_idx INTEGER NOT NULL, output TEXT NOT NULL,
    receiver TEXT NOT NULL, receiver_idx INTEGER NOT NULL, input TEXT NOT NULL);
CREATE TABLE schemas (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE outputs (
    key INTEGER PRIMARY KEY, created REAL NOT NULL, schema INTEGER, time BLOB, attributes BLOB, requires BLOB,
    file TEXT, body BLOB);
CREATE INDEX outputs_in_files ON outputs (file) WHERE file IS NOT NULL;
CREATE TABLE input_sets (serial INTEGER PRIMARY KEY, key BLOB NOT NULL, closed INTEGER NOT NULL);
CREATE INDEX input_sets_at_hand ON input_sets (closed) WHERE {AT_HAND};
CREATE TABLE pairs (
    serial INTEGER, ord INTEGER, channel INTEGER NOT NULL, event INTEGER NOT NULL, note BLOB,
    PRIMARY KEY (serial, ord)) WITHOUT ROWID;
CREATE TABLE lineage (output INTEGER, serial INTEGER, PRIMARY KEY (output, serial)) WITHOUT ROWID;
CREATE INDEX lineage_by_set ON lineage (serial);
CREATE TABLE uses (
    serial INTEGER, kind TEXT, number INTEGER, PRIMARY KEY (serial, kind, number)) WITHOUT ROWID;
CREATE INDEX uses_by_number ON uses (kind, number);
CREATE TABLE cursors (
    channel INTEGER PRIMARY KEY, assigned INTEGER NOT NULL, floor INTEGER NOT NULL, above BLOB,
    ended INTEGER NOT NULL);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE state (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE state_versions (key BLOB, version INTEGER, value BLOB, PRIMARY KEY (key, version)) WITHOUT ROWID;
CREATE INDEX state_versions_by_version ON state_versions (version);
CREATE TABLE timers (key BLOB PRIMARY KEY, due REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE reads (
    number INTEGER PRIMARY KEY, connection TEXT NOT NULL, description BLOB NOT NULL, complete INTEGER NOT NULL,
    done INTEGER NOT NULL, position BLOB, stored INTEGER NOT NULL);
CREATE INDEX reads_at_hand ON reads (done) WHERE done = 0;
CREATE TABLE effects (
    action INTEGER, idx INTEGER, origin INTEGER NOT NULL, id INTEGER NOT NULL, schema INTEGER, time BLOB,
    attributes BLOB, file TEXT, body BLOB, PRIMARY KEY (action, idx));
CREATE INDEX effects_in_files ON effects (file) WHERE file IS NOT NULL;
"""

LATER_TABLE = """
CREATE TABLE IF NOT EXISTS progress (
    kind TEXT, name BLOB, value BLOB NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
"""
"""Older files of this format lack it; their next owner adds it. A version that does not know it does not miss it."""

LINEAGE_INDEXES = """
CREATE INDEX outputs_by_age ON outputs (created);
CREATE INDEX pairs_by_event ON pairs (channel, event);
"""
"""Only for replicas whose lineage is captured: without it, what these would find is removed at once."""

TABLE_NAMES = frozenset(re.findall(r"CREATE TABLE (\w+)", TABLES))
"""The tables that every file of this format has."""


def file_name(replica: Replica) -> str:
    """The name of a replica's file.

    >>> file_name(Replica("hourly", 2)), replica_of("hourly.2.db"), replica_of("log.json")
    ('hourly.2.db', Replica(operator='hourly', index=2), None)
    """
    return f"{replica.operator}.{replica.index}.db"


def replica_of(name: str) -> Replica | None:
    """The replica whose file has this name, if it is such a name."""
    match = _NAME.match(name)
    return Replica(match[1], int(match[2])) if match else None


def make_file(path: Path, log_id: str, replica: Replica, *, captures_lineage: bool) -> None:
    """Makes the file of a replica that has none; a file that is there already stays as it is."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; "
                f"{TABLES} {LATER_TABLE} {LINEAGE_INDEXES if captures_lineage else ''} COMMIT;"
            )
            connection.execute(
                "INSERT INTO owner VALUES (1, ?, ?, ?, 0, 0, 0, '', '')", (log_id, replica.operator, replica.index)
            )
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
        with contextlib.suppress(FileExistsError):  # Another process was faster, with the same contents.
            os.link(draft, path)
        sync_directory(path.parent)
    finally:
        for ending in ("", "-wal", "-shm"):
            draft.with_name(draft.name + ending).unlink(missing_ok=True)


def check_file(path: Path, log_id: str, replica: Replica) -> None:
    """Raises if the file is not this replica's log in a format that this version reads; changes nothing.

    It is only ever opened by SQLite: closing a file that was opened otherwise would drop the locks that this process
    has on it.
    """
    with damage_named(path):
        try:
            _check_contents(path, log_id, replica, "mode=ro&immutable=1")
            return
        except sqlite3.DatabaseError:
            if not _has_wal(path):
                raise
        # A crash may have left it to the write-ahead log to make the file whole.
        companions = [path.with_name(path.name + ending) for ending in ("-wal", "-shm")]
        missing = [companion for companion in companions if not companion.exists()]
        try:
            _check_contents(path, log_id, replica, "mode=ro")
        except (sqlite3.DatabaseError, LogError):
            for companion in missing:  # Made by looking, so nobody else has the file open.
                companion.unlink(missing_ok=True)
            raise


def _check_contents(path: Path, log_id: str, replica: Replica, mode: str) -> None:
    """What is looked at was written when the file was made, and never changed since."""
    if path.stat().st_size < _SMALLEST:
        raise sqlite3.DatabaseError("file is too short and not a database")
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
        ((application_id,),) = connection.execute("PRAGMA application_id")
        ((format,),) = connection.execute("PRAGMA user_version")
        if application_id != APPLICATION_ID or format < 1:
            raise LogDamaged(
                f"{path} is an SQLite database of another application; expected a replica's log of format {FORMAT}. "
                f"Put the right file there, or restore it from a copy."
            )
        check_format(str(path), format)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if lacking := sorted(TABLE_NAMES - tables):
            raise LogDamaged(
                f"{path} lacks the tables {', '.join(lacking)}; expected a replica's log of format {FORMAT}. "
                f"Restore it from a copy."
            )
        rows = connection.execute("SELECT log, operator, idx FROM owner").fetchall()
        if rows != [(log_id, *replica)]:
            found = f"{rows[0][1]}.{rows[0][2]} of log {rows[0][0]}" if rows else "nobody"
            raise LogDamaged(
                f"{path} is the log of {found}; expected {replica.operator}.{replica.index} of log {log_id}. "
                f"Put the right file there, or restore it from a copy."
            )


def _has_wal(path: Path) -> bool:
    wal = path.with_name(path.name + "-wal")
    return wal.exists() and wal.stat().st_size > 0


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that only reads and never waits for writers."""
    address = path.absolute().as_uri()
    connection = sqlite3.connect(
        f"{address}?mode=ro", uri=True, isolation_level=None, timeout=30.0, check_same_thread=False
    )
    try:
        connection.execute("SELECT 1 FROM owner").fetchall()
    except sqlite3.OperationalError:
        connection.close()
        if os.access(path.parent, os.W_OK) or _has_wal(path):
            raise
        connection = sqlite3.connect(  # On a medium that nobody can write to, such as an archive.
            f"{address}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
    return connection


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A connection whose commits are durable when they return."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30.0, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


@contextlib.contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turns SQLite's complaints about a file into errors that say what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise named(path, error) from error


def named(path: Path, error: sqlite3.DatabaseError) -> LogError:
    """SQLite's complaint about a file as an error that says what to do."""
    if isinstance(error, sqlite3.IntegrityError):
        return LogError(
            f"a transaction contradicts what {path} holds already ({error}); nothing was changed. Rows are added once, "
            f"by the replica that owns the log: this is a fault in Clew or in a store, please report it."
        )
    words = str(error)
    signs = ("malformed", "not a database", "no such table", "no such column", "encrypted", "file is truncated")
    if any(sign in words for sign in signs):
        return LogDamaged(
            f"{path} cannot be read ({words}, {_size(path)}); expected a replica's log of format {FORMAT}. "
            f"Restore it from a copy."
        )
    return LogError(f"{path} cannot be used ({words}). Look at the disk and the rights of the file, then start again.")


def _size(path: Path) -> str:
    try:
        return f"{path.stat().st_size} bytes"
    except OSError:
        return "no file"
