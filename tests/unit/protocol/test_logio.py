"""The kernel of an operator: state update, triggering, generation in one transaction, end of input, failures."""

from __future__ import annotations

from tests.unit.protocol.stage import (
    ALSO,
    IN,
    MORE,
    OUT,
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

from clew.model.connection import Kind
from clew.model.history import END_SERIAL
from clew.model.values import encode
from clew.protocol import inputs as was
from clew.protocol.effects import Session
from clew.protocol.logio import OperatorKernel


def begun(**parts: object) -> OperatorKernel:
    kernel = operator(**parts)
    start(kernel)
    return kernel


def test_a_first_start_greets_receivers_connects_to_senders_and_waits() -> None:
    kernel = operator(inbound=(IN, MORE), outbound=(OUT, ALSO))
    assert start(kernel) == [
        "hello down as 1",
        "hello other as 1",
        "connect up in 1.1 after 0",
        "ack up 0 IdSet(0)",
        "connect side in 1.1 after 0",
        "ack side 0 IdSet(0)",
    ]


def test_an_event_goes_through_all_moves_and_then_out() -> None:
    kernel = begun()
    assert feed(kernel, connected(0)) == []
    assert feed(kernel, received(1)) == ["fold up/1"]
    assert feed(kernel, folded("a")) == ["ask"]
    assert feed(kernel, answered("a")) == ["generate 'a'"]
    assert feed(kernel, generated("out")) == ["ask"]
    assert feed(kernel, answered()) == ["commit 1"]
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "send down 1 in 1.1"]


def test_ready_is_asked_until_it_is_empty_before_the_next_event() -> None:
    kernel = begun()
    assert feed(kernel, received(1), received(2)) == ["fold up/1"]
    assert feed(kernel, folded("a", "b", "c")) == ["ask"]
    assert feed(kernel, answered("b")) == ["generate 'b'"]
    assert feed(kernel, generated()) == ["ask"]
    assert feed(kernel, answered("c", "a")) == ["generate 'c' 'a'"]
    assert feed(kernel, generated()) == ["ask"]
    assert feed(kernel, answered()) == ["fold up/2"]


def test_one_move_at_a_time_whatever_comes_in() -> None:
    kernel = begun(inbound=(IN, MORE))
    assert feed(kernel, received(1)) == ["fold up/1"]
    assert feed(kernel, received(2), received(1, MORE), was.Ticked(9.0), connected(0)) == []
    assert feed(kernel, folded()) == ["ask"]
    assert feed(kernel, was.Ticked(10.0)) == ["commit 1"]
    assert feed(kernel, answered()) == ["fold up/2"]
    assert feed(kernel, folded(), answered()) == ["ask", "fold side/1"]


def test_events_are_taken_in_the_order_of_their_arrival_over_all_ports() -> None:
    kernel = begun(inbound=(IN, MORE))
    feed(kernel, received(1, MORE), received(1), received(2), received(2, MORE))
    taken = [move for _ in range(3) for move in feed(kernel, folded(), answered()) if move != "ask"]
    assert taken == ["fold up/1", "fold up/2", "fold side/2"]


def test_a_generation_is_one_piece_of_one_transaction() -> None:
    kernel = begun(writes={"db": Kind.CONDITIONAL})
    feed(kernel, received(1), folded("a", "b", note=5, state={"count": 1}), answered("a"))
    feed(kernel, generated("out", "db", "out", state={"count": None, "last": "a"}, timers={"t": 9.0}))
    transaction = commit_in(step(kernel, answered()))
    assert [(each.event.port, each.event.id) for each in transaction.outputs] == [("db", 1), ("out", 1), ("out", 2)]
    assert [each.event.rows for each in transaction.outputs] == [[{"made": 2}], [{"made": 1}], [{"made": 3}]]
    assert transaction.opened == [(2, encode("b"))]
    assert [(pair.order, pair.event, pair.serial, pair.note) for pair in transaction.pairs] == [(2, 1, 2, encode(5))]
    assert transaction.state == {encode("count"): None, encode("last"): encode("a")}
    assert transaction.timers == {encode("t"): 9.0}
    assert {channel: row.assigned for channel, row in transaction.cursors.items()} == {IN: 1}
    assert transaction.counters == {
        "serial": 2,
        "order": 2,
        "position": 2,
        "state": 2,
        "out:db": 1,
        "out:out": 2,
    }
    assert (transaction.lineage, transaction.uses, transaction.state_versions) == ([], [], [])


def test_an_event_with_nothing_to_do_is_assigned_and_released() -> None:
    kernel = begun()
    feed(kernel, received(1), folded())
    transaction = commit_in(step(kernel, answered()))
    assert (transaction.pairs, transaction.opened) == ([], [])
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)"]


def test_write_actions_keep_their_attributes() -> None:
    kernel = begun(writes={"db": Kind.CONDITIONAL}, outbound=())
    feed(kernel, received(1), folded("a"), answered("a"))
    emission = generated("db").emissions[0]._replace(attributes={"late": True})
    made = was.Generated((emission,), (), was.NO_CHANGES, was.Choices(0.0, 0))
    feed(kernel, made)
    (output,) = commit_in(step(kernel, answered())).outputs
    assert dict(output.event.attributes) == {"late": True}


