"""Arrow tables and Spark DataFrames: how one becomes the other, and how many rows make an event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_PARTITION = 50_000
"""So many rows are worth a task of their own; fewer are worked on by one."""

_WORDS_MAX = 700
_NEAREST = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time64("us"),
    pa.time32("ms"): pa.time64("us"),
}


def as_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of a table as a DataFrame of this session: in one partition, unless there are many."""
    frame = spark.createDataFrame(sparkable(table))
    return frame.coalesce(1 + table.num_rows // ROWS_PER_PARTITION)


def sparkable(table: pa.Table) -> pa.Table:
    """The table with column types that Spark has: the next larger one where it lacks a type.

    >>> sparkable(pa.table({"x": pa.array([1, 2], pa.uint32())})).schema.field("x").type
    DataType(int64)
    """
    if not any(each in _NEAREST for each in table.schema.types):
        return table
    fields = [field.with_type(_NEAREST.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def events_of(batches: Iterable[pa.RecordBatch | pa.Table], rows_per_event: int) -> Iterator[pa.Table]:
    """The same rows in the same order, so many at a time; the last may be fewer.

    >>> parts = [pa.table({"x": [1, 2, 3]}), pa.table({"x": [4]}), pa.table({"x": [5, 6, 7]})]
    >>> [each["x"].to_pylist() for each in events_of(parts, 2)]
    [[1, 2], [3, 4], [5, 6], [7]]
    """
    waiting: list[pa.Table] = []
    rows = 0
    for batch in batches:
        waiting.append(pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch)
        rows += batch.num_rows
        if rows >= rows_per_event:
            table = pa.concat_tables(waiting)
            begin = 0
            while rows >= rows_per_event:
                yield table.slice(begin, rows_per_event)
                begin += rows_per_event
                rows -= rows_per_event
            waiting = [table.slice(begin)]
    if rows:
        yield pa.concat_tables(waiting)


def words_of(error: BaseException) -> str:
    """What Spark says of an error, without the stack traces of its insides.

    >>> words_of(ValueError("no column x\\n\\tat org.apache.spark.Thing\\n"))
    'ValueError: no column x'
    """
    lines: list[str] = []
    for line in str(error).splitlines():
        if line.startswith(("\tat ", "JVM stacktrace")) or line.strip().startswith("at org.apache."):
            break
        if line.strip():
            lines.append(line.rstrip())
    return f"{type(error).__name__}: {' '.join(lines)}"[:_WORDS_MAX]
