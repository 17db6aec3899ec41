"""Aggregates by key: sums, counts, means and extremes, of which only one row per key is kept.

Invariant: a row of aggregates is what its key's records give one after another, in the order of their assignment,
however often rows were folded in between. So sums of floats are the same after a crash; those of integers are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import BuildError, MoveError
from clew.model.operator import Context
from clew.operators.gathered import END, START, Gatherer

Spec = Mapping[str, str | tuple[str, str]]
"""By output column: the column and how it is aggregated; or 'count', for all records."""

HOWS = ("sum", "count", "min", "max", "mean")

_ROWS, _BATCHES = 1024, 32
"""So many are kept before they are folded, or as many as there are keys: then folding a row costs the same."""

_EXACT = pa.decimal128(38, 0)
"""In which integers are summed: more of them than there are would not overflow it."""

_ALL = "all"
"""The only key where there are no key columns; Arrow would sum floats in another order without one."""


@dataclass(slots=True)
class Partial:
    """The aggregates of one Input Set, and records that are not folded in yet."""

    rows: pa.Table | None = None
    pending: list[pa.RecordBatch] = field(default_factory=list)
    count: int = 0
    """Of pending records."""


class Aggregates(Gatherer):
    """Keeps one row of aggregates per key.

    >>> totals = Aggregates({"total": ("amount", "sum"), "n": "count"}, ["item"])
    >>> kept = totals.begin()
    >>> batch = pa.record_batch({"item": ["a", "b", "a"], "amount": [1, 2, 3]})
    >>> totals.add(kept, totals.prepared(batch, "in"), "in", 1)
    >>> totals.result([kept], None).to_pylist()
    [{'item': 'a', 'total': 4, 'n': 2}, {'item': 'b', 'total': 2, 'n': 1}]
    """

    def __init__(self, spec: Spec, keys: Sequence[str] = ()) -> None:
        self.keys = tuple(keys)
        self.spec = _checked(spec, self.keys)
        self._columns = tuple(dict.fromkeys((*self.keys, *(column for column, _ in self.spec.values() if column))))
        self._parts = tuple(dict.fromkeys(part for column, how in self.spec.values() for part in _parts(column, how)))
        """What is kept, each once: a column, and how it is aggregated."""

    def columns(self, port: str) -> Sequence[str]:
        """The keys, and what is aggregated."""
        return self._columns

    def begin(self) -> Partial:
        """No records."""
        return Partial()

    def prepared(self, batch: pa.RecordBatch, port: str) -> pa.RecordBatch:
        """Rows of aggregates, each of one record."""
        names = [f"key {name}" for name in self.keys] or [_ALL]
        arrays = [batch.column(name) for name in self.keys] or [pa.repeat(True, batch.num_rows)]
        for column, how in self._parts:
            names.append(f"{how} {column}")
            if column is None:
                arrays.append(pa.repeat(1, batch.num_rows))
                continue
            arrays.append(_prepared(batch.column(column), column, how))
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def add(self, kept: Partial, batch: pa.RecordBatch, port: str, turn: int) -> None:
        """Folds them when there are many."""
        kept.pending.append(batch)
        kept.count += batch.num_rows
        size = 0 if kept.rows is None else kept.rows.num_rows
        if kept.count >= max(_ROWS, size) or len(kept.pending) >= max(_BATCHES, size // _BATCHES):
            self._fold(kept)

    def result(self, kept: Sequence[Partial], ctx: Context | None) -> pa.Table:
        """One row per key, in the order of first appearance."""
        whole = kept[0]
        for other in kept[1:]:
            whole.pending += [*(other.rows.to_batches() if other.rows is not None else ()), *other.pending]
        self._fold(whole)
        assert whole.rows is not None
        columns = {name: whole.rows[f"key {name}"] for name in self.keys}
        for name, (column, how) in self.spec.items():
            columns[name] = _finished(whole, column, how)
        return pa.table(columns)

    def _fold(self, kept: Partial) -> None:
        """Folds what is pending into the rows of aggregates, which come first."""
        tables = [pa.Table.from_batches([batch]) for batch in kept.pending]
        if kept.rows is not None:
            tables.insert(0, kept.rows)
        table = pa.concat_tables(tables, promote_options="permissive")
        keys = [f"key {name}" for name in self.keys] or [_ALL]
        ways = [(f"{how} {column}", "sum" if how == "count" else how) for column, how in self._parts]
        folded = table.group_by(keys, use_threads=False).aggregate(ways)
        kept.rows = pa.table(
            [folded[key] for key in keys] + [folded[f"{part}_{way}"] for part, way in ways], names=table.schema.names
        )
        kept.pending, kept.count = [], 0


def _parts(column: str | None, how: str) -> tuple[tuple[str | None, str], ...]:
    return ((column, "sum"), (column, "count")) if how == "mean" else ((column, how),)


def _prepared(array: pa.Array, column: str, how: str) -> pa.Array:
    """What one record contributes."""
    kind = array.type
    if how == "count":
        return array.is_valid().cast(pa.int64())
    if how in ("min", "max") or pa.types.is_decimal256(kind):
        return array
    if pa.types.is_floating(kind):
        return array.cast(pa.float64())
    if pa.types.is_decimal(kind):
        return array.cast(pa.decimal128(38, max(1, kind.scale)))  # So that sums of integers are known by their type.
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return (array.cast(pa.int8()) if pa.types.is_boolean(kind) else array).cast(_EXACT)
    raise MoveError(
        f"column {column!r} is to be summed, but its type is {kind}; expected numbers. Convert it before, or aggregate "
        f"another column."
    )


def _finished(kept: Partial, column: str | None, how: str) -> pa.ChunkedArray:
    """The aggregates of all keys, in the type that users expect."""
    assert kept.rows is not None
    if how == "mean":
        sums = _finished(kept, column, "sum")
        return pc.divide(sums.cast(pa.float64(), safe=False), kept.rows[f"count {column}"].cast(pa.float64()))
    found = kept.rows[f"{how} {column}"]
    if how != "sum" or found.type != _EXACT:
        return found
    try:
        return found.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise MoveError(
            f"a sum of column {column!r} is too large for 64 bits. Convert the column to decimal numbers before."
        ) from error


def _checked(spec: Any, keys: Sequence[str]) -> dict[str, tuple[str | None, str]]:
    if not isinstance(spec, Mapping) or not spec:
        raise BuildError(
            f"aggregate was given {spec!r}; expected a dictionary of what is to be computed, such as "
            f"{{'total': ('amount', 'sum'), 'n': 'count'}}."
        )
    found: dict[str, tuple[str | None, str]] = {}
    for name, way in spec.items():
        column, how = (None, way) if isinstance(way, str) else way if len(way) == 2 else (None, None)
        if how not in HOWS or (column is None and how != "count"):
            raise BuildError(
                f"aggregate was given {way!r} for {name!r}; expected a column and one of {', '.join(HOWS)}, such as "
                f"('amount', 'sum'), or 'count' alone for the number of records."
            )
        if name in keys or name in (START, END):
            raise BuildError(
                f"aggregate is to compute {name!r}, which is the name of a key column or of a bound of the time "
                f"window. Choose another name."
            )
        found[name] = column, how
    return found
