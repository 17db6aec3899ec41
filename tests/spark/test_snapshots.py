"""Runs with snapshots, whose processes are killed: all go back together, and every destination is exact."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.spark import pipelines, timed_pipelines
from tests.spark.harness import BRISK, Driver, Watch, is_there, wait_until
from tests.spark.pipelines import Row, gate_of
from tests.spark.running import is_explained
from tests.spark.test_random_kills import kill_at_random, seed_of

import clew
from clew.cli.status import status_of
from clew.errors import RunError, RunFailed
from clew.operators.windows import tumbling
from clew.runtime.run import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVERY_S = 0.3
OPTIONS: dict[str, Any] = {"recovery": "snapshot", "snapshot_every_s": EVERY_S}


def begin(pipeline: clew.Pipeline, spark: SparkSession, log: Path | str, **options: Any) -> Run:
    return pipeline.run(spark, log=log, blocking=False, tuning=BRISK, **{**OPTIONS, **options})


def epoch_of(watch: Watch | Driver) -> int:
    return int(watch.status().get("snapshots", {}).get("epoch", 0))


def kill_each_in_turn(watch: Watch, names: tuple[str, ...], source: str, apart: int, directory: Path) -> Run:
    """Kills one process after another, each when its predecessor is back, more data has come, and an epoch ended."""
    for number, name in enumerate(names, 1):
        before = epoch_of(watch)
        watch.until(f"{source} has sent more", lambda least=number * apart: watch.number(source, "events") >= least)
        watch.until("one more epoch is complete", lambda least=before: epoch_of(watch) > least)
        watch.returns(name, watch.kill(name))
    gate_of(directory).touch()
    run = watch.finish()
    assert run.state == "completed"
    assert {(loss["group"], loss["pid"]) for loss in run.losses()} == set(watch.killed)
    assert run.status()["snapshots"]["generation"] == 1 + len(names)
    assert all(loss["recovery_s"] is not None for loss in run.losses())
    return run


def test_each_host_is_killed_in_turn(spark: SparkSession, tmp_path: Path) -> None:
    with Watch(begin(pipelines.sales(tmp_path), spark, tmp_path / "log")) as watch:
        kill_each_in_turn(watch, pipelines.SALES, "orders", 60, tmp_path)
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()
    assert is_explained(tmp_path / "log")


def test_replicas_and_operators_that_share_a_process(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = pipelines.parallel(tmp_path)
    pipeline.group("tally-merge", "report")
    with Watch(begin(pipeline, spark, tmp_path / "log")) as watch:
        kill_each_in_turn(watch, ("tally/1", "tally-merge+report", "tally-dispatch"), "numbers", 60, tmp_path)
    assert pipelines.parallel_found(tmp_path) == pipelines.parallel_expected()


def windows(directory: Path, dsn: str) -> clew.Pipeline:
    pipeline = clew.Pipeline("windows")
    source = pipelines.Steady(timed_pipelines.ORDERS, 80.0, gate_of(directory), timed_pipelines.order_rows)
    orders = pipeline.source("orders", source, times=timed_pipelines.times())
    spec = {"total": ("amount", "sum"), "n": "count"}
    totals = orders.aggregate("totals", tumbling(timed_pipelines.SIZE), spec, keys="key", late="port")
    totals.write("report", clew.postgres(dsn, "totals", create=True))
    totals["late"].collect("late")
    return pipeline


@pytest.mark.postgres
def test_windows_of_time_with_log_and_sink_in_postgresql(spark: SparkSession, tmp_path: Path, dsn: str) -> None:
    with Watch(begin(windows(tmp_path, dsn), spark, dsn, trace=tmp_path / "trace")) as watch:
        run = kill_each_in_turn(watch, ("totals", "report", "orders"), "orders", 50, tmp_path)
    expected = timed_pipelines.timed_expected()
    with psycopg.connect(dsn) as connection:
        assert sorted(connection.execute("SELECT * FROM totals").fetchall()) == expected["totals"]
    late = [tuple(row.values()) for row in run.results("late").to_pylist()]
    assert sorted(late) == expected["late"]
    assert not any(run.status()["frontiers"].values())
    assert status_of(dsn)["state"] == "finished"
    assert is_explained(tmp_path / "trace")


def test_random_kills_of_any_process_and_of_the_driver(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The next driver, which is this process, goes on from the last complete epoch."""
    seed = seed_of(None)
    replay = f"CLEW_SEED={seed} .venv/bin/python -m pytest {request.node.nodeid}"
    print(f"seed {seed}; replay: {replay}")
    chance = random.Random(seed)
    order = {
        "pipeline": "sales",
        "directory": str(tmp_path),
        "arguments": {"count": 700, "per_second": 100.0},
        "master": "local[7]",
        "log": str(tmp_path / "log"),
        "options": OPTIONS,
    }
    with Driver(order) as first:
        first.replay = replay
        first.started()
        for _ in range(3):
            time.sleep(chance.uniform(0.2, 0.9))
            first.kill(chance.choice(pipelines.SALES))
        first.until("an epoch is complete", lambda: epoch_of(first) > 0)
        reached = epoch_of(first)
        hosts = first.hosts()
        first.process.kill()
        first.process.wait()
    wait_until("the hosts are gone", lambda: not any(map(is_there, hosts)))
    pipeline = pipelines.sales(tmp_path, count=700, per_second=100.0)
    with Watch(begin(pipeline, spark, tmp_path / "log"), replay=replay) as watch:
        assert epoch_of(watch) >= reached
        for _ in range(6):
            time.sleep(chance.uniform(0.2, 0.9))
            watch.kill(chance.choice(pipelines.SALES))
        gate_of(tmp_path).touch()
        watch.finish()
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected(700)
    assert is_explained(tmp_path / "log")


