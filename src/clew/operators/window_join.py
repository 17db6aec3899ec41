"""Joins of two streams: records of both sides with equal keys in the same time window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import BuildError, MoveError
from clew.model.operator import Context
from clew.operators.gathered import Gatherer
from clew.operators.keyed import key_columns
from clew.operators.shape import together
from clew.operators.windows import Windows

LEFT, RIGHT = "left", "right"

_KINDS = {"inner": "inner", "left": "left outer", "right": "right outer", "full": "full outer"}

Kept = dict[str, list[pa.RecordBatch]]


class Pairs(Gatherer):
    """Keeps the records of both sides, and gives the pairs with equal keys: by left record, then by right one.

    As in SQL, a null equals nothing. With `how` other than inner, records without a partner come as well, with nulls
    on the other side; those of the right side come last.
    """

    inputs = (LEFT, RIGHT)

    def __init__(self, on: str | Sequence[str], how: str = "inner", suffix: str = "_right") -> None:
        self.on = key_columns("join", on)
        if not self.on:
            raise BuildError("join was given no columns to join on. Pass on=['id'], say.")
        if how not in _KINDS:
            raise BuildError(f"join was given how={how!r}; expected one of {', '.join(_KINDS)}.")
        self.how = how
        self.suffix = suffix

    def columns(self, port: str) -> Sequence[str]:
        """Those to join on, on both sides."""
        return self.on

    def begin(self) -> Kept:
        """No records."""
        return {LEFT: [], RIGHT: []}

    def add(self, kept: Kept, batch: pa.RecordBatch, port: str, turn: int) -> None:
        """Keeps them."""
        kept[port].append(batch)

    def result(self, kept: Sequence[Kept], ctx: Context | None) -> pa.Table:
        """The pairs."""
        (sides,) = kept
        left, right = (together(batches) if batches else None for batches in (sides[LEFT], sides[RIGHT]))
        if left is None or right is None:
            has_left, has_right = self.how in ("left", "full"), self.how in ("right", "full")
            if left is not None:
                return left if has_left else left.slice(0, 0)
            assert right is not None
            return self._renamed((), right) if has_right else right.slice(0, 0)
        return self._joined(left, right)

    def _joined(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Joins the keys with the numbers of their rows, and takes the rows: their columns may be of any type."""
        keys = pa.unify_schemas(
            [left.select(self.on).schema, right.select(self.on).schema], promote_options="permissive"
        )
        nulls = [field.name for field in keys if pa.types.is_null(field.type)]
        for name in nulls:  # Which Arrow does not join on.
            keys = keys.set(keys.get_field_index(name), pa.field(name, pa.int8()))
        one, other = (_numbered(side.select(self.on).cast(keys), name) for side, name in ((left, LEFT), (right, RIGHT)))
        pairs = one.join(other, list(keys.names), join_type=_KINDS[self.how], use_threads=False)
        pairs = pairs.take(pc.sort_indices(pairs, [(_number(LEFT), "ascending"), (_number(RIGHT), "ascending")]))
        chosen = {name: pa.nulls(len(pairs)) if name in nulls else pairs[name] for name in self.on}
        others = self._renamed(left.schema.names, right.drop_columns(list(self.on)))
        for side, place in ((left.drop_columns(list(self.on)), LEFT), (others, RIGHT)):
            rows = pairs[_number(place)].combine_chunks()
            chosen.update((name, side[name].take(rows)) for name in side.schema.names)
        return pa.table(chosen)

    def _renamed(self, taken: Sequence[str], right: pa.Table) -> pa.Table:
        """The right side's columns, with a suffix where the left side has one of the same name."""
        names = [f"{name}{self.suffix}" if name in taken else name for name in right.schema.names]
        doubled = [name for name in names if name in taken or names.count(name) > 1]
        if doubled:
            raise MoveError(
                f"a join has two columns named {doubled[0]!r}; the columns of its left side are {', '.join(taken)}, "
                f"those of the right one {', '.join(right.schema.names)}, besides those it joins on. Pass another "
                f"suffix for the right side's, or rename columns before."
            )
        return right.rename_columns(names)


def check_tumbling(where: str, windows: Any) -> Windows:
    """Raises unless every moment is in exactly one of the time windows."""
    if not isinstance(windows, Windows) or not windows.is_tumbling:
        raise BuildError(
            f"{where} was given {windows!r}; expected time windows that do not overlap. Pass clew.tumbling(size)."
        )
    return windows


def _number(side: str) -> str:
    return f"number in {side}"


def _numbered(keys: pa.Table, side: str) -> pa.Table:
    return keys.append_column(_number(side), pa.array(range(keys.num_rows), pa.int64()))
