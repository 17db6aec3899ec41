"""Shapes: how a user's function sees the records of an event, as Arrow table, pandas frame or rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

import pyarrow as pa

from clew.errors import BuildError
from clew.model.event import as_batch


class Shape(StrEnum):
    """What a function is given."""

    TABLE = "table"
    """An Arrow table."""
    PANDAS = "pandas"
    """A pandas DataFrame."""
    ROWS = "rows"
    """Dictionaries: one row at a time, or a list of them where the function works on a whole set."""


def shape_of(*, rows: bool, pandas: bool) -> Shape:
    """The shape that two switches ask for.

    >>> shape_of(rows=True, pandas=False)
    <Shape.ROWS: 'rows'>
    """
    if rows and pandas:
        raise BuildError(
            "a function was given with rows=True and pandas=True; expected one of them, or neither for a function on "
            "Arrow tables. Leave one out."
        )
    if rows:
        return Shape.ROWS
    return Shape.PANDAS if pandas else Shape.TABLE


def shaped(table: pa.Table, shape: Shape) -> Any:
    """All records in a shape.

    >>> shaped(pa.table({"x": [1, 2]}), Shape.ROWS)
    [{'x': 1}, {'x': 2}]
    """
    match shape:
        case Shape.TABLE:
            return table
        case Shape.PANDAS:
            return table.to_pandas()
        case Shape.ROWS:
            return table.to_pylist()


def together(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """The records of several events as one table; a column that some events lack is null there.

    >>> together([as_batch([{"x": 1}]), as_batch([{"x": 2, "y": "b"}])]).to_pylist()
    [{'x': 1, 'y': None}, {'x': 2, 'y': 'b'}]
    """
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")


def some(port: str, records: Any) -> Iterable[tuple[str, pa.RecordBatch]]:
    """An output, unless there are no records: an event has at least one.

    >>> some("out", [])
    ()
    """
    batch = as_batch(records)
    return ((port, batch),) if batch.num_rows else ()


def check_function(where: str, f: Callable[..., Any]) -> None:
    """Raises if a thing given as function cannot be called."""
    if not callable(f):
        raise BuildError(
            f"{where} was given a {type(f).__name__} where it expected a function. Pass the function first: {where}(f)."
        )
