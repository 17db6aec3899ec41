"""Output ports: only durable events leave, in the order of their ids, inside a window; what is released can go."""

from __future__ import annotations

import pytest
from tests.unit.protocol.stage import ALSO, FIRST, IN, OUT, output, tells

from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.protocol.effects import Effect, Session
from clew.protocol.outbound import OutChannel, OutPort, Requires
from clew.protocol.settings import Settings


def port_of(*channels: Channel, durable: int = 0, **sizes: int) -> OutPort:
    """A port with receivers; the first ids were made durable in its life, so they are in its memory."""
    port = OutPort("out", [OutChannel(channel) for channel in channels or (OUT,)], Settings(**sizes))
    for number in range(1, durable + 1):
        make_durable(port, number)
    return port


def make_durable(port: OutPort, number: int, requires: Requires = ()) -> None:
    port.last = number
    port.became_durable(output(number, requires=requires))


def ack(
    port: OutPort, channel: Channel, assigned: int, released: IdSet, pressure: int = 0, session: Session | None = None
) -> None:
    """An acknowledgement, of the receiver's session unless told otherwise."""
    (receiver,) = (each for each in port.channels if each.channel == channel)
    port.acked(channel, session or receiver.session or FIRST, assigned, released, pressure)


def pump(port: OutPort, done: int = 0) -> list[str]:
    """Pumps, with so many writes done; checks the invariant."""
    effects: list[Effect] = []
    port.pump(lambda requires: all(number <= done for _, number in requires), effects)
    port.check()
    return tells(effects)


def test_nothing_is_sent_without_a_session() -> None:
    assert pump(port_of(durable=3)) == []


def test_a_session_gets_what_comes_after_its_assigned_cursor_in_order() -> None:
    port = port_of(durable=4)
    port.connected(OUT, FIRST, 2)
    assert pump(port) == ["send down 3 in 1.1", "send down 4 in 1.1"]
    assert pump(port) == []


def test_what_is_not_durable_is_not_sent() -> None:
    port = port_of(durable=1)
    port.last = 2  # A move made event 2; its commit has not answered.
    port.connected(OUT, FIRST, 0)
    assert pump(port) == ["send down 1 in 1.1"]
    port.became_durable(output(2))
    assert pump(port) == ["send down 2 in 1.1"]


def test_the_window_holds_back_until_acknowledged() -> None:
    port = port_of(durable=5, window=2)
    port.connected(OUT, FIRST, 0)
    assert pump(port) == ["send down 1 in 1.1", "send down 2 in 1.1"]
    ack(port, OUT, 1, IdSet())
    assert pump(port) == ["send down 3 in 1.1"]
    ack(port, OUT, 3, IdSet())
    assert pump(port) == ["send down 4 in 1.1", "send down 5 in 1.1"]


def test_every_receiver_has_a_window_of_its_own() -> None:
    port = port_of(OUT, ALSO, durable=4, window=1)
    port.connected(OUT, FIRST, 0)
    port.connected(ALSO, FIRST, 2)
    assert pump(port) == ["send down 1 in 1.1", "send other 3 in 1.1"]
    ack(port, ALSO, 3, IdSet())
    assert pump(port) == ["send other 4 in 1.1"]


def test_after_a_restart_outputs_come_from_the_log_in_order() -> None:
    port = port_of(window=3)
    port.restore(5)
    port.connected(OUT, FIRST, 1)
    assert pump(port) == ["fetch out 2 x3"]
    assert pump(port) == []  # One is under way.
    port.fetched((output(2), output(3), output(4)), 2)
    assert pump(port) == ["send down 2 in 1.1", "send down 3 in 1.1", "send down 4 in 1.1"]
    ack(port, OUT, 4, IdSet())
    assert pump(port) == ["fetch out 5 x3"]
    port.fetched((output(5),), 5)
    assert pump(port) == ["send down 5 in 1.1"]


def test_what_does_not_fit_in_memory_is_read_from_the_log() -> None:
    port = port_of(durable=3, cache_max=1, window=4)
    port.connected(OUT, FIRST, 0)
    assert pump(port) == ["send down 1 in 1.1", "fetch out 2 x4"]
    port.fetched((output(2), output(3)), 2)
    assert pump(port) == ["send down 2 in 1.1", "send down 3 in 1.1"]


