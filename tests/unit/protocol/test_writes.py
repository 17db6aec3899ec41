"""Write actions: one at a time per connection, in the order of their ids, settled after a crash by their kind."""

from __future__ import annotations

import pytest
from tests.unit.protocol.stage import (
    answered,
    commit_in,
    connected,
    feed,
    folded,
    generated,
    operator,
    output,
    received,
    received_end,
    start,
    step,
    tells,
)

from clew.model.connection import Kind
from clew.protocol import inputs as was
from clew.protocol.effects import Effect
from clew.protocol.logio import OperatorKernel
from clew.protocol.settings import Settings
from clew.protocol.writes import Writer

CONDITIONAL, CHECKABLE, IDEMPOTENT = Kind.CONDITIONAL, Kind.CHECKABLE, Kind.IDEMPOTENT
KINDS = pytest.mark.parametrize("kind", list(Kind), ids=str)


def writer_of(kind: Kind, durable: int = 0, **sizes: int) -> Writer:
    writer = Writer("db", kind, Settings(**sizes))
    for number in range(1, durable + 1):
        writer.last = number
        writer.became_durable(output(number, "db"))
    return writer


def restored(kind: Kind, last: int, done: int, *, dead: bool = True) -> Writer:
    """A successor that has read all pending actions from the log."""
    writer = Writer("db", kind, Settings())
    writer.restore(last, done, dead)
    writer.fetched(tuple(output(number, "db") for number in range(done + 1, last + 1)))
    return writer


def pump(writer: Writer) -> list[str]:
    effects: list[Effect] = []
    writer.pump(effects)
    writer.check()
    return tells(effects)


def checked(writer: Writer, number: int, is_in: bool) -> list[str]:
    effects: list[Effect] = []
    writer.checked(number, is_in, effects)
    return tells(effects)


def unknown(writer: Writer, number: int) -> list[str]:
    effects: list[Effect] = []
    writer.unknown(number, effects)
    return tells(effects)


@KINDS
def test_one_at_a_time_in_the_order_of_their_ids(kind: Kind) -> None:
    writer = writer_of(kind, durable=3)
    for number in (1, 2, 3):
        assert pump(writer) == [f"write db {number}"]
        assert pump(writer) == []  # It is under way.
        assert writer.written(number)
        writer.done_durable = number
    assert pump(writer) == []
    assert writer.is_settled


@KINDS
def test_nothing_is_written_before_it_is_durable(kind: Kind) -> None:
    writer = writer_of(kind)
    writer.last = 1
    assert pump(writer) == []
    writer.became_durable(output(1, "db"))
    assert pump(writer) == ["write db 1"]
    assert not writer.is_settled


@KINDS
def test_an_answer_counts_once_and_only_for_what_is_under_way(kind: Kind) -> None:
    writer = writer_of(kind, durable=2)
    assert not writer.written(1)
    assert pump(writer) == ["write db 1"]
    assert not writer.written(2)
    assert writer.written(1)
    assert not writer.written(1)
    assert writer.done == 1


def test_only_an_idempotent_writer_waits_until_the_done_mark_is_durable() -> None:
    """Doing an action again must come directly after doing it first: a crash must not leave two to be done again."""
    for kind in Kind:
        writer = writer_of(kind, durable=2)
        pump(writer)
        writer.written(1)
        assert pump(writer) == ([] if kind is IDEMPOTENT else ["write db 2"])
        writer.done_durable = 1
        assert pump(writer) == (["write db 2"] if kind is IDEMPOTENT else [])


def test_actions_that_do_not_fit_in_memory_are_read_from_the_log() -> None:
    writer = writer_of(CONDITIONAL, durable=3, cache_max=1, window=2)
    assert pump(writer) == ["write db 1"]
    writer.written(1)
    assert pump(writer) == ["fetch db 2 x2"]
    assert pump(writer) == []
    writer.fetched((output(2, "db"), output(3, "db")))
    assert pump(writer) == ["write db 2"]
    writer.written(2)
    assert pump(writer) == ["write db 3"]


# Lost answers


def test_a_lost_answer_of_a_conditional_or_idempotent_write_is_asked_for_again() -> None:
    for kind in (CONDITIONAL, IDEMPOTENT):
        writer = writer_of(kind, durable=1)
        assert pump(writer) == ["write db 1"]
        assert unknown(writer, 1) == ["write db 1"]
        assert unknown(writer, 1) == ["write db 1"]
        assert writer.written(1)


