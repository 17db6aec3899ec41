"""Operators made of a user's function: map, filter and flat_map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import MoveError
from clew.model.event import Event
from clew.model.operator import Context
from clew.operators.shape import Shape, check_function, shaped, some
from clew.operators.stateless import Stateless


class Map(Stateless):
    """One event out for each event in: records in, records out, or a row in and a row out."""

    def __init__(self, f: Callable[[Any], Any], shape: Shape = Shape.TABLE) -> None:
        check_function("map", f)
        self.f = f
        self.shape = shape

    def apply(self, event: Event, ctx: Context) -> Iterable[tuple[str, Any]]:
        """The function's result; nothing, if it has no rows."""
        if self.shape is Shape.ROWS:
            return some("out", [self.f(row) for row in event.rows])
        return some("out", self.f(shaped(event.table, self.shape)))


class Filter(Stateless):
    """Those records for which the function is true; an event of which nothing is left is not passed on.

    The function gives one truth value for each record (an array, a series, an Arrow expression), or a single one for
    all of them together; with rows it is asked row by row.
    """

    def __init__(self, f: Callable[[Any], Any], shape: Shape = Shape.TABLE) -> None:
        check_function("filter", f)
        self.f = f
        self.shape = shape

    def apply(self, event: Event, ctx: Context) -> Iterable[tuple[str, Any]]:
        """The records that are kept."""
        if self.shape is Shape.ROWS:
            flags = [bool(self.f(row)) for row in event.rows]
            if all(flags):
                return some("out", event.batch)
            return some("out", event.table.filter(pa.array(flags, pa.bool_()))) if any(flags) else ()
        kept = self.f(shaped(event.table, self.shape))
        if isinstance(kept, pa.Scalar):
            kept = kept.as_py()
        if kept is None or isinstance(kept, bool) or getattr(kept, "ndim", 1) == 0:
            return some("out", event.batch) if kept else ()
        if not isinstance(kept, pa.Array | pa.ChunkedArray | pc.Expression):
            kept = pa.array(kept)
        return some("out", event.table.filter(kept))


class FlatMap(Stateless):
    """Any number of events out for each event in, one for each table; or any number of rows out for each row in.

    With rows, all that the rows of one event give goes out as one event.
    """

    def __init__(self, f: Callable[[Any], Iterable[Any]], shape: Shape = Shape.TABLE) -> None:
        check_function("flat_map", f)
        self.f = f
        self.shape = shape

    def apply(self, event: Event, ctx: Context) -> Iterator[tuple[str, Any]]:
        """What the function gives, one after another."""
        if self.shape is Shape.ROWS:
            yield from some("out", [out for row in event.rows for out in self._several(self.f(row))])
            return
        for records in self._several(self.f(shaped(event.table, self.shape))):
            yield from some("out", records)

    def _several(self, result: Any) -> Iterable[Any]:
        is_one = isinstance(result, dict | pa.Table | pa.RecordBatch | str | bytes) or hasattr(result, "columns")
        if is_one or not isinstance(result, Iterable):
            what = "rows" if self.shape is Shape.ROWS else "tables"
            raise MoveError(
                f"the function of flat_map returned a {type(result).__name__}; expected several {what}, as a list or "
                f"by yielding them. Return a list, or use map for one result."
            )
        return result