def test_the_end_of_input_is_a_final_epoch_and_a_second_run_has_nothing_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    gate_of(tmp_path).touch()
    pipeline = pipelines.sales(tmp_path, per_second=2000.0)
    run = pipeline.run(spark, log=tmp_path / "log", recovery="snapshot", snapshot_every_s=60.0)
    epoch = run.status()["snapshots"]["epoch"]
    assert epoch == 1, "an hour may pass between snapshots, and still the end is one"
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()
    found = status_of(str(tmp_path / "log"))
    assert (found["state"], found["epoch"], found["generation"]) == ("finished", 1, 1)
    assert found["replicas"]["orders"]["events"] == {"out": 600}
    again = pipeline.run(spark, log=tmp_path / "log", recovery="snapshot")
    assert again.status()["snapshots"]["epoch"] == epoch
    assert all(numbers["counts"]["moves"] == 0 for numbers in again.metrics().values())
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()
    with pytest.raises(RunError, match=r"was made with recovery='snapshot', .* Run with recovery='snapshot', or name"):
        pipeline.run(spark, log=tmp_path / "log")


def told(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def telling(path: Path, kind: str) -> clew.WriteConnection:
    """A file that gets a line for each execution; of a checkable one the lines say what is in."""

    def tell(action: clew.WriteAction) -> None:
        with open(path, "a") as file:
            file.write(f"{action.number}\n")

    def is_in(action: clew.WriteAction) -> bool:
        return action.number in told(path)

    return clew.call(tell, kind, is_in=is_in if kind == "checkable" else None)


@pytest.mark.soak
def test_writes_that_are_not_conditional(spark: SparkSession, tmp_path: Path) -> None:
    """Whether the process of a writer dies or only goes back, nothing of it may write beside its successor."""
    pipeline = clew.Pipeline("kinds")
    orders = pipeline.source("orders", pipelines.Steady(500, 120.0, gate_of(tmp_path)))
    orders.write("again", telling(tmp_path / "again", "idempotent"))
    orders.write("once", telling(tmp_path / "once", "checkable"))
    with Watch(begin(pipeline, spark, tmp_path / "log")) as watch:
        kill_each_in_turn(watch, ("orders", "again", "once", "orders"), "orders", 60, tmp_path)
    assert told(tmp_path / "once") == list(range(1, 501))
    assert [number for number, _ in itertools.groupby(told(tmp_path / "again"))] == list(range(1, 501))
    assert is_explained(tmp_path / "log")


SOAK_KILLS = 150


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_many_kills_also_while_all_go_back(
    spark: SparkSession, tmp_path: Path, dsn: str, store: str, request: pytest.FixtureRequest
) -> None:
    log = tmp_path / "log" if store == "sqlite" else dsn
    pipeline = pipelines.parallel(tmp_path, count=6_000, per_second=60.0)
    run = begin(pipeline, spark, log, restarts_max=1000)
    kill_at_random(run, pipelines.PARALLEL, SOAK_KILLS, seed_of(None), tmp_path, request.node.nodeid)
    assert pipelines.parallel_found(tmp_path) == pipelines.parallel_expected(6_000)


# What is done again


class Noted(pipelines.Steady):
    """Notes from where it begins to read, and how far it came."""

    def __init__(self, directory: Path, count: int, per_second: float) -> None:
        super().__init__(count, per_second, gate_of(directory))
        self.notes = str(directory / "notes")

    def read(self, action: Any, offset: Any) -> Iterator[tuple[list[Row], int] | None]:
        first = offset or 0
        yield None
        for item in super().read(action, offset):
            if item is not None:
                with open(self.notes, "a") as file:
                    file.write(f"{first} {item[1]}\n")
            yield item


def reads_of(directory: Path) -> list[tuple[int, int]]:
    """Of each reading: from where it began, and how far it came."""
    found: list[tuple[int, int]] = []
    for line in (directory / "notes").read_text().splitlines():
        first, last = map(int, line.split())
        if found and found[-1][0] == first and last > found[-1][1]:
            found[-1] = (first, last)
        else:
            found.append((first, last))
    return found


def test_what_is_read_again_is_what_came_since_the_last_complete_epoch(spark: SparkSession, tmp_path: Path) -> None:
    per_second, restart_s = 100.0, 3.0
    pipeline = clew.Pipeline("noted")
    orders = pipeline.source("orders", Noted(tmp_path, 600, per_second))
    orders.operator("totals", pipelines.Running(10)).collect("found")
    with Watch(begin(pipeline, spark, tmp_path / "log")) as watch:
        kill_each_in_turn(watch, ("totals", "found", "totals"), "orders", 100, tmp_path)
        run = watch.run
    totals = [(row["number"], row["total"]) for row in run.results("found").to_pylist()]
    assert totals == pipelines.sales_expected()["archive"]
    reads = reads_of(tmp_path)
    assert len(reads) == 4, "it began four times: once, and once after each kill"
    again = [before[1] - after[0] for before, after in itertools.pairwise(reads)]
    assert all(after[0] >= before[0] for before, after in itertools.pairwise(reads))
    assert all(0 <= number <= per_second * (2 * EVERY_S + restart_s) for number in again), again


class SlowOnce(pipelines.Running):
    """One of its moves lasts until a file appears, or for ever if its process ends before."""

    def __init__(self, directory: Path) -> None:
        super().__init__(10)
        self.begun, self.end = directory / "begun", directory / "end"

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        if number == 12 and not self.begun.exists():
            self.begun.touch()
            while not self.end.exists():
                time.sleep(0.01)
            raise AssertionError("the result of this move is not wanted")
        super().update(number, event, note)


def test_a_slow_move_does_not_keep_its_process_from_going_back(spark: SparkSession, tmp_path: Path) -> None:
    """What it does, even to fail, is of an earlier generation by then."""
    pipeline = clew.Pipeline("slow")
    orders = pipeline.source("orders", pipelines.Steady(600, 150.0, gate_of(tmp_path)))
    orders.operator("totals", SlowOnce(tmp_path)).collect("found")
    with Watch(begin(pipeline, spark, tmp_path / "log")) as watch:
        watch.until("the slow move has begun", (tmp_path / "begun").exists)
        slow = watch.pid("totals")
        watch.returns("orders", watch.kill("orders"))
        watch.until("more is done", lambda: epoch_of(watch) > 0 and watch.number("totals", "position") > 250)
        (tmp_path / "end").touch()
        gate_of(tmp_path).touch()
        run = watch.finish()
    assert run.metrics()["totals"]["pid"] == slow
    assert [loss["group"] for loss in run.losses()] == ["orders"]
    totals = [(row["number"], row["total"]) for row in run.results("found").to_pylist()]
    assert totals == pipelines.sales_expected()["archive"]


class Poisoned(pipelines.Running):
    """Fails at one event, always."""

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        if event.rows[0]["id"] == 900:
            raise ValueError("this event cannot be taken")
        super().update(number, event, note)


def test_an_input_that_always_fails_stops_the_run_and_what_was_before_it_is_safe(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = clew.Pipeline("poisoned")
    orders = pipeline.source("orders", pipelines.Steady(600, 300.0, gate_of(tmp_path)))
    orders.operator("totals", Poisoned(10)).collect("found")
    with Watch(begin(pipeline, spark, tmp_path / "log", restarts_max=1)) as watch:
        with pytest.raises(RunFailed, match=r"this event cannot be taken.*Everything up to epoch \d+ is in the log"):
            watch.finish()
        epoch = epoch_of(watch)
    assert 0 < epoch == status_of(str(tmp_path / "log"))["epoch"]


@pytest.mark.soak
def test_a_host_that_hangs_is_replaced_and_all_go_on(spark: SparkSession, tmp_path: Path) -> None:
    with Watch(begin(pipelines.sales(tmp_path), spark, tmp_path / "log")) as watch:
        watch.until("an epoch is complete", lambda: epoch_of(watch) > 0)
        stopped = watch.kill("hourly", signal.SIGSTOP)
        try:
            watch.returns("hourly", stopped)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(stopped, signal.SIGKILL)
        gate_of(tmp_path).touch()
        run = watch.finish()
    assert [(loss["group"], loss["reason"]) for loss in run.losses()] == [("hourly", "hung")]
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()


@pytest.mark.soak
def test_an_operator_in_the_driver_goes_back_too(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = clew.Pipeline("driven")
    orders = pipeline.source("orders", pipelines.Steady(300, 60.0, gate_of(tmp_path)))
    query = "select item, sum(amount) as total from events group by item"
    orders.sql("totals", query, every=30).collect("found")
    with Watch(begin(pipeline, spark, tmp_path / "log")) as watch:
        kill_each_in_turn(watch, ("orders", "found"), "orders", 60, tmp_path)
        run = watch.run
    assert run.metrics()["totals"]["starts"] == 1
    totals: dict[str, int] = {}
    for row in run.results("found").to_pylist():
        totals[row["item"]] = totals.get(row["item"], 0) + row["total"]
    expected: dict[str, int] = {}
    for row in (row for number in range(300) for row in pipelines.order_rows(number)):
        expected[row["item"]] = expected.get(row["item"], 0) + row["amount"]
    assert totals == expected
