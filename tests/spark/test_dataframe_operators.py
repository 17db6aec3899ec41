"""DataFrame and SQL operators on a real Spark: right results, whoever dies beside them or fails in them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.running import Killer, finish, rows_of, until

import clew
import clew.testing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


class Orders(clew.Source):
    """So many orders, five to an event, a little apart."""

    def __init__(self, count: int, pause_s: float = 0.0) -> None:
        self.count = count
        self.pause_s = pause_s

    def read(self, action: Any, offset: Any) -> Iterator[tuple[list[dict[str, Any]], int]]:
        for begin in range(offset or 0, self.count, 5):
            time.sleep(self.pause_s)
            yield order_rows(begin, min(begin + 5, self.count)), begin + 5


def order_rows(begin: int, end: int) -> list[dict[str, Any]]:
    return [{"id": number, "item": "abc"[number % 3], "amount": number * 2} for number in range(begin, end)]


def test_results_are_those_of_plain_spark_while_neighbours_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    labels = spark.createDataFrame([("a", "apple"), ("b", "pear"), ("c", "fig")], "item string, label string")
    labels.createOrReplaceTempView("labels")
    pipeline = clew.Pipeline("totals")
    orders = pipeline.source("orders", Orders(600, 0.04))
    query = "select label, sum(amount) as total from events join labels using (item) group by label"
    orders.sql("totals", query, every=20).write("report", clew.sqlite(tmp_path / "out.db", "totals", create=True))
    large = orders.dataframe(lambda df: df.join(labels, "item").where("amount % 7 = 0").select("id", "label"), every=25)
    large.write("found", clew.sqlite(tmp_path / "out.db", "found", create=True))

    killer = Killer(["report", "orders"], "report", every=1)
    run = finish(pipeline.run(spark, log=tmp_path / "log", blocking=False), progress=killer)

    assert len(killer.killed) == 2
    assert {loss["group"] for loss in run.losses()} == {"report", "orders"}
    all_orders = spark.createDataFrame(order_rows(0, 600))
    totals = all_orders.join(labels, "item").groupBy("label").sum("amount").collect()
    found: dict[str, int] = {}
    for label, total in rows_of(tmp_path / "out.db", "totals"):
        found[label] = found.get(label, 0) + total
    assert found == {row[0]: row[1] for row in totals}
    wanted = all_orders.join(labels, "item").where("amount % 7 = 0").select("id", "label").collect()
    assert rows_of(tmp_path / "out.db", "found") == sorted(map(tuple, wanted))


def test_the_documented_example_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "dataframes.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec(page.partition("```python\n")[2].partition("```")[0], {"__name__": "__main__"})
    totals: dict[str, int] = {}
    for item, total in rows_of(tmp_path / "sales.db", "totals"):
        totals[item] = totals.get(item, 0) + total
    assert totals == {f"item-{n}": sum(i % 90 for i in range(n, 2000, 5)) for n in range(5)}
    assert spark.read.parquet(str(tmp_path / "lake")).count() == sum(i % 90 > 80 for i in range(2000))


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_an_operator_that_fails_once_goes_on_in_the_driver_with_its_writes(
    spark: SparkSession, tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    """Its writer is checkable: it waits until nothing of its predecessor, a thread of the same process, can act."""
    failed = tmp_path / "failed"

    def halves(events: DataFrame) -> DataFrame:
        if events.where("id = 120").count() and not failed.exists():
            failed.touch()
            raise ValueError("a stumble")
        return events.where("id % 2 = 0").select("id", "item")

    pipeline = clew.Pipeline("stumbling")
    orders = pipeline.source("orders", Orders(200))
    orders.dataframe(halves, every=8, rows_per_event=10).write("lake", clew.frame_writer(tmp_path / "lake"), every=2)
    pipeline.group("halves", "lake")
    log = tmp_path / "log" if store == "sqlite" else request.getfixturevalue("dsn")
    run = finish(pipeline.run(spark, log=log, blocking=False))

    (loss,) = run.losses()
    assert (loss["group"], loss["reason"]) == ("halves+lake", "move")
    assert "generate() for [4] raised ValueError: a stumble" in loss["why"]
    lake = spark.read.parquet(str(tmp_path / "lake"))
    assert sorted(row.id for row in lake.collect()) == list(range(0, 200, 2))
    assert lake.select("clew_action").distinct().count() == 5


def test_a_function_that_always_fails_ends_the_run_with_its_words(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = clew.Pipeline("wrong")
    wrong = pipeline.source("orders", Orders(10)).sql("wrong", "select nothing from events", every=2)
    wrong.write("report", clew.sqlite(tmp_path / "out.db", "wrong", create=True))
    with pytest.raises(clew.ClewError, match=r"(?s)'wrong'.*in 3 tries.*`nothing` cannot be resolved"):
        finish(pipeline.run(spark, log=tmp_path / "log", blocking=False))


def test_stop_cancels_the_job_under_way(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = clew.Pipeline("slow")
    nap = "select id, java_method('java.lang.Thread', 'sleep', 60000L) as nap from events"
    slow = pipeline.source("orders", Orders(10)).sql("slow", nap, every=2)
    slow.write("report", clew.sqlite(tmp_path / "out.db", "slow", create=True))
    run = pipeline.run(spark, log=tmp_path / "log", blocking=False)
    until(lambda: run.metrics().get("slow", {}).get("move_s", 0.0) > 2.0)
    begin = time.monotonic()
    run.stop()
    assert time.monotonic() - begin < 15
    assert run.state == "stopped"


def test_the_simulator_runs_them_with_a_session_too(spark: SparkSession) -> None:
    pipeline = clew.Pipeline("simulated")
    rows = pipeline.source("orders", clew.testing.scripted([order_rows(n, n + 3) for n in range(0, 24, 3)]))
    totals = rows.sql("totals", "select item, sum(amount) as total from events group by item order by item", every=3)
    totals.write("report", clew.testing.Outside("report").writer())
    result = clew.testing.run(pipeline, crashes=[("totals", 2), ("totals", 5)])
    assert result.restarts == 2
    assert [row["total"] for row in result.rows("report.to")] == [18, 24, 30, 72, 78, 84, 78, 82, 86]
    assert clew.testing.verify(pipeline, schedules=20) > 100


def test_one_alone(spark: SparkSession) -> None:
    from clew.operators.dataframe import OnFrames

    alone = clew.testing.Alone(OnFrames(lambda df: df.selectExpr("sum(x) as x"), every=2))
    assert alone.send([{"x": 1}]) == []
    alone.restart()
    assert alone.send([{"x": 2}]) == [("out", [{"x": 3}])]


def test_a_result_that_is_no_frame_is_named(spark: SparkSession) -> None:
    from clew.operators.dataframe import OnFrames

    alone = clew.testing.Alone(OnFrames(lambda df: df.toPandas(), every=1))
    with pytest.raises(clew.MoveError, match=r"expected a Spark DataFrame\. Return one"):
        alone.send([{"x": 1}])
