"""Input channels: an event is taken once and in order; three cursors say how far the receiver is."""

from __future__ import annotations

import pytest
from tests.unit.protocol.stage import (
    FIRST,
    IN,
    MORE,
    OUT,
    answered,
    connected,
    cursor,
    feed,
    folded,
    generated,
    operator,
    received,
    start,
    tells,
)

from clew.model.history import Cursor
from clew.model.ranges import IdSet
from clew.protocol import inputs as was
from clew.protocol.effects import Effect, Session
from clew.protocol.inbound import InChannel


def inbound(incarnation: int = 1, found: Cursor | None = None, *, is_held: bool = False) -> InChannel:
    """A channel that has just connected."""
    channel = InChannel(IN, is_held)
    channel.restore(incarnation, found)
    channel.connect([])
    return channel


def take(channel: InChannel, number: int, session: Session | None = None) -> tuple[bool, list[str]]:
    effects: list[Effect] = []
    is_accepted = channel.accepts(session or channel.session, number, effects)
    return is_accepted, tells(effects)


def test_the_next_event_is_accepted_once() -> None:
    channel = inbound()
    assert take(channel, 1) == (True, [])
    assert take(channel, 1) == (False, [])
    assert take(channel, 2) == (True, [])
    assert take(channel, 1) == (False, [])
    assert channel.seen == 2


def test_the_filter_looks_at_what_was_seen_not_at_what_is_durable() -> None:
    """Events wait in memory for their commit; a resend brings them again."""
    channel = inbound()
    take(channel, 1)
    take(channel, 2)
    assert (channel.seen, channel.assigned, channel.durable) == (2, 0, 0)
    channel.connect([])
    assert take(channel, 1) == (False, [])
    assert take(channel, 2) == (False, [])
    assert take(channel, 3) == (True, [])


def test_a_gap_begins_a_new_session_behind_what_is_durable() -> None:
    channel = inbound(found=cursor(4))
    assert take(channel, 5) == (True, [])
    assert take(channel, 7) == (False, ["connect up in 1.2 after 4", "ack up 4 IdSet(0)"])
    assert take(channel, 6, FIRST) == (False, [])  # The rest of the old session is refused.
    assert take(channel, 5) == (False, [])
    assert take(channel, 6) == (True, [])


@pytest.mark.parametrize("session", [Session(1, 2), Session(2, 0), Session(2, 2), Session(3, 1)])
def test_events_of_another_session_are_refused(session: Session) -> None:
    channel = inbound(incarnation=2)
    assert take(channel, 1, session) == (False, [])
    assert take(channel, 1, Session(2, 1)) == (True, [])


def test_a_restart_goes_on_behind_the_assigned_cursor() -> None:
    channel = InChannel(IN, False)
    channel.restore(3, cursor(7, 4, [6]))
    effects: list[Effect] = []
    channel.connect(effects)
    assert tells(effects) == ["connect up in 3.1 after 7", "ack up 7 IdSet(4, 6..6)"]
    assert take(channel, 7) == (False, [])
    assert take(channel, 8) == (True, [])
    assert channel.released == IdSet(4, [6])


def test_a_restored_cursor_is_a_copy() -> None:
    found = cursor(2)
    channel = inbound(found=found)
    channel.released.add(1)
    assert found.released == IdSet()
    row = channel.cursor()
    channel.released.add(2)
    assert row.released == IdSet(1)


def test_only_a_newer_incarnation_of_the_sender_is_greeted_with_a_new_session() -> None:
    channel = inbound()
    effects: list[Effect] = []
    channel.greeted(2, effects)
    channel.greeted(2, effects)
    channel.greeted(1, effects)  # A predecessor that woke up.
    channel.greeted(3, effects)
    assert tells(effects)[::2] == ["connect up in 1.2 after 0", "connect up in 1.3 after 0"]


# Released


def test_an_event_without_pairs_is_released_at_once() -> None:
    channel = inbound()
    take(channel, 1)
    channel.assign(1, 0)
    assert channel.cursor() == cursor(1, 1)


def test_an_event_is_released_with_its_last_pair() -> None:
    channel = inbound()
    for number, pairs in ((1, 1), (2, 2), (3, 1)):
        take(channel, number)
        channel.assign(number, pairs)
    channel.let_go(2)
    assert channel.released == IdSet()
    channel.let_go(3)
    assert channel.released == IdSet(0, [3])
    channel.let_go(2)
    assert channel.released == IdSet(0, [2, 3])
    channel.let_go(1)
    assert channel.released == IdSet(3)
    channel.check()


