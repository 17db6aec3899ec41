"""Captured lineage in the kernel: rows in the transaction of the generation, and what retention lets go."""

from __future__ import annotations

from tests.unit.protocol.stage import (
    ALSO,
    IN,
    MORE,
    acked,
    answered,
    commit_in,
    connected,
    feed,
    folded,
    generated,
    operator,
    received,
    start,
    step,
)

from clew.model.connection import Kind
from clew.model.graph import Capture
from clew.model.history import Expired, Lineage, Transaction, Use
from clew.model.ranges import IdSet
from clew.model.values import encode
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.logio import OperatorKernel
from clew.protocol.settings import Settings

NOTHING = Expired((), (), (), ())


def capture(*outputs: str, inputs: tuple[str, ...] = ("in",), **targets: float | None) -> Capture:
    return Capture(frozenset(inputs), frozenset(outputs), targets)


def begun(captured: Capture, **parts: object) -> OperatorKernel:
    kernel = operator(capture=captured, **parts)
    start(kernel)
    return kernel


def generation(kernel: OperatorKernel, number: int, made: was.Generated, *keys: object) -> Transaction:
    """Takes one event into some sets and generates all of them."""
    feed(kernel, received(number), folded(*keys), answered(*keys), made)
    return commit_in(step(kernel, answered()))


def test_an_output_on_a_captured_port_gets_a_row_for_each_set_of_its_group() -> None:
    transaction = generation(begun(capture("out", out=None)), 1, generated("out", "out"), "a", "b")
    assert transaction.lineage == [
        Lineage("out", 1, 1),
        Lineage("out", 1, 2),
        Lineage("out", 2, 1),
        Lineage("out", 2, 2),
    ]
    assert transaction.closed == [1, 2]


def test_an_operator_may_say_which_sets_an_output_came_from() -> None:
    transaction = generation(begun(capture("out", out=None)), 1, generated("out", uses=("b",)), "a", "b")
    assert transaction.lineage == [Lineage("out", 1, 2)]
    assert transaction.closed == [1, 2]


def test_an_output_from_no_set_has_no_lineage() -> None:
    transaction = generation(begun(capture("out", out=None)), 1, generated("out", uses=(), reads=1), "a")
    assert (transaction.lineage, transaction.uses, transaction.reads) == ([], [], [])


def test_other_ports_get_no_rows() -> None:
    kernel = begun(capture("db", db=None), writes={"db": Kind.CONDITIONAL, "log": Kind.CONDITIONAL})
    transaction = generation(kernel, 1, generated("out", "db", "log"), "a")
    assert transaction.lineage == [Lineage("db", 1, 1)]


def test_read_actions_and_the_state_that_was_used_join_the_input_set() -> None:
    kernel = begun(capture("out", out=None))
    feed(kernel, received(1), folded("a", "b", state={"n": 1}), answered("a", "b"))
    feed(kernel, generated("out", reads=2, state={"n": 2}))
    transaction = commit_in(step(kernel, answered()))
    assert [(row.number, row.connection, row.is_complete, row.is_stored) for row in transaction.reads] == [
        (1, "lookup", True, True),
        (2, "lookup", True, True),
    ]
    assert [(stored.action, stored.index, stored.event.rows) for stored in transaction.stored] == [
        (1, 0, [{"read": 0}]),
        (2, 0, [{"read": 1}]),
    ]
    assert transaction.uses == [
        Use(1, "read", 1),
        Use(2, "read", 1),
        Use(1, "read", 2),
        Use(2, "read", 2),
        Use(1, "state", 1),  # What the generation saw, not what it left.
        Use(2, "state", 1),
    ]
    assert [(version, list(changes)) for version, changes in transaction.state_versions] == [
        (1, [encode("n")]),
        (2, [encode("n")]),
    ]
    assert (transaction.counters["read"], transaction.counters["state"]) == (2, 2)


def test_reads_of_a_generation_that_gives_nothing_captured_are_not_kept() -> None:
    kernel = begun(capture("db", db=None), writes={"db": Kind.CONDITIONAL})
    transaction = generation(kernel, 1, generated("out", reads=1), "a")
    assert (transaction.reads, transaction.stored, transaction.uses) == ([], [], [])


def test_without_capture_nothing_of_it_is_stored() -> None:
    kernel = operator()
    start(kernel)
    feed(kernel, received(1), folded("a", state={"n": 1}), answered("a"), generated("out", reads=1))
    transaction = commit_in(step(kernel, answered()))
    assert (transaction.lineage, transaction.uses, transaction.reads, transaction.stored) == ([], [], [], [])
    assert transaction.state_versions == []
    assert transaction.state == {encode("n"): encode(1)}


