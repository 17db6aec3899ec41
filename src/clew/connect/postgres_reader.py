"""PostgreSQL queries: as a source, replayable by a key or stored first, and as a lookup while an operator generates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.connect.postgres_database import Database, Session
from clew.connect.postgres_types import batch_of, read_as_text, schema_read
from clew.connect.settings import counted, idle_looks, positive
from clew.connect.turn import Turn
from clew.errors import BuildError, OutsideError
from clew.model.connection import ReadConnection, WriteAction
from clew.model.source import Source

if TYPE_CHECKING:
    from psycopg import sql

    from clew.connect.postgres_database import Connection

_PAGE = 4096
"""About how many rows are asked for at once."""


def postgres_query(
    dsn: str,
    query: str,
    *,
    order_by: str | None = None,
    rows_per_event: int = 500,
    follow: bool = False,
    poll_s: float = 0.1,
    idle_s: float | None = None,
) -> Source:
    """The rows of a query, or of a table if `query` is only a name.

    With `order_by`, a unique column that later rows have larger values in, the source is replayable: the offset is
    the last value given, and nothing is stored. Rows that were given must stay as they are, and a row must not become
    visible after one with a larger value has. Then `follow` asks for new rows every `poll_s` seconds, for ever or until
    for `idle_s` seconds there is none. Without `order_by` any query will do: its result is stored in the log first.
    """
    if order_by is None:
        if follow or idle_s is not None:
            raise BuildError(
                "postgres_query() was given follow=True or idle_s without order_by; expected a unique, increasing "
                "column to tell new rows by. Pass its name, order_by='id'."
            )
        return _StoredQuery(dsn, query, rows_per_event)
    return _KeyedQuery(dsn, query, order_by, rows_per_event, follow, poll_s, idle_s)


def postgres_lookup(dsn: str, *, simulated: Callable[[Any, list[WriteAction]], Any] | None = None) -> ReadConnection:
    """A database to ask while an operator generates: `ctx.read(name, sql)` or `ctx.read(name, [sql, parameters])`.

    Not replayable: what was read is stored with the move. In the simulator the database is really asked, unless
    `simulated(query, applied)` answers from the write actions that were simulated on the same database.
    """
    return _Lookup(dsn, simulated)


class _StoredQuery(Source):
    """Any query; the effect is stored in the log first."""

    is_replayable = False

    def __init__(self, dsn: str, query: str, rows_per_event: int) -> None:
        self.database = Database("postgres_query()", dsn)
        self.query = query
        self.rows_per_event = counted("postgres_query()", "rows_per_event", rows_per_event)

    def __repr__(self) -> str:
        return f"<query of {self.database}>"

    def read(self, action: Any, offset: Any) -> Iterator[tuple[pa.RecordBatch, int]]:
        """All rows as they are at one moment."""
        count = 0
        connection = self.database.connect(is_reader=True)
        try:
            read_as_text(connection)
            connection.autocommit = False
            cursor = connection.cursor("clew")
            with self.database.errors_named("cannot answer the query"):
                cursor.execute(_statement(self.query))
                schema = schema_read(cursor)
                while rows := cursor.fetchmany(self.rows_per_event):
                    count += len(rows)
                    yield batch_of(rows, schema), count
        finally:
            connection.close()  # With all that it holds; whoever stops reading in the middle waits for nothing.


class _KeyedQuery(_StoredQuery):
    """A query whose rows have a key; any row can be gone on from."""

    is_replayable = True

    def __init__(
        self,
        dsn: str,
        query: str,
        order_by: str,
        rows_per_event: int,
        follow: bool,
        poll_s: float,
        idle_s: float | None,
    ) -> None:
        super().__init__(dsn, query, rows_per_event)
        self.order_by = order_by
        self.follow = follow
        self.poll_s = positive("postgres_query()", "poll_s", poll_s)
        self.idle_max = idle_looks("postgres_query()", idle_s, self.poll_s, follow=follow)

    def read(self, action: Any, offset: Any) -> Iterator[Any]:
        """The rows behind the one whose key is the offset."""
        session = Session(self.database, is_reader=True, prepare=read_as_text)
        idle = 0
        try:
            while True:
                rows, schema, is_end = session.run("cannot answer the query", partial(self._page, last=offset))
                for first in range(0, len(rows), self.rows_per_event):
                    some = rows[first : first + self.rows_per_event]
                    offset = some[-1][schema.get_field_index(self.order_by)]
                    yield batch_of(some, schema), offset
                if not is_end:
                    continue
                idle = 0 if rows else idle + 1
                if not self.follow or (self.idle_max is not None and idle > self.idle_max):
                    return
                yield None
        finally:
            session.close()

    def _page(self, connection: Connection, last: Any) -> tuple[list[Any], pa.Schema, bool]:
        """Some rows behind a key, and whether they were the last; one more is fetched, to see that keys differ."""
        from psycopg import sql

        wanted = max(1, _PAGE // self.rows_per_event) * self.rows_per_event
        key = sql.Identifier(self.order_by)
        behind = sql.SQL("") if last is None else sql.SQL(" WHERE {} > {}").format(key, sql.Literal(last))
        cursor = connection.execute(
            sql.SQL("SELECT * FROM (") + _statement(self.query) + sql.SQL("\n) AS clew_query") + behind
            + sql.SQL(" ORDER BY {} LIMIT {}").format(key, sql.Literal(wanted + 1))
        )  # fmt: skip
        schema = schema_read(cursor)
        rows = cursor.fetchall()
        index = schema.get_field_index(self.order_by)
        keys = [row[index] for row in rows]
        if (keys and keys[-1] is None) or any(one == other for one, other in pairwise(keys)):
            wrong = next((one for one, other in pairwise(keys) if one == other), None)
            raise OutsideError(
                f"{self.database}: {'NULL' if wrong is None else repr(wrong)} is not the value of one row alone in the "
                f"column {self.order_by!r} of a query; expected different values in all rows. Order by a unique "
                f"column, or leave order_by out."
            )
        return rows[:wanted], schema, len(rows) <= wanted


class _Lookup(ReadConnection):
    """A database to ask."""

    is_replayable = False

    def __init__(self, dsn: str, simulated: Callable[[Any, list[WriteAction]], Any] | None) -> None:
        self.database = Database("postgres_lookup()", dsn)
        self.system = self.database.system
        self.simulated = simulated
        self._session: Session | None = None
        self._turn = Turn()

    def __repr__(self) -> str:
        return f"<lookup in {self.database}>"

    def open(self) -> None:
        """Connects."""
        with self._turn:
            self._connected().connection()

    def close(self) -> None:
        """Lets go of the connection."""
        with self._turn:
            if self._session is not None:
                self._session.close()

    def read(self, query: Any) -> pa.RecordBatch:
        """The rows that answer a query."""
        text, parameters = query if isinstance(query, list | tuple) and len(query) == 2 else (query, None)
        if not isinstance(text, str):
            raise OutsideError(
                f"{self.database} was asked {query!r}; expected a query as text, or a pair of a text and its "
                f'parameters. Write ctx.read(name, ["select * from t where id = %s", [7]]).'
            )

        def answer(connection: Connection) -> pa.RecordBatch:
            cursor = connection.execute(text.encode(), parameters)
            schema = schema_read(cursor)
            return batch_of(cursor.fetchall(), schema)

        with self._turn:
            return self._connected().run("cannot answer a query", answer)

    def _connected(self) -> Session:
        if self._session is None:
            self._session = Session(self.database, is_reader=True, prepare=read_as_text)
        return self._session

    def read_simulated(self, query: Any, applied: list[WriteAction]) -> Any:
        """What `simulated` answers, or the database."""
        return self.read(query) if self.simulated is None else self.simulated(query, applied)


def _statement(query: str) -> sql.Composed:
    """The query; a single word is the name of a table."""
    from psycopg import sql

    text = query.strip().rstrip(";")
    if text and not text.split()[1:]:
        return sql.SQL("SELECT * FROM {}").format(sql.Identifier(*text.split(".")))
    return sql.Composed([sql.SQL(text)])
