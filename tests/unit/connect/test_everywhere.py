"""What all connectors share: they can be sent to other processes before they are opened, and run in the simulator."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark import cloudpickle
from tests.unit.connect.destinations import action, connected, found, wanted
from tests.unit.connect.reading import actions_of

import clew
from clew.model.source import Source
from clew.testing import Crash, run, verify

DSN = "postgresql://nobody:secret@nowhere/nothing"


def counting(offset: int | None) -> Iterator[Any]:
    for number in range(offset or 0, 6):
        yield [{"x": number}], number + 1
        if number % 2:
            yield None


def made(tmp_path: Path) -> list[Any]:
    return [
        clew.call(lambda action: None, "idempotent"),
        clew.csv(tmp_path),
        clew.files(tmp_path, follow=True, idle_s=1),
        clew.from_callable(lambda: [{"x": 1}]),
        clew.generator(counting),
        clew.jsonl(tmp_path),
        clew.parquet(tmp_path),
        clew.postgres(DSN, "t", upsert=["a"]),
        clew.postgres_lookup(DSN, simulated=lambda query, applied: []),
        clew.postgres_query(DSN, "t"),
        clew.postgres_query(DSN, "t", order_by="id"),
        clew.rate(10),
        clew.sqlite(tmp_path / "a.db", "t"),
    ]


def test_all_connectors_can_be_sent_and_copied_before_they_are_opened(tmp_path: Path) -> None:
    for each in made(tmp_path):
        for twin in (pickle.loads(cloudpickle.dumps(each)), copy.deepcopy(each)):  # noqa: S301  (It was pickled here.)
            assert type(twin).__name__ == type(each).__name__
            assert getattr(twin, "system", None) == getattr(each, "system", None)
            assert "secret" not in repr(twin)


def write_rows(path: Path, first: int, last: int) -> None:
    path.write_text("".join(json.dumps({"x": number, "y": "a" * number}) + "\n" for number in range(first, last)))


def in_directory(tmp_path: Path, **options: Any) -> Source:
    for number in range(2):
        write_rows(tmp_path / f"{number}.jsonl", 3 * number, 3 * number + 3)
    return clew.files(tmp_path, rows_per_event=2, **options)


def tailed(tmp_path: Path) -> Source:
    write_rows(tmp_path / "a.jsonl", 0, 6)
    return clew.files(tmp_path / "a.jsonl", rows_per_event=2, follow=True, idle_s=0.2)


def answered(tmp_path: Path) -> Source:
    numbers = count()
    return clew.from_callable(lambda: [{"x": next(numbers)}], count=4)


SOURCES: dict[str, Callable[[Path], Source]] = {
    "files": in_directory,
    "files followed": lambda path: in_directory(path, follow=True, idle_s=0.2),
    "tail": tailed,
    "generator": lambda path: clew.generator(counting),
    "rate": lambda path: clew.rate(1000, count=6),
    "asked": lambda path: clew.from_callable(lambda at: ([{"x": at or 0}], (at or 0) + 1), is_replayable=True, count=5),
}


def pipeline_of(source: Source, connection: Any) -> clew.Pipeline:
    pipeline = clew.Pipeline("all")
    pipeline.source("rows", source).batch(2, name="twos").write("save", connection)
    return pipeline


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_exact_under_all_crashes_in_the_simulator(name: str, tmp_path: Path) -> None:
    source = SOURCES[name](tmp_path)
    pipeline = pipeline_of(source, clew.jsonl(tmp_path / "out"))
    assert verify(pipeline, schedules=5) > 20
    result = run(pipeline, crashes=[Crash("twos", 1)])
    if name != "rate":
        wanted = [row for _, items in actions_of(source) for batch, _ in items for row in batch.to_pylist()]
        assert result.rows("save.to") == wanted
    assert not (tmp_path / "out").exists()  # In the simulator nothing is written.


def test_a_source_that_is_not_replayable_is_exact_in_the_simulator(tmp_path: Path) -> None:
    pipeline = pipeline_of(answered(tmp_path), clew.sqlite(tmp_path / "a.db", "t"))
    assert verify(pipeline, schedules=5) > 20
    assert len(run(pipeline).rows("save.to")) == 4


@pytest.mark.parametrize("kind", ["conditional", "checkable", "idempotent"])
def test_a_function_that_writes_is_exact_in_the_simulator(kind: str) -> None:
    def refuse(action: clew.WriteAction) -> bool:
        raise AssertionError("the simulator does not call it")

    connection = clew.call(refuse, kind, is_in=refuse if kind == "checkable" else None)
    assert verify(pipeline_of(clew.generator(counting), connection), schedules=5) > 20


@pytest.mark.postgres
@pytest.mark.parametrize("order_by", [None, "id"])
def test_a_query_is_exact_in_the_simulator(dsn: str, order_by: str | None) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE t AS SELECT n AS id FROM generate_series(1, 3) AS n")
    source = clew.postgres_query(dsn, "t", order_by=order_by, rows_per_event=2)
    pipeline = pipeline_of(source, clew.postgres(dsn, "copy"))
    assert verify(pipeline, schedules=1) > 20
    assert [row["id"] for row in run(pipeline).rows("save.to")] == [1, 2, 3]


@pytest.mark.postgres
def test_a_lookup_is_asked_while_generating(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE t AS SELECT n AS id, n * 10 AS tenfold FROM generate_series(0, 5) AS n")

    class Enrich(clew.Operator):
        def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
            return [event.rows[0]["x"]]

        def update(self, input_set: int, event: clew.Event, note: Any = None) -> None:
            self.ready_sets = [input_set]

        def open(self, ctx: clew.Context) -> None:
            self.ready_sets: list[int] = []

        def ready(self, ctx: clew.Context) -> list[list[int]]:
            return [[each] for each in self.ready_sets]

        def generate(self, input_sets: Any, ctx: clew.Context) -> Iterator[Any]:
            self.ready_sets = []
            yield "out", ctx.read("tenfolds", ["SELECT tenfold FROM t WHERE id = %s", [input_sets[0]]])

    pipeline = clew.Pipeline("enriched")
    numbers = pipeline.source("numbers", clew.generator(counting))
    enriched = numbers.operator("enrich", Enrich(), reads={"tenfolds": clew.postgres_lookup(dsn)})
    enriched.write("save", clew.postgres(dsn, "copy"))
    assert [row["tenfold"] for row in run(pipeline).rows("save.to")] == [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize("what", ["jsonl", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_operators_of_one_process_may_share_a_connection(
    request: pytest.FixtureRequest, tmp_path: Path, what: str
) -> None:
    where = request.getfixturevalue("dsn") if what == "postgres" else str(tmp_path / "out")
    shared = connected(what, where)
    writers = [f"log/save{number}/0/to" for number in range(4)]
    wrong: list[BaseException] = []

    def write(writer: str) -> None:
        try:
            shared.open()
            for number in range(1, 11):
                shared.execute(action(number)._replace(writer=writer))
                if number == 5:
                    shared.close()  # One of them has failed and begins anew.
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    shared.close()
    assert found(what, where) == sorted(wanted(range(1, 11)) * len(writers))
