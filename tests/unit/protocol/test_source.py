"""The kernel of a source: read actions become events, each once, from an offset or from a stored effect."""

from __future__ import annotations

from tests.unit.protocol.stage import (
    OP,
    Once,
    acked,
    commit_in,
    connected,
    feed,
    got,
    output,
    planned,
    read_action,
    source,
    start,
    step,
)

from clew.model.event import Event, as_batch
from clew.model.history import ReadAction, Stored
from clew.model.values import encode
from clew.protocol import decisions as did
from clew.protocol import inputs as was
from clew.protocol.settings import Settings
from clew.protocol.source import SourceKernel


def stored(action: int, *indexes: int) -> was.EffectFetched:
    """Batches of a stored effect, as the log gives them."""
    rows = (Stored(action, index, Event(OP, "in", index + 1, as_batch([{"x": index}]))) for index in indexes)
    return was.EffectFetched(action, tuple(rows))


def emitted(kernel: SourceKernel) -> list[tuple[int, object]]:
    """Id and number of each event in the commit under way; the end mark has none."""
    assert kernel.committing is not None
    return [
        (each.event.id, "end" if each.event.is_end else each.event.rows[0]["x"]) for each in kernel.committing.outputs
    ]


# Replayable


def test_an_action_is_in_the_log_before_it_is_read() -> None:
    kernel = source()
    assert start(kernel) == ["hello down as 1", "plan"]
    effects = step(kernel, planned("all", state={"planned": True}))
    transaction = commit_in(effects)
    assert transaction.reads == [ReadAction(1, "in", encode("all"), False, False, None, False)]
    assert transaction.counters == {"read": 1, "state": 1, "position": 1}
    assert transaction.state == {encode("planned"): encode(True)}
    assert feed(kernel, was.Ticked(0.0)) == []  # The read has begun beside the commit; nothing of it can leave before.


def test_events_and_the_offset_behind_them_are_in_one_transaction() -> None:
    kernel = source(settings=Settings(read_max=3))
    start(kernel)
    feed(kernel, connected(0))
    assert feed(kernel, planned("all")) == ["commit 1", "read 1 'all' from start x3"]
    assert feed(kernel, was.Committed(1)) == []
    assert feed(kernel, got(1, 2)) == ["commit 2", "read 1 'all' from 2 x3"]
    assert emitted(kernel) == [(1, 1), (2, 2)]
    assert kernel.committing is not None
    assert [row.offset for row in kernel.committing.reads] == [encode(2)]
    assert feed(kernel, was.Committed(2)) == ["send down 1 in 1.1", "send down 2 in 1.1"]


def test_a_complete_action_is_done_and_leaves_no_row_and_the_next_is_planned() -> None:
    kernel = source()
    start(kernel)
    feed(kernel, planned("one"), was.Committed(1))
    assert feed(kernel, got(1, complete=True)) == ["commit 2", "plan"]
    assert kernel.committing is not None
    assert [(row.is_complete, row.is_done) for row in kernel.committing.reads] == [(True, True)]
    assert kernel.committing.forget_reads == [1]
    assert feed(kernel, was.Committed(2), planned("two")) == ["commit 3", "read 2 'two' from start x16"]


def test_the_end_is_an_end_mark_and_then_the_source_is_complete() -> None:
    kernel = source()
    start(kernel)
    feed(kernel, connected(0), planned("all"), was.Committed(1), got(1, complete=True))
    assert feed(kernel, planned(None)) == []
    assert feed(kernel, was.Committed(2)) == ["send down 1 in 1.1", "commit 3"]
    assert emitted(kernel) == [(2, "end")]
    assert feed(kernel, was.Committed(3)) == ["send down 2 end in 1.1", "complete"]
    assert feed(kernel, was.Ticked(9.0)) == []


def test_a_source_without_any_action_ends_at_once() -> None:
    kernel = source()
    start(kernel)
    assert feed(kernel, planned(None), was.Committed(1)) == ["commit 1", "complete"]


