"""Simulated outside systems: the manners of each kind, shared systems, and who wrote what."""

from __future__ import annotations

from typing import Any

from clew import Pipeline
from clew.model.connection import Kind, WriteAction
from clew.model.event import Event, as_batch
from clew.model.graph import Graph
from clew.model.history import Output
from clew.model.names import Replica
from clew.operators.stateless import Stateless
from clew.testing import Outside as Handle
from clew.testing import scripted
from clew.verify.outside import Outside, System


def action(number: int, writer: str = "log/op/0/db") -> WriteAction:
    return WriteAction(writer, number, as_batch([{"x": number}]))


def applied(kind: Kind, *numbers: int) -> list[int]:
    system = System()
    for number in numbers:
        system.apply(kind, action(number))
    return [each.number for each in system.applied]


def test_a_conditional_system_refuses_what_is_recorded_and_whatever_comes_before_it() -> None:
    assert applied(Kind.CONDITIONAL, 1, 1, 2, 1, 3, 2, 3) == [1, 2, 3]


def test_an_idempotent_system_forgives_twice_in_a_row_and_nothing_else() -> None:
    assert applied(Kind.IDEMPOTENT, 1, 1, 2, 2, 2) == [1, 2]
    assert applied(Kind.IDEMPOTENT, 1, 2, 1) == [1, 2, 1]


def test_a_checkable_system_does_what_it_is_told_but_knows_what_is_in() -> None:
    assert applied(Kind.CHECKABLE, 1, 1) == [1, 1]
    system = System()
    system.apply(Kind.CHECKABLE, action(1))
    assert system.has(action(1))
    assert not system.has(action(2))
    assert not system.has(action(1, "log/other/0/db"))


def test_writers_do_not_disturb_each_other() -> None:
    system = System()
    for number, writer in ((1, "a"), (1, "b"), (2, "a"), (1, "b"), (1, "a")):
        system.apply(Kind.CONDITIONAL, action(number, writer))
    assert [(each.writer, each.number) for each in system.applied] == [("a", 1), ("b", 1), ("a", 2)]


class Asks(Stateless):
    def apply(self, event: Any, ctx: Any) -> list[Any]:
        return [("out", ctx.read("look"))]


def graph() -> Graph:
    """Two writers on one system, which an operator reads; one on a system of its own."""
    pipeline = Pipeline("p")
    numbers = pipeline.source("numbers", scripted([[{"x": 1}]]))
    numbers.write("one", Handle("shop").writer("checkable"))
    numbers.write("two", Handle("shop").writer("conditional"))
    own = Handle("alone").writer("idempotent")
    own.system = None
    numbers.operator("asks", Asks(), reads={"look": Handle("shop").reader()}).write("three", own)
    return pipeline.build()


def output(number: int, operator: str) -> Output:
    return Output(Event(Replica(operator), "to", number, as_batch([{"from": operator, "x": number}])), 0.0)


def test_connections_of_one_system_share_it_and_others_do_not() -> None:
    outside = Outside(graph())
    assert outside.writes["one", "to"] is outside.writes["two", "to"] is outside.reads["asks", "look"]
    assert outside.writes["three", "to"] is not outside.writes["one", "to"]
    assert outside.kinds["one", "to"] is Kind.CHECKABLE


def test_a_system_knows_who_wrote_what_and_answers_readers_with_all_of_it() -> None:
    asked = graph()
    outside = Outside(asked)
    for operator, number in (("one", 1), ("two", 1), ("one", 2)):
        outside.write("log", Replica(operator), "to", output(number, operator))
    assert [each.id for each in outside.written("one", "to")] == ["log/one/0/to/1", "log/one/0/to/2"]
    assert outside.has("log", Replica("two"), "to", output(1, "two"))
    assert not outside.has("log", Replica("two"), "to", output(2, "two"))
    assert not outside.has("gol", Replica("two"), "to", output(1, "two"))
    answer = as_batch(outside.read(asked.nodes["asks"].reads["look"], "asks", "look", None))
    assert answer.to_pylist() == [{"from": "one", "x": 1}, {"from": "two", "x": 1}, {"from": "one", "x": 2}]
    assert outside.written("three", "to") == []


def test_replicas_of_a_writer_have_ids_of_their_own() -> None:
    outside = Outside(graph())
    for index in (0, 1):
        outside.write("log", Replica("two", index), "to", output(1, "two"))
    assert [each.id for each in outside.written("two", "to")] == ["log/two/0/to/1", "log/two/1/to/1"]
