"""The kernels of a run with snapshots: borders, alignment, writes that wait, and generations."""

from __future__ import annotations

from tests.unit.protocol.stage import (
    IN,
    MORE,
    OUT,
    acked,
    answered,
    commit_in,
    connected,
    feed,
    folded,
    generated,
    got,
    operator,
    planned,
    received,
    received_border,
    received_end,
    source,
    start,
    step,
    tells,
    undone,
)

from clew.model.connection import Kind
from clew.model.history import Cursor
from clew.model.ranges import IdSet
from clew.model.values import encode
from clew.protocol import decisions as did
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.barriers import SnapshotOperator, SnapshotSource
from clew.protocol.effects import Session


def two_inputs(**parts: object) -> SnapshotOperator:
    kernel = operator(inbound=(IN, MORE), kernel=SnapshotOperator, **parts)
    assert isinstance(kernel, SnapshotOperator)
    start(kernel)
    feed(kernel, connected(0))
    return kernel


def one_input(**parts: object) -> SnapshotOperator:
    kernel = operator(kernel=SnapshotOperator, **parts)
    assert isinstance(kernel, SnapshotOperator)
    start(kernel)
    if kernel.ports:
        feed(kernel, connected(0))
    return kernel


# Sources


def test_a_source_ends_its_epoch_when_it_is_told_to() -> None:
    kernel = source(kernel=SnapshotSource)
    start(kernel)
    feed(kernel, connected(0), planned("all"), was.Committed(1), got(1), was.Committed(2))
    assert feed(kernel, was.Marked(1)) == ["commit 3"]
    assert feed(kernel, was.Committed(3)) == ["snapshot 1", "send down 2 border 1 in 1.1"]


def test_a_border_waits_for_the_commit_under_way_and_is_the_last_thing_in_its_own() -> None:
    kernel = source(kernel=SnapshotSource)
    start(kernel)
    feed(kernel, connected(0), planned("all"), was.Committed(1))
    assert "commit 2" in feed(kernel, got(1))
    assert feed(kernel, was.Marked(1)) == []
    effects = step(kernel, was.Committed(2))
    assert [type(each) for each in commit_in(effects).journal] == [did.Bordered]
    assert "commit 4" not in feed(kernel, got(2))  # What was read meanwhile belongs to the next epoch.
    assert [each for each in feed(kernel, was.Committed(3)) if not each.startswith("read")] == [
        "snapshot 1",
        "send down 2 border 1 in 1.1",
        "commit 4",
    ]


def test_a_border_for_another_epoch_or_after_the_end_is_not_put() -> None:
    kernel = source(kernel=SnapshotSource)
    start(kernel)
    feed(kernel, connected(0))
    assert feed(kernel, was.Marked(2)) == []
    feed(kernel, planned(None))
    assert feed(kernel, was.Committed(1)) == ["snapshot 1 final", "send down 1 end in 1.1"]
    assert feed(kernel, was.Marked(1)) == []
    assert feed(kernel, was.Completed(1)) == ["complete"]


def test_after_a_restart_the_epoch_after_the_recovered_one_goes_on() -> None:
    kernel = source(kernel=SnapshotSource)
    start(kernel, 3, counters={"epoch": 4, "out:out": 9})
    assert feed(kernel, was.Marked(5)) == ["commit 1"]


# Alignment


def test_a_channel_waits_behind_its_border_until_the_others_are_there() -> None:
    kernel = two_inputs()
    assert feed(kernel, received_border(1, 1)) == ["commit 1"]
    assert feed(kernel, was.Committed(1), received(2)) == ["ack up 1 IdSet(1)"]
    assert feed(kernel, received(1, MORE)) == ["fold side/1"]
    feed(kernel, folded(), answered(), was.Committed(2))
    assert feed(kernel, received_border(1, 2, MORE)) == ["commit 3", "fold up/2"]
    told = feed(kernel, was.Committed(3))
    assert told.index("snapshot 1") < told.index("send down 1 border 1 in 1.1")


def test_an_ended_channel_counts_as_aligned() -> None:
    kernel = two_inputs()
    feed(kernel, received_border(1, 1), was.Committed(1))
    assert feed(kernel, received_end(1, MORE)) == ["ask more ended"]
    effects = step(kernel, answered())
    assert commit_in(effects).counters["epoch"] == 1


def test_an_epoch_ends_in_a_commit_of_its_own_when_one_is_under_way() -> None:
    kernel = one_input()
    feed(kernel, received(1), folded(), answered())
    assert kernel.committing is not None
    assert feed(kernel, received_border(1, 2), received(3)) == []
    effects = step(kernel, was.Committed(1))
    assert tells(effects) == ["ack up 1 IdSet(1)", "commit 2", "fold up/3"]
    assert [type(each) for each in commit_in(effects).journal] == [did.Held, did.Bordered]


def test_what_an_open_input_set_needs_is_kept_here_and_not_by_the_sender() -> None:
    kernel = one_input()
    feed(kernel, received(1), folded("a"))
    effects = step(kernel, answered())
    transaction = commit_in(effects)
    assert [(channel, event.id) for channel, event in transaction.taken] == [(IN, 1)]
    assert transaction.cursors[IN] == Cursor(1, IdSet(1), False)