# What is held and what can go


def test_captured_inputs_are_held_and_others_are_released() -> None:
    kernel = begun(capture("out", inputs=("more",), out=None), inbound=(IN, MORE))
    feed(kernel, received(1), folded("a"), answered(), received(1, MORE), folded("a"), answered("a"), generated("out"))
    feed(kernel, answered(), was.Committed(1))
    assert kernel.inputs[IN].released == IdSet(1)
    assert kernel.inputs[MORE].released == IdSet()


def test_captured_outputs_and_writes_stay_when_they_are_released_and_done() -> None:
    kernel = begun(capture("out", "db", out=None, db=None), writes={"db": Kind.CONDITIONAL})
    feed(kernel, connected(0))
    generation(kernel, 1, generated("out", "db"), "a")
    feed(kernel, was.Committed(1), acked(1, 1))
    assert commit_in(step(kernel, was.Written("db", 1))).forget_outputs == []


def test_a_tick_asks_the_log_what_can_go_once_at_a_time() -> None:
    kernel = begun(capture("out", out=60.0))
    generation(kernel, 1, generated("out"), "a")
    feed(kernel, was.Committed(1), acked(1, 1))
    (survey,) = step(kernel, was.Ticked(100.0))
    assert survey == does.Survey({"out": IdSet(1)}, {"out": 40.0})
    assert feed(kernel, was.Ticked(101.0)) == []
    assert feed(kernel, was.Surveyed(NOTHING), was.Ticked(102.0)) == ["survey"]


def test_a_scope_without_retention_time_lets_no_target_go() -> None:
    kernel = begun(capture("out", "db", out=None), writes={"db": Kind.CONDITIONAL}, outbound=(ALSO,))
    assert feed(kernel, was.Ticked(100.0)) == []  # Nothing has been closed: nothing can go.
    generation(kernel, 1, generated(), "a")
    (*_, survey) = step(kernel, was.Ticked(100.0))
    assert survey == does.Survey({"out": IdSet(), "db": IdSet()}, {"out": None})


def test_many_closed_sets_are_a_reason_to_ask_too() -> None:
    kernel = operator(capture=capture("out", out=None), settings=Settings(survey_every=2))
    start(kernel)
    feed(kernel, received(1), folded("a", "b"), answered("a"))
    assert feed(kernel, generated("out")) == ["ask"]
    assert feed(kernel, answered("b"), generated("out")) == ["generate 'b'", "survey", "ask"]


def test_what_can_go_goes_in_one_commit_and_frees_the_inputs() -> None:
    kernel = begun(capture("out", out=60.0))
    feed(kernel, received(1), folded("a", "b"), answered("a"), generated("out"), answered())
    feed(kernel, received(2), folded("a"), answered("a"), generated("out"), answered())
    feed(kernel, was.Committed(1), was.Committed(2), was.Ticked(1.0))
    expired = Expired((("out", 1, 2),), (1, 3), (4,), ((IN, 1), (IN, 2)))
    transaction = commit_in(step(kernel, was.Surveyed(expired)))
    assert transaction.forget_outputs == [("out", 1, 2)]
    assert (transaction.forget_sets, transaction.forget_reads) == ([1, 3], [4])
    assert transaction.cursors[IN].released == IdSet(0, [2])  # Event 1 is in b, which is still open.
    assert feed(kernel, was.Committed(3)) == ["ack up 2 IdSet(0, 2..2)"]


def test_a_survey_that_finds_nothing_commits_nothing() -> None:
    kernel = begun(capture("out", out=60.0))
    assert feed(kernel, was.Ticked(1.0), was.Surveyed(NOTHING)) == ["survey"]


def test_numbers_of_read_actions_and_state_versions_go_on_after_a_crash() -> None:
    kernel = operator(capture=capture("out", out=None))
    start(kernel, 2, counters={"read": 5, "state": 9, "serial": 3, "position": 20})
    feed(kernel, answered(), received(1, session=kernel.inputs[IN].session), folded("a", state={"n": 1}))
    feed(kernel, answered("a"), generated("out", reads=1))
    transaction = commit_in(step(kernel, answered()))
    assert transaction.uses == [Use(4, "read", 6), Use(4, "state", 10)]


def test_what_a_successor_freed_is_not_released_by_its_predecessor() -> None:
    kernel = begun(capture("out", out=60.0))
    feed(kernel, was.Surveyed(NOTHING._replace(sets=(7,), freed=((IN, 5),))))
    assert kernel.inputs[IN].released == IdSet()
