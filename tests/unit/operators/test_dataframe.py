"""DataFrame operators without a Spark: what is refused when they are built, and where they are hosted."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pytest

import clew
from clew.errors import BuildError, UnsuitableSpark
from clew.operators.dataframe import OnFrames, Query
from clew.runtime.run import groups_of
from clew.testing import Outside, scripted


def build(*, is_grouped: bool = False) -> clew.Pipeline:
    pipeline = clew.Pipeline("frames")
    rows = pipeline.source("rows", scripted([[{"x": 1}]]))
    rows.sql("totals", "select sum(x) as x from events", every=2).write("report", Outside("report").writer())
    rows.map(lambda table: table, "same").write("lake", clew.frame_writer("lake"))
    if is_grouped:
        pipeline.group("totals", "report")
    return pipeline


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Query("  ", 1), "expected one as text"),
        (lambda: Query(None, 1), "expected one as text"),  # type: ignore[arg-type]
        (lambda: OnFrames("select 1", 1), "expected a function"),  # type: ignore[arg-type]
        (lambda: OnFrames(lambda frame: frame, 0), "expected a whole number from 1 up"),
        (lambda: OnFrames(lambda frame: frame, 1, 0), "Pass how many rows of the result make an event"),
        (lambda: clew.frame_writer("", "parquet"), "expected a place and a format"),
        (lambda: clew.frame_writer("lake", files=0), "expected a whole number from 1 up"),
        (lambda: clew.dataframe("orders"), "expected a Spark DataFrame, or a function of the session"),
        (lambda: clew.dataframe(lambda spark: spark, order_by=""), "expected the name of a column"),
        (lambda: clew.read_stream(lambda spark: spark, checkpoint="c", trigger={}), "the arguments of Spark's trigger"),
        (lambda: clew.read_stream(lambda spark: spark, checkpoint="c", output_mode="all"), "append, update, complete"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_built(make: Any, words: str) -> None:
    with pytest.raises(BuildError, match=words):
        make()


def test_what_needs_the_driver_is_hosted_there_with_its_group() -> None:
    assert build().build().in_driver == {"totals", "lake"}
    grouped = build(is_grouped=True).build()
    assert grouped.in_driver == {"totals", "report", "lake"}
    assert {group.name: group.is_in_driver for group in groups_of(grouped)} == {
        "rows": False,
        "totals+report": True,
        "same": False,
        "lake": True,
    }


def test_the_sugar_names_them_after_their_function() -> None:
    pipeline = clew.Pipeline("frames")
    rows = pipeline.source("rows", scripted([[{"x": 1}]]))

    def larger(frame: Any) -> Any:
        return frame

    assert [str(rows.dataframe(f)) for f in (larger, lambda frame: frame)] == ["larger.out", "dataframe-1.out"]


def test_a_simulation_computes_each_result_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[pa.Table] = []
    monkeypatch.setattr(Query, "_computed", lambda self, events: (asked.append(events), events)[1])
    operator = Query("select * from events", 1)
    for rows in ([{"x": 1}], [{"x": 2}], [{"x": 1}]):
        twin = copy.deepcopy(operator)
        found = list(twin.apply([pa.RecordBatch.from_pylist(rows)], None))  # type: ignore[arg-type]
        assert [batch.to_pylist() for _, batch in found] == [rows]
    assert len(asked) == 2


def test_without_spark_the_simulator_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    def broken(*_: Any) -> None:
        raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited\nand more")

    monkeypatch.setattr(SparkSession, "getActiveSession", broken)
    with pytest.raises(
        clew.Violation, match=r"'totals': open\(\) raised UnsuitableSpark: DataFrames need a Spark session"
    ):
        clew.testing.run(build())
    with pytest.raises(
        UnsuitableSpark, match=r"JAVA_GATEWAY_EXITED\] Java gateway process exited\. Spark needs Java 17"
    ):
        _ = Query("select 1", 1).spark
