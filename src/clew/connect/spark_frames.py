"""A Spark DataFrame as a source: its rows, partition by partition, or by a column that gives them an order.

By itself a DataFrame is not replayable: computed again it may have other rows, or the same in another order. Its rows
are stored in the log first. With a column that has a different value in every row it is: rows are read in the order
of that column, and a successor goes on behind the last value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.connect.settings import counted
from clew.errors import BuildError, OutsideError
from clew.model.dataframes import events_of, words_of
from clew.model.driver import InDriver
from clew.model.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frame = Any
"""A DataFrame, or a function that is given the session and returns one."""

_ORDERED = ("tinyint", "smallint", "int", "bigint", "string", "date", "decimal")
_BODY = "batch"


def dataframe(frame: Frame, *, rows_per_event: int = 500, order_by: str | None = None) -> Source:
    """The rows of a Spark DataFrame, or of the one that a function of the session returns; then the source ends.

    Not replayable: all rows are in the log before the first goes out. With `order_by`, a column of whole numbers,
    decimals, texts or dates that has a different value in every row, it is replayable: rows go out in its order as
    they are read, and rows with greater values may be added meanwhile. It is hosted in the driver.
    """
    return FrameSource(frame, rows_per_event, order_by)


class FrameSource(InDriver, Source):
    """See `dataframe`."""

    def __init__(self, frame: Frame, rows_per_event: int, order_by: str | None) -> None:
        self._make = maker("dataframe()", frame, is_streaming=False)
        self.rows_per_event = counted("dataframe()", "rows_per_event", rows_per_event)
        self.is_replayable = order_by is not None
        if order_by is not None and not (type(order_by) is str and order_by):
            raise BuildError(
                f"dataframe() was given order_by={order_by!r}; expected the name of a column. Pass it, or none."
            )
        self.order_by = order_by

    def __repr__(self) -> str:
        return f"<dataframe{f' by {self.order_by}' if self.order_by else ''}>"

    def read(self, action: Any, offset: Any) -> Iterator[tuple[pa.Table, Any]]:
        """The rows in events of the same size, except the last."""
        try:
            frame = self._make(self.spark)
            if self.order_by is None:
                for number, table in enumerate(events_of(batches_of(frame), self.rows_per_event), 1):
                    yield table, number
            else:
                ordered = self._ordered(frame, self.order_by, offset)
                tables = events_of(batches_of(ordered), self.rows_per_event)
                yield from self._increasing(tables, self.order_by, offset)
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark.", "py4j.")):
                raise
            raise OutsideError(f"the DataFrame could not be read: {words_of(error)}") from error

    def _ordered(self, frame: DataFrame, column: str, offset: Any) -> DataFrame:
        from pyspark.sql import functions as F

        type_of = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        if column not in type_of or type_of[column].partition("(")[0] not in _ORDERED:
            found = f"is of type {type_of[column]}" if column in type_of else f"is not one of {', '.join(type_of)}"
            raise OutsideError(
                f"dataframe(order_by={column!r}): this column {found}; expected one of whole numbers, decimals, texts "
                f"or dates. Name another, or add one with withColumn(), such as unix_micros() of a timestamp."
            )
        wanted = F.col(f"`{column}`")
        if offset is not None:
            frame = frame.where(wanted > F.lit(offset).cast(type_of[column]))
        return frame.orderBy(wanted.asc_nulls_first())

    def _increasing(self, tables: Iterable[pa.Table], column: str, offset: Any) -> Iterator[tuple[pa.Table, Any]]:
        """The same tables, each with its last value; raises where that is no offset to go on from."""
        last = offset
        for table in tables:
            values = table[column].combine_chunks()
            before = values if last is None else pa.concat_arrays([pa.array([last], values.type), values])
            if values.null_count or not pc.all(pc.less(before[:-1], before[1:])).as_py():
                raise OutsideError(
                    f"dataframe(order_by={column!r}): this column is null or has the same value in several rows, "
                    f"between {last!r} and {values[-1].as_py()!r}; expected a different value in every row, since a "
                    f"successor goes on behind the last one. Name a column that is unique, or leave order_by out."
                )
            last = values[-1].as_py()
            yield table, last


def maker(where: str, frame: Frame, *, is_streaming: bool) -> Callable[[SparkSession], DataFrame]:
    """The function of the session that makes the DataFrame: the user's, or one that gives theirs."""
    if not callable(frame) and not hasattr(frame, "isStreaming"):
        raise BuildError(
            f"{where} was given a {type(frame).__name__}; expected a Spark DataFrame, or a function of the session "
            f"that returns one. Pass one of these."
        )

    def made(spark: SparkSession) -> DataFrame:
        found = frame(spark) if callable(frame) else frame
        if getattr(found, "isStreaming", None) is is_streaming:
            return found  # type: ignore[no-any-return]
        what = f"a {type(found).__name__}" if not hasattr(found, "isStreaming") else "the other kind of DataFrame"
        hint = "spark.readStream, or use clew.dataframe()" if is_streaming else "spark.read, or use clew.read_stream()"
        raise OutsideError(f"{where} got {what}; expected a {'streaming' if is_streaming else 'batch'} one: {hint}.")

    if not callable(frame):
        made(frame.sparkSession)
    return made


def batches_of(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows of a DataFrame, one partition after another, so that never more than one is in memory."""
    for row in frame.mapInArrow(_as_bodies, f"{_BODY} binary").toLocalIterator():
        with pa.ipc.open_stream(row[0]) as stream:
            yield from stream


def _as_bodies(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in Spark's tasks: each batch as one row of bytes."""
    for batch in batches:
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], [_BODY])
