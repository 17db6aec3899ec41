"""Recovery with real processes: cut off itself, seen from its neighbours, and between a write and its mark."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark import pipelines
from tests.spark.harness import BRISK, Watch
from tests.spark.running import rows_of

import clew
from clew.connect.postgres_writer import PostgresWriter
from clew.connect.sqlite_writer import SqliteWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def number_rows(number: int) -> list[dict[str, Any]]:
    return [{"x": number + 1}]


# Cut off itself


def test_successors_are_killed_twice_in_a_row(spark: SparkSession, tmp_path: Path) -> None:
    """As soon as they are seen: mostly while they open their logs or recover from them."""
    run = pipelines.sales(tmp_path).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
    with Watch(run) as watch:
        for number, name in enumerate(pipelines.SALES, 1):
            watch.until("orders has sent more", lambda least=number * 80: watch.number("orders", "events") >= least)
            pid = watch.kill(name)
            for _ in range(2):
                watch.until(f"{name} has a successor", lambda name=name, pid=pid: watch.pid(name) not in (None, pid))
                pid = watch.kill(name)
            watch.returns(name, pid)
        pipelines.gate_of(tmp_path).touch()
        watch.finish()
    assert len(watch.killed) == 3 * len(pipelines.SALES)
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()


class Collecting(clew.Operator):
    """Keeps all events for the end, notes each fold of each process in a file of its own, and takes its time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def open(self, ctx: clew.Context) -> None:
        self.seen: list[int] = []
        self.notes = (self.directory / f"folds-{os.getpid()}").open("ab", buffering=0)

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[str]:
        return ["all"]

    def update(self, key: str, event: clew.Event, note: Any = None) -> None:
        self.notes.write(b".")
        time.sleep(0.005)
        self.seen += [row["x"] for row in event.rows]

    def generate(self, keys: Sequence[str], ctx: clew.Context) -> Any:
        yield "out", [{"x": x} for x in self.seen]


def test_a_successor_is_killed_while_it_refolds(spark: SparkSession, tmp_path: Path) -> None:
    count = 150
    pipeline = clew.Pipeline("refolding")
    numbers = pipeline.source("numbers", pipelines.Steady(count, 1000.0, pipelines.gate_of(tmp_path), number_rows))
    collected = numbers.operator("collecting", Collecting(tmp_path))
    collected.write("report", clew.sqlite(tmp_path / "out.db", "numbers", create=True))

    def folds(pid: int | None) -> int:
        path = tmp_path / f"folds-{pid}"
        return path.stat().st_size if path.exists() else 0

    with Watch(pipeline.run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)) as watch:
        ready = count - pipelines.HELD_BACK
        watch.until("all but the last are folded", lambda: folds(watch.pid("collecting")) >= ready)
        pid = watch.kill("collecting")
        for _ in range(2):
            watch.until(
                "a successor refolds",
                lambda pid=pid: watch.pid("collecting") != pid and folds(watch.pid("collecting")) >= 5,
            )
            pid = watch.kill("collecting")
            assert folds(pid) < ready, "it had refolded everything: there is nothing to see here"
        watch.returns("collecting", pid)
        pipelines.gate_of(tmp_path).touch()
        watch.finish()
    assert rows_of(tmp_path / "out.db", "numbers") == [(number + 1,) for number in range(count)]


# Seen from its neighbours


def test_others_go_on_while_one_is_down(spark: SparkSession, tmp_path: Path) -> None:
    run = pipelines.sales(tmp_path).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
    with Watch(run) as watch:
        watch.passes("hourly", 60)
        pipelines.hold_of(tmp_path).touch()
        watch.kill("hourly")
        watch.until("its death was noticed", lambda: watch.run.losses())
        done = watch.commits("hourly")
        before = {name: watch.commits(name) for name in ("orders", "totals", "archive")}
        for name, commits in before.items():
            watch.until(f"{name} commits", lambda name=name, least=commits + 3: watch.commits(name) >= least)
        assert watch.commits("hourly") == done, "it was back already: there is nothing to see here"
        stood = watch.position("report")
        pipelines.hold_of(tmp_path).unlink()
        watch.passes("report", stood + 2)
        pipelines.gate_of(tmp_path).touch()
        watch.finish()
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()


def test_the_siblings_of_a_dead_replica_go_on(spark: SparkSession, tmp_path: Path) -> None:
    run = pipelines.parallel(tmp_path).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
    with Watch(run) as watch:
        for name in ("tally", "tally/1", "tally/2"):
            watch.passes(name, 20)
        pipelines.hold_of(tmp_path).touch()
        watch.kill("tally/1")
        watch.until("its death was noticed", lambda: watch.run.losses())
        for name in ("tally", "tally/2"):
            watch.passes(name, watch.position(name) + 20)
        pipelines.hold_of(tmp_path).unlink()
        watch.passes("tally/1", watch.position("tally/1") + 20)
        pipelines.gate_of(tmp_path).touch()
        watch.finish()
    assert pipelines.parallel_found(tmp_path) == pipelines.parallel_expected()


class Stamped(clew.WriteConnection):
    """A table in which every action is noted with the moment at which it was done."""

    kind = "conditional"

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> None:
        self.table = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        self.table.execute("PRAGMA journal_mode = WAL")
        self.table.execute("CREATE TABLE IF NOT EXISTS done (number INTEGER PRIMARY KEY, x INTEGER, at REAL)")

    def execute(self, action: clew.WriteAction) -> None:
        (row,) = action.batch.to_pylist()
        self.table.execute("INSERT OR IGNORE INTO done VALUES (?, ?, ?)", (action.number, row["x"], time.time()))

    def close(self) -> None:
        self.table.close()


