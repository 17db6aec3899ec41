"""Events and the shapes that their records may come in."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from clew.errors import MoveError
from clew.model.event import Event, as_batch, same_batch
from clew.model.names import Replica

ROWS = [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}]


def event(number: int = 1, rows: list[dict[str, Any]] | None = ROWS, **more: Any) -> Event:
    return Event(Replica("orders"), "out", number, None if rows is None else as_batch(rows), **more)


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        {"x": [1, 2], "y": ["a", "b"]},
        pa.table({"x": [1, 2], "y": ["a", "b"]}),
        pa.concat_tables([pa.table({"x": [1], "y": ["a"]}), pa.table({"x": [2], "y": ["b"]})]),
        pa.record_batch({"x": [1, 2], "y": ["a", "b"]}),
        pd.DataFrame({"x": [1, 2], "y": ["a", "b"]}, index=[7, 8]),
    ],
    ids=["rows", "columns", "table", "chunks", "batch", "frame"],
)
def test_records_in_each_shape(data: Any) -> None:
    batch = as_batch(data)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.to_pylist() == ROWS


@pytest.mark.parametrize("data", [[], pa.table({"x": pa.array([], pa.int64())}), pa.record_batch({}), pa.table({})])
def test_no_records(data: Any) -> None:
    assert as_batch(data).num_rows == 0


@pytest.mark.parametrize("data", [None, 7, "text", (1, 2), {1, 2}])
def test_anything_else_is_refused_in_words(data: Any) -> None:
    with pytest.raises(
        MoveError, match=r"yielded a \w+ as the records of an event; expected an Arrow table .* Yield one"
    ):
        as_batch(data)


def test_an_event_shows_its_records() -> None:
    assert event().rows == ROWS
    assert event().table.to_pylist() == ROWS
    assert str(event(3)) == "orders.out/3"
    assert repr(event(3)) == "<Event orders.out/3>"


def test_the_body_is_the_records_without_schema() -> None:
    one = event()
    assert one.batch is not None
    assert pa.ipc.read_record_batch(pa.py_buffer(one.body), one.batch.schema).equals(one.batch)
    assert one.body is one.body


def test_an_end_mark_has_no_records() -> None:
    end = event(4, None)
    assert end.is_end
    assert (end.rows, end.body, repr(end)) == ([], b"", "<Event orders.out/4 end>")
    with pytest.raises(MoveError, match=r"event orders\.out/4 is an end mark and has no records"):
        end.table  # noqa: B018


def test_a_received_event_is_the_same_on_an_input_port() -> None:
    one = event(time=(1, 2), attributes={"late": True})
    twin = one.received("in")
    assert (one.input, twin.input) == ("", "in")
    assert twin.same(one)
    assert twin.batch is one.batch


@pytest.mark.parametrize(
    "other",
    [
        event(2),
        event(rows=[{"x": 9}]),
        event(rows=None),
        event(time=1),
        event(attributes={"late": True}),
        Event(Replica("orders", 1), "out", 1, as_batch(ROWS)),
        Event(Replica("orders"), "other", 1, as_batch(ROWS)),
    ],
)
def test_events_that_differ(other: Event) -> None:
    assert not event().same(other)
    assert not other.same(event())


def test_two_absent_batches_are_the_same() -> None:
    assert same_batch(None, None)
    assert not same_batch(None, as_batch(ROWS))


def test_categories_inside_lists_and_structs_travel_as_their_values() -> None:
    """Bodies are kept and sent without their dictionaries, so one with them could not be read by anybody."""
    names = pa.array(["a", "b", "a"]).dictionary_encode()
    columns = [
        pa.StructArray.from_arrays([names, pa.array([1, 2, 3])], names=["name", "count"]),
        pa.ListArray.from_arrays([0, 1, 1, 3], names),
        pa.MapArray.from_arrays([0, 1, 2, 3], pa.array(["x", "y", "z"]), names),
        pa.array([1, 2, 3]),
    ]
    table = pa.RecordBatch.from_arrays(columns, names=["s", "l", "m", "n"])
    batch = as_batch(table)
    assert batch.to_pylist() == table.to_pylist()
    assert pa.ipc.read_record_batch(pa.py_buffer(batch.serialize()), batch.schema).equals(batch)


def test_categories_travel_as_their_values() -> None:
    frame = pd.DataFrame({"city": pd.Categorical(["Austin", "Portland", "Austin"])})
    batch = as_batch(frame)
    event = Event(Replica("a"), "out", 1, batch)
    assert pa.ipc.read_record_batch(pa.py_buffer(event.body), batch.schema).to_pydict() == {
        "city": ["Austin", "Portland", "Austin"]
    }
