"""DataFrames in and out: what is read from them and written by Spark is all there, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.running import finish, rows_of

import clew
from clew.connect.spark_frames import FrameSource
from clew.connect.spark_writer import FrameWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def readings(spark: SparkSession) -> DataFrame:
    return spark.range(0, 60, 1, 3).selectExpr("id * 7 % 61 as id", "concat('r', id) as name", "id % 4 as sensor")


def ids(source: clew.Source, offset: Any = None) -> Iterator[tuple[list[int], Any]]:
    for item in source.read("all", offset):
        assert item is not None
        yield item[0]["id"].to_pylist(), item[1]


@pytest.mark.parametrize("order_by", [None, "id"])
def test_a_frame_is_read_whole_though_its_host_begins_anew(
    spark: SparkSession, tmp_path: Path, order_by: str | None
) -> None:
    """The operator that fails is in one group with the source, so both begin anew in the driver."""
    failed = tmp_path / "failed"

    def stumble(table: pa.Table) -> pa.Table:
        if 30 in table["id"].to_pylist() and not failed.exists():
            failed.touch()
            raise ValueError("a stumble")
        return table

    pipeline = clew.Pipeline("readings")
    source = pipeline.source("readings", clew.dataframe(readings, rows_per_event=4, order_by=order_by))
    source.map(stumble).write("save", clew.sqlite(tmp_path / "out.db", "readings", create=True))
    pipeline.group("readings", "stumble")
    run = finish(pipeline.run(spark, log=tmp_path / "log", blocking=False))
    assert [loss["reason"] for loss in run.losses()] == ["move"]
    assert rows_of(tmp_path / "out.db", "readings") == sorted(map(tuple, readings(spark).collect()))


def test_an_ordered_frame_goes_on_from_any_offset(spark: SparkSession) -> None:
    source = FrameSource(readings(spark), 7, "id")
    events = list(ids(source))
    assert [number for event, _ in events for number in event] == sorted(row.id for row in readings(spark).collect())
    assert [len(event) for event, _ in events] == [7] * 8 + [4]
    for done in (1, 4, 8):
        assert list(ids(source, events[done - 1][1])) == events[done:]


@pytest.mark.parametrize(
    ("order_by", "words"),
    [
        ("sensor", "has the same value in several rows, between"),
        ("missing", "is not one of id, name, sensor"),
        ("weight", "is of type double"),
    ],
)
def test_a_column_that_gives_no_order_is_refused(spark: SparkSession, order_by: str, words: str) -> None:
    frame = readings(spark)
    if order_by == "weight":
        frame = frame.withColumn("weight", frame.id / 2)
    with pytest.raises(clew.ClewError, match=words):
        list(FrameSource(frame, 7, order_by).read("all", None))


@pytest.mark.parametrize("make", [clew.dataframe, lambda frame: clew.read_stream(frame, checkpoint="c")])
def test_the_wrong_kind_of_frame_is_refused(spark: SparkSession, make: Callable[[Any], clew.Source]) -> None:
    batch, stream = spark.range(3), spark.readStream.format("rate").load()
    wrong, hint = (stream, "read_stream") if make is clew.dataframe else (batch, "clew.dataframe")
    with pytest.raises(clew.ClewError, match=hint):
        make(wrong)


def test_the_writer_knows_what_is_in_and_overwrites_what_is_torn(spark: SparkSession, tmp_path: Path) -> None:
    writer = clew.frame_writer(tmp_path / "lake", "json", compression="none")
    assert isinstance(writer, FrameWriter)
    batch = pa.RecordBatch.from_pylist([{"x": 1, "y": "a"}, {"x": 2, "y": None}])
    one, two = (clew.WriteAction("log/save/0/to", number, batch) for number in (1, 2))
    torn = Path(writer.place(two))
    (torn / "_temporary").mkdir(parents=True)
    (torn / "part-0.json").write_text('{"x": 99}\n')
    assert not writer.is_in(one)
    assert not writer.is_in(two)
    for action in (one, two, two):
        writer.execute(action)
        assert writer.is_in(action)
    back = spark.read.json(str(tmp_path / "lake"))
    assert sorted((row.x, row.clew_action[-1]) for row in back.collect()) == [(1, "1"), (1, "2"), (2, "1"), (2, "2")]
    assert len(list(torn.glob("part-*"))) == 1


def test_types_that_spark_lacks_become_larger_ones(spark: SparkSession) -> None:
    from clew.model.dataframes import as_frame

    table = pa.table({"small": pa.array([255], pa.uint8()), "large": pa.array([2**64 - 1], pa.uint64())})
    assert [str(value) for value in as_frame(spark, table).first() or ()] == ["255", str(2**64 - 1)]
