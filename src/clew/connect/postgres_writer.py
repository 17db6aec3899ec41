"""PostgreSQL tables as a destination: each write action adds its rows in one transaction with a note of its number.

Conditional: the note is a row per writer in the table `clew_actions`, locked from the first statement on, so of a
paused predecessor and its successor one passes and the other sees that it is done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from clew.connect.postgres_database import Database, Session
from clew.connect.postgres_types import copied, created_as
from clew.connect.settings import column_list
from clew.connect.turn import Turn
from clew.errors import OutsideError
from clew.model.connection import Kind, WriteAction, WriteConnection

if TYPE_CHECKING:
    from psycopg import sql

    from clew.connect.postgres_database import Connection

NOTES = "clew_actions"
_MAKING = 0x436C6577
"""The advisory lock of whoever makes a table."""


def postgres(dsn: str, table: str, *, create: bool = False, upsert: Sequence[str] = ()) -> WriteConnection:
    """A table of a PostgreSQL database; columns are matched by name; conditional.

    `table` may name a schema, as in "sales.totals". With `create` the table is made from the records of the first
    action, if it is not there. With `upsert` a row replaces the one with the same values in these columns, which must
    have a unique index (`create` makes them the primary key); of equal rows in one action the last counts.
    """
    return PostgresWriter(dsn, table, create, upsert)


class PostgresWriter(WriteConnection):
    """A table of a PostgreSQL database."""

    kind = Kind.CONDITIONAL
    wait_s = 5.0
    """How long to wait for a transaction of the same writer before the server is asked to end it."""

    def __init__(self, dsn: str, table: str, create: bool, upsert: Sequence[str]) -> None:
        self.database = Database("postgres()", dsn)
        self.system = self.database.system
        self.table = table
        self.create = create
        self.upsert = column_list("postgres()", "upsert", upsert)
        self._session: Session | None = None
        self._turn = Turn()

    def __repr__(self) -> str:
        return f"<table {self.table} of {self.database}>"

    def open(self) -> None:
        """Connects, and makes the table of notes if it is not there."""
        with self._turn, self.database.errors_named(f"cannot hold the table {NOTES}"):
            self._connected().connection()

    def close(self) -> None:
        """Lets go of the connection."""
        with self._turn:
            if self._session is not None:
                self._session.close()

    def execute(self, action: WriteAction) -> None:
        """Adds the rows unless the action is noted already."""
        import psycopg

        what = f"cannot take the write action {action.id} for table {self.table}"
        with self._turn:
            session = self._connected()
            try:
                return session.run(what, lambda connection: self._execute(connection, action))
            except OutsideError as error:
                if not isinstance(error.__context__, psycopg.errors.LockNotAvailable):
                    raise
            session.run(what, lambda connection: self._end_predecessors(connection, action))
            session.run(what, lambda connection: self._execute(connection, action))

    def _connected(self) -> Session:
        if self._session is None:
            self._session = Session(self.database, is_reader=False, prepare=self._make_notes)
        return self._session

    def _execute(self, connection: Connection, action: WriteAction) -> None:
        from psycopg import sql

        if self.create:
            self._make_table(connection, action.batch.schema)
        with connection.transaction():
            connection.execute(
                "SELECT set_config('application_name', %s, true), set_config('lock_timeout', %s, true)",
                (_name(action.writer), f"{round(self.wait_s * 1000)}ms"),
            )
            noted = connection.execute(
                sql.SQL(
                    "INSERT INTO {notes} AS old (writer, number) VALUES (%s, %s) ON CONFLICT (writer) "
                    "DO UPDATE SET number = excluded.number WHERE old.number < excluded.number"
                ).format(notes=self._notes()),
                (action.writer, action.number),
            )
            if noted.rowcount == 0:
                return  # It is in.
            if action.batch.num_rows:
                self._add(connection, action.batch)

    def _add(self, connection: Connection, batch: pa.RecordBatch) -> None:
        from psycopg import sql

        names = list(batch.schema.names)
        target = self._stage(connection, names) if self.upsert else self._place()
        with connection.cursor() as cursor:
            with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(target, _listed(names))) as copy:
                copy.write(copied(batch))
        if self.upsert:
            self._merge(connection, target, names)

    def _stage(self, connection: Connection, names: list[str]) -> sql.Identifier:
        """A table of this session for rows on their way, empty outside a transaction; it counts them as they come."""
        from psycopg import sql

        stage = sql.Identifier(f"clew_rows_{_digest(repr((self.table, names)))}")
        connection.execute(
            sql.SQL(
                "CREATE TEMPORARY TABLE IF NOT EXISTS {} ON COMMIT DELETE ROWS AS SELECT {} FROM {} WITH NO DATA"
            ).format(stage, _listed(names), self._place())
        )
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS clew_row bigint GENERATED ALWAYS AS IDENTITY").format(
                stage
            )
        )
        return stage

    def _merge(self, connection: Connection, stage: sql.Identifier, names: list[str]) -> None:
        """Takes the rows over; of several with one key the last."""
        from psycopg import sql

        others = [name for name in names if name not in self.upsert]
        each = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others)
        connection.execute(
            sql.SQL(
                "INSERT INTO {place} ({names}) SELECT DISTINCT ON ({keys}) {names} FROM {stage} "
                "ORDER BY {keys}, clew_row DESC ON CONFLICT ({keys}) DO {do}"
            ).format(
                place=self._place(),
                names=_listed(names),
                keys=_listed(self.upsert),
                stage=stage,
                do=sql.SQL("UPDATE SET {}").format(each) if others else sql.SQL("NOTHING"),
            )
        )

    def _make_table(self, connection: Connection, schema: pa.Schema) -> None:
        from psycopg import sql

        columns = [
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(created_as(field.type))) for field in schema
        ]
        if self.upsert:
            columns.append(sql.SQL("PRIMARY KEY ({})").format(_listed(self.upsert)))
        self._make(connection, self._place(), sql.SQL(", ").join(columns))
        self.create = False

    def _make_notes(self, connection: Connection) -> None:
        from psycopg import sql

        self._make(connection, self._notes(), sql.SQL("writer text PRIMARY KEY, number bigint NOT NULL"))

    def _make(self, connection: Connection, place: sql.Identifier, columns: sql.Composable) -> None:
        """Makes a table if it is not there, in a transaction that a paused process does not sit in for long."""
        from psycopg import sql

        if connection.execute("SELECT to_regclass(%s)", (place.as_string(connection),)).fetchone() != (None,):
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            connection.execute("SET LOCAL client_min_messages TO warning")
            connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(place, columns))

    def _end_predecessors(self, connection: Connection, action: WriteAction) -> None:
        """Ends the other sessions that are inside an action of this writer: one holds the note and does not go on."""
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s AND "
            "pid <> pg_backend_pid() AND datname = current_database()",
            (_name(action.writer),),
        )

    def _place(self) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(*self.table.split("."))

    def _notes(self) -> sql.Identifier:
        """The table of notes, beside the table that is written to."""
        from psycopg import sql

        return sql.Identifier(*self.table.split(".")[:-1], NOTES)


def _name(writer: str) -> str:
    """The name that sessions inside an action of this writer have."""
    return f"clew {_digest(writer)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _listed(names: Sequence[str]) -> sql.Composed:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, names))
