"""The store of runs without protection: what may be asked for again is there, nothing else is kept."""

from __future__ import annotations

import pytest

from clew.errors import LogNotFound
from clew.log.volatile import VolatileStore
from clew.model.event import Event, as_batch
from clew.model.history import Output, Stored, Transaction
from clew.model.names import Replica

OP = Replica("op")


def output(number: int) -> Output:
    return Output(Event(OP, "out", number, as_batch([{"x": number}])), 0.0)


def test_outputs_are_there_until_they_are_forgotten() -> None:
    log = VolatileStore("id", {}).open(OP)
    log.commit(Transaction(outputs=[output(number) for number in range(1, 6)]))
    assert [each.event.id for each in log.outputs("out", 2, 3)] == [2, 3, 4]
    log.commit(Transaction(forget_outputs=[("out", 1, 3)]))
    assert [each.event.id for each in log.outputs("out", 1, 10)] == [4, 5]
    assert log.outputs("other", 1, 10) == []


def test_state_and_stored_effects_can_be_read_again() -> None:
    log = VolatileStore("id", {}).open(OP)
    stored = [Stored(1, index, output(index + 1).event) for index in range(3)]
    log.commit(Transaction(state={b"b": b"2", b"a": b"1"}, stored=stored))
    assert log.state_items() == [(b"a", b"1"), (b"b", b"2")]
    assert [each.index for each in log.effect(1, 1, 10)] == [1, 2]
    log.commit(Transaction(state={b"a": None}, forget_reads=[1]))
    assert (log.state(b"a"), log.state(b"b"), log.effect(1, 0, 10)) == (None, b"2", [])


def test_every_process_begins_anew() -> None:
    store = VolatileStore("id", {})
    store.open(OP).commit(Transaction(outputs=[output(1)], counters={"out:out": 1}))
    again = store.open(OP)
    assert (again.recover().counters, again.outputs("out", 1, 1), again.is_predecessor_dead) == ({}, [], True)
    assert store.reader().events(OP, "out", [1]) == []
    with pytest.raises(LogNotFound, match=r"the run has no log: it was started with recovery='off'"):
        store.reader().rows(OP)
