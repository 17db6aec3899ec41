"""PostgreSQL types and Arrow types: what a column is read as, created as, and copied in as."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.connect.as_json import json_text
from clew.errors import OutsideError

if TYPE_CHECKING:
    import psycopg

_READ: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "oid": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
"""Types by their names; whatever is not here is read as text."""

_AS_TEXT = ("json", "jsonb", "uuid", "interval", "inet", "cidr", "timetz")

_CREATED: list[tuple[Any, str]] = [
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "smallint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_uint8, "smallint"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_uint16, "integer"),
    (pa.types.is_uint64, "numeric"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_float16, "real"),
    (pa.types.is_float32, "real"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (lambda each: pa.types.is_timestamp(each) and each.tz is not None, "timestamptz"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_binary, "bytea"),
    (pa.types.is_large_binary, "bytea"),
    (pa.types.is_fixed_size_binary, "bytea"),
    (pa.types.is_nested, "jsonb"),
]


def created_as(wanted: pa.DataType) -> str:
    """The PostgreSQL type of a column made for an Arrow type.

    >>> created_as(pa.int64()), created_as(pa.decimal128(10, 2)), created_as(pa.list_(pa.string()))
    ('bigint', 'numeric(10, 2)', 'jsonb')
    """
    if pa.types.is_decimal(wanted):
        return f"numeric({wanted.precision}, {wanted.scale})"
    return next((name for is_it, name in _CREATED if is_it(wanted)), "text")


def copied(batch: pa.RecordBatch) -> bytes:
    """The records as the lines that COPY takes in its csv format: no header, NULL as nothing, texts in quotes."""
    from pyarrow import csv

    columns = [_copied(column) for column in batch.columns]
    sink = io.BytesIO()
    csv.write_csv(
        pa.RecordBatch.from_arrays(columns, names=batch.schema.names), sink, csv.WriteOptions(include_header=False)
    )
    return sink.getvalue()


def _copied(column: pa.Array) -> pa.Array:
    of = column.type
    if pa.types.is_nested(of):
        return pa.array([None if each is None else json_text(each) for each in column.to_pylist()], pa.string())
    if pa.types.is_binary(of) or pa.types.is_large_binary(of) or pa.types.is_fixed_size_binary(of):
        return pa.array([None if each is None else f"\\x{each.hex()}" for each in column.to_pylist()], pa.string())
    if pa.types.is_duration(of):
        return pa.array([None if each is None else str(each) for each in column.to_pylist()], pa.string())
    return column


def read_as_text(connection: psycopg.Connection[Any]) -> None:
    """Has a connection give values of types that Arrow lacks as the texts that the server has for them."""
    from psycopg.types.string import TextLoader

    for name in _AS_TEXT:
        connection.adapters.register_loader(name, TextLoader)


def schema_read(cursor: psycopg.Cursor[Any] | psycopg.ServerCursor[Any]) -> pa.Schema:
    """The Arrow schema of a cursor's rows; it depends on the query alone, never on the rows."""
    types = cursor.connection.adapters.types
    names = [column.name for column in cursor.description or ()]
    if len(set(names)) < len(names):
        raise OutsideError(
            f"the query gives the columns {', '.join(names)}; expected each name once. Name them with AS in the query."
        )
    fields = []
    for column in cursor.description or ():
        info = types.get(column.type_code)
        if info is not None and info.name == "numeric":
            # A numeric without a scale is read as Spark does.
            wanted = pa.decimal128(column.precision or 38, 18 if column.precision is None else column.scale or 0)
            fields.append((column.name, wanted))
            continue
        wanted = pa.string() if info is None else _READ.get(info.name, pa.string())
        is_list = info is not None and column.type_code == info.array_oid
        fields.append((column.name, pa.list_(wanted) if is_list else wanted))
    return pa.schema(fields)


def batch_of(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows from a cursor as a record batch."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = []
    for field, values in zip(schema, columns, strict=True):
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise OutsideError(
                f"the column {field.name!r} of a query cannot be read as {field.type} ({error}). Cast it in the query, "
                f"as in {field.name}::text or {field.name}::numeric(20, 4)."
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
