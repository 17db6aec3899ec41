"""A PostgreSQL database: connections to it, and errors that name it without its password."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from clew.errors import BuildError, OutsideError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")


class Database:
    """Where a database is; its text never holds the password, and it holds no connection."""

    def __init__(self, where: str, dsn: str) -> None:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        try:
            parts = conninfo_to_dict(dsn)
        except (psycopg.Error, TypeError):
            raise BuildError(
                f"{where} was given a connection string that cannot be understood; expected a form such as "
                f"postgresql://user@host:5432/database. It is not shown because it may hold a password."
            ) from None
        self._dsn = dsn
        self._secret = str(parts.get("password") or "")
        host = parts.get("host") or parts.get("hostaddr") or "the local socket"
        port = parts.get("port") or 5432
        name = parts.get("dbname") or parts.get("user") or "default"
        self.system = ("postgres", str(host), int(port) if str(port).isdecimal() else str(port), str(name))
        self._name = f"database {name} at {host}:{port}"

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<Database {self._name}>"

    def connect(self, *, is_reader: bool = False) -> Connection:
        """A connection that is in no transaction."""
        import psycopg

        with self.errors_named("cannot be reached"):
            connection = psycopg.connect(self._dsn, autocommit=True, application_name="clew", connect_timeout=10)
            try:
                connection.execute("SET default_transaction_isolation TO 'read committed'")
                if is_reader:
                    connection.execute("SET default_transaction_read_only TO on")
                else:
                    connection.execute(
                        "SELECT set_config('synchronous_commit', 'on', false) "
                        "WHERE current_setting('synchronous_commit') = 'off'"
                    )
            except BaseException:
                connection.close()
                raise
        return connection

    @contextlib.contextmanager
    def errors_named(self, what: str) -> Iterator[None]:
        """Turns the database's complaints into errors that say what to do and hold no secret."""
        import psycopg

        try:
            yield
        except psycopg.OperationalError as error:
            raise OutsideError(
                f"{self} {what} ({self.without_secret(error)}). Look at the server, the connection string and the "
                f"rights of its user, then start again: nothing is lost, and nothing is done twice."
            ) from None
        except psycopg.errors.UndefinedTable as error:
            raise OutsideError(
                f"{self} {what} ({self.without_secret(error)}). Look at the name, or make the table (postgres() makes "
                f"it from the records when it is given create=True)."
            ) from None
        except psycopg.Error as error:
            raise OutsideError(
                f"{self} {what} ({self.without_secret(error)}). Look at the statement, and at the table, its columns "
                f"and their types."
            ) from None

    def without_secret(self, error: object) -> str:
        """The text of an error on one line, with the password blotted out."""
        text = " ".join(str(error).split()).replace(self._dsn, self._name)
        return text.replace(self._secret, "***") if self._secret else text


class Session:
    """A connection that is made when it is needed, and made anew once when it turns out to be lost."""

    def __init__(self, database: Database, *, is_reader: bool, prepare: Callable[[Connection], None]) -> None:
        self.database = database
        self._is_reader = is_reader
        self._prepare = prepare
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """The connection."""
        if self._connection is None:
            connection = self.database.connect(is_reader=self._is_reader)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def close(self) -> None:
        """Lets go of it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def run(self, what: str, work: Callable[[Connection], T]) -> T:
        """Works on the connection; with a new one, once, if the first is lost. So the work must bear being repeated."""
        import psycopg

        with self.database.errors_named(what):
            try:
                return work(self.connection())
            except psycopg.Error as error:
                is_lost = self._connection is not None and (self._connection.closed or self._connection.broken)
                self.close()  # Whatever went wrong, what follows begins with a new connection.
                if not is_lost or not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
                    raise
            try:
                return work(self.connection())
            except psycopg.Error:
                self.close()
                raise
