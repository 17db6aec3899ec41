"""Recovery: undone pairs are folded in the order of their assignment, and until the last is, nothing is delivered."""

from __future__ import annotations

import pytest
from tests.unit.protocol.stage import (
    ALSO,
    IN,
    MORE,
    OUT,
    acked,
    answered,
    commit_in,
    connected,
    cursor,
    event,
    feed,
    folded,
    generated,
    operator,
    output,
    received,
    received_end,
    start,
    step,
    undone,
)

from clew.model.connection import Kind
from clew.model.ranges import IdSet
from clew.model.values import encode
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Session
from clew.protocol.logio import OperatorKernel
from clew.protocol.settings import Settings

SECOND = Session(2, 1)

# The case of the errata: hours q1, q2, p1 in I1 and p2 in I2, assigned in this order; a round robin over the ports
# with a trigger after each would generate I1 without q2.
PAIRS = [
    undone(1, 1, "I1", 1, channel=MORE),
    undone(2, 2, "I1", 1, channel=MORE, note="second"),
    undone(3, 1, "I1", 1),
    undone(4, 2, "I2", 2),
]
CRASHED = {
    "cursors": {IN: cursor(2), MORE: cursor(2)},
    "counters": {"order": 4, "serial": 2, "position": 6, "out:out": 3},
    "undone": PAIRS,
    "open_sets": [(1, encode("I1")), (2, encode("I2"))],
    "timers": {encode("t"): 5.0},
}


def crashed(**sizes: int) -> OperatorKernel:
    return operator(inbound=(IN, MORE), settings=Settings(**sizes))


def pulled(*places: tuple[int, object]) -> was.Pulled:
    return was.Pulled(tuple(event(number, channel) for number, channel in places))  # type: ignore[arg-type]


def test_a_restart_tells_everybody_where_it_is_and_reads_the_undone_events() -> None:
    assert start(crashed(), 2, now=9.0, **CRASHED) == [
        "hello down as 2",
        "connect up in 2.1 after 2",
        "ack up 2 IdSet(0)",
        "connect side in 2.1 after 2",
        "ack side 2 IdSet(0)",
        "pull side/1 side/2 up/1 up/2",
    ]


def test_pairs_are_folded_in_the_order_of_assignment_and_ready_is_asked_after_the_last() -> None:
    kernel = crashed()
    start(kernel, 2, **CRASHED)
    told = feed(kernel, pulled((1, MORE), (2, MORE), (1, IN), (2, IN)))
    for _ in range(4):
        told += feed(kernel, was.Refolded())
    assert told == [
        "refold side/1 in 'I1'",
        "refold side/2 in 'I1' 'second'",
        "refold up/1 in 'I1'",
        "refold up/2 in 'I2'",
        "ask",
    ]


def test_until_the_last_pair_is_folded_nothing_is_delivered() -> None:
    kernel = crashed()
    start(kernel, 2, **CRASHED)
    meanwhile = (
        received(3, session=SECOND),
        received_end(4, session=SECOND),
        received_end(3, MORE, SECOND),
        was.Ticked(10.0),
        was.Buried(),
    )
    assert feed(kernel, *meanwhile) == []
    told = feed(kernel, pulled((1, MORE), (2, MORE), (1, IN), (2, IN)))
    for _ in range(3):
        told += feed(kernel, was.Ticked(11.0), was.Refolded())
    assert [words for words in told if not words.startswith("refold")] == []
    assert feed(kernel, was.Refolded()) == ["ask"]
    assert feed(kernel, answered()) == ["fire 't'"]  # Due since long; the events come after it.


def test_what_was_not_acknowledged_goes_on_behind_the_restored_cursor() -> None:
    kernel = crashed()
    start(kernel, 2, **CRASHED)
    feed(kernel, pulled((1, MORE), (2, MORE), (1, IN), (2, IN)), *[was.Refolded()] * 4, answered())
    assert feed(kernel, received(2, session=SECOND), received(3)) == []  # Obsolete; of an old session.
    assert feed(kernel, received(3, session=SECOND)) == ["fold up/3"]


def test_bodies_are_pulled_a_few_at_a_time() -> None:
    kernel = crashed(pull_max=3)
    assert start(kernel, 2, **CRASHED)[-1] == "pull side/1 side/2 up/1"
    told = feed(kernel, pulled((1, MORE), (2, MORE), (1, IN)), *[was.Refolded()] * 3)
    assert told[-1] == "pull up/2"
    assert feed(kernel, pulled((2, IN)), was.Refolded()) == ["refold up/2 in 'I2'", "ask"]


def test_folding_again_changes_nothing_durable() -> None:
    kernel = crashed()
    start(kernel, 2, **CRASHED)
    feed(kernel, pulled((1, MORE), (2, MORE), (1, IN), (2, IN)), *[was.Refolded()] * 4)
    assert feed(kernel, answered(), was.Ticked(1.0)) == []