def test_a_lost_answer_of_a_checkable_write_is_checked_first() -> None:
    writer = writer_of(CHECKABLE, durable=2)
    assert pump(writer) == ["write db 1"]
    assert unknown(writer, 1) == ["check db 1"]
    assert checked(writer, 1, is_in=False) == ["write db 1"]
    assert unknown(writer, 1) == ["check db 1"]
    assert checked(writer, 1, is_in=True) == []
    assert writer.done == 1
    assert pump(writer) == ["write db 2"]  # Nobody can have done it.


@KINDS
def test_a_lost_answer_of_something_else_changes_nothing(kind: Kind) -> None:
    writer = writer_of(kind, durable=2)
    assert unknown(writer, 1) == []
    pump(writer)
    assert unknown(writer, 2) == []
    writer.written(1)
    assert unknown(writer, 1) == []


# After a crash


@pytest.mark.parametrize(("kind", "begins"), [(CONDITIONAL, "write"), (CHECKABLE, "check"), (IDEMPOTENT, "write")])
def test_a_successor_settles_what_its_dead_predecessor_may_have_done(kind: Kind, begins: str) -> None:
    assert pump(restored(kind, last=3, done=1)) == [f"{begins} db 2"]


def test_after_the_first_that_is_not_in_nothing_needs_to_be_checked() -> None:
    writer = restored(CHECKABLE, last=4, done=0)
    assert pump(writer) == ["check db 1"]
    checked(writer, 1, is_in=True)
    assert pump(writer) == ["check db 2"]
    assert checked(writer, 2, is_in=False) == ["write db 2"]
    writer.written(2)
    assert pump(writer) == ["write db 3"]


@pytest.mark.parametrize(("kind", "begins"), [(CHECKABLE, "check"), (IDEMPOTENT, "write")])
def test_while_a_predecessor_may_live_only_conditional_writes_go_on(kind: Kind, begins: str) -> None:
    assert pump(restored(CONDITIONAL, last=1, done=0, dead=False)) == ["write db 1"]
    writer = restored(kind, last=1, done=0, dead=False)
    assert pump(writer) == []
    writer.buried()
    assert pump(writer) == [f"{begins} db 1"]


def test_actions_made_while_the_predecessor_may_live_wait_too() -> None:
    writer = restored(CHECKABLE, last=0, done=0, dead=False)
    writer.last = 1
    writer.became_durable(output(1, "db"))
    assert pump(writer) == []
    writer.buried()
    assert pump(writer) == ["write db 1"]


def test_a_writer_whose_next_action_is_gone_does_nothing_more() -> None:
    """A paused predecessor wakes up: its successor has done and forgotten what it wanted to do."""
    writer = Writer("db", CONDITIONAL, Settings())
    writer.restore(last=3, done=0, is_predecessor_dead=True)
    assert pump(writer) == ["fetch db 1 x64"]
    writer.fetched((output(3, "db"),))
    assert pump(writer) == []


def test_large_actions_wait_in_the_log_and_not_in_memory() -> None:
    size = output(1, "db").event.size
    writer = Writer("db", CONDITIONAL, Settings(cache_bytes=2 * size))
    writer.last = 4
    for number in range(1, 5):
        writer.became_durable(output(number, "db"))
    assert (list(writer.cache), writer.cached_bytes) == ([1, 2], 2 * size)
    for number in (1, 2):
        assert pump(writer) == [f"write db {number}"]
        assert writer.written(number)
    assert (pump(writer), writer.cached_bytes) == (["fetch db 3 x64"], 0)
    writer.fetched((output(3, "db"), output(4, "db")))
    assert pump(writer) == ["write db 3"]


def test_the_check_knows_its_invariant() -> None:
    writer = writer_of(CONDITIONAL, durable=1)
    writer.done = 2
    with pytest.raises(AssertionError, match="connection db: 2"):
        writer.check()


# In a kernel


def writing(kind: Kind = CONDITIONAL, **parts: object) -> OperatorKernel:
    """A started kernel with a write connection that has just generated one write action and one output."""
    kernel = operator(writes={"db": kind}, **parts)
    start(kernel)
    feed(kernel, connected(0), received(1), folded("a"), answered("a"))
    assert feed(kernel, generated("out", "db")) == ["ask"]
    assert feed(kernel, answered()) == ["commit 1"]
    return kernel


def test_a_write_begins_when_its_commit_answers() -> None:
    kernel = writing()
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "send down 1 in 1.1", "write db 1"]


def test_a_done_write_is_marked_and_forgotten_in_one_commit() -> None:
    kernel = writing()
    feed(kernel, was.Committed(1))
    transaction = commit_in(step(kernel, was.Written("db", 1)))
    assert transaction.counters == {"written:db": 1}
    assert transaction.forget_outputs == [("db", 1, 1)]
    assert feed(kernel, was.Written("db", 1), was.Committed(2)) == []  # The second answer is no news.