def test_memory_stays_small_when_one_receiver_is_slow() -> None:
    port = port_of(OUT, ALSO, cache_max=4, window=2)
    port.connected(OUT, FIRST, 0)
    port.connected(ALSO, FIRST, 0)
    for number in range(1, 101):
        make_durable(port, number)
        if f"fetch out {number} x2" in pump(port):
            port.fetched((output(number),), number)
            pump(port)
        ack(port, OUT, number, IdSet(number))
    assert [receiver.sent for receiver in port.channels] == [100, 2]
    assert len(port.cache) <= 4 + 2


def test_an_output_that_requires_writes_waits_for_them_and_holds_back_what_follows() -> None:
    port = port_of()
    make_durable(port, 1)
    make_durable(port, 2, requires=(("db", 3),))
    make_durable(port, 3)
    port.connected(OUT, FIRST, 0)
    assert pump(port, done=2) == ["send down 1 in 1.1"]
    assert pump(port, done=3) == ["send down 2 in 1.1", "send down 3 in 1.1"]


def test_a_resent_output_requires_its_writes_too() -> None:
    port = port_of()
    port.restore(1)
    port.connected(OUT, FIRST, 0)
    assert pump(port) == ["fetch out 1 x64"]
    port.fetched((output(1, requires=(("db", 2),)),), 1)
    assert pump(port, done=1) == []
    assert pump(port, done=2) == ["send down 1 in 1.1"]


# Sessions


def test_a_newer_session_begins_at_its_assigned_cursor() -> None:
    port = port_of(durable=3, window=8)
    port.connected(OUT, FIRST, 0)
    assert len(pump(port)) == 3
    port.connected(OUT, Session(2, 1), 1)
    assert pump(port) == ["fetch out 2 x8"]
    port.fetched((output(2), output(3)), 2)
    assert pump(port) == ["send down 2 in 2.1", "send down 3 in 2.1"]


@pytest.mark.parametrize("late", [FIRST, Session(1, 2), Session(2, 0), Session(2, 1)])
def test_a_late_or_repeated_connect_changes_nothing(late: Session) -> None:
    port = port_of(durable=2)
    port.connected(OUT, Session(2, 1), 2)
    port.connected(OUT, late, 0)
    assert pump(port) == []
    assert port.channels[0].session == Session(2, 1)


def test_a_receiver_that_asks_for_what_is_gone_is_none_of_todays() -> None:
    port = port_of()
    port.restore(9)
    port.connected(OUT, Session(1, 7), 2)  # A late message of an incarnation that has been replaced.
    assert pump(port) == ["fetch out 3 x64"]
    port.fetched((output(8), output(9)), 3)
    assert pump(port) == []
    port.connected(OUT, Session(2, 1), 7)
    assert pump(port) == ["send down 8 in 2.1", "send down 9 in 2.1"]


def test_a_gap_found_for_an_old_session_does_not_end_the_new_one() -> None:
    port = port_of()
    port.restore(9)
    port.connected(OUT, Session(1, 7), 2)
    assert pump(port) == ["fetch out 3 x64"]
    port.connected(OUT, Session(2, 1), 8)
    port.fetched((output(9),), 3)
    assert pump(port) == ["send down 9 in 2.1"]


def test_an_acknowledgement_of_an_old_session_is_only_old() -> None:
    port = port_of(durable=5, window=2)
    port.connected(OUT, Session(2, 1), 3)
    assert pump(port) == ["send down 4 in 2.1", "send down 5 in 2.1"]
    ack(port, OUT, 1, IdSet(1))
    assert (port.channels[0].acked, port.channels[0].sent) == (3, 5)


def test_an_acknowledgement_beyond_what_was_sent_moves_the_session_on() -> None:
    """The log of the receiver is further than the session: it assigned events that an earlier session brought."""
    port = port_of(durable=4, window=1)
    port.connected(OUT, FIRST, 0)
    assert pump(port) == ["send down 1 in 1.1"]
    ack(port, OUT, 3, IdSet())
    assert pump(port) == ["send down 4 in 1.1"]


