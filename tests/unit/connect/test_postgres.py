"""PostgreSQL: tables written to once, queries read from any row, lookups, and secrets kept."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests.postgres_server import PASSWORD
from tests.unit.connect.reading import actions_of, check_resumes, items_of, rows_of

import clew
from clew.connect import postgres_reader
from clew.errors import BuildError, OutsideError
from clew.model.connection import Kind, WriteAction

pytestmark = pytest.mark.postgres


def action(number: int, rows: list[dict[str, Any]], writer: str = "log/save/0/to") -> WriteAction:
    return WriteAction(writer, number, pa.RecordBatch.from_pylist(rows))


def ask(dsn: str, query: str) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def test_rows_are_added_once(dsn: str) -> None:
    connection = clew.postgres(dsn, "t", create=True)
    connection.open()
    for number in (1, 1, 2, 1, 2):
        connection.execute(action(number, [{"id": number, "name": "é"}]))
    connection.execute(action(1, [{"id": 3, "name": None}], writer="log/other/0/to"))
    connection.close()
    assert ask(dsn, "SELECT * FROM t ORDER BY id") == [(1, "é"), (2, "é"), (3, None)]
    assert ask(dsn, "SELECT * FROM clew_actions ORDER BY 1") == [("log/other/0/to", 1), ("log/save/0/to", 2)]
    assert connection.kind == Kind.CONDITIONAL
    assert connection.system[0] == "postgres"  # type: ignore[index]


def test_columns_are_matched_by_name_and_a_failed_action_leaves_nothing(dsn: str) -> None:
    ask(dsn, "CREATE TABLE t (a int, b text, c text DEFAULT 'c')")
    connection = clew.postgres(dsn, "t")
    connection.execute(action(1, [{"b": "x", "a": 1}]))
    with pytest.raises(OutsideError, match=r'the write action log/save/0/to/2 for table t \(column "d".*its columns'):
        connection.execute(action(2, [{"d": 1}]))
    with pytest.raises(OutsideError, match=r"invalid input syntax for type integer"):
        connection.execute(action(2, [{"a": "one"}]))
    connection.execute(action(2, [{"a": 2}]))
    assert ask(dsn, "SELECT * FROM t ORDER BY a") == [(1, "x", "c"), (2, None, "c")]


def test_a_table_in_a_schema_has_its_notes_beside_it(dsn: str) -> None:
    ask(dsn, 'DROP SCHEMA IF EXISTS "Sales" CASCADE')
    ask(dsn, 'CREATE SCHEMA "Sales"')
    clew.postgres(dsn, "Sales.Totals", create=True).execute(action(1, [{"a": 1}]))
    assert ask(dsn, 'SELECT * FROM "Sales"."Totals"') == [(1,)]
    assert ask(dsn, 'SELECT number FROM "Sales".clew_actions') == [(1,)]


def test_upsert_replaces_the_row_with_the_same_key(dsn: str) -> None:
    connection = clew.postgres(dsn, "t", create=True, upsert=["id"])
    connection.execute(action(1, [{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 1, "n": 3}]))
    connection.execute(action(2, [{"id": 2, "n": 4}]))
    assert ask(dsn, "SELECT * FROM t ORDER BY id") == [(1, 3), (2, 4)]
    keys = clew.postgres(dsn, "u", create=True, upsert="id")
    keys.execute(action(1, [{"id": 1}, {"id": 1}], writer="log/keys/0/to"))
    assert ask(dsn, "SELECT * FROM u") == [(1,)]


VALUES = {
    "whole": 7,
    "real": 0.1,
    "nan": float("inf"),
    "flag": True,
    "text": 'a "quoted", \\N\nline',
    "empty": "",
    "price": decimal.Decimal("1.50"),
    "day": datetime.date(2025, 2, 1),
    "at": datetime.datetime(2025, 2, 1, 12, 30, 0, 5),
    "at_utc": datetime.datetime(2025, 2, 1, 12, 30, tzinfo=datetime.UTC),
    "bytes": b"\x00\xff",
    "tree": {"a": [1, None]},
}


def test_values_come_back_as_they_were(dsn: str) -> None:
    connection = clew.postgres(dsn, "t", create=True)
    connection.execute(action(1, [VALUES, dict.fromkeys(VALUES)]))
    one, other = rows_of(clew.postgres_query(dsn, "t"))
    assert one == {**VALUES, "tree": '{"a": [1, null]}'}
    assert other == dict.fromkeys(VALUES)


def test_the_types_of_a_query_do_not_depend_on_its_rows(dsn: str) -> None:
    query = "SELECT 1::int2 AS a, NULL::numeric AS b, ARRAY[1,2] AS c, '3 days'::interval AS d WHERE {}"
    schemas = [
        items[0][0].schema
        for text in ("true", "1 = 1 OR '50%' = ''")
        for _, items in actions_of(clew.postgres_query(dsn, query.format(text)))
    ]
    wanted = [("a", pa.int16()), ("b", pa.decimal128(38, 18)), ("c", pa.list_(pa.int32())), ("d", pa.string())]
    assert schemas == [pa.schema(wanted)] * 2


def fill(dsn: str, first: int, last: int) -> None:
    ask(dsn, "CREATE TABLE IF NOT EXISTS t (id bigint PRIMARY KEY, name text)")
    ask(dsn, f"INSERT INTO t SELECT n, 'name ' || n FROM generate_series({first}, {last}) AS n")


def test_a_query_with_a_key_goes_on_from_any_row(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_reader, "_PAGE", 30)
    fill(dsn, 1, 100)
    source = clew.postgres_query(dsn, "SELECT name, id FROM t WHERE name <> '{}%'", order_by="id", rows_per_event=9)
    assert source.is_replayable
    assert [row["id"] for row in rows_of(source)] == list(range(1, 101))
    check_resumes(source)
    for key in ("name", "stamp"):
        texts = "SELECT *, timestamptz '2025-01-01' + id * interval '1 s' AS stamp FROM t"
        check_resumes(clew.postgres_query(dsn, texts, order_by=key, rows_per_event=25))


def test_a_followed_query_waits_for_new_rows(dsn: str) -> None:
    fill(dsn, 1, 3)
    source = clew.postgres_query(dsn, "t", order_by="id", follow=True, poll_s=0.1)
    reading = iter(source.read("all", None))
    batch, offset = next(reading)  # type: ignore[misc]
    assert (batch.num_rows, offset) == (3, 3)
    assert [next(reading), next(reading)] == [None, None]
    fill(dsn, 4, 5)
    assert next(reading)[0].column("id").to_pylist() == [4, 5]  # type: ignore[index]
    assert next(reading) is None
    ask(dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'clew'")
    fill(dsn, 6, 6)
    assert next(reading)[1] == 6  # type: ignore[index]
    ends = clew.postgres_query(dsn, "t", order_by="id", follow=True, poll_s=0.1, idle_s=0.2)
    assert [item is None for item in ends.read("all", 5)] == [False, True, True, True]


def test_a_query_without_a_key_is_stored_first(dsn: str) -> None:
    fill(dsn, 1, 10)
    source = clew.postgres_query(dsn, "SELECT id FROM t ORDER BY id DESC;", rows_per_event=4)
    assert not source.is_replayable
    ((_, items),) = actions_of(source)
    assert [batch.column("id").to_pylist() for batch, _ in items] == [[10, 9, 8, 7], [6, 5, 4, 3], [2, 1]]


def test_a_key_that_is_not_unique_is_an_error(dsn: str) -> None:
    fill(dsn, 1, 3)
    for query, value in (("SELECT 7 AS k FROM t", "7"), ("SELECT nullif(id, 3) AS k FROM t", "NULL")):
        with pytest.raises(OutsideError, match=rf"{value} is not the value of one row alone in the column 'k'.*unique"):
            rows_of(clew.postgres_query(dsn, query, order_by="k"))
    with pytest.raises(OutsideError, match=r'cannot answer the query \(column "k" does not exist'):
        rows_of(clew.postgres_query(dsn, "t", order_by="k"))
    with pytest.raises(OutsideError, match=r"gives the columns id, id; expected each name once"):
        rows_of(clew.postgres_query(dsn, "SELECT id, id FROM t"))
    with pytest.raises(BuildError, match=r"follow=True or idle_s without order_by"):
        clew.postgres_query(dsn, "t", follow=True)


def test_a_lookup_answers_and_survives_a_lost_connection(dsn: str) -> None:
    fill(dsn, 1, 3)
    lookup = clew.postgres_lookup(dsn)
    lookup.open()
    assert lookup.read("SELECT count(*) AS n FROM t WHERE name LIKE 'n%'").to_pylist() == [{"n": 3}]
    ask(dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'clew'")
    assert lookup.read(["SELECT name FROM t WHERE id = %s", [2]]).to_pylist() == [{"name": "name 2"}]
    assert lookup.read(("SELECT id FROM t WHERE id > %(a)s", {"a": 5})).num_rows == 0
    with pytest.raises(OutsideError, match=r"read-only transaction"):
        lookup.read("DELETE FROM t")
    with pytest.raises(OutsideError, match=r"was asked 7; expected a query as text"):
        lookup.read(7)
    lookup.close()
    assert lookup.system == clew.postgres(dsn, "t").system
    told = clew.postgres_lookup(dsn, simulated=lambda query, applied: [{"query": query, "applied": len(applied)}])
    assert told.read_simulated("q", []) == [{"query": "q", "applied": 0}]


def test_a_writer_connects_again_after_its_connection_was_lost(dsn: str) -> None:
    connection = clew.postgres(dsn, "t", create=True)
    connection.execute(action(1, [{"a": 1}]))
    ask(dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'clew'")
    connection.execute(action(1, [{"a": 1}]))
    connection.execute(action(2, [{"a": 2}]))
    assert ask(dsn, "SELECT a FROM t ORDER BY a") == [(1,), (2,)]


def test_a_server_that_is_away_is_named_once_and_without_the_password(dsn: str) -> None:
    gone = dsn.replace("127.0.0.1:", "127.0.0.1:1").replace("/postgres?", "/postgres?connect_timeout=2&")
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    gone = f"postgresql://clew:{PASSWORD}@127.0.0.1:1/{parts['dbname']}"
    for use in (
        lambda: clew.postgres(gone, "t").open(),
        lambda: clew.postgres(gone, "t").execute(action(1, [{"a": 1}])),
        lambda: rows_of(clew.postgres_query(gone, "t")),
        lambda: rows_of(clew.postgres_query(gone, "t", order_by="id")),
        lambda: clew.postgres_lookup(gone).read("SELECT 1"),
    ):
        with pytest.raises(OutsideError, match=r"database postgres at 127\.0\.0\.1:1 cannot.*refused.*Look") as caught:
            use()
        assert PASSWORD not in str(caught.value)


def test_the_password_is_never_shown(dsn: str) -> None:
    wrong = dsn.replace(PASSWORD, "another-secret")
    with pytest.raises(OutsideError, match=r"password authentication failed") as caught:
        clew.postgres(wrong, "t").open()
    assert "another-secret" not in str(caught.value)
    for each in (clew.postgres(dsn, "t"), clew.postgres_query(dsn, "t"), clew.postgres_lookup(dsn)):
        assert PASSWORD not in repr(each)
        assert PASSWORD not in repr(each.database)  # type: ignore[union-attr]
    assert PASSWORD not in str(clew.postgres(dsn, "t").system)
    with pytest.raises(BuildError, match=r"cannot be understood") as unclear:
        clew.postgres(f"postgres:/{PASSWORD}@", "t")
    assert PASSWORD not in str(unclear.value)
    with pytest.raises(OutsideError, match=r"does not exist.*create=True"):
        clew.postgres(dsn, "nowhere").execute(action(1, [{"a": 1}]))


def test_an_empty_action_is_noted_too(dsn: str) -> None:
    connection = clew.postgres(dsn, "t", create=True)
    connection.execute(WriteAction("w", 1, pa.RecordBatch.from_pylist([], schema=pa.schema([("a", pa.int64())]))))
    assert ask(dsn, "SELECT number FROM clew_actions") == [(1,)]
    assert items_of(clew.postgres_query(dsn, "t"), "all") == []