def test_a_commit_that_began_before_an_answer_does_not_make_it_durable() -> None:
    """An idempotent action must be done again directly after itself; so the next one waits for the right commit."""
    kernel = operator(writes={"db": IDEMPOTENT}, outbound=())
    start(kernel)
    feed(kernel, received(1), folded("a"), answered("a"), generated("db", "db"), answered())
    assert feed(kernel, was.Committed(1))[-1] == "write db 1"
    assert feed(kernel, received(2), folded(), answered()) == ["fold up/2", "ask", "commit 2"]
    assert feed(kernel, was.Written("db", 1)) == []
    assert feed(kernel, was.Committed(2)) == ["ack up 2 IdSet(2)", "commit 3"]
    assert feed(kernel, was.Committed(3)) == ["write db 2"]


def test_a_write_that_was_checked_to_be_in_is_marked_too() -> None:
    kernel = operator(writes={"db": CHECKABLE})
    assert start(kernel, 2, counters={"out:db": 1, "position": 1}) == [
        "hello down as 2",
        "fetch db 1 x64",
        "connect up in 2.1 after 0",
        "ack up 0 IdSet(0)",
        "ask",
    ]
    assert feed(kernel, was.Fetched("db", 1, (output(1, "db"),))) == ["check db 1"]
    assert feed(kernel, was.Checked("db", 1, True)) == []  # `ready` is being asked; the mark joins what comes of it.
    assert commit_in(step(kernel, answered())).counters == {"written:db": 1}


def test_a_kernel_asks_again_when_an_answer_was_lost() -> None:
    kernel = writing(CHECKABLE)
    feed(kernel, was.Committed(1))
    assert feed(kernel, was.WriteUnknown("db", 1)) == ["check db 1"]
    assert feed(kernel, was.Checked("db", 1, False)) == ["write db 1"]


def test_writes_wait_until_every_predecessor_is_buried() -> None:
    kernel = operator(writes={"db": IDEMPOTENT})
    assert "fetch db 1 x64" not in start(kernel, 2, dead=False, counters={"out:db": 1})
    assert feed(kernel, was.Buried()) == ["fetch db 1 x64"]
    assert feed(kernel, was.Fetched("db", 1, (output(1, "db"),))) == ["write db 1"]


def test_outputs_wait_for_the_writes_generated_before_or_with_them() -> None:
    kernel = writing(writes_first=True)
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "write db 1"]
    assert feed(kernel, was.Written("db", 1)) == ["send down 1 in 1.1", "commit 2"]


def test_an_output_yielded_before_its_write_requires_it_all_the_same() -> None:
    kernel = operator(writes={"db": CONDITIONAL}, writes_first=True)
    start(kernel)
    feed(kernel, received(1), folded("a"), answered("a"), generated("out", "db", "out", "db"))
    outputs = commit_in(step(kernel, answered())).outputs
    assert [(each.event.port, each.event.id, each.requires) for each in outputs] == [
        ("db", 1, ()),
        ("db", 2, ()),
        ("out", 1, (("db", 2),)),
        ("out", 2, (("db", 2),)),
    ]


def test_a_replica_is_complete_when_its_last_write_is_durably_done() -> None:
    kernel = operator(writes={"db": CONDITIONAL}, outbound=())
    start(kernel)
    feed(kernel, received_end(1), answered(), generated("db"))
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "write db 1"]
    assert feed(kernel, was.Written("db", 1)) == ["commit 2"]
    assert feed(kernel, was.Committed(2)) == ["complete"]


def test_two_connections_do_not_wait_for_each_other() -> None:
    kernel = operator(writes={"db": CONDITIONAL, "queue": CONDITIONAL}, outbound=())
    start(kernel)
    feed(kernel, received(1), folded("a"), answered("a"), generated("queue", "db", "db"), answered())
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "write db 1", "write queue 1"]
    assert feed(kernel, was.Written("db", 1)) == ["write db 2", "commit 2"]


def test_a_resend_of_an_output_waits_for_its_writes_after_a_crash() -> None:
    kernel = operator(writes={"db": CONDITIONAL}, writes_first=True)
    start(kernel, 2, counters={"out:db": 1, "out:out": 1})
    assert feed(kernel, connected(0)) == ["fetch out 1 x64"]
    resent = output(1, requires=(("db", 1),))
    assert feed(kernel, was.Fetched("out", 1, (resent,))) == []
    assert feed(kernel, was.Fetched("db", 1, (output(1, "db"),))) == ["write db 1"]
    assert feed(kernel, was.Written("db", 1)) == ["send down 1 in 1.1", "commit 1"]