def test_a_restart_goes_on_behind_the_logged_offset() -> None:
    kernel = source()
    found = {"reads": [read_action(2, offset=encode(7))], "counters": {"read": 2, "out:out": 9, "position": 12}}
    assert start(kernel, 2, **found) == ["hello down as 2", "read 2 'all' from 7 x16"]
    assert feed(kernel, got(8)) == ["commit 1", "read 2 'all' from 8 x16"]
    assert emitted(kernel) == [(10, 8)]


def test_a_restart_of_a_source_that_has_ended_reads_nothing() -> None:
    kernel = source()
    assert start(kernel, 2, counters={"finished": 1, "out:out": 3, "read": 1}) == ["hello down as 2", "complete"]
    assert feed(kernel, connected(2)) == ["fetch out 3 x64"]
    assert feed(kernel, was.Fetched("out", 3, (output(3),))) == ["send down 3 in 1.1"]


def test_nothing_for_the_moment_means_waiting_a_while() -> None:
    kernel = source()
    start(kernel, now=100.0)
    feed(kernel, planned("all"), was.Committed(1))
    assert feed(kernel, got(now=101.0)) == ["alarm 106.0"]
    assert feed(kernel, was.Ticked(105.0), connected(0)) == []
    assert feed(kernel, was.Ticked(106.0)) == ["read 1 'all' from start x16"]
    assert feed(kernel, got(1, now=106.5)) == ["commit 2", "read 1 'all' from 1 x16"]


# Not replayable


def test_an_effect_that_is_not_replayable_is_stored_completely_before_its_first_event() -> None:
    kernel = source(Once())
    start(kernel)
    feed(kernel, connected(0))
    effects = step(kernel, planned("all"))
    assert [(row.is_complete, row.is_stored) for row in commit_in(effects).reads] == [(False, True)]
    feed(kernel, was.Committed(1))
    assert feed(kernel, got(1, 2)) == ["commit 2", "read 1 'all' from start x16"]
    assert kernel.committing is not None
    assert kernel.committing.outputs == []
    assert [(each.index, each.event.rows) for each in kernel.committing.stored] == [(0, [{"x": 1}]), (1, [{"x": 2}])]
    assert feed(kernel, got(3, complete=True)) == []  # The commit before is under way.
    assert feed(kernel, was.Committed(2)) == ["commit 3"]
    assert [(row.is_complete, row.is_done) for row in kernel.committing.reads] == [(True, False)]
    assert feed(kernel, was.Committed(3)) == ["fetch effect 1 from 0 x17"]


def test_a_stored_effect_becomes_events_with_the_offset_beside_them() -> None:
    kernel = source(Once(), settings=Settings(read_max=2))
    start(kernel)
    feed(kernel, connected(0), planned("all"), was.Committed(1), got(0, 1), was.Committed(2))
    assert feed(kernel, got(2, complete=True), was.Committed(3)) == ["commit 3", "fetch effect 1 from 0 x3"]
    assert feed(kernel, stored(1, 0, 1, 2)) == ["commit 4", "fetch effect 1 from 2 x3"]
    assert emitted(kernel) == [(1, 0), (2, 1)]
    assert kernel.committing is not None
    assert [(row.offset, row.is_done) for row in kernel.committing.reads] == [(encode(2), False)]
    assert feed(kernel, stored(1, 2)) == ["plan"]
    assert feed(kernel, was.Committed(4)) == ["send down 1 in 1.1", "send down 2 in 1.1", "commit 5"]
    assert emitted(kernel) == [(3, 2)]  # At once: the plan that is under way may take long.
    assert [(row.offset, row.is_done) for row in kernel.committing.reads] == [(encode(3), True)]
    assert kernel.committing.forget_reads == [1]  # With its stored effect.
    assert feed(kernel, planned(None), was.Committed(5)) == ["send down 3 in 1.1", "commit 6"]
    assert emitted(kernel) == [(4, "end")]


def test_an_effect_that_is_used_up_is_done_without_another_look() -> None:
    kernel = source(Once(), settings=Settings(read_max=2))
    row = read_action(1, is_stored=True, is_complete=True, offset=encode(0))
    start(kernel, 2, reads=[row], counters={"read": 1})
    assert feed(kernel, stored(1, 0, 1)) == ["commit 1", "plan"]


