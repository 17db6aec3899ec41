"""The PostgreSQL schema: connections that keep their secrets, the tables of all replicas' logs, and judging them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from clew.errors import LogDamaged, LogError, LogExists, LogNotFound
from clew.log.contract import FORMAT
from clew.log.encoding import AT_HAND
from clew.log.manifest import Manifest

_NOTICING: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
"""A server that has vanished is noticed within half a minute."""

Connection = psycopg.Connection[tuple[Any, ...]]

TABLES = f"""
CREATE TABLE log (format int4 NOT NULL, log_id text NOT NULL, description text NOT NULL);
CREATE TABLE replicas (
    id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, operator text NOT NULL, idx int4 NOT NULL,
    incarnation int8 NOT NULL, backend_pid int4, backend_start timestamptz,
    holders text NOT NULL DEFAULT '[]', UNIQUE (operator, idx));
CREATE TABLE ports (
    replica int4, id int4, operator text NOT NULL, idx int4 NOT NULL, name text NOT NULL, PRIMARY KEY (replica, id));
CREATE TABLE channels (
    replica int4, id int4, sender text NOT NULL, sender_idx int4 NOT NULL, output text NOT NULL,
    receiver text NOT NULL, receiver_idx int4 NOT NULL, input text NOT NULL, PRIMARY KEY (replica, id));
CREATE TABLE schemas (replica int4, id int4, body bytea NOT NULL, PRIMARY KEY (replica, id));
CREATE TABLE outputs (
    replica int4, key int8, created float8 NOT NULL, schema int4, time bytea, attributes bytea, requires bytea,
    file text, body bytea, PRIMARY KEY (replica, key));
CREATE INDEX outputs_in_files ON outputs (replica, file) WHERE file IS NOT NULL;
CREATE TABLE input_sets (
    replica int4, serial int8, key bytea NOT NULL, closed int2 NOT NULL, PRIMARY KEY (replica, serial));
CREATE INDEX input_sets_at_hand ON input_sets (replica, closed) WHERE {AT_HAND};
CREATE TABLE pairs (
    replica int4, serial int8, ord int8, channel int4 NOT NULL, event int8 NOT NULL, note bytea,
    PRIMARY KEY (replica, serial, ord));
CREATE TABLE lineage (replica int4, output int8, serial int8, PRIMARY KEY (replica, output, serial));
CREATE INDEX lineage_by_set ON lineage (replica, serial);
CREATE TABLE uses (replica int4, serial int8, kind text, number int8, PRIMARY KEY (replica, serial, kind, number));
CREATE INDEX uses_by_number ON uses (replica, kind, number);
CREATE TABLE cursors (
    replica int4, channel int4, assigned int8 NOT NULL, floor int8 NOT NULL, above bytea, ended int2 NOT NULL,
    PRIMARY KEY (replica, channel));
CREATE TABLE counters (replica int4, name text, value int8 NOT NULL, PRIMARY KEY (replica, name));
CREATE TABLE state (replica int4, key bytea, value bytea NOT NULL, PRIMARY KEY (replica, key));
CREATE TABLE state_versions (
    replica int4, key bytea, version int8, value bytea, PRIMARY KEY (replica, key, version));
CREATE INDEX state_versions_by_version ON state_versions (replica, version);
CREATE TABLE timers (replica int4, key bytea, due float8 NOT NULL, PRIMARY KEY (replica, key));
CREATE TABLE reads (
    replica int4, number int8, connection text NOT NULL, description bytea NOT NULL, complete int2 NOT NULL,
    done int2 NOT NULL, position bytea, stored int2 NOT NULL, PRIMARY KEY (replica, number));
CREATE INDEX reads_at_hand ON reads (replica, done) WHERE done = 0;
CREATE TABLE effects (
    replica int4, action int8, idx int8, origin int4 NOT NULL, id int8 NOT NULL, schema int4, time bytea,
    attributes bytea, file text, body bytea, PRIMARY KEY (replica, action, idx));
CREATE INDEX effects_in_files ON effects (replica, file) WHERE file IS NOT NULL;
"""

LATER_TABLE = """
CREATE TABLE IF NOT EXISTS progress (
    replica int4, kind text COLLATE "C", name bytea, value bytea NOT NULL, PRIMARY KEY (replica, kind, name));
