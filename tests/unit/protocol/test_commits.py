"""The commit policy: everything decided so far, one at a time, at once when idle, and only its answer allows."""

from __future__ import annotations

import pytest
from tests.unit.protocol.stage import (
    ALSO,
    IN,
    OUT,
    acked,
    answered,
    commit_in,
    connected,
    feed,
    folded,
    generated,
    operator,
    received,
    received_end,
    start,
    step,
)

from clew.model.ranges import IdSet
from clew.protocol import decisions as did
from clew.protocol import inputs as was
from clew.protocol.logio import OperatorKernel
from clew.protocol.settings import Settings


def begun(commit_max: int = 128, **parts: object) -> OperatorKernel:
    kernel = operator(settings=Settings(commit_max=commit_max), **parts)
    start(kernel)
    return kernel


def taken(transaction: object) -> list[int]:
    """The events whose folding a transaction holds."""
    return [each.event for each in transaction.journal if isinstance(each, did.Took)]  # type: ignore[attr-defined]


def test_an_empty_queue_commits_at_once() -> None:
    kernel = begun()
    assert feed(kernel, received(1), folded(), answered()) == ["fold up/1", "ask", "commit 1"]


def test_what_is_queued_is_processed_first_and_committed_together() -> None:
    kernel = begun()
    feed(kernel, received(1), received(2), received(3))
    assert feed(kernel, folded(), answered(), folded(), answered(), folded()) == [
        "ask",
        "fold up/2",
        "ask",
        "fold up/3",
        "ask",
    ]
    transaction = commit_in(step(kernel, answered()))
    assert taken(transaction) == [1, 2, 3]
    assert transaction.counters["position"] == 3


def test_a_commit_begins_when_enough_is_pending_beside_the_next_move() -> None:
    kernel = begun(commit_max=2)
    feed(kernel, received(1), received(2), received(3))
    assert feed(kernel, folded(), answered()) == ["ask", "fold up/2"]
    assert feed(kernel, folded()) == ["commit 1", "ask"]


def test_one_commit_is_under_way_and_the_next_holds_all_that_was_decided_meanwhile() -> None:
    kernel = begun(commit_max=3)
    feed(kernel, received(1), folded(), answered())
    assert feed(kernel, received(2), received(3)) == ["fold up/2"]
    assert feed(kernel, folded(), answered(), folded(), answered()) == ["ask", "fold up/3", "ask"]
    assert taken(commit_in(step(kernel, was.Committed(1)))) == [2, 3]


def test_when_enough_is_pending_moves_wait_for_the_commit_that_is_under_way() -> None:
    kernel = begun(commit_max=1)
    feed(kernel, received(1), received(2), received(3))
    assert feed(kernel, folded(), answered()) == ["commit 1", "ask", "fold up/2"]
    assert feed(kernel, folded()) == []
    assert feed(kernel, was.Ticked(1.0), received(4)) == []
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "commit 2", "ask"]


def test_a_commit_holds_whole_moves_only() -> None:
    """A generation under way is not in a commit that begins beside it."""
    kernel = begun()
    feed(kernel, received(1), folded("a", state={"n": 1}), answered("a"))
    transaction = commit_in(step(kernel, was.Ticked(1.0)))
    assert [(pair.event, pair.serial) for pair in transaction.pairs] == [(1, 1)]
    assert (transaction.outputs, transaction.forget_sets) == ([], [])
    feed(kernel, generated("out"), answered())
    transaction = commit_in(step(kernel, was.Committed(1)))
    assert [output.event.id for output in transaction.outputs] == [1]
    assert transaction.forget_sets == [1]


def test_a_tick_commits_what_is_pending_beside_a_slow_move() -> None:
    kernel = begun()
    feed(kernel, connected(0), received(1), received(2), folded("a"), answered("a"), generated("out"), answered())
    assert feed(kernel, was.Ticked(1.0)) == ["commit 1"]  # Event 2 is being folded, and that takes its time.
    assert feed(kernel, was.Ticked(2.0)) == []
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "send down 1 in 1.1"]


