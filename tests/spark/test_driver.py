"""The driver dies, is interrupted or stopped: nothing is left running, and the same pipeline goes on from its log."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark import pipelines
from tests.spark.harness import BRISK, Driver, Watch, is_there, parent_of, wait_until

import clew
from clew.errors import LogOfAnotherPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def order(directory: Path, log: str) -> dict[str, Any]:
    return {"pipeline": "sales", "directory": str(directory), "log": log, "master": "local[7]"}


def run_to_the_end(spark: SparkSession, directory: Path, log: str) -> None:
    """Runs the same pipeline on the same log, and looks at what both runs have written together."""
    pipelines.gate_of(directory).touch()
    run = pipelines.sales(directory, per_second=1000.0).run(spark, log=log, blocking=False, tuning=BRISK)
    with Watch(run) as watch:
        assert watch.finish().state == "completed"
    assert pipelines.sales_found(directory) == pipelines.sales_expected()


@pytest.mark.parametrize(
    ("how", "store"),
    [("killed", "sqlite"), ("interrupted", "sqlite"), pytest.param("killed", "postgres", marks=pytest.mark.postgres)],
)
def test_a_driver_that_is_gone_leaves_nothing_and_another_goes_on(
    spark: SparkSession, tmp_path: Path, how: str, store: str, request: pytest.FixtureRequest
) -> None:
    log = str(tmp_path / "log") if store == "sqlite" else request.getfixturevalue("dsn")
    with Driver(order(tmp_path, log)) as driver:
        driver.started()
        driver.passes("report", 5)
        left = [driver.process.pid, *driver.hosts()]
        left += {parent_of(pid) for pid in driver.hosts()}  # Those that Spark forks them from.
        left += {parent_of(parent_of(driver.hosts()[0]))}  # Spark itself.
        assert len(left) == 1 + len(pipelines.SALES) + 2
        if how == "killed":
            os.kill(driver.process.pid, signal.SIGKILL)
            wait_until("the driver is gone", lambda: driver.is_over)
        else:
            os.killpg(driver.process.pid, signal.SIGINT)  # As a terminal does, to all that it has started.
            assert driver.finish()["state"] == "interrupted"
            assert driver.process.returncode == 130
        wait_until(f"nothing is left of {left}", lambda: not any(map(is_there, left)), limit_s=30)
    assert pipelines.sales_found(tmp_path) != pipelines.sales_expected()
    run_to_the_end(spark, tmp_path, log)


def test_a_stopped_run_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    for goal in (40, 80, 120):
        run = pipelines.sales(tmp_path).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
        with Watch(run) as watch:
            watch.until(f"orders has sent {goal}", lambda: watch.number("orders", "events") >= goal)  # noqa: B023
            run.stop()
        assert run.state == "stopped"
        assert {group["state"] for group in run.status()["groups"].values()} == {"ended"}
        tracker = spark.sparkContext.statusTracker()
        wait_until("Spark has no job left", lambda: not tracker.getActiveJobsIds())  # noqa: B023
    run_to_the_end(spark, tmp_path, str(tmp_path / "log"))


class Endless(clew.Operator):
    """Never comes to the end of its first move."""

    def __init__(self, note: Path) -> None:
        self.note = note

    def assign(self, event: clew.Event, ctx: clew.Context) -> tuple[()]:
        self.note.write_text(str(os.getpid()))
        while True:
            time.sleep(1)

    def update(self, input_set: Any, event: clew.Event, note: Any = None) -> None:
        raise AssertionError("no event gets that far")

    def generate(self, input_sets: Any, ctx: clew.Context) -> Any:
        raise AssertionError("no event gets that far")


def test_a_stop_ends_a_move_that_does_not(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = clew.Pipeline("endless")
    orders = pipeline.source("orders", pipelines.Steady(50, 1000.0, pipelines.gate_of(tmp_path)))
    orders.operator("endless", Endless(tmp_path / "note"))
    run = pipeline.run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
    with Watch(run) as watch:
        watch.until("the move has begun", lambda: (tmp_path / "note").exists() and (tmp_path / "note").read_text())
        run.stop()
    assert run.state == "stopped"
    pid = int((tmp_path / "note").read_text())
    wait_until("its process is gone", lambda: not is_there(pid), limit_s=60)


def test_a_log_of_another_pipeline_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pipelines.gate_of(tmp_path).touch()
    pipelines.sales(tmp_path, count=20, per_second=1000.0).run(spark, log=tmp_path / "log")
    before = pipelines.sales_found(tmp_path)
    other = clew.Pipeline("sales")
    orders = other.source("orders", pipelines.Steady(20, 1000.0, pipelines.gate_of(tmp_path)))
    orders.write("elsewhere", clew.sqlite(tmp_path / "sales.db", "elsewhere", create=True))
    with pytest.raises(LogOfAnotherPipeline, match=r"operator 'hourly'.*nothing in the pipeline"):
        other.run(spark, log=tmp_path / "log")
    assert pipelines.sales_found(tmp_path) == before