"""
"""Older logs of this format lack it; the next owner of any replica adds it. A version that does not know it does not
miss it."""

LINEAGE_INDEXES = """
CREATE INDEX outputs_by_age ON outputs (replica, created);
CREATE INDEX pairs_by_event ON pairs (replica, channel, event);
"""
"""Only when lineage is captured: without it, what these would find is removed at once."""

TABLE_NAMES = frozenset(re.findall(r"CREATE TABLE (\w+)", TABLES))
"""The tables that every log of this format has."""


class Place:
    """Where a log is: a database and a schema. Its text never holds the password."""

    def __init__(self, dsn: str, schema: str) -> None:
        self._dsn = dsn
        self.schema = schema
        try:
            parts = conninfo_to_dict(dsn)
        except psycopg.Error:
            raise LogError(
                "the PostgreSQL connection string cannot be understood; expected a form such as "
                "postgresql://user@host:5432/database. It is not shown because it may hold a password."
            ) from None
        self._secret = str(parts.get("password") or "")
        host = parts.get("host") or parts.get("hostaddr") or "the local socket"
        self._name = f"database {parts.get('dbname') or parts.get('user') or 'default'!s} at {host}, schema {schema}"

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<Place {self._name}>"

    def connect(self) -> Connection:
        """A connection whose commits are durable when they return."""
        with self.errors_named():
            connection = psycopg.connect(self._dsn, autocommit=True, **_NOTICING)
            try:
                connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self.schema)))
                connection.execute(
                    "SELECT set_config('synchronous_commit', 'on', false) "
                    "WHERE current_setting('synchronous_commit') = 'off'"
                )
                connection.execute("SET lock_timeout TO '60s'")
            except BaseException:
                connection.close()
                raise
        return connection

    @contextlib.contextmanager
    def errors_named(self) -> Iterator[None]:
        """Turns the database's complaints into errors that say what to do and hold no secret."""
        try:
            yield
        except (errors.UndefinedTable, errors.UndefinedColumn) as error:
            raise LogDamaged(
                f"the log in {self} cannot be read ({self.without_secret(error)}); expected the tables of format "
                f"{FORMAT}. Restore the schema from a backup."
            ) from None
        except errors.IntegrityError as error:
            raise LogError(
                f"a transaction contradicts what the log in {self} holds already ({self.without_secret(error)}); "
                f"nothing was changed. Rows are added once, by the replica that owns the log: this is a fault in Clew "
                f"or in a store, please report it."
            ) from None
        except psycopg.Error as error:
            raise LogError(
                f"the log in {self} cannot be used ({self.without_secret(error)}). Look at the server, the connection "
                f"string and the rights of its user, then start again."
            ) from None

    def without_secret(self, error: object) -> str:
        """The text of an error on one line, with the password blotted out."""
        text = " ".join(str(error).split())
        return text.replace(self._secret, "***") if self._secret else text


def create_schema(place: Place, manifest: Manifest) -> None:
    """Makes the tables of a new log, all or nothing."""
    captures = bool(manifest.description.get("capture"))
    with contextlib.closing(place.connect()) as connection, place.errors_named():
        try:
            with connection.transaction():
                connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(place.schema)))
                if found := sorted(_tables(connection, place.schema)):
                    raise LogExists(
                        f"{place} holds {', '.join(found[:3])}{' ...' if len(found) > 3 else ''}; expected a schema "
                        f"that does not exist or is empty. Open the log that is there, or name another schema."
                    )
                connection.execute(TABLES.encode() + LATER_TABLE.encode())
                if captures:
                    connection.execute(LINEAGE_INDEXES.encode())
                connection.execute(
                    "INSERT INTO log VALUES (%s, %s, %s)", (manifest.format, manifest.log_id, manifest.to_json())
                )
        except (errors.DuplicateSchema, errors.DuplicateTable, errors.UniqueViolation):
            raise LogExists(
                f"{place} has just become a log by another process. Open that one, or name another schema."
            ) from None


def add_later_table(connection: Connection) -> None:
    """Adds what a log lacks that was made before there was such a table."""
    found = connection.execute("SELECT to_regclass('progress')").fetchone()
    if found == (None,):
        with connection.transaction():
            connection.execute("LOCK TABLE log IN SHARE UPDATE EXCLUSIVE MODE")  # Of several at once, one makes it.
            connection.execute(LATER_TABLE.encode())


def log_schemas(place: Place) -> list[str]:
    """The schemas of the database that hold a log."""
    with contextlib.closing(place.connect()) as connection, place.errors_named():
        rows = connection.execute(
            "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relname = ANY(%s) AND c.relkind = 'r' GROUP BY n.nspname HAVING count(*) = %s ORDER BY n.nspname",
            (sorted(TABLE_NAMES), len(TABLE_NAMES)),
        )
        return [name for (name,) in rows]


def read_manifest(place: Place, connection: Connection) -> Manifest:
    """The manifest of a log that is there, if its schema is as it should be. Changes nothing."""
    with place.errors_named():
        tables = _tables(connection, place.schema)
        if not tables & TABLE_NAMES:
            raise LogNotFound(
                f"there is no log in {place}; expected a schema with the tables of a log. Look at the names, or run "
                f"the pipeline to make a log there."
            )
        if "log" not in tables:
            raise _lacking(place, tables)
        rows = connection.execute("SELECT format, log_id, description FROM log").fetchall()
        if len(rows) != 1:
            raise LogDamaged(
                f"the table log in {place} has {len(rows)} rows; expected one. Restore the schema from a backup."
            )
        format, log_id, text = rows[0]
        where = f"the table log in {place}"
        Manifest.checked(where, format, log_id, {})
        if TABLE_NAMES - tables:
            raise _lacking(place, tables)
        manifest = Manifest.of_json(where, text)
        if manifest.log_id != log_id:
            raise LogDamaged(
                f"{where} has the log id {log_id} beside a manifest of log {manifest.log_id}; expected the same. "
                f"Restore the schema from a backup."
            )
        return manifest


def _lacking(place: Place, tables: set[str]) -> LogDamaged:
    return LogDamaged(
        f"the log in {place} lacks the tables {', '.join(sorted(TABLE_NAMES - tables))}; expected those of format "
        f"{FORMAT}. Restore the schema from a backup."
    )


def _tables(connection: Connection, schema: str) -> set[str]:
    rows = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')",
        (schema,),
    )
    return {name for (name,) in rows}
