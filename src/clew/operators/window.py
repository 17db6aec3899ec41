"""A user's function on all records of a time window, or on those of each key in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.model.event import as_batch
from clew.model.operator import Context
from clew.operators.gathered import Gatherer
from clew.operators.keyed import ranks
from clew.operators.shape import Shape, check_function, shaped, together

Kept = list[tuple[int, pa.RecordBatch]]


class OnRecords(Gatherer):
    """Keeps all records, in the order of their assignment, for a function.

    With keys the function is given the records of one key after another, in the order of their first appearance, and
    the key columns are added to what it gives, unless they are there.
    """

    def __init__(self, f: Callable[[Any], Any], keys: Sequence[str] = (), shape: Shape = Shape.TABLE) -> None:
        check_function("window", f)
        self.f = f
        self.keys = tuple(keys)
        self.shape = shape

    def columns(self, port: str) -> Sequence[str]:
        """Those of the keys."""
        return self.keys

    def begin(self) -> Kept:
        """No records."""
        return []

    def add(self, kept: Kept, batch: pa.RecordBatch, port: str, turn: int) -> None:
        """Keeps them."""
        kept.append((turn, batch))

    def result(self, kept: Sequence[Kept], ctx: Context) -> Any:
        """What the function gives."""
        in_turn = sorted((each for one in kept for each in one), key=lambda each: each[0])
        table = together(batch for _, batch in in_turn)
        if not self.keys:
            return self.f(shaped(table, self.shape))
        results = [self._result(part) for part in self._parts(table)]
        return together([batch for batch in results if batch.num_rows] or results[:1])

    def _parts(self, table: pa.Table) -> Iterator[pa.Table]:
        found = ranks([table[name] for name in self.keys])
        counts = [each["counts"] for each in found.value_counts().to_pylist()]
        ordered = table.take(pc.array_sort_indices(found))
        begin = 0
        for count in counts:
            yield ordered.slice(begin, count)
            begin += count

    def _result(self, part: pa.Table) -> pa.RecordBatch:
        batch = as_batch(self.f(shaped(part, self.shape)))
        lacking = [name for name in self.keys if name not in batch.schema.names]
        if not lacking or not batch.num_rows:
            return batch
        values = [pa.repeat(part[name][0], batch.num_rows) for name in lacking]
        return pa.RecordBatch.from_arrays([*values, *batch.columns], names=[*lacking, *batch.schema.names])
