"""Dispatchers: in turn, passing over who is behind; or by key."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from clew.errors import BuildError, MoveError
from clew.model.event import Event, as_batch
from clew.model.names import Replica
from clew.operators.dispatch import KeyDispatch, RoundRobin, dispatcher
from clew.operators.hashing import hash_of
from clew.operators.merge import Merger
from clew.operators.shape import Shape
from clew.testing import Alone


class Behind:
    """A context that knows how far each port is behind."""

    def __init__(self, backlogs: Mapping[str, int]) -> None:
        self.backlogs = backlogs

    def backlog(self, port: str) -> int:
        return self.backlogs.get(port, 0)


def event(number: int, records: Any = None, **attributes: Any) -> Event:
    batch = as_batch([{"x": number}] if records is None else records)
    return Event(Replica("orders"), "out", number, batch, attributes=attributes).received("in")


def targets(robin: RoundRobin, numbers: range, **backlogs: int) -> list[str]:
    behind: Any = Behind({port.replace("_", "-"): number for port, number in backlogs.items()})
    return [port for number in numbers for port, *_ in robin.apply(event(number), behind)]


def test_events_go_to_the_replicas_in_turn() -> None:
    assert targets(RoundRobin(3), range(1, 6)) == ["out-0", "out-1", "out-2", "out-0", "out-1"]


def test_a_replica_that_is_behind_is_passed_over() -> None:
    assert targets(RoundRobin(3), range(1, 5), out_1=3) == ["out-0", "out-2", "out-2", "out-0"]
    assert targets(RoundRobin(3), range(1, 5), out_1=2) == ["out-0", "out-1", "out-2", "out-0"]


def test_behind_means_behind_the_others() -> None:
    assert targets(RoundRobin(2), range(1, 5), out_0=50, out_1=51) == ["out-0", "out-1", "out-0", "out-1"]
    assert targets(RoundRobin(2), range(1, 5), out_0=53, out_1=50) == ["out-1"] * 4
    assert targets(RoundRobin(2, slack=0), range(1, 3), out_0=1) == ["out-1", "out-1"]


def test_a_whole_event_goes_on_with_its_attributes() -> None:
    given = event(1, [{"x": 1}, {"x": 2}], late=True)
    context: Any = Behind({})
    assert list(RoundRobin(2).apply(given, context)) == [("out-0", given.batch, {"late": True})]
    for _, _, attributes in KeyDispatch(2, "x").apply(given, context):  # type: ignore[misc]
        assert attributes == {"late": True}


ROWS = [{"x": number, "item": f"item-{number % 7}", "state": "MA"} for number in range(50)]
ITEM: dict[str, tuple[Any, Shape]] = {
    "column": ("item", Shape.TABLE),
    "columns": (["item"], Shape.TABLE),
    "rows": (lambda row: row["item"], Shape.ROWS),
    "table": (lambda table: table["item"], Shape.TABLE),
    "list": (lambda table: table["item"].to_pylist(), Shape.TABLE),
    "pandas": (lambda frame: frame["item"], Shape.PANDAS),
    "numpy": (lambda frame: frame["item"].to_numpy(), Shape.PANDAS),
}


@pytest.mark.parametrize(("key", "shape"), ITEM.values(), ids=ITEM)
@pytest.mark.parametrize("count", [1, 2, 16, 17, 50])
def test_records_go_where_their_key_belongs(key: Any, shape: Shape, count: int) -> None:
    found = Alone(dispatcher(3, key, shape)).send(ROWS[:count])
    expected = [(f"out-{n}", [row for row in ROWS[:count] if hash_of(row["item"]) % 3 == n]) for n in range(3)]
    assert found == [(port, rows) for port, rows in expected if rows]


@pytest.mark.parametrize("count", [5, 50])
def test_several_columns_are_one_key(count: int) -> None:
    found = Alone(KeyDispatch(4, ["item", "state"])).send(ROWS[:count])
    same = Alone(KeyDispatch(4, lambda row: (row["item"], row["state"]), Shape.ROWS)).send(ROWS[:count])
    assert found == same
    assert len(found) > 1


def test_numbers_that_pandas_made_floats_keep_their_home() -> None:
    ids, floats = ([{"id": kind(number)} for number in range(100)] for kind in (int, float))
    homes = [Alone(KeyDispatch(5, "id")).send(rows) for rows in (ids, floats)]
    assert homes[0] == homes[1]
    dates = {"at": pa.array([0, None, 0], pa.timestamp("ns"))}
    assert Alone(KeyDispatch(5, lambda frame: frame["at"], Shape.PANDAS)).send(pa.table(dates)) == Alone(
        KeyDispatch(5, "at")
    ).send(pa.table(dates))


def test_an_event_that_stays_whole_is_not_copied() -> None:
    context: Any = None
    for rows in (ROWS[:1], [ROWS[0]] * 40):
        given = event(1, rows)
        ((_, batch, _),) = KeyDispatch(3, "item").apply(given, context)  # type: ignore[misc]
        assert batch is given.batch


def test_an_event_without_records_goes_to_one_replica() -> None:
    empty = pa.table({"item": pa.array([], pa.string())})
    assert Alone(KeyDispatch(3, "item")).send(empty) == [("out-0", [])]


def test_records_without_a_key_are_together() -> None:
    found = Alone(KeyDispatch(3, "item")).send([{"item": None, "x": number} for number in range(30)])
    assert [len(rows) for _, rows in found] == [30]


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(
        MoveError, match=r"event sender\.in/1 has no column 'itme', by .*; its columns are x, item, state\. Name one"
    ):
        Alone(KeyDispatch(3, "itme")).send(ROWS)


@pytest.mark.parametrize(
    ("f", "found"),
    [
        (lambda table: table["item"][:3], "ChunkedArray of 3"),
        (lambda table: ["a"], "list of 1"),
        (lambda table: "item", "str of 4"),
        (lambda table: 5, "int"),
        (lambda table: None, "NoneType"),
    ],
)
def test_a_function_that_does_not_give_a_key_for_each_record(f: Any, found: str) -> None:
    with pytest.raises(
        MoveError, match=rf"returned a {found} for event .*; expected .* a key for each of its 50 records"
    ):
        Alone(KeyDispatch(3, f)).send(ROWS)


def test_a_row_whose_key_has_no_hash() -> None:
    with pytest.raises(MoveError, match="a key is of type object"):
        Alone(KeyDispatch(3, lambda row: object(), Shape.ROWS)).send(ROWS)


@pytest.mark.parametrize("key", [5, [], "", ["item", 5], {"item": 1}.keys(), b"item"])
def test_what_cannot_be_a_key(key: Any) -> None:
    with pytest.raises(
        BuildError, match=r"was given the key .*; expected the name of a column, a list of such names, or"
    ):
        dispatcher(2, key)


@pytest.mark.parametrize(("key", "shape"), [("item", Shape.ROWS), (None, Shape.PANDAS)])
def test_a_shape_is_for_functions(key: Any, shape: Shape) -> None:
    with pytest.raises(
        BuildError, match=rf"{shape}=True, which says what a function as key is given; expected a function"
    ):
        dispatcher(2, key, shape)


def test_dispatchers_and_mergers_can_be_sent_to_another_process() -> None:
    for operator in (RoundRobin(2), KeyDispatch(2, "item"), Merger(2, ("out",))):
        assert pickle.loads(pickle.dumps(operator)).inputs == operator.inputs  # noqa: S301


def test_a_merger_passes_everything_on_to_the_port_it_came_from() -> None:
    merger = Merger(2, ("out", "late"))
    assert merger.outputs == ("out", "late")
    context: Any = None
    for port, replica in (("out", 1), ("late", 0)):
        batch = as_batch([{"x": 1}])
        given = Event(Replica("slow", replica), port, 1, batch, attributes={"a": 1}).received(
            Merger.input(port, replica)
        )
        assert list(merger.apply(given, context)) == [(port, batch, {"a": 1})]
