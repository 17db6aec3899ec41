"""Times on real processes: windows, joins and loops are exact under kills, restarts, and sources that fall silent."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bench import timed_data, timed_million
from tests.spark import pipelines, timed_pipelines
from tests.spark.harness import BRISK, Watch
from tests.spark.timed_pipelines import rows_in

from clew.model.names import Replica
from clew.model.values import decode
from clew.runtime.run import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def kill_each(watch: Watch, names: tuple[str, ...], source: str, apart: int, directory: Path) -> Run:
    """Kills one process after another while data comes, opens the gate, and waits for the end."""
    for number, name in enumerate(names, 1):
        watch.until(f"{source} has sent more", lambda least=number * apart: watch.number(source, "events") >= least)
        watch.returns(name, watch.kill(name))
    pipelines.gate_of(directory).touch()
    run = watch.finish()
    assert run.state == "completed"
    assert {(loss["group"], loss["pid"]) for loss in run.losses()} >= set(watch.killed)
    return run


def assert_nothing_can_come(run: Run) -> None:
    """At the end no input port waits for anything."""
    frontiers = run.status()["frontiers"]
    assert frontiers
    assert not any(frontiers.values()), frontiers


def held(run: Run, operator: str) -> list[Any]:
    """The times that an operator's Input Sets hold, as its log says."""
    rows = run.store.reader().rows(Replica(operator)).progress
    return [time for (kind, _), value in rows.items() if kind == "hold" for time in decode(value)]


def test_windows_and_a_join_under_kills(spark: SparkSession, tmp_path: Path) -> None:
    run = timed_pipelines.timed(tmp_path).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
    with Watch(run) as watch:
        kill_each(watch, timed_pipelines.TIMED, "orders", 35, tmp_path)
    found = timed_pipelines.timed_found(tmp_path, run.status()["counts"])
    assert found == timed_pipelines.timed_expected()
    assert_nothing_can_come(run)


def test_windows_that_are_open_survive_restarts(spark: SparkSession, tmp_path: Path) -> None:
    for goal in (60, 120, 180):
        run = timed_pipelines.timed(tmp_path).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
        with Watch(run) as watch:
            watch.until(f"orders has sent {goal}", lambda: watch.number("orders", "events") >= goal)  # noqa: B023
            watch.until("time windows are open", lambda: held(run, "totals") and held(run, "pairs"))  # noqa: B023
            run.stop()
        assert run.state == "stopped"
    pipelines.gate_of(tmp_path).touch()
    run = timed_pipelines.timed(tmp_path, per_second=1000.0).run(
        spark, log=tmp_path / "log", blocking=False, tuning=BRISK
    )
    with Watch(run) as watch:
        watch.finish()
    assert timed_pipelines.timed_found(tmp_path, run.status()["counts"]) == timed_pipelines.timed_expected()
    assert_nothing_can_come(run)


def test_a_loop_under_kills(spark: SparkSession, tmp_path: Path) -> None:
    run = timed_pipelines.loop(tmp_path).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
    with Watch(run) as watch:
        kill_each(watch, timed_pipelines.LOOP, "edges", 15, tmp_path)
    assert timed_pipelines.loop_found(tmp_path) == timed_pipelines.loop_expected()
    assert_nothing_can_come(run)


@pytest.mark.parametrize("ends", [True, False], ids=["finished", "idle"])
def test_a_join_goes_on_without_an_input_that_is_silent(spark: SparkSession, tmp_path: Path, ends: bool) -> None:
    """Also while both are idle, what comes after is not late: no frontier jumps ahead of what was seen."""
    run = timed_pipelines.quiet(tmp_path, ends).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
    with Watch(run) as watch:
        for stage in range(1, timed_pipelines.STAGES + 1):
            expected = timed_pipelines.quiet_expected(ends, stage)
            watch.until(
                f"all pairs of stage {stage} are there",
                lambda: timed_pipelines.quiet_found(tmp_path) == expected,  # noqa: B023
            )
            time.sleep(0.5)  # Both are idle now; more can only be seen by waiting.
            last = str(100 * timed_pipelines.PER_STAGE * stage)
            assert run.status()["frontiers"]["pairs.left"] == [last]
            assert run.status()["frontiers"]["pairs.right"] == ([] if ends else [last])
            assert timed_pipelines.quiet_found(tmp_path) == expected
            timed_pipelines.stage_gate(tmp_path, stage).touch()
        watch.finish()
    assert timed_pipelines.quiet_found(tmp_path) == timed_pipelines.quiet_expected(ends)
    assert not any("late" in counts for counts in run.status()["counts"].values())
    assert_nothing_can_come(run)


def test_a_replica_without_input_holds_nothing_back(spark: SparkSession, tmp_path: Path) -> None:
    count = 200
    database = tmp_path / "lopsided.db"
    pipeline = timed_pipelines.lopsided(tmp_path, count)
    with Watch(pipeline.run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)) as watch:
        last = 50 * (count - pipelines.HELD_BACK - 1) + 2
        expected = timed_pipelines.lopsided_expected(count, until=last)
        watch.until("numbers has begun", lambda: watch.number("numbers", "events") > 50)
        watch.returns("counts/1", watch.kill("counts/1"))
        watch.until("all that is over is reported", lambda: rows_in(database, "counts") == expected)
        cursors = watch.run.store.reader().rows(Replica("counts", 1)).cursors
        assert [number for number, _, _ in cursors.values()] in ([], [0]), "it was to have no input"
        watch.until(
            "the frontier is at the last record", lambda: watch.status()["frontiers"]["counts/1.in"] == [str(last)]
        )
        pipelines.gate_of(tmp_path).touch()
        run = watch.finish()
    assert rows_in(database, "counts") == timed_pipelines.lopsided_expected(count)
    assert_nothing_can_come(run)


@pytest.mark.soak
@pytest.mark.parametrize("case", ["join", "histogram"])
def test_a_million_records_as_a_batch_job_has_them(spark: SparkSession, tmp_path: Path, case: str) -> None:
    """Two processes are killed; the answers are compared inside. What is kept is what is open, not all there was."""
    records = 1_000_000
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    try:
        found = timed_million.measured(spark, tmp_path, case, records)
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")
    print(found)
    seconds = records / timed_data.PER_SECOND / (2 if case == "join" else 1)
    windows = [most for what, most in found["most"].items() if what.startswith("open windows")]
    assert windows
    assert max(windows) < seconds / timed_data.WINDOW_S / 2
