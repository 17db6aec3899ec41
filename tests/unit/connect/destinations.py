"""Destinations that several processes write to, and what is in them afterwards."""

from __future__ import annotations

import contextlib
import os
import sqlite3

import psycopg
import pyarrow as pa
from tests.unit.connect.reading import rows_of

import clew
from clew.model.connection import WriteAction, WriteConnection

WRITER = "log/save/0/to"
ROWS = 40


def connected(what: str, where: str) -> WriteConnection:
    """The destination."""
    match what:
        case "postgres":
            return clew.postgres(where, "numbers", create=True)
        case "upsert":
            return clew.postgres(where, "numbers", create=True, upsert=["number", "row"])
        case "sqlite":
            return clew.sqlite(where, "numbers", create=True)
    return {"parquet": clew.parquet, "csv": clew.csv, "jsonl": clew.jsonl}[what](where)


def action(number: int) -> WriteAction:
    """An action whose rows say which it is."""
    columns = {"number": [number] * ROWS, "row": list(range(ROWS)), "by": [os.getpid()] * ROWS}
    return WriteAction(WRITER, number, pa.RecordBatch.from_pydict(columns))


def found(what: str, where: str) -> list[tuple[int, int]]:
    """The number and row of all rows in the destination, in order."""
    if what in ("postgres", "upsert"):
        with psycopg.connect(where) as connection:
            return connection.execute("SELECT number, row FROM numbers ORDER BY 1, 2").fetchall()  # type: ignore[return-value]
    if what == "sqlite":
        with contextlib.closing(sqlite3.connect(where)) as connection:
            return connection.execute("SELECT number, row FROM numbers ORDER BY 1, 2").fetchall()
    return sorted((row["number"], row["row"]) for row in rows_of(clew.files(where)))


def wanted(numbers: range) -> list[tuple[int, int]]:
    return [(number, row) for number in numbers for row in range(ROWS)]
