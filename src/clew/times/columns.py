"""Columns of times: moments and whole numbers as the integers that event time is made of."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import MoveError

BEGINNING = -(1 << 62)
"""Before every time that a column can hold: where event time begins."""


def integers_of(column: pa.Array | pa.ChunkedArray, place: str) -> pa.Array:
    """The column as 64-bit integers: microseconds since 1970 for moments and days, the numbers themselves otherwise.

    A moment without a time zone is read as one in Greenwich.

    >>> integers_of(pa.array([0, 1500], pa.timestamp("ms")), "column ts").to_pylist()
    [0, 1500000]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if column.null_count:
        raise MoveError(
            f"{place} has {column.null_count} empty values among {len(column)}; expected a time in every record. Fill "
            f"them in, or filter these records out before."
        )
    if pa.types.is_int64(kind):
        return column
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            column = pc.floor_temporal(column, unit="microsecond")
        return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us")).cast(pa.int64())
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    raise MoveError(
        f"{place} has the type {kind}; expected a timestamp, a date or whole numbers. Convert it before, or name "
        f"another column."
    )
