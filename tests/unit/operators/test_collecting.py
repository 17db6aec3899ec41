"""batch, merge and the writers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from clew.operators.batch import Batch
from clew.operators.merge import Merge
from clew.operators.shape import Shape
from clew.operators.writer import CountedWriter, Writer, writer
from clew.testing import Alone, Outside


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"x": number} for number in numbers]


def test_batch_collects_so_many_events() -> None:
    alone = Alone(Batch(3))
    assert [alone.send(rows(number)) for number in range(1, 8)] == [
        [],
        [],
        [("out", rows(1, 2, 3))],
        [],
        [],
        [("out", rows(4, 5, 6))],
        [],
    ]
    assert alone.open_sets == [3]
    assert alone.end() == [("out", rows(7))]


@pytest.mark.parametrize("crash", range(7))
def test_batch_survives_a_restart_anywhere(crash: int) -> None:
    alone = Alone(Batch(3))
    outputs = []
    for number in range(7):
        if number == crash:
            alone.restart()
        outputs += alone.send(rows(number))
    assert outputs + alone.end() == [("out", rows(0, 1, 2)), ("out", rows(3, 4, 5)), ("out", rows(6))]


@pytest.mark.parametrize(
    ("shape", "f"),
    [
        (Shape.TABLE, lambda table: {"sum": [sum(table["x"].to_pylist())]}),
        (Shape.PANDAS, lambda frame: frame.sum().rename({"x": "sum"}).to_frame().T),
        (Shape.ROWS, lambda rows: [{"sum": sum(row["x"] for row in rows)}]),
    ],
)
def test_batch_with_a_function(shape: Shape, f: Any) -> None:
    alone = Alone(Batch(2, f, shape))
    assert alone.send(rows(1, 2)) + alone.send(rows(3)) == [("out", [{"sum": 6}])]


def test_batch_of_one() -> None:
    assert Alone(Batch(1)).send(rows(1)) == [("out", rows(1))]


def test_batch_of_events_with_different_columns() -> None:
    alone = Alone(Batch(2))
    alone.send([{"x": 1}])
    assert alone.send([{"x": 2.5, "y": "b"}]) == [("out", [{"x": 1.0, "y": None}, {"x": 2.5, "y": "b"}])]


def test_merge_passes_events_on_as_they_arrive() -> None:
    alone = Alone(Merge(2))
    assert alone.send(rows(1), "in2") == [("out", rows(1))]
    assert alone.send(rows(2), "in1") == [("out", rows(2))]
    assert alone.send(rows(3), "in2") == [("out", rows(3))]


def test_writer_writes_each_event() -> None:
    alone = Alone(writer(Outside("report").writer()))
    assert alone.send(rows(1)) == [("to", rows(1))]
    assert alone.send(rows(2, 3)) == [("to", rows(2, 3))]
    assert alone.context.state == {}
    assert alone.end() == []


def test_writer_writes_some_columns() -> None:
    event = [{"x": 1, "y": 2, "z": 3}]
    assert Alone(writer(Outside("report").writer(), 1, ["z", "x"])).send(event) == [("to", [{"z": 3, "x": 1}])]
    assert Alone(writer(Outside("report").writer(), 1, "y")).send(event) == [("to", [{"y": 2}])]


def test_writer_of_several_events_at_a_time() -> None:
    alone = Alone(writer(Outside("report").writer(), 2, ["x"]))
    assert alone.send([{"x": 1, "y": 1}]) == []
    assert alone.send([{"x": 2, "y": 1}]) == [("to", rows(1, 2))]
    assert alone.send([{"x": 3, "y": 1}]) == []
    alone.restart()
    assert alone.end() == [("to", rows(3))]


def test_the_writer_fits_the_count() -> None:
    connection = Outside("report").writer()
    assert isinstance(writer(connection), Writer)
    assert isinstance(writer(connection, 2), CountedWriter)
    for operator in (writer(connection), writer(connection, 2)):
        assert (operator.outputs, list(operator.writes)) == ((), ["to"])
        assert pickle.loads(pickle.dumps(operator)).writes["to"].system == "report"  # noqa: S301
