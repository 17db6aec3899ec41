"""Laws of dispatching: nothing is lost or doubled, equal keys meet in one replica, and the order of a key stays."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from clew.model.event import Event
from clew.model.names import Replica
from clew.operators.dispatch import KeyDispatch, RoundRobin
from clew.operators.hashing import hash_of, hashes_of
from clew.operators.shape import Shape

CONTEXT: Any = None

KEYS = {
    "small": (st.integers(0, 5), pa.int64()),
    "int": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "unsigned": (st.integers(0, 2**64 - 1), pa.uint64()),
    "float": (st.floats(width=64), pa.float64()),
    "text": (st.text(max_size=3), pa.string()),
    "bytes": (st.binary(max_size=3), pa.binary()),
    "bool": (st.booleans(), pa.bool_()),
    "moment": (st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)), pa.timestamp("us")),
    "date": (st.dates(datetime.date(1700, 1, 1)), pa.date32()),
    "decimal": (st.decimals(-1000, 1000, places=2), pa.decimal128(10, 2)),
    "list": (st.lists(st.integers(0, 2), max_size=2), pa.list_(pa.int64())),
}


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    values, kind = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    return pa.array(draw(st.lists(st.none() | values, min_size=1, max_size=40)), kind)


def dispatched(operator: Any, batches: list[pa.RecordBatch]) -> list[list[tuple[int, dict[str, Any]]]]:
    """What each replica gets: the number of the event in which it was, and the row."""
    found: list[list[tuple[int, dict[str, Any]]]] = [[] for _ in operator.outputs]
    for number, batch in enumerate(batches, 1):
        outputs = list(operator.apply(Event(Replica("orders"), "out", number, batch).received("in"), CONTEXT))
        assert len({port for port, *_ in outputs}) == len(outputs)  # One event stays one event.
        for port, part, _ in outputs:
            found[operator.outputs.index(port)] += [(number, row) for row in part.to_pylist()]
    return found


@given(st.lists(columns(), min_size=1, max_size=4), st.integers(1, 9), st.sampled_from(["column", "columns", "rows"]))
def test_dispatching_by_key(keys: list[pa.Array], replicas: int, way: str) -> None:
    batches, place = [], 0
    for key in keys:
        places = range(place, place + len(key))
        batches.append(pa.RecordBatch.from_pydict({"key": key, "place": list(places)}))
        place += len(key)
    operator = {
        "column": lambda: KeyDispatch(replicas, "key"),
        "columns": lambda: KeyDispatch(replicas, ["key", "key"]),
        "rows": lambda: KeyDispatch(replicas, lambda row: row["key"], Shape.ROWS),
    }[way]()
    found = dispatched(operator, batches)
    given_rows = [(number, repr(row)) for number, batch in enumerate(batches, 1) for row in batch.to_pylist()]
    assert sorted((number, repr(row)) for part in found for number, row in part) == sorted(given_rows)
    for part in found:  # The order of all records of a replica, so of each key, is the order in which they came.
        assert [row["place"] for _, row in part] == sorted(row["place"] for _, row in part)
    homes = [[row["key"] for _, row in part] for part in found]
    for number, part in enumerate(homes):
        for other in homes[number + 1 :]:
            assert not any(one == another for one in part for another in other)


@given(columns())
def test_a_column_has_the_hashes_of_its_values(column: pa.Array) -> None:
    hashes = hashes_of([column]).to_pylist()
    assert hashes == [hash_of(value) for value in column.to_pylist()]
    assert hashes_of([column, column]).to_pylist() == [hash_of((value, value)) for value in column.to_pylist()]
    assert all(0 <= each < 2**64 for each in hashes)


numbers = (
    st.integers() | st.floats(allow_nan=False) | st.booleans() | st.decimals(allow_nan=False, allow_infinity=False)
)


@given(numbers, numbers)
def test_numbers_that_are_equal_have_equal_hashes(one: Any, other: Any) -> None:
    if one == other:
        assert hash_of(one) == hash_of(other)
    for twin in (float(one) if abs(one) < 2**1000 else one, int(one) if abs(one) < 2**1000 else one):
        if twin == one:
            assert hash_of(twin) == hash_of(one)


@given(st.integers(1, 9), st.lists(st.integers(0, 6), min_size=9, max_size=9), st.integers(1, 50))
def test_round_robin_passes_over_those_that_are_behind_only(replicas: int, backlogs: list[int], number: int) -> None:
    class Behind:
        def backlog(self, port: str) -> int:
            return backlogs[int(port.split("-")[1])]

    context: Any = Behind()
    operator = RoundRobin(replicas)
    event = Event(Replica("orders"), "out", number, pa.RecordBatch.from_pydict({"x": [1]})).received("in")
    ((port, batch, _),) = operator.apply(event, context)  # type: ignore[misc]
    chosen, turn = operator.outputs.index(port), (number - 1) % replicas
    least = min(backlogs[:replicas])
    assert batch is event.batch
    assert backlogs[chosen] <= least + 2
    passed = [(turn + step) % replicas for step in range((chosen - turn) % replicas)]
    assert all(backlogs[each] > least + 2 for each in passed)