def test_an_empty_effect_is_done_without_events() -> None:
    kernel = source(Once())
    start(kernel)
    feed(kernel, planned("all"), was.Committed(1))
    assert feed(kernel, got(complete=True), was.Committed(2)) == ["commit 2", "fetch effect 1 from 0 x17"]
    assert feed(kernel, stored(1)) == ["commit 3", "plan"]


def test_an_effect_that_was_cut_off_is_dropped_and_read_anew() -> None:
    kernel = source(Once())
    found = {"reads": [read_action(3, is_stored=True)], "counters": {"read": 3, "out:out": 5, "position": 9}}
    assert start(kernel, 2, **found) == ["hello down as 2", "read 3 'all' from start x16"]
    effects = step(kernel, got(7, execution=1))
    transaction = commit_in(effects)
    assert transaction.forget_effects == [3]
    assert [(each.action, each.index) for each in transaction.stored] == [(3, 0)]
    assert [type(each) for each in transaction.journal] == [did.Dropped, did.Kept]
    assert transaction.counters["position"] == 11  # It goes on where the predecessor was.


def test_a_complete_effect_goes_on_from_its_offset_after_a_crash() -> None:
    kernel = source(Once())
    row = read_action(3, is_stored=True, is_complete=True, offset=encode(4))
    told = start(kernel, 2, reads=[row], counters={"read": 3, "out:out": 9})
    assert told == ["hello down as 2", "fetch effect 3 from 4 x17"]
    assert feed(kernel, stored(3, 4, 5)) == ["commit 1", "plan"]
    assert emitted(kernel) == [(10, 4), (11, 5)]


def test_polling_keeps_what_was_stored_before() -> None:
    kernel = source(Once())
    start(kernel)
    feed(kernel, planned("all"), was.Committed(1), got(1), was.Committed(2))
    assert feed(kernel, got(now=1.0)) == ["alarm 6.0"]
    assert feed(kernel, was.Ticked(6.0)) == ["read 1 'all' from start x16"]
    feed(kernel, got(2, complete=True))
    assert kernel.committing is not None
    assert [each.index for each in kernel.committing.stored] == [1]


# Throttle


def test_a_source_stops_reading_when_its_slowest_receiver_is_too_far_behind() -> None:
    kernel = source(settings=Settings(backlog_max=3, window=2))
    start(kernel)
    feed(kernel, connected(0), planned("all"), was.Committed(1))
    assert feed(kernel, got(1, 2)) == ["commit 2", "read 1 'all' from 2 x16"]
    assert feed(kernel, got(3)) == []  # Not durable yet, and enough.
    assert feed(kernel, was.Committed(2)) == ["send down 1 in 1.1", "send down 2 in 1.1", "commit 3"]
    assert feed(kernel, was.Committed(3)) == []
    assert feed(kernel, acked(1)) == ["send down 3 in 1.1", "read 1 'all' from 3 x16"]


def test_a_throttled_source_also_waits_with_a_stored_effect() -> None:
    kernel = source(Once(), settings=Settings(backlog_max=1, read_max=1))
    row = read_action(1, is_stored=True, is_complete=True, offset=encode(0))
    start(kernel, 2, reads=[row], counters={"read": 1})
    assert feed(kernel, stored(1, 0, 1)) == ["commit 1"]
    assert feed(kernel, was.Committed(1)) == []
    assert feed(kernel, acked(1)) == ["fetch effect 1 from 1 x2"]


def test_a_source_without_receivers_is_never_throttled() -> None:
    kernel = source(outbound=(), settings=Settings(backlog_max=1))
    start(kernel)
    feed(kernel, planned("all"), was.Committed(1))
    assert feed(kernel, got(1, 2, 3)) == ["commit 2", "read 1 'all' from 3 x16"]


def test_what_receivers_have_released_is_forgotten() -> None:
    kernel = source()
    start(kernel)
    feed(kernel, connected(0), planned("all"), was.Committed(1), got(1, 2), was.Committed(2), acked(2, 1))
    assert commit_in(step(kernel, got(3))).forget_outputs == [("out", 1, 1)]
