"""Aggregates by key: exact, in the order of assignment, and small."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa
import pytest

from clew.errors import BuildError, MoveError
from clew.operators.aggregate import Aggregates
from clew.operators.timed import aggregate
from clew.operators.windows import tumbling
from clew.testing import Alone


def folded(spec: Any, batches: list[pa.RecordBatch], keys: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    totals = Aggregates(spec, keys)
    kept = totals.begin()
    for batch in batches:
        totals.add(kept, totals.prepared(batch, "in"), "in", 1)
    return totals.result([kept], None).to_pylist()  # type: ignore[no-any-return]


def test_sums_of_floats_are_folded_from_left_to_right() -> None:
    dice = random.Random(5)
    values = [dice.uniform(-1, 1) * 10.0 ** dice.randrange(-20, 20) for _ in range(20_000)]
    expected = 0.0
    for value in values:
        expected += value
    for size in (7, 1000, 20_000):
        batches = [pa.record_batch({"x": values[start : start + size]}) for start in range(0, len(values), size)]
        assert folded({"x": ("x", "sum")}, batches) == [{"x": expected}], f"in batches of {size}"


def test_sums_of_integers_are_exact() -> None:
    large = (1 << 62) + 1
    batches = [pa.record_batch({"x": [large, large, -large]}), pa.record_batch({"x": [-3]})]
    assert folded({"x": ("x", "sum")}, batches) == [{"x": large - 3}]
    with pytest.raises(MoveError, match=r"a sum of column 'x' is too large for 64 bits. Convert the column to decimal"):
        folded({"x": ("x", "sum")}, batches[:1] * 3)


def test_sums_of_decimals_and_booleans() -> None:
    batch = pa.record_batch({"x": pa.array([decimal.Decimal("1.10"), decimal.Decimal("2.25")]), "y": [True, True]})
    spec = {"x": ("x", "sum"), "y": ("y", "sum"), "mean": ("x", "mean")}
    assert folded(spec, [batch]) == [{"x": decimal.Decimal("3.35"), "y": 2, "mean": 1.675}]


def test_nulls_are_left_out() -> None:
    batch = pa.record_batch({"k": ["a", "a", "b"], "x": pa.array([None, 4, None], pa.int32())})
    spec = {"n": "count", "x": ("x", "count"), "sum": ("x", "sum"), "min": ("x", "min"), "mean": ("x", "mean")}
    assert folded(spec, [batch], ("k",)) == [
        {"k": "a", "n": 2, "x": 1, "sum": 4, "min": 4, "mean": 4.0},
        {"k": "b", "n": 1, "x": 0, "sum": None, "min": None, "mean": None},
    ]


def test_types_may_change_from_event_to_event() -> None:
    batches = [pa.record_batch({"x": values}) for values in ([None], [1], [1.5])]
    assert folded({"x": ("x", "sum"), "max": ("x", "max")}, batches) == [{"x": 2.5, "max": 1.5}]


@pytest.mark.parametrize(
    "values", [["b", "a"], [True, False], [datetime.date(2025, 2, 2), datetime.date(2025, 2, 1)], [b"b", b"a"]]
)
def test_extremes_of_other_types(values: list[Any]) -> None:
    (row,) = folded({"min": ("x", "min"), "max": ("x", "max")}, [pa.record_batch({"x": values})])
    assert [row["max"], row["min"]] == values


def test_text_has_no_sum() -> None:
    with pytest.raises(MoveError, match=r"column 'x' is to be summed, but its type is string; expected numbers"):
        folded({"x": ("x", "sum")}, [pa.record_batch({"x": ["a"]})])


def test_memory_is_per_key_not_per_record() -> None:
    alone = Alone(aggregate(tumbling(10_000_000), {"n": "count", "x": ("x", "sum")}, "k"))
    batch = pa.record_batch({"ts": [5] * 1000, "k": [number % 10 for number in range(1000)], "x": [1.0] * 1000})
    for _ in range(100):
        alone.send(batch, time=0)
        (kept,) = (each.content for each in alone._operator._kept.values())  # type: ignore[attr-defined]
        assert kept.count < 2048
        assert kept.rows is None or kept.rows.num_rows == 10
    ((_, rows),) = alone.advance(None)
    assert [row["n"] for row in rows] == [10_000] * 10


@pytest.mark.parametrize("spec", [{}, None, "count", ["n"]])
def test_nothing_to_compute(spec: Any) -> None:
    with pytest.raises(BuildError, match=r"aggregate was given .*; expected a dictionary of what is to be computed"):
        Aggregates(spec)


@pytest.mark.parametrize("way", ["sum", ("x", "median"), ("x",), (None, "sum"), "n"])
def test_a_way_that_is_not_known(way: Any) -> None:
    with pytest.raises(BuildError, match=r"for 'n'; expected a column and one of sum, count, min, max, mean"):
        Aggregates({"n": way})


@pytest.mark.parametrize("name", ["k", "window_start"])
def test_names_that_are_taken(name: str) -> None:
    with pytest.raises(BuildError, match=r"which is the name of a key column or of a bound of the time window"):
        Aggregates({name: "count"}, ["k"])