def test_captured_lineage_holds_what_is_done() -> None:
    channel = inbound(is_held=True)
    for number, pairs in ((1, 1), (2, 0)):
        take(channel, number)
        channel.assign(number, pairs)
    channel.let_go(1)
    assert channel.released == IdSet(0, [2])


def test_the_check_knows_its_invariant() -> None:
    channel = inbound()
    channel.assigned = 1
    with pytest.raises(AssertionError, match=r"up\.out->op\.in: 0, 1, 0"):
        channel.check()
    channel.seen = 1
    channel.released.add_range(1, 2)
    with pytest.raises(AssertionError, match="released more than was assigned"):
        channel.check()


# In a kernel


def test_a_kernel_tells_each_sender_its_cursors_when_it_starts() -> None:
    kernel = operator(inbound=(IN, MORE))
    assert start(kernel, 2, cursors={MORE: cursor(5, 2, [4])}) == [
        "hello down as 2",
        "connect up in 2.1 after 0",
        "ack up 0 IdSet(0)",
        "connect side in 2.1 after 5",
        "ack side 5 IdSet(2, 4..4)",
    ]


def test_only_what_is_durable_is_acknowledged_and_released() -> None:
    kernel = operator()
    start(kernel)
    assert feed(kernel, received(1), folded(), answered()) == ["fold up/1", "ask", "commit 1"]
    assert feed(kernel, received(2), folded("a"), answered()) == ["fold up/2", "ask"]
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "commit 2"]
    assert feed(kernel, was.Committed(2)) == ["ack up 2 IdSet(1)"]


def test_a_duplicate_and_an_event_of_an_old_session_begin_nothing() -> None:
    kernel = operator()
    start(kernel)
    assert feed(kernel, received(1)) == ["fold up/1"]
    assert feed(kernel, received(1), received(2, session=Session(1, 0)), received(2, session=Session(0, 1))) == []
    assert feed(kernel, received(3)) == ["connect up in 1.2 after 0", "ack up 0 IdSet(0)"]
    assert feed(kernel, received(2)) == []
    assert feed(kernel, was.Greeted(IN, 1)) == ["connect up in 1.3 after 0", "ack up 0 IdSet(0)"]
    assert feed(kernel, received(1, session=Session(1, 3)), received(2, session=Session(1, 3))) == []
    assert feed(kernel, folded(), answered()) == ["ask", "fold up/2"]


def test_a_new_session_tells_only_what_is_durable() -> None:
    """Released in memory, by a generation whose commit has not answered, is not released yet."""
    kernel = operator()
    start(kernel)
    feed(kernel, received(1), folded("a"), answered("a"), generated(), answered())
    assert feed(kernel, was.Greeted(IN, 1)) == ["connect up in 1.2 after 0", "ack up 0 IdSet(0)"]
    feed(kernel, was.Committed(1))
    assert feed(kernel, was.Greeted(IN, 2)) == ["connect up in 1.3 after 1", "ack up 1 IdSet(1)"]


def test_a_broken_channel_is_asked_for_again_by_its_receiver() -> None:
    kernel = operator()
    start(kernel)
    feed(kernel, connected(0), received(1), folded("a"), answered("a"), generated("out"), answered(), was.Committed(1))
    assert feed(kernel, was.Broken(IN)) == ["connect up in 1.2 after 1", "ack up 1 IdSet(1)"]
    assert feed(kernel, received(2)) == []  # Of the session that broke.
    assert feed(kernel, was.Broken(OUT)) == []
    assert feed(
        kernel, received(2, session=Session(1, 2)), folded("a"), answered("a"), generated("out"), answered()
    ) == [
        "fold up/2",
        "ask",
        "generate 'a'",
        "ask",
        "commit 2",
    ]
    assert feed(kernel, was.Committed(2)) == ["ack up 2 IdSet(2)"]
    assert feed(kernel, connected(1, session=Session(1, 2))) == ["send down 2 in 1.2"]


def test_news_of_a_session_that_is_over_begins_nothing() -> None:
    kernel = operator()
    start(kernel)
    assert feed(kernel, was.Greeted(IN, 1)) == ["connect up in 1.2 after 0", "ack up 0 IdSet(0)"]
    assert feed(kernel, was.Broken(IN, FIRST)) == []
    assert kernel.session(IN) == Session(1, 2)
    assert feed(kernel, was.Broken(IN, Session(1, 2))) == ["connect up in 1.3 after 0", "ack up 0 IdSet(0)"]


def test_an_acknowledgement_names_the_session_of_its_time() -> None:
    kernel = operator()
    start(kernel)
    feed(kernel, received(1), folded(), answered(), was.Greeted(IN, 1))
    (ack,) = kernel.step(was.Committed(1))
    assert ack.session == Session(1, 2)  # type: ignore[union-attr]
