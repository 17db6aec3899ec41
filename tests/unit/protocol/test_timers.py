"""Timers in the kernel: stored with the move that set them, delivered in the order of their moments, then over."""

from __future__ import annotations

from tests.unit.protocol.stage import (
    answered,
    commit_in,
    feed,
    fired,
    folded,
    generated,
    operator,
    received,
    received_end,
    start,
    step,
)

from clew.model.values import encode
from clew.protocol import inputs as was
from clew.protocol.logio import OperatorKernel


def with_timers(**timers: float) -> OperatorKernel:
    """A kernel that has set these timers, durably."""
    kernel = operator()
    start(kernel)
    feed(kernel, received(1), folded("a", timers=timers), answered(), was.Committed(1))
    return kernel


def test_a_timer_is_stored_with_the_move_that_set_it_and_rings_an_alarm() -> None:
    kernel = operator()
    start(kernel)
    feed(kernel, received(1))
    assert feed(kernel, folded("a", timers={"t": 5.0, "u": 3.0})) == ["alarm 3.0", "ask"]
    assert commit_in(step(kernel, answered())).timers == {encode("t"): 5.0, encode("u"): 3.0}


def test_a_timer_fires_when_its_moment_has_come_and_ready_is_asked() -> None:
    kernel = with_timers(t=5.0)
    assert feed(kernel, was.Ticked(4.9)) == []
    assert feed(kernel, was.Ticked(5.0)) == ["fire 't'"]
    assert feed(kernel, fired(state={"rang": True})) == ["ask"]
    transaction = commit_in(step(kernel, answered("a")) + step(kernel, generated()) + step(kernel, answered()))
    assert transaction.timers == {encode("t"): None}
    assert transaction.state == {encode("rang"): encode(True)}


def test_timers_fire_one_by_one_in_the_order_of_their_moments() -> None:
    kernel = with_timers(late=5.0, early=2.0, never=99.0)
    assert feed(kernel, was.Ticked(6.0)) == ["fire 'early'", "alarm 99.0"]
    assert feed(kernel, fired(), answered()) == ["ask", "fire 'late'"]
    assert feed(kernel, fired(), answered()) == ["ask", "commit 2"]
    assert feed(kernel, was.Ticked(7.0)) == []


def test_a_due_timer_comes_before_the_next_event() -> None:
    kernel = with_timers(t=5.0)
    feed(kernel, received(2), received(3))
    assert feed(kernel, was.Ticked(5.0)) == []  # Event 2 is being folded.
    assert feed(kernel, folded(), answered()) == ["ask", "fire 't'"]
    assert feed(kernel, fired(), answered()) == ["ask", "fold up/3"]


def test_a_timer_that_is_set_again_is_replaced() -> None:
    kernel = with_timers(t=5.0)
    feed(kernel, received(2))
    assert feed(kernel, folded(timers={"t": 8.0})) == ["ask"]  # The alarm of 5.0 is still there; nothing fires then.
    feed(kernel, answered(), was.Committed(2))
    assert feed(kernel, was.Ticked(5.0)) == ["alarm 8.0"]
    assert feed(kernel, was.Ticked(8.0)) == ["fire 't'"]


def test_a_timer_that_is_taken_back_does_not_fire() -> None:
    kernel = with_timers(t=5.0)
    feed(kernel, received(2), folded(timers={"t": None}))
    assert commit_in(step(kernel, answered())).timers == {encode("t"): None}
    assert feed(kernel, was.Committed(2), was.Ticked(9.0)) == ["ack up 2 IdSet(0, 2..2)"]


def test_a_due_timer_can_still_be_replaced_or_taken_back() -> None:
    for at, rings in ((None, []), (20.0, ["fire 't'"])):
        kernel = with_timers(t=5.0)
        feed(kernel, received(2), was.Ticked(6.0))
        feed(kernel, folded(timers={"t": at}), answered(), was.Committed(2))
        assert feed(kernel, was.Ticked(20.0)) == rings


def test_a_timers_move_may_set_its_own_timer_again() -> None:
    kernel = with_timers(t=5.0)
    feed(kernel, was.Ticked(5.0))
    assert feed(kernel, fired(timers={"t": 10.0})) == ["alarm 10.0", "ask"]
    assert commit_in(step(kernel, answered())).timers == {encode("t"): 10.0}
    assert feed(kernel, was.Committed(2), was.Ticked(10.0)) == ["fire 't'"]


def test_a_timer_is_in_the_log_until_its_move_is_over() -> None:
    """A crash during the move lets it ring again."""
    kernel = with_timers(t=5.0)
    feed(kernel, received(2), folded(), answered())
    feed(kernel, was.Ticked(5.0))
    assert kernel.committing is not None
    assert kernel.committing.timers == {}
    feed(kernel, was.Committed(2), was.Ticked(6.0))
    assert kernel.committing is None  # The move is still under way and is in no commit.
    assert feed(kernel, fired()) == ["ask"]


def test_a_restored_timer_rings_even_if_its_moment_passed_meanwhile() -> None:
    kernel = operator()
    told = start(kernel, 2, now=50.0, timers={encode("t"): 5.0, encode("u"): 60.0}, counters={"position": 1})
    assert told[-2:] == ["alarm 60.0", "ask"]
    assert feed(kernel, answered()) == ["fire 't'"]


def test_a_timer_that_is_due_when_it_is_set_rings_before_the_next_event() -> None:
    kernel = operator()
    start(kernel, now=10.0)
    feed(kernel, received(1), received(2))
    assert feed(kernel, folded("a", timers={"t": 10.0}), answered()) == ["ask", "fire 't'"]


def test_the_clock_is_at_least_where_a_move_saw_it() -> None:
    """Otherwise a move could see that a timer is due, and the next event would still come before it."""
    kernel = with_timers(t=5.0)
    feed(kernel, received(2), received(3))
    late = was.Folded((), was.NO_CHANGES, was.Choices(6.0, 0))
    assert feed(kernel, late, answered()) == ["ask", "fire 't'"]


def test_a_clock_that_goes_back_does_not_take_time_back() -> None:
    kernel = with_timers(t=5.0)
    feed(kernel, received(2), was.Ticked(6.0), was.Ticked(1.0), folded())
    assert feed(kernel, answered()) == ["fire 't'"]


def test_the_end_of_input_ends_timers_that_are_not_due() -> None:
    kernel = with_timers(t=5.0)
    assert feed(kernel, received_end(2), answered()) == ["ask in ended", "finish 'a'"]
    assert feed(kernel, was.Ticked(9.0)) == ["commit 2"]  # The end mark; the timer has become due too late.
    assert feed(kernel, generated(), was.Committed(2)) == ["ack up 2 IdSet(0)", "commit 3"]
    assert kernel.committing is not None
    assert kernel.committing.timers == {encode("t"): None}
    assert feed(kernel, was.Committed(3), was.Ticked(10.0)) == ["ack up 2 IdSet(2)", "complete"]
