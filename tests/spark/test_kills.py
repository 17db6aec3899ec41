"""The process of each operator is killed in turn, and every destination is what it would have been without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark import pipelines
from tests.spark.harness import BRISK, Watch

import clew
from clew.errors import RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def kill_each_in_turn(watch: Watch, names: tuple[str, ...], source: str, apart: int, directory: Path) -> None:
    """Kills one process after another, the next as soon as its predecessor is back and more data has come."""
    for number, name in enumerate(names, 1):
        watch.until(f"{source} has sent more", lambda least=number * apart: watch.number(source, "events") >= least)
        watch.returns(name, watch.kill(name))
    pipelines.gate_of(directory).touch()
    run = watch.finish()
    assert run.state == "completed"
    assert {(loss["group"], loss["pid"]) for loss in run.losses()} >= set(watch.killed)
    assert [name for name, _ in watch.killed] == list(names)


def test_each_operator_of_the_sales_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    run = pipelines.sales(tmp_path).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
    with Watch(run) as watch:
        kill_each_in_turn(watch, pipelines.SALES, "orders", 100, tmp_path)
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()


@pytest.mark.postgres
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_each_operator_of_a_fan_in_with_a_writer_in_the_middle(
    spark: SparkSession, tmp_path: Path, dsn: str, store: str
) -> None:
    log = tmp_path / "log" if store == "sqlite" else dsn
    pipeline = pipelines.fan_in(tmp_path, dsn)
    with Watch(pipeline.run(spark, log=log, blocking=False, tuning=BRISK)) as watch:
        kill_each_in_turn(watch, pipelines.FAN_IN, "orders", 120, tmp_path)
    assert pipelines.fan_in_found(tmp_path, dsn) == pipelines.fan_in_expected()


def test_a_run_without_kills_agrees_with_what_is_expected(spark: SparkSession, tmp_path: Path) -> None:
    """So that a disagreement elsewhere is the kills' doing."""
    pipelines.gate_of(tmp_path).touch()
    for build, expected, found in (
        (pipelines.sales, pipelines.sales_expected, pipelines.sales_found),
        (pipelines.parallel, pipelines.parallel_expected, pipelines.parallel_found),
    ):
        pipeline: clew.Pipeline = build(tmp_path, per_second=2000.0)
        pipeline.run(spark, log=tmp_path / f"{pipeline.name}.log")
        assert found(tmp_path) == expected()


def test_operators_that_share_a_process_die_and_come_back_together(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = pipelines.sales(tmp_path)
    pipeline.group("hourly", "report")
    pipeline.group("orders", "totals", "archive")
    with Watch(pipeline.run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)) as watch:
        names = ("hourly+report", "orders+totals+archive", "hourly+report", "orders+totals+archive")
        kill_each_in_turn(watch, names, "orders", 100, tmp_path)
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()


def test_a_run_without_protection_ends_with_its_first_death(spark: SparkSession, tmp_path: Path) -> None:
    with Watch(pipelines.sales(tmp_path).run(spark, recovery="off", blocking=False, tuning=BRISK)) as watch:
        watch.passes("report", 3)
        watch.kill("totals")
        with pytest.raises(RunFailed, match=r"the host of totals ended .* Run it with recovery='log'"):
            watch.finish()