def test_generating_a_restored_set_releases_what_only_it_needed() -> None:
    kernel = crashed()
    shared = [undone(1, 1, "I1", 1), undone(2, 1, "I2", 2), undone(3, 2, "I1", 1)]
    start(kernel, 2, **{**CRASHED, "undone": shared, "timers": {}})
    feed(kernel, pulled((1, IN), (1, IN), (2, IN)), *[was.Refolded()] * 3, answered("I1"), generated("out"))
    transaction = commit_in(step(kernel, answered()))
    assert [each.event.id for each in transaction.outputs] == [4]
    assert transaction.forget_sets == [1]
    assert transaction.cursors[IN].released == IdSet(0, [2])  # Event 1 is still in I2.


def test_a_half_done_event_is_folded_only_into_the_set_that_is_undone() -> None:
    """Example 8: a2 was in I1, which is done, and in I2, which is not."""
    kernel = operator()
    start(kernel, 2, cursors={IN: cursor(2, 1)}, undone=[undone(3, 2, "I2", 2)], open_sets=[(2, encode("I2"))])
    assert feed(kernel, pulled((2, IN))) == ["refold up/2 in 'I2'"]


def test_a_restart_with_nothing_undone_asks_at_once_if_anything_ever_happened() -> None:
    assert start(operator(), 2, counters={"position": 3})[-1] == "ask"
    assert "ask" not in start(operator(), 2)


def test_after_the_end_of_input_a_restart_comes_to_finish() -> None:
    kernel = operator()
    found = {"cursors": {IN: cursor(3, 1, ended=True)}, "counters": {"position": 3}}
    start(kernel, 2, undone=[undone(1, 2, "a")], open_sets=[(1, encode("a"))], **found)
    assert feed(kernel, pulled((2, IN)), was.Refolded()) == ["refold up/2 in 'a'", "ask in ended"]
    assert feed(kernel, answered()) == ["finish 'a'"]
    step(kernel, generated("out"))
    assert kernel.committing is not None
    assert kernel.committing.cursors[IN].released == IdSet(3)


def test_a_finished_replica_runs_no_move_again() -> None:
    kernel = operator()
    told = start(
        kernel, 3, cursors={IN: cursor(3, 3, ended=True)}, counters={"position": 9, "finished": 1, "out:out": 2}
    )
    assert told == ["hello down as 3", "connect up in 3.1 after 3", "ack up 3 IdSet(3)", "complete"]
    assert feed(kernel, connected(0), was.Ticked(1.0)) == ["fetch out 1 x64"]


def test_a_finished_replica_with_pending_writes_is_not_complete() -> None:
    kernel = operator(writes={"db": Kind.CONDITIONAL}, outbound=())
    assert "complete" not in start(kernel, 2, counters={"position": 9, "finished": 1, "out:db": 2, "written:db": 1})
    assert feed(kernel, was.Fetched("db", 2, (output(2, "db"),))) == ["write db 2"]
    assert feed(kernel, was.Written("db", 2)) == ["commit 1"]
    assert feed(kernel, was.Committed(1)) == ["complete"]


def test_outputs_are_resent_to_each_receiver_from_where_it_is() -> None:
    kernel = operator(outbound=(OUT, ALSO))
    start(kernel, 2, counters={"out:out": 3})
    assert feed(kernel, connected(1, session=Session(5, 2)), connected(2, ALSO)) == ["fetch out 2 x64"]
    assert feed(kernel, was.Fetched("out", 2, (output(2), output(3)))) == [
        "send down 2 in 5.2",
        "send down 3 in 5.2",
        "send other 3 in 1.1",
    ]


def test_ids_go_on_after_a_restart_even_if_nothing_is_left_in_the_log() -> None:
    kernel = operator()
    start(kernel, 2, counters={"out:out": 30, "position": 1})
    feed(kernel, answered(), received(1, session=SECOND), folded("a"), answered("a"), generated("out"))
    assert [each.event.id for each in commit_in(step(kernel, answered())).outputs] == [31]


def test_what_was_released_before_the_restart_is_learned_again_and_forgotten() -> None:
    kernel = operator()
    start(kernel, 2, counters={"out:out": 3, "position": 1})
    feed(kernel, answered(), acked(3, 2))
    assert commit_in(step(kernel, was.Ticked(1.0))).forget_outputs == [("out", 1, 2)]


def test_events_that_were_not_asked_for_are_refused() -> None:
    kernel = crashed()
    start(kernel, 2, **CRASHED)
    with pytest.raises(AssertionError, match=r"pulled up\.out/1 instead of"):
        kernel.step(pulled((1, IN), (1, MORE), (2, MORE), (2, IN)))


def test_a_crash_while_recovering_changes_nothing_so_that_the_next_does_the_same() -> None:
    first, second = crashed(), crashed()
    one = start(first, 2, **CRASHED)
    feed(first, pulled((1, MORE), (2, MORE), (1, IN), (2, IN)), was.Refolded())
    two = start(second, 3, **CRASHED)
    assert [words.replace("in 3.", "in 2.").replace("as 3", "as 2") for words in two] == one


def test_the_check_refuses_a_move_that_overtakes_the_undone_pairs() -> None:
    kernel = crashed()
    start(kernel, 2, **CRASHED)
    for move in (does.Fold(IN, event(3)), does.Fire(encode("t")), does.Ask(frozenset()), does.Finish(())):
        kernel.move = move
        with pytest.raises(AssertionError):
            kernel.check()
