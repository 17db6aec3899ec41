"""SQLite tables as a destination."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import clew
from clew.errors import BuildError, OutsideError
from clew.model.connection import Kind, WriteAction


def action(number: int, rows: list[dict[str, Any]], writer: str = "log/save/0/to") -> WriteAction:
    return WriteAction(writer, number, pa.RecordBatch.from_pylist(rows))


def rows_in(path: Path, query: str = "SELECT * FROM t ORDER BY 1") -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_rows_are_added_once(tmp_path: Path) -> None:
    connection = clew.sqlite(tmp_path / "a.db", "t", create=True)
    connection.open()
    for number in (1, 1, 2, 1, 2):
        connection.execute(action(number, [{"id": number, "name": "é"}]))
    connection.execute(action(1, [{"id": 3, "name": None}], writer="log/other/0/to"))
    connection.close()
    assert rows_in(tmp_path / "a.db") == [(1, "é"), (2, "é"), (3, None)]
    assert rows_in(tmp_path / "a.db", "PRAGMA journal_mode") == [("wal",)]
    assert (connection.kind, connection.system) == (Kind.CONDITIONAL, ("sqlite", str(tmp_path / "a.db")))


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as made:
        made.execute("CREATE TABLE t (a INTEGER, b TEXT, c TEXT DEFAULT 'c')")
    connection = clew.sqlite(tmp_path / "a.db", "t")
    connection.execute(action(1, [{"b": "x", "a": 1}]))
    assert rows_in(tmp_path / "a.db") == [(1, "x", "c")]
    with pytest.raises(OutsideError, match=r"a\.db cannot take the write action log/save/0/to/2 .*column named d"):
        connection.execute(action(2, [{"d": 1}]))
    connection.execute(action(2, [{"a": 2}]))  # Nothing of the failed one is left, not even its note.
    assert len(rows_in(tmp_path / "a.db")) == 2


def test_upsert_replaces_the_row_with_the_same_key(tmp_path: Path) -> None:
    connection = clew.sqlite(tmp_path / "a.db", "t", create=True, upsert=["id"])
    connection.execute(action(1, [{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 1, "n": 3}]))
    connection.execute(action(2, [{"id": 2, "n": 4}]))
    assert rows_in(tmp_path / "a.db") == [(1, 3), (2, 4)]
    keys = clew.sqlite(tmp_path / "b.db", "t", create=True, upsert="id")
    keys.execute(action(1, [{"id": 1}, {"id": 1}]))
    assert rows_in(tmp_path / "b.db") == [(1,)]


def test_values_that_sqlite_lacks_are_stored_as_text(tmp_path: Path) -> None:
    connection = clew.sqlite(tmp_path / "a.db", "t", create=True)
    row = {
        "at": datetime.datetime(2025, 2, 1, 12), "price": decimal.Decimal("1.50"), "l": [1, 2], "b": b"\x00", "f": True,
    }  # fmt: skip
    connection.execute(action(1, [row]))
    assert rows_in(tmp_path / "a.db") == [("2025-02-01T12:00:00", "1.50", "[1,2]", b"\x00", 1)]


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match=r"no such table: t.*pass create=True"):
        clew.sqlite(tmp_path / "a.db", "t").execute(action(1, [{"a": 1}]))
    with pytest.raises(OutsideError, match=r"nowhere/a\.db cannot be opened .*Look at the file"):
        clew.sqlite(tmp_path / "nowhere" / "a.db", "t").open()
    (tmp_path / "text.db").write_text("this is no database at all " * 50)
    with pytest.raises(OutsideError, match=r"text\.db cannot be opened \(file is not a database\)"):
        clew.sqlite(tmp_path / "text.db", "t").open()
    with pytest.raises(BuildError, match=r"upsert=7; expected a list of column names"):
        clew.sqlite(tmp_path / "a.db", "t", upsert=7)  # type: ignore[arg-type]
