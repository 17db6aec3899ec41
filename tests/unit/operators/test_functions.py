"""map, filter and flat_map on tables, pandas frames and rows."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from clew.errors import MoveError
from clew.operators.functions import Filter, FlatMap, Map
from clew.operators.shape import Shape
from clew.testing import Alone

ROWS = [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, {"x": 3, "y": "c"}]


def doubled(table: pa.Table) -> pa.Table:
    return table.set_column(0, "x", pc.multiply(table["x"], 2))


def test_map_on_tables() -> None:
    assert Alone(Map(doubled)).send(ROWS[:2]) == [("out", [{"x": 2, "y": "a"}, {"x": 4, "y": "b"}])]


def test_map_on_frames() -> None:
    operator = Map(lambda frame: frame.assign(x=frame.x + 1), Shape.PANDAS)
    assert Alone(operator).send(ROWS[:1]) == [("out", [{"x": 2, "y": "a"}])]


def test_map_on_rows() -> None:
    operator = Map(lambda row: {"z": row["x"] * 10}, Shape.ROWS)
    assert Alone(operator).send(ROWS) == [("out", [{"z": 10}, {"z": 20}, {"z": 30}])]


def test_a_result_without_rows_is_no_event() -> None:
    assert Alone(Map(lambda table: table.slice(0, 0))).send(ROWS) == []


@pytest.mark.parametrize(
    ("shape", "f"),
    [
        (Shape.TABLE, lambda table: pc.greater(table["x"], 1)),
        (Shape.TABLE, lambda table: pc.field("x") > 1),
        (Shape.TABLE, lambda table: [False, True, True]),
        (Shape.TABLE, lambda table: table["x"].to_numpy() > 1),
        (Shape.TABLE, lambda table: pa.array([None, True, True])),
        (Shape.PANDAS, lambda frame: frame.x > 1),
        (Shape.ROWS, lambda row: row["x"] > 1),
        (Shape.ROWS, lambda row: row["x"] - 1),
    ],
)
def test_filter_keeps_records(shape: Shape, f: Any) -> None:
    assert Alone(Filter(f, shape)).send(ROWS) == [("out", ROWS[1:])]


@pytest.mark.parametrize("truth", [True, pa.scalar(True), pd.Series([True]).all()])
def test_filter_keeps_a_whole_event(truth: Any) -> None:
    assert Alone(Filter(lambda table: truth)).send(ROWS) == [("out", ROWS)]


@pytest.mark.parametrize("truth", [False, None, pa.scalar(None, pa.bool_()), [False, False, False]])
def test_filter_drops_a_whole_event(truth: Any) -> None:
    assert Alone(Filter(lambda table: truth)).send(ROWS) == []


def test_filter_on_rows_keeps_the_types() -> None:
    batch = pa.record_batch({"x": pa.array([1, None], pa.int16())})
    seen = []
    alone = Alone(Filter(lambda row: row["x"] is None, Shape.ROWS))
    alone._rows = lambda yielded: seen.extend(yielded) or []  # type: ignore[method-assign,assignment,func-returns-value]
    alone.send(batch)
    assert seen[0][1].schema == batch.schema


def test_flat_map_on_tables_gives_an_event_each() -> None:
    def apart(table: pa.Table) -> Iterator[pa.Table]:
        for index in range(table.num_rows):
            yield table.slice(index, 1)
        yield table.slice(0, 0)

    assert Alone(FlatMap(apart)).send(ROWS) == [("out", [row]) for row in ROWS]


def test_flat_map_on_rows_gives_one_event() -> None:
    operator = FlatMap(lambda row: [row] * (row["x"] - 1), Shape.ROWS)
    assert Alone(operator).send(ROWS) == [("out", [ROWS[1], ROWS[2], ROWS[2]])]
    assert Alone(operator).send(ROWS[:1]) == []


@pytest.mark.parametrize("result", [pa.table({"x": [1]}), {"x": [1]}, pd.DataFrame({"x": [1]}), None, "text", 7])
def test_flat_map_of_one_thing(result: Any) -> None:
    with pytest.raises(
        MoveError, match=r"flat_map returned a .*; expected several tables, .* Return a list, or use map"
    ):
        Alone(FlatMap(lambda table: result)).send(ROWS)


def test_each_event_is_an_input_set_of_its_own() -> None:
    operator = copy.deepcopy(Map(doubled))
    alone = Alone(operator)
    alone.send(ROWS)
    assert alone.open_sets == []
    assert alone.context.state == {}


def test_they_can_be_pickled_when_the_function_can() -> None:
    for operator in (Map(doubled), Filter(doubled), FlatMap(doubled)):
        twin = pickle.loads(pickle.dumps(operator))  # noqa: S301
        assert twin.f is doubled