def test_nothing_to_commit_is_no_commit() -> None:
    kernel = begun()
    assert feed(kernel, was.Ticked(1.0), was.Ticked(2.0)) == []


def test_asking_alone_is_no_reason_to_commit() -> None:
    kernel = begun()
    feed(kernel, received(1), folded("a"))
    assert feed(kernel, was.Ticked(1.0)) == ["commit 1"]
    assert feed(kernel, answered()) == []
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(0)"]


def test_only_the_answer_allows_sending_acknowledging_and_writing() -> None:
    kernel = begun()
    feed(kernel, connected(0), received(1), folded("a"), answered("a"), generated("out"))
    assert feed(kernel, answered()) == ["commit 1"]
    assert feed(kernel, was.Ticked(9.0), connected(0), received(2)) == ["fold up/2"]
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "send down 1 in 1.1"]


def test_a_commit_tells_the_cursor_as_it_was_when_it_began() -> None:
    kernel = begun()
    feed(kernel, received(1), folded("a"), answered())
    feed(kernel, received(2), folded("b"), answered("a"), generated(), answered())
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(0)", "commit 2"]
    assert feed(kernel, was.Committed(2)) == ["ack up 2 IdSet(1)"]


# Forgetting what receivers have released


def test_what_is_released_goes_with_the_next_commit_that_happens_anyway() -> None:
    kernel = begun()
    feed(kernel, connected(0), received(1), folded("a"), answered("a"), generated("out", "out"), answered())
    feed(kernel, was.Committed(1))
    assert feed(kernel, acked(2, 1)) == []
    feed(kernel, received(2), folded())
    assert commit_in(step(kernel, answered())).forget_outputs == [("out", 1, 1)]


def test_when_nothing_else_happens_a_tick_forgets() -> None:
    kernel = begun()
    feed(kernel, connected(0), received(1), folded("a"), answered("a"), generated("out"), answered())
    feed(kernel, was.Committed(1), acked(1, 1))
    transaction = commit_in(step(kernel, was.Ticked(1.0)))
    assert transaction.forget_outputs == [("out", 1, 1)]
    assert feed(kernel, was.Committed(2), was.Ticked(2.0)) == []


def test_every_receiver_in_the_graph_counts() -> None:
    kernel = begun(outbound=(OUT, ALSO))
    feed(kernel, received(1), folded("a"), answered("a"), generated("out"), answered(), was.Committed(1), acked(1, 1))
    assert feed(kernel, was.Ticked(1.0)) == []
    feed(kernel, acked(1, 1, ALSO))
    assert commit_in(step(kernel, was.Ticked(2.0))).forget_outputs == [("out", 1, 1)]


def test_outputs_of_a_port_without_receivers_go_once_they_are_durable() -> None:
    kernel = begun(outbound=())
    feed(kernel, received(1), folded("a"), answered("a"), generated("out"), answered(), was.Committed(1))
    assert commit_in(step(kernel, was.Ticked(1.0))).forget_outputs == [("out", 1, 1)]


def test_after_a_restart_outputs_that_nobody_receives_go_too() -> None:
    kernel = operator(outbound=())
    start(kernel, 2, counters={"out:out": 3, "finished": 1})
    assert commit_in(step(kernel, was.Ticked(1.0))).forget_outputs == [("out", 1, 3)]


# The kernel's own check


def test_the_check_runs_over_all_parts() -> None:
    kernel = begun()
    kernel.inputs[IN].assigned = 5
    with pytest.raises(AssertionError, match=r"up\.out->op\.in"):
        kernel.check()
    kernel = begun()
    kernel.ports["out"].channels[0].sent = 1
    with pytest.raises(AssertionError, match=r"op\.out->down\.in: sent 1"):
        kernel.check()


def test_end_marks_wait_in_the_queue_like_events() -> None:
    kernel = begun()
    feed(kernel, received(1), received_end(2))
    assert feed(kernel, folded(), answered()) == ["ask", "ask in ended"]
    assert kernel.inputs[IN].released == IdSet(1)
