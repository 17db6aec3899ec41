"""Places of logs as commands take and show them: a path or a connection string; never with a password."""

from __future__ import annotations

from pathlib import Path

from clew.errors import ClewError
from clew.log.postgres import PostgresStore, open_postgres
from clew.log.postgres_schema import Place, log_schemas
from clew.log.sqlite import SqliteStore, open_sqlite
from clew.runtime.spec import LogPlace, log_place


def shown(place: LogPlace) -> str:
    """A place in words.

    >>> shown(LogPlace("sqlite", "sales.log"))
    'sales.log'
    >>> shown(LogPlace("postgres", "postgresql://ann:secret@db/shop", {"schema": "sales"}))
    'database shop at db, schema sales'
    """
    if place.kind == "off":
        return "none"
    if place.kind == "postgres":
        return str(Place(place.where, str(place.options["schema"])))
    path = Path(place.where).absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else place.where


def open_log(log: str, schema: str | None) -> tuple[SqliteStore | PostgresStore, str]:
    """The log that is at a place, and the place in words; nothing is made."""
    place = log_place(log, "", "log", "")
    if place.kind == "sqlite":
        if schema is not None:
            raise ClewError(
                f"--schema was given with the directory {log}; only a PostgreSQL log has one. Leave it out."
            )
        return open_sqlite(place.where), shown(place)
    place = LogPlace("postgres", place.where, {"schema": schema or _only_schema(place.where)})
    return open_postgres(place.where, **place.options), shown(place)


def _only_schema(dsn: str) -> str:
    """The schema of the only log in a database."""
    place = Place(dsn, "public")
    found = log_schemas(place)
    if len(found) != 1:
        what = f"{len(found)} logs: {', '.join(found)}" if found else "no log"
        do = "Say which one: --schema NAME." if found else "Look at the name of the database."
        raise ClewError(f"{str(place).partition(', schema')[0]} holds {what}; expected one. {do}")
    return found[0]
