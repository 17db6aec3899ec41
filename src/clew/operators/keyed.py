"""Records by key: which rows have equal values in some columns, found for all rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import BuildError


def key_columns(where: str, keys: Any) -> tuple[str, ...]:
    """The names of key columns, one or several or none.

    >>> key_columns("aggregate", "item"), key_columns("aggregate", ["shop", "item"]), key_columns("aggregate", None)
    (('item',), ('shop', 'item'), ())
    """
    names: tuple[Any, ...] = (keys,) if isinstance(keys, str) else tuple(keys or ())
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise BuildError(
            f"{where} was given the keys {keys!r}; expected the name of a column, or a list of different names. "
            f"Pass keys=['shop', 'item'], say."
        )
    return names


def ranks(columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Int64Array:
    """For each row a number, the same for rows that are equal in all columns; from 0, in order of first appearance.

    >>> ranks([pa.array(["b", "a", "b", None]), pa.array([1, 1, 2, 1])]).to_pylist()
    [0, 1, 2, 3]
    """
    found = _indices(columns[0])
    for column in columns[1:]:
        others = _indices(column)
        count = (pc.max(others).as_py() or 0) + 1
        found = _indices(pc.add(pc.multiply(found, count), others))
    return found


def _indices(column: pa.Array | pa.ChunkedArray) -> pa.Int64Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.dictionary_encode(null_encoding="encode").indices.cast(pa.int64())
