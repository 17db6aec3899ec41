"""Python functions as sources and destinations, and rows at a pace."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.connect.reading import NOW, actions_of, check_resumes, items_of, rows_of

import clew
from clew.errors import BuildError, MoveError, UnsafeWriteConnection
from clew.model.connection import Kind, WriteAction


def counting(offset: int | None) -> Iterator[Any]:
    for number in range(offset or 0, 5):
        yield [{"x": number}], number + 1
        yield None


def test_a_generator_goes_on_from_any_offset() -> None:
    assert [row["x"] for row in rows_of(clew.generator(counting))] == [0, 1, 2, 3, 4]
    check_resumes(clew.generator(counting))


def test_what_a_generator_yields_is_checked() -> None:
    with pytest.raises(MoveError, match=r"<lambda> of generator\(\) yielded a dict; expected a pair"):
        rows_of(clew.generator(lambda offset: [{"x": 1}]))
    with pytest.raises(BuildError, match=r"generator\(\) was given a int; expected a function"):
        clew.generator(7)  # type: ignore[arg-type]


def test_answers_are_read_actions_of_their_own() -> None:
    answers = iter([None, [{"x": 1}], iter([[{"x": 2}], [{"x": 3}]]), {"x": [4, 5]}])
    source = clew.from_callable(lambda: next(answers), count=3)
    assert not source.is_replayable
    source.__deepcopy__ = lambda memo: source  # type: ignore[attr-defined]  # Iterators cannot be copied.
    found = [(action, [batch.to_pylist() for batch, _ in items]) for action, items in actions_of(source)]
    assert found == [(1, [[{"x": 1}]]), (2, [[{"x": 2}], [{"x": 3}]]), (3, [[{"x": 4}, {"x": 5}]])]


def test_a_replayable_function_is_asked_for_what_follows_an_offset() -> None:
    source = clew.from_callable(lambda offset: ([{"x": offset}], (offset or 0) + 10), is_replayable=True, count=3)
    assert [row["x"] for row in rows_of(source)] == [None, 10, 20]
    check_resumes(source)
    with pytest.raises(MoveError, match=r"answered with a list; expected a pair .* declared replayable"):
        rows_of(clew.from_callable(lambda offset: [{"x": 1}], is_replayable=True, count=1))


def test_a_pace_gives_rows_that_know_when_they_were_due() -> None:
    source = clew.rate(10, count=5, rows_per_event=2)
    ((action, items),) = actions_of(source)
    assert action == NOW
    assert [batch.column("id").to_pylist() for batch, _ in items] == [[1, 2], [3, 4], [5]]
    assert items[1][0].column("at").to_pylist() == [NOW + 0.2, NOW + 0.3]
    check_resumes(source)


def test_a_pace_waits_until_a_row_is_due_and_then_catches_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [NOW]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    reading = iter(clew.rate(10).read(NOW, None))
    assert next(reading)[1] == 1  # type: ignore[index]
    assert [next(reading), next(reading)] == [None, None]
    clock[0] += 0.35
    assert [next(reading)[1] for _ in range(3)] == [2, 3, 4]  # type: ignore[index]
    assert next(reading) is None
    anew = iter(clew.rate(10).read(NOW, 1))
    assert [next(anew)[1] for _ in range(3)] == [2, 3, 4]  # type: ignore[index]


def test_a_pace_is_checked() -> None:
    with pytest.raises(BuildError, match=r"rate\(\) was given per_second=-1; expected a number above 0"):
        clew.rate(-1)
    assert items_of(clew.rate(1e9, count=1), NOW)[0][1] == 1


def test_a_function_that_writes_must_be_of_a_declared_kind() -> None:
    wanted = r"call\(print\) was given kind=None; expected 'conditional' .*'checkable' .*'idempotent' .*Declare which"
    with pytest.raises(UnsafeWriteConnection, match=wanted):
        clew.call(print)
    with pytest.raises(UnsafeWriteConnection, match=r"kind='at least once'"):
        clew.call(print, "at least once")
    with pytest.raises(UnsafeWriteConnection, match=r"declared checkable and was given no is_in=.*Pass one"):
        clew.call(print, "checkable")
    with pytest.raises(UnsafeWriteConnection, match=r"declared idempotent and was given an is_in=.*Leave it out"):
        clew.call(print, "idempotent", is_in=lambda action: True)
    with pytest.raises(BuildError, match=r"call\(\) was given a str; expected a function"):
        clew.call("print", "idempotent")  # type: ignore[arg-type]


def test_a_function_is_given_the_action() -> None:
    done: list[str] = []
    action = WriteAction("log/save/0/to", 3, pa.RecordBatch.from_pylist([{"a": 1}]))
    connection = clew.call(
        lambda each: done.append(each.id), Kind.CHECKABLE, is_in=lambda each: each.id in done, system="shop"
    )
    assert not connection.is_in(action)
    connection.execute(action)
    assert connection.is_in(action)
    assert (done, connection.kind, connection.system) == (["log/save/0/to/3"], Kind.CHECKABLE, "shop")