def test_every_receiver_of_a_port_gets_every_event_of_it() -> None:
    kernel = begun(outbound=(OUT, ALSO))
    feed(
        kernel, connected(0), connected(0, ALSO), received(1), folded("a"), answered("a"), generated("out"), answered()
    )
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "send down 1 in 1.1", "send other 1 in 1.1"]


# End of input


def test_an_end_mark_is_asked_about_and_goes_to_the_reserved_set() -> None:
    kernel = begun(inbound=(IN, MORE))
    assert feed(kernel, received_end(1)) == ["ask in ended"]
    transaction = commit_in(step(kernel, answered()))
    assert [(pair.order, pair.channel, pair.event, pair.serial) for pair in transaction.pairs] == [
        (1, IN, 1, END_SERIAL)
    ]
    assert transaction.cursors[IN].ended
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(0)"]  # Assigned; released by finish() only.


def test_finish_comes_once_when_every_port_has_ended_and_ready_is_empty() -> None:
    kernel = begun(inbound=(IN, MORE))
    feed(kernel, connected(0), received(1), folded("a", "b"), answered())
    assert feed(kernel, received_end(2)) == ["ask in ended"]
    assert feed(kernel, answered()) == []  # The first commit is under way; the other port has not ended.
    assert feed(kernel, received_end(1, MORE)) == ["ask in ended more ended"]
    assert feed(kernel, answered("a")) == ["generate 'a'"]
    assert feed(kernel, generated("out")) == ["ask in ended more ended"]
    assert feed(kernel, answered()) == ["finish 'b'"]
    assert feed(kernel, generated("out")) == []
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(0)", "commit 2"]
    assert feed(kernel, was.Committed(2)) == [
        "ack up 2 IdSet(2)",
        "ack side 1 IdSet(1)",
        "send down 1 in 1.1",
        "send down 2 in 1.1",
        "send down 3 end in 1.1",
        "complete",
    ]
    assert feed(kernel, was.Ticked(99.0), was.Buried()) == []


def test_finishing_logs_the_marks_and_ends_every_pair_and_timer_in_one_transaction() -> None:
    kernel = begun(outbound=(OUT, ALSO))
    feed(kernel, received(1), folded("a", timers={"t": 50.0}), answered())
    feed(kernel, was.Committed(1), received_end(2), answered())
    step(kernel, generated("out", timers={"u": 60.0}))  # Whatever finish() sets is over too.
    transaction = kernel.committing
    assert transaction is not None
    assert [(each.event.id, each.event.is_end) for each in transaction.outputs] == [(1, False), (2, True)]
    assert transaction.timers == {encode("t"): None, encode("u"): None}
    assert sorted(transaction.forget_sets) == [END_SERIAL, 1]
    assert transaction.counters["finished"] == 1
    assert transaction.cursors[IN].released.floor == 2


def test_a_sink_is_complete_when_its_finish_is_durable() -> None:
    kernel = begun(outbound=(), outputs=())
    assert feed(kernel, received_end(1), answered(), generated()) == ["ask in ended", "finish", "commit 1"]
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "complete"]


def test_a_complete_replica_still_serves_its_receivers() -> None:
    kernel = begun()
    feed(kernel, received_end(1), answered(), generated("out"), was.Committed(1))
    assert feed(kernel, connected(0)) == ["send down 1 in 1.1", "send down 2 end in 1.1"]


# Failures


def test_a_set_that_is_not_open_fails_the_replica_and_nothing_follows() -> None:
    kernel = begun()
    feed(kernel, received(1), folded("a"))
    assert feed(kernel, answered("a", "z")) == [
        "fail operator op: ready() named the Input Set 'z', which is not open; open are 'a'. "
        "Name only Input Sets that have events and were not generated yet."
    ]
    assert feed(kernel, was.Ticked(1.0), connected(0), received(2)) == []
    assert kernel.failure is not None


def test_a_set_that_was_generated_is_not_open_any_more() -> None:
    kernel = begun()
    feed(kernel, received(1), folded("a"), answered("a"), generated())
    (words,) = feed(kernel, answered("a"))
    assert words.startswith("fail operator op: ready() named the Input Set 'a', which is not open; open are none.")


def test_a_failed_replica_commits_nothing_of_what_came_before() -> None:
    """It ends like a crash: what was decided and not durable is done again by a successor."""
    kernel = begun()
    feed(kernel, received(1), folded("a"), answered("z"))
    assert feed(kernel, was.Ticked(5.0)) == []


# Stale messages


def test_answers_that_nobody_waits_for_change_nothing() -> None:
    kernel = begun()
    assert feed(kernel, was.Committed(1), was.Committed(0)) == []
    feed(kernel, received(1), folded(), answered())
    assert feed(kernel, was.Committed(2)) == []
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)"]
    assert feed(kernel, was.Committed(1)) == []


def test_a_restarted_receiver_is_sent_what_it_has_not_assigned() -> None:
    kernel = begun()
    feed(kernel, connected(0), received(1), folded("a"), answered("a"), generated("out", "out"), answered())
    feed(kernel, was.Committed(1))
    assert feed(kernel, connected(1, session=Session(2, 1))) == ["fetch out 2 x64"]
    assert feed(kernel, connected(0, session=Session(1, 2))) == []