def test_a_channel_of_another_port_is_unknown() -> None:
    with pytest.raises(KeyError):
        port_of().connected(IN, FIRST, 0)


def test_a_broken_session_sends_nothing_until_the_receiver_begins_another() -> None:
    port = port_of(OUT, ALSO, durable=2)
    port.connected(OUT, FIRST, 0)
    port.connected(ALSO, FIRST, 1)
    port.broken(OUT)
    assert pump(port) == ["send other 2 in 1.1"]
    port.connected(OUT, Session(1, 2), 1)
    assert pump(port) == ["fetch out 2 x64"]
    port.fetched((output(2),), 2)
    assert pump(port) == ["send down 2 in 1.2"]


def test_news_of_a_session_that_broke_does_not_end_the_next_one() -> None:
    """The two ends hear of it at different times; the receiver may have begun anew already."""
    port = port_of(durable=1)
    port.connected(OUT, Session(1, 2), 0)
    port.broken(OUT, FIRST)
    assert port.session(OUT) == Session(1, 2)
    assert pump(port) == ["send down 1 in 1.2"]
    port.broken(OUT, Session(1, 2))
    assert port.session(OUT) is None


# Backlog and forgetting


def test_the_backlog_counts_from_the_slowest_receiver_and_includes_what_is_not_durable() -> None:
    port = port_of(OUT, ALSO, durable=5)
    port.last = 6
    assert port.backlog() == 6
    ack(port, OUT, 5, IdSet())
    ack(port, ALSO, 2, IdSet())
    assert port.backlog() == 4


def test_the_pressure_is_what_waits_on_the_fullest_way() -> None:
    port = port_of(OUT, ALSO, durable=5)
    port.connected(OUT, FIRST, 0)
    port.connected(ALSO, FIRST, 0)
    ack(port, OUT, 5, IdSet(), 30)
    assert port.pressure() == 30
    ack(port, ALSO, 1, IdSet(), 40)
    assert port.pressure() == 44
    ack(port, ALSO, 5, IdSet(), 2)
    assert port.pressure() == 30
    ack(port, ALSO, 5, IdSet(), 99, session=Session(0, 1))  # Of an old session: it knows nothing of the pressure now.
    assert port.pressure() == 30
    assert OutPort("out", [], Settings()).pressure() == 0


def test_a_port_without_receivers_has_no_backlog_and_releases_what_is_durable() -> None:
    port = OutPort("out", [], Settings())
    port.last = 3
    port.became_durable(output(2))
    assert port.backlog() == 0
    assert port.forgettable() == [("out", 1, 2)]
    assert port.cache == {}


def test_only_what_every_receiver_has_released_can_be_forgotten_and_only_once() -> None:
    port = port_of(OUT, ALSO, durable=9)
    ack(port, OUT, 9, IdSet(6, [8]))
    assert port.forgettable() == []  # Nothing was heard from the other: it has released nothing.
    ack(port, ALSO, 9, IdSet(3, [5, 8]))
    assert port.forgettable() == [("out", 1, 3), ("out", 5, 5), ("out", 8, 8)]
    assert port.forgettable() == []
    ack(port, ALSO, 9, IdSet(6, [8]))
    assert port.forgettable() == [("out", 4, 4), ("out", 6, 6)]


def test_late_news_of_what_is_released_takes_nothing_back() -> None:
    port = port_of(durable=5)
    ack(port, OUT, 5, IdSet(5))
    assert port.forgettable() == [("out", 1, 5)]
    ack(port, OUT, 2, IdSet(1))
    assert port.released() == IdSet(5)
    assert port.forgettable() == []


def test_the_check_knows_its_invariant() -> None:
    port = port_of(durable=1)
    port.channels[0].sent = 2
    with pytest.raises(AssertionError, match=r"op\.out->down\.in: sent 2, durable 1"):
        port.check()
    port = port_of(durable=1)
    port.channels[0].acked = 2
    with pytest.raises(AssertionError, match="acked 2, not durable"):
        port.check()
    port.durable = 7
    with pytest.raises(AssertionError, match="port out: durable 7 after last 1"):
        port.check()
