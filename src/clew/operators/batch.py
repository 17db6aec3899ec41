"""Batching by count: so many events become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from clew.model.operator import Context
from clew.operators.counted import Counted
from clew.operators.shape import Shape, check_function, shaped, some, together


class Batch(Counted):
    """One event out for every so many in: all their records, or what a function makes of them."""

    def __init__(self, every: int, f: Callable[[Any], Any] | None = None, shape: Shape = Shape.TABLE) -> None:
        super().__init__(every)
        if f is not None:
            check_function("batch", f)
        self.f = f
        self.shape = shape

    def apply(self, batches: list[pa.RecordBatch], ctx: Context) -> Iterable[tuple[str, Any]]:
        """The records together, or the function's result."""
        table = together(batches)
        return some("out", table if self.f is None else self.f(shaped(table, self.shape)))
