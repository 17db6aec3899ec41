"""The SQL that all stores share: neutral statements, and the sessions that speak them.

A SQLite file holds one replica's log, a PostgreSQL schema those of all replicas. So statements are written once, with
these marks: `{own}` is the condition that a row is of this replica, `{c}` and `{v}` put the replica in front of a list
of columns or values, and `?` stands for a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]

ID_BITS = 40
"""An output is found by one number: its port's number above this many bits, its id below."""

_CHUNK = 512


class Session(Protocol):
    """A connection to the tables of one replica."""

    def query(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of the answer."""

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        """Executes a statement once per row of parameters."""

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name."""

    def insert(self, table: str, columns: str, rows: Sequence[Row]) -> None:
        """Adds rows that are not there yet."""


def compose(statement: str, replica: int | None) -> str:
    """The neutral statement for a file of one replica's own, or for tables shared by all.

    >>> compose("SELECT value FROM counters WHERE {own} AND name = ?", None)
    'SELECT value FROM counters WHERE TRUE AND name = ?'
    >>> compose("INSERT INTO counters ({c}name, value) VALUES ({v}?, ?)", 7)
    'INSERT INTO counters (replica, name, value) VALUES (7, %s, %s)'
    """
    if replica is None:
        return statement.format(own="TRUE", c="", v="")
    return statement.format(own=f"replica = {replica}", c="replica, ", v=f"{replica}, ").replace("?", "%s")


def insertion(table: str, columns: str) -> str:
    """The neutral statement that adds one row.

    >>> insertion("counters", "name, value")
    'INSERT INTO counters ({c}name, value) VALUES ({v}?, ?)'
    """
    marks = ", ".join("?" for _ in columns.split(","))
    return f"INSERT INTO {table} ({{c}}{columns}) VALUES ({{v}}{marks})"


def by_chunks(
    session: Session, statement: str, values: Sequence[object], before: Sequence[object] = ()
) -> Iterator[Row]:
    """The rows of a statement whose `{list}` is filled with the values, a part of them at a time."""
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK]
        room = 1 << (len(part) - 1).bit_length()  # Few lengths, so that few statements have to be prepared.
        marks = ", ".join("?" for _ in range(room))
        yield from session.query(
            statement.replace("{list}", marks), (*before, *part, *(part[-1] for _ in range(room - len(part))))
        )
