"""Pressure: how much waits on the way to the end of the pipeline; it goes upstream and holds sources back."""

from __future__ import annotations

from tests.unit.protocol.stage import (
    IN,
    MORE,
    acked,
    answered,
    connected,
    feed,
    folded,
    generated,
    got,
    operator,
    planned,
    received,
    recovered,
    source,
    start,
    step,
)

from clew.model.connection import Kind
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Session
from clew.protocol.logio import OperatorKernel
from clew.protocol.settings import Settings


def told(effects: list[does.Effect]) -> list[tuple[str, int]]:
    """Whom which pressure was told."""
    return [(str(each.channel.sender), each.pressure) for each in effects if isinstance(each, does.Ack)]


def loaded(outputs: int, writes: int = 0, **parts: object) -> OperatorKernel:
    """A kernel that has durably made so many outputs and writes, none of which is acknowledged or done."""
    kernel = operator(writes={"db": Kind.CONDITIONAL}, settings=Settings(backlog_max=16, window=99), **parts)
    start(kernel)
    feed(kernel, connected(0), received(1), folded("a"), answered("a"))
    feed(kernel, generated(*["out"] * outputs, *["db"] * writes), answered())
    return kernel


def test_an_acknowledgement_says_how_much_waits_behind() -> None:
    assert told(step(loaded(5, 2), was.Committed(1))) == [("up", 7)]


def test_the_pressure_of_receivers_adds_up_along_the_way() -> None:
    kernel = loaded(5)
    feed(kernel, was.Committed(1), acked(3, pressure=40))
    feed(kernel, received(2), folded(), answered())
    assert told(step(kernel, was.Committed(2))) == [("up", 42)]


def test_every_sender_hears_when_the_pressure_has_fallen_far_enough() -> None:
    kernel = loaded(10, inbound=(IN, MORE))
    feed(kernel, was.Committed(1), received(1, MORE), folded(), answered(), was.Committed(2))
    assert told(step(kernel, acked(1))) == []  # From 10 to 9: within the same quarter of what holds a source back.
    assert told(step(kernel, acked(3))) == [("up", 7), ("side", 7)]
    assert told(step(kernel, acked(4))) == []
    assert told(step(kernel, acked(10))) == [("up", 0), ("side", 0)]


def test_writes_that_are_done_lower_the_pressure_too() -> None:
    kernel = loaded(0, 8)
    feed(kernel, was.Committed(1))
    heard = [told(step(kernel, was.Written("db", number))) for number in range(1, 9)]
    assert [each for each in heard if each] == [[("up", 7)], [("up", 3)]]


def test_a_restarted_operator_expects_the_worst_until_its_receivers_speak() -> None:
    kernel = operator(settings=Settings(backlog_max=16))
    effects = step(kernel, was.Started(recovered(2, counters={"out:out": 30}), 0.0, True))
    assert told(effects) == [("up", 30)]
    assert told(step(kernel, connected(29, session=Session(1, 1)))) == [("up", 1)]


def test_a_source_is_held_back_by_what_waits_far_downstream() -> None:
    kernel = source(settings=Settings(backlog_max=10))
    start(kernel)
    feed(kernel, connected(0), planned("all"), was.Committed(1))
    assert feed(kernel, got(1)) == ["commit 2", "read 1 'all' from 1 x16"]
    feed(kernel, was.Committed(2), acked(1, pressure=10))
    assert feed(kernel, got(2)) == ["commit 3"]  # No further read: the receiver keeps up, but those behind it do not.
    assert feed(kernel, was.Committed(3)) == ["send down 2 in 1.1"]
    assert feed(kernel, acked(2, pressure=10)) == []
    assert feed(kernel, acked(2, pressure=9)) == ["read 1 'all' from 2 x16"]


def test_late_news_of_the_pressure_is_not_believed() -> None:
    kernel = source(settings=Settings(backlog_max=10))
    start(kernel)
    feed(kernel, connected(0), planned("all"), was.Committed(1), got(1), was.Committed(2))
    feed(kernel, connected(1, session=Session(2, 1)), acked(1, session=Session(2, 1), pressure=0))
    feed(kernel, acked(1, session=Session(1, 1), pressure=99))
    assert feed(kernel, got(2)) == ["commit 3", "read 1 'all' from 2 x16"]