@pytest.mark.parametrize("victim", ["double", "report"])
def test_the_gap_at_the_sink_is_measured(
    spark: SparkSession, tmp_path: Path, victim: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed, not judged: how long nothing was written after a worker was killed."""
    count = 400
    pipeline = clew.Pipeline("gap")
    numbers = pipeline.source("numbers", pipelines.Steady(count, 100.0, pipelines.gate_of(tmp_path), number_rows))
    doubled = numbers.map(lambda row: {"x": 2 * row["x"]}, name="double", rows=True)
    doubled.write("report", Stamped(tmp_path / "out.db"))
    with Watch(pipeline.run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)) as watch:
        watch.until("a hundred were written", lambda: watch.number("report", "written") >= 100)
        killed_at = time.time()
        watch.returns(victim, watch.kill(victim))
        pipelines.gate_of(tmp_path).touch()
        watch.finish()
    rows = sorted((number, x, at) for number, x, at in rows_of(tmp_path / "out.db", "done"))
    assert [x for _, x, _ in rows] == [2 * (number + 1) for number in range(count)]
    moments = sorted(at for _, _, at in rows)
    first = next(index for index, at in enumerate(moments) if at > killed_at)
    gap = max(late - early for early, late in zip(moments[first - 1 :], moments[first:], strict=False))
    with capsys.disabled():
        print(
            f"\n  {victim} killed: nothing was written for {gap:.2f} s; losses: {watch.run.losses()[0]['recovery_s']} s"
        )


# Between a write and its mark

COUNT, FATAL = 60, 21


def die_once(marker: Path) -> None:
    """Kills this process, the first time."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class DyingSqlite(SqliteWriter):
    """A table; the process that writes dies right after one of its actions is durable."""

    def __init__(self, path: Path, marker: Path) -> None:
        super().__init__(path, "numbers", True, ())
        self.marker = marker

    def execute(self, action: clew.WriteAction) -> None:
        super().execute(action)
        if action.number == FATAL:
            die_once(self.marker)


class DyingPostgres(PostgresWriter):
    """The same for PostgreSQL."""

    def __init__(self, dsn: str, marker: Path) -> None:
        super().__init__(dsn, "numbers", True, ())
        self.marker = marker

    def execute(self, action: clew.WriteAction) -> None:
        super().execute(action)
        if action.number == FATAL:
            die_once(self.marker)


def appending(path: Path, marker: Path, *, dies_before: bool) -> clew.WriteConnection:
    """A file to which each action adds a line with its id, so that it can say which are in."""

    def append(action: clew.WriteAction) -> None:
        if dies_before and action.number == FATAL:
            die_once(marker)
        line = json.dumps([action.id, action.batch.to_pylist()[0]["x"]]) + "\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
        os.close(descriptor)
        if action.number == FATAL:
            die_once(marker)

    def is_in(action: clew.WriteAction) -> bool:
        return path.exists() and any(json.loads(line)[0] == action.id for line in path.read_text().splitlines())

    return clew.call(append, "checkable", is_in=is_in)


def putting(path: Path, marker: Path) -> clew.WriteConnection:
    """A file per action; writing it again changes nothing."""

    def put(action: clew.WriteAction) -> None:
        path.mkdir(exist_ok=True)
        (path / f"{action.number}.json").write_text(json.dumps(action.batch.to_pylist()[0]["x"]))
        if action.number == FATAL:
            die_once(marker)

    return clew.call(put, "idempotent")


@pytest.mark.parametrize(
    "kind",
    [
        "conditional sqlite",
        pytest.param("conditional postgres", marks=pytest.mark.postgres),
        "checkable, done",
        "checkable, not done",
        pytest.param("checkable, with a PostgreSQL log", marks=pytest.mark.postgres),
        "idempotent",
    ],
)
def test_a_crash_between_a_write_and_its_mark(
    spark: SparkSession, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    marker, out = tmp_path / "died", tmp_path / "out"
    connection: clew.WriteConnection
    match kind:
        case "conditional sqlite":
            connection = DyingSqlite(out, marker)
        case "conditional postgres":
            connection = DyingPostgres(request.getfixturevalue("dsn"), marker)
        case "idempotent":
            connection = putting(out, marker)
        case _:
            connection = appending(out, marker, dies_before=kind == "checkable, not done")
    pipelines.gate_of(tmp_path).touch()
    pipeline = clew.Pipeline("dying")
    numbers = pipeline.source("numbers", pipelines.Steady(COUNT, 1000.0, pipelines.gate_of(tmp_path), number_rows))
    numbers.write("report", connection)
    log = request.getfixturevalue("dsn") if kind.endswith("PostgreSQL log") else tmp_path / "log"
    with Watch(pipeline.run(spark, log=log, blocking=False, tuning=BRISK)) as watch:
        run = watch.finish()
    assert marker.exists()
    assert [(loss["group"], loss["reason"]) for loss in run.losses()] == [("report", "lost")]
    assert _written(kind, out, request) == list(range(1, COUNT + 1))


def _written(kind: str, out: Path, request: pytest.FixtureRequest) -> list[int]:
    match kind:
        case "conditional sqlite":
            return [x for (x,) in rows_of(out, "numbers")]
        case "conditional postgres":
            import psycopg

            with contextlib.closing(psycopg.connect(request.getfixturevalue("dsn"))) as connection:
                return sorted(x for (x,) in connection.execute("SELECT x FROM numbers").fetchall())
        case "idempotent":
            return sorted(json.loads(path.read_text()) for path in out.iterdir())
        case _:
            return [x for _, x in pipelines.lines_of(out)]
