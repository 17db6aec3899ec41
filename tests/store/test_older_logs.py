"""Logs from before there were rows of time: read as they are, and given the table by their next owner."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from tests.store.places import OP1, OP3, OP4, Place, step
from tests.store.test_damage import dump

from clew.log.encoding import Rows
from clew.log.postgres_schema import Place as Schema
from clew.log.postgres_schema import log_schemas
from clew.log.sql import Row
from clew.log.sql_writing import apply
from clew.log.sqlite_files import file_name
from clew.model.history import Transaction


def make_older(place: Place) -> None:
    """Leaves a log as it was written before there were such rows."""
    store = place.create()
    log = store.open(OP3)
    first = step(1)
    first.progress.clear()
    log.commit(first)
    store.close()
    if place.kind == "sqlite":
        with closing(sqlite3.connect(Path(place.where) / file_name(OP3))) as connection:
            connection.execute("DROP TABLE progress")
    else:
        with psycopg.connect(place.where, autocommit=True) as server:
            server.execute(f"DROP TABLE {place.schema}.progress".encode())


def test_an_older_log_is_read_as_it_is_and_completed_by_its_owner(durable_place: Place) -> None:
    make_older(durable_place)
    store = durable_place.open()
    reader = store.reader()
    before = reader.rows(OP3)
    assert (before.progress, before.state) == ({}, [(b"latest", b"1")])
    log = store.open(OP3)
    assert log.recover().progress == {}
    assert reader.rows(OP3) == before._replace(incarnation=2)
    log.commit(Transaction(progress={("hold", b"a"): b"1"}))
    assert reader.rows(OP3).progress == store.open(OP3).recover().progress == {("hold", b"a"): b"1"}
    store.close()


def test_reading_an_older_file_leaves_it_alone(sqlite_place: Place) -> None:
    make_older(sqlite_place)
    file = Path(sqlite_place.where) / file_name(OP3)
    before = file.read_bytes()
    store = sqlite_place.open()
    store.reader().rows(OP3)
    store.close()
    assert file.read_bytes() == before


@pytest.mark.postgres
def test_reading_an_older_schema_leaves_it_alone(postgres_place: Place) -> None:
    make_older(postgres_place)
    before = dump(postgres_place)
    assert "progress" not in before[0]
    store = postgres_place.open()
    store.reader().rows(OP3)
    store.close()
    assert dump(postgres_place) == before
    assert postgres_place.schema in log_schemas(Schema(postgres_place.where, postgres_place.schema))


@pytest.mark.postgres
def test_owners_that_open_an_older_schema_at_once_complete_it_once(postgres_place: Place) -> None:
    make_older(postgres_place)
    store = postgres_place.open()
    replicas = (OP1, OP3, OP4)
    barrier = Barrier(len(replicas))

    def open_and_commit(number: int) -> None:
        barrier.wait(60)
        store.open(replicas[number]).commit(Transaction(progress={("hold", b"a"): b"%d" % number}))

    with ThreadPoolExecutor(len(replicas)) as threads:
        list(threads.map(open_and_commit, range(len(replicas))))
    found = [store.reader().rows(replica).progress for replica in replicas]
    assert found == [{("hold", b"a"): b"%d" % number} for number in range(len(replicas))]
    store.close()


class Listener:
    """A session that only hears what is asked of it."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def query(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        raise AssertionError(statement)

    def has_table(self, name: str) -> bool:
        raise AssertionError(name)

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        self.heard.append(f"{statement.split()[0]} {len(rows)}")

    def insert(self, table: str, columns: str, rows: Sequence[Row]) -> None:
        raise AssertionError(table)


def test_rows_of_time_cost_two_statements_and_none_cost_none() -> None:
    session = Listener()
    options = {"has_files": False, "has_versions": False, "state_floor": 0}
    apply(session, Rows(), **options)  # type: ignore[arg-type]
    assert session.heard == []
    set_rows = [("sum", b"%d" % number, b"x") for number in range(100)]
    apply(session, Rows(progress=set_rows, progress_removed=[("sum", b"gone")]), **options)  # type: ignore[arg-type]
    assert session.heard == ["INSERT 100", "DELETE 1"]
