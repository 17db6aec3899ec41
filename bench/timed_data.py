"""Records out of order in Parquet files, and what a Spark batch job makes of them: joins and histograms by time window.

Most records are at most `LATE_S` behind the latest before them; one in a hundred is far behind, and late if its time
window had ended by the watermark that its source had before the event it came in. The batch job computes that, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW_S, LATE_S, RESOLUTION_S = 2, 1, 0.01
PER_SECOND = 1000
"""Records in a second of event time, of each source: so a time window has 2,000 of each."""
PER_EVENT, PER_FILE = 500, 50_000
KEYS, VALUES = 2000, 500
BEGIN_US = 1_700_000_000_000_000


def write_records(directory: Path, count: int, seed: int) -> None:
    """So many records: their number, time, key and value."""
    directory.mkdir(parents=True)
    chance = np.random.default_rng(seed)
    for first in range(0, count, PER_FILE):
        ids = np.arange(first, min(first + PER_FILE, count))
        behind = chance.uniform(0, LATE_S * 1e6, len(ids))
        far = chance.random(len(ids)) < 0.01
        behind[far] *= 20
        table = pa.table(
            {
                "id": ids,
                "ts": pa.array((BEGIN_US + ids * (1_000_000 // PER_SECOND) - behind).astype(np.int64), pa.int64()).cast(
                    pa.timestamp("us", "UTC")
                ),
                "key": chance.integers(0, KEYS, len(ids)),
                "value": np.minimum(chance.exponential(VALUES / 5, len(ids)).astype(np.int64), VALUES - 1),
            }
        )
        pyarrow.parquet.write_table(table, directory / f"part-{first:09d}.parquet", row_group_size=PER_FILE)


def judged(spark: SparkSession, directory: Path) -> DataFrame:
    """All records with the start of their time window in microseconds, and whether they are late for it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    records = spark.read.parquet(str(directory)).withColumn("us", sql.unix_micros("ts"))
    records = records.withColumn("event", sql.floor(records["id"] / PER_EVENT))
    latest = records.groupBy("event").agg(sql.max("us").alias("latest"))
    before = Window.orderBy("event").rowsBetween(Window.unboundedPreceding, -1)
    held = sql.max("latest").over(before) - int(LATE_S * 1e6)
    fine = int(RESOLUTION_S * 1e6)
    marks = latest.select("event", (held - held % fine).alias("watermark"))
    size = int(WINDOW_S * 1e6)
    start = records["us"] - records["us"] % size
    records = records.withColumn("start", start).join(marks, "event")
    is_late = sql.coalesce(records["start"] + size <= records["watermark"], sql.lit(False))
    return records.withColumn("is_late", is_late)


def batch_pairs(left: DataFrame, right: DataFrame) -> DataFrame:
    """Which records of two sources meet: their numbers."""
    one = left.filter("not is_late").selectExpr("start", "key", "id")
    other = right.filter("not is_late").selectExpr("start", "key", "id as id_right")
    return one.join(other, ["start", "key"]).select("id", "id_right")


def batch_counts(records: DataFrame) -> DataFrame:
    """How often each value occurs in each time window."""
    from pyspark.sql import functions as sql

    return records.filter("not is_late").groupBy("start", "value").agg(sql.count("*").alias("count"))


def batch_running(records: DataFrame) -> DataFrame:
    """How often each value has occurred up to the end of each time window, of those that have occurred."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    counts = batch_counts(records)
    starts, values = counts.select("start").distinct(), counts.select("value").distinct()
    every = starts.crossJoin(values).join(counts, ["start", "value"], "left")
    so_far = Window.partitionBy("value").orderBy("start").rowsBetween(Window.unboundedPreceding, 0)
    running = every.select("start", "value", sql.sum("count").over(so_far).alias("count"))
    return running.filter("count is not null")


def found(spark: SparkSession, directory: Path, *columns: str) -> DataFrame:
    """What a pipeline has written, with the start of time windows in microseconds."""
    return spark.read.parquet(str(directory)).selectExpr(*columns)


def differences(found: DataFrame, expected: DataFrame) -> dict[str, Any]:
    """How many rows are lost, and how many too much: doubled, or wrong."""
    found, expected = found.cache(), expected.cache()
    try:
        return {
            "rows": expected.count(),
            "lost": expected.exceptAll(found).count(),
            "too_many": found.exceptAll(expected).count(),
        }
    finally:
        found.unpersist()
        expected.unpersist()