def test_undone_pairs_are_folded_before_anything_else() -> None:
    kernel = operator(kernel=SnapshotOperator)
    told = start(
        kernel,
        2,
        counters={"epoch": 1, "position": 3, "order": 1, "serial": 1},
        cursors={IN: Cursor(2, IdSet(2), False)},
        open_sets=[(1, encode("a"))],
        undone=[undone(1, 1, "a")],
    )
    assert told == ["hello down as 2", "connect up in 2.1 after 2", "ack up 2 IdSet(2)", "pull up/1"]


# Writes


def test_a_write_waits_until_its_epoch_is_complete() -> None:
    kernel = one_input(outbound=(), outputs=(), writes={"table": Kind.CONDITIONAL})
    feed(kernel, received(1), folded("a"), answered("a"), generated("table"), answered())
    assert "write table 1" not in feed(kernel, was.Committed(1))
    feed(kernel, received_border(1, 2), was.Committed(2))
    assert feed(kernel, was.Completed(1)) == ["write table 1"]


def test_a_write_of_the_next_epoch_waits_on() -> None:
    kernel = one_input(outbound=(), outputs=(), writes={"table": Kind.CONDITIONAL})
    feed(kernel, received_border(1, 1), was.Committed(1))
    feed(kernel, received(2), folded("a"), answered("a"), generated("table"), answered(), was.Committed(2))
    assert feed(kernel, was.Completed(1)) == []
    feed(kernel, received_border(2, 3), was.Committed(3))
    assert feed(kernel, was.Completed(2)) == ["write table 1"]


def test_who_has_finished_is_complete_when_its_last_epoch_is_and_its_writes_are_done() -> None:
    kernel = one_input(outbound=(), outputs=(), writes={"table": Kind.CONDITIONAL})
    feed(kernel, received_end(1), answered(), generated("table"))
    assert "snapshot 1 final" in feed(kernel, was.Committed(1))
    assert feed(kernel, was.Completed(1)) == ["write table 1"]
    assert feed(kernel, was.Written("table", 1)) == ["commit 2"]
    assert feed(kernel, was.Committed(2)) == ["complete"]


def test_writes_of_a_recovered_epoch_are_settled_at_once() -> None:
    kernel = operator(kernel=SnapshotOperator, outbound=(), outputs=(), writes={"table": Kind.CHECKABLE})
    told = start(kernel, 2, counters={"epoch": 1, "out:table": 2, "written:table": 1})
    assert "fetch table 2 x64" in told


def test_writes_that_wait_for_their_epoch_hold_nobody_back() -> None:
    kernel = one_input(outbound=(), outputs=(), writes={"table": Kind.CONDITIONAL})
    feed(kernel, received(1), folded("a"), answered("a"), generated("table", "table"), answered())
    effects = step(kernel, was.Committed(1))
    assert [each.pressure for each in effects if isinstance(each, does.Ack)] == [0]


def test_complete_writes_that_are_not_done_do_even_beside_another_connection() -> None:
    kernel = one_input(outbound=(), outputs=(), writes={"slow": Kind.CONDITIONAL, "fast": Kind.CONDITIONAL})
    feed(kernel, received(1), folded("a"), answered("a"), generated(*["slow"] * 5), answered(), was.Committed(1))
    feed(kernel, received_border(1, 2), was.Committed(2), was.Completed(1))
    feed(kernel, received(3), folded("b"), answered("b"), generated(*["fast"] * 5), answered())
    effects = step(kernel, was.Committed(3))
    assert [each.pressure for each in effects if isinstance(each, does.Ack)] == [5]


# Generations


def test_another_generation_is_neither_served_nor_heard() -> None:
    kernel = one_input()
    feed(kernel, received(1), folded("a"), answered("a"), generated("out"), answered())
    assert feed(kernel, was.Committed(1)) == ["ack up 1 IdSet(1)", "send down 1 in 1.1"]
    late = Session(2, 1)
    assert feed(kernel, connected(0, session=late), acked(1, 1, session=late)) == []
    assert kernel.ports["out"].backlog() == 1
    assert feed(kernel, was.Greeted(IN, 2)) == []
    assert feed(kernel, was.Greeted(IN, 1)) == ["connect up in 1.2 after 1", "ack up 1 IdSet(1)"]
    assert feed(kernel, acked(1, 1)) == []
    assert kernel.ports["out"].backlog() == 0
    assert OUT in [channel.channel for channel in kernel.ports["out"].channels]


# Times


def test_times_of_an_epoch_are_announced_when_everyone_has_reached_it() -> None:
    begun = source(kernel=SnapshotSource)
    start(begun)
    for kernel in (one_input(), begun):
        feed(kernel, received_border(1, 1) if isinstance(kernel, SnapshotOperator) else was.Marked(1))
        before, after = does.Announce((1, 1), {("a", 1): 1}), does.Announce((1, 2), {("a", 1): 1})
        effects: list[does.Effect] = []
        kernel._announce(before, effects)
        feed(kernel, was.Committed(1))
        kernel._announce(after, effects)
        kernel._announce(does.Announce((1, 3), {("a", 1): 2}), effects)
        assert effects == [before]
        (late,) = [each for each in step(kernel, was.Completed(1)) if isinstance(each, does.Announce)]
        assert late == does.Announce((1, 3), {("a", 1): 3})
