"""SQLite tables as a destination: each write action adds its rows in one transaction with a note of its number.

Conditional: the note is a row per writer in the table `clew_actions`. Between actions nothing is held.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.connect.as_json import json_text
from clew.connect.settings import column_list
from clew.connect.turn import Turn
from clew.errors import OutsideError
from clew.model.connection import Kind, WriteAction, WriteConnection

if TYPE_CHECKING:
    import sqlite3

NOTES = "clew_actions"


def sqlite(
    path: str | os.PathLike[str], table: str, *, create: bool = False, upsert: Sequence[str] = ()
) -> WriteConnection:
    """A table of an SQLite database on this machine; columns are matched by name; conditional.

    With `create` the table is made from the records of the first action, if it is not there. With `upsert` a row
    replaces the one with the same values in these columns, which must have a unique index (`create` makes them the
    primary key). Times are stored in ISO 8601, decimals as text, lists and structs as JSON.
    """
    return SqliteWriter(path, table, create, upsert)


class SqliteWriter(WriteConnection):
    """A table of an SQLite database."""

    kind = Kind.CONDITIONAL
    busy_s = 10.0
    """How long to wait for a process that is inside a transaction."""

    def __init__(self, path: str | os.PathLike[str], table: str, create: bool, upsert: Sequence[str]) -> None:
        self.path = os.path.abspath(path)  # Other processes may run in other directories.
        self.system = ("sqlite", self.path)
        self.table = table
        self.create = create
        self.upsert = column_list("sqlite()", "upsert", upsert)
        self._connection: sqlite3.Connection | None = None
        self._turn = Turn()

    def __repr__(self) -> str:
        return f"<table {self.table} of {self.path}>"

    def open(self) -> None:
        """Opens the database, and makes the table of notes if it is not there."""
        with self._turn:
            if self._connection is None:
                self._connection = self._opened()

    def _opened(self) -> sqlite3.Connection:
        import sqlite3

        with self._errors_named("cannot be opened"):
            connection = sqlite3.connect(self.path, timeout=self.busy_s, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {NOTES} "
                    f"(writer TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID"
                )
            except BaseException:
                connection.close()
                raise
        return connection

    def close(self) -> None:
        """Lets go of the database."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def execute(self, action: WriteAction) -> None:
        """Adds the rows unless the action is noted already."""
        rows = _rows(action.batch)  # Made before the lock is taken.
        insert = self._insert(action.batch.schema.names)
        with self._turn, self._errors_named(f"cannot take the write action {action.id} for table {self.table}"):
            self.open()
            connection = self._connection
            assert connection is not None
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._add(connection, action, insert, rows)
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(Exception):
                    connection.execute("ROLLBACK")
                raise

    def _add(
        self, connection: sqlite3.Connection, action: WriteAction, insert: str, rows: list[tuple[Any, ...]]
    ) -> None:
        noted = connection.execute(
            f"INSERT INTO {NOTES} VALUES (?, ?) ON CONFLICT (writer) DO UPDATE SET number = excluded.number "
            f"WHERE number < excluded.number",
            (action.writer, action.number),
        )
        if noted.rowcount == 0:
            return  # It is in.
        if self.create:
            connection.execute(self._make(action.batch.schema))
        connection.executemany(insert, rows)

    def _insert(self, names: Sequence[str]) -> str:
        text = (
            f"INSERT INTO {_quoted(self.table)} ({', '.join(map(_quoted, names))}) "
            f"VALUES ({', '.join('?' for _ in names)})"
        )
        if self.upsert:
            changes = [f"{_quoted(name)} = excluded.{_quoted(name)}" for name in names if name not in self.upsert]
            do = f"UPDATE SET {', '.join(changes)}" if changes else "NOTHING"
            text += f" ON CONFLICT ({', '.join(map(_quoted, self.upsert))}) DO {do}"
        return text

    def _make(self, schema: pa.Schema) -> str:
        columns = [f"{_quoted(field.name)} {_created_as(field.type)}" for field in schema]
        if self.upsert:
            columns.append(f"PRIMARY KEY ({', '.join(map(_quoted, self.upsert))})")
        return f"CREATE TABLE IF NOT EXISTS {_quoted(self.table)} ({', '.join(columns)})"

    @contextlib.contextmanager
    def _errors_named(self, what: str) -> Iterator[None]:
        import sqlite3

        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                do = (
                    f"Another process has been inside a transaction for {self.busy_s:g} s: let it go on, or end it, "
                    f"and start again; nothing is lost, and nothing is done twice."
                )
            elif "no such table" in str(error):
                do = "Look at the name, make the table, or pass create=True to make it from the records."
            else:
                do = "Look at the file, the space left and the columns of the table."
            raise OutsideError(f"the SQLite database {self.path} {what} ({error}). {do}") from error
        except sqlite3.Error as error:
            raise OutsideError(
                f"the SQLite database {self.path} {what} ({error}). Look at the file, and at the table, its columns "
                f"and constraints."
            ) from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _created_as(wanted: pa.DataType) -> str:
    if pa.types.is_integer(wanted) or pa.types.is_boolean(wanted):
        return "INTEGER"
    if pa.types.is_floating(wanted):
        return "REAL"
    if pa.types.is_binary(wanted) or pa.types.is_large_binary(wanted) or pa.types.is_fixed_size_binary(wanted):
        return "BLOB"
    return "TEXT"


def _rows(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    columns = [_stored(column) for column in batch.columns]
    return list(zip(*columns, strict=True)) if columns else []


def _stored(column: pa.Array) -> list[Any]:
    """The values as SQLite stores them."""
    of, values = column.type, column.to_pylist()
    if pa.types.is_nested(of):
        return [None if each is None else json_text(each) for each in values]
    if pa.types.is_temporal(of) and not pa.types.is_duration(of):
        return [None if each is None else each.isoformat() for each in values]
    if pa.types.is_decimal(of) or pa.types.is_duration(of) or pa.types.is_uint64(of):
        return [None if each is None else str(each) for each in values]
    return values  # type: ignore[no-any-return]
