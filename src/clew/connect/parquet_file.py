"""Parquet files: events from the row groups of a file, from any row group and row."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from clew.connect.learned import Columns
from clew.errors import OutsideError

_DECODED = 4096
"""About how many rows are decoded at once."""


def read_parquet(
    path: str, columns: Columns, offset: list[int] | None, rows_per_event: int
) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
    """The events of a file from an offset on: a row group and how many rows of it have been given.

    An event never holds rows of two row groups, so that going on decodes one row group at most.
    """
    from pyarrow import parquet

    group, taken = offset or [0, 0]
    decoded = max(1, _DECODED // rows_per_event) * rows_per_event
    try:
        with parquet.ParquetFile(path) as file:
            _check_columns(path, columns, file.schema_arrow)
            for number in range(group, file.num_row_groups):
                row = 0
                for block in file.iter_batches(decoded, row_groups=[number], columns=columns.names):
                    batch = _typed(path, block, columns)
                    for first in range(0, batch.num_rows, rows_per_event):
                        event = batch.slice(first, rows_per_event)
                        row += event.num_rows
                        if row > taken:
                            yield event, [number, row]
                taken = 0
    except FileNotFoundError:
        raise OutsideError(f"{path} is not there any more; expected a Parquet file. Bring it back.") from None
    except pa.ArrowInvalid as error:
        raise OutsideError(
            f"{path} cannot be read as Parquet ({error}); expected a whole Parquet file. Write files elsewhere and "
            f"rename them into place when they are whole, or name another format=."
        ) from None


def _check_columns(path: str, columns: Columns, schema: pa.Schema) -> None:
    missing = [name for name in columns.names or () if name not in schema.names]
    if missing:
        raise OutsideError(
            f"{path} has no column {', '.join(map(repr, missing))}; its columns are {', '.join(schema.names)}. Pass "
            f"some of these in columns=."
        )


def _typed(path: str, batch: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
    """The columns in the order asked for, of the types asked for."""
    if columns.names is not None:
        batch = batch.select(columns.names)
    if not columns.given:
        return batch
    fields = [(field.name, columns.given.get(field.name, field.type)) for field in batch.schema]
    try:
        return batch.cast(pa.schema(fields))
    except pa.ArrowException as error:
        raise OutsideError(
            f"{path}: the columns cannot be read as the types given ({error}); they are "
            f"{', '.join(f'{field.name} {field.type}' for field in batch.schema)}. Pass other types in columns=."
        ) from None
