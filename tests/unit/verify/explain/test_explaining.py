"""Explanations of two small traces, and of what is left of them when one thing in them is not true."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.verify.explain.told import FEED, SUMS, fed, log_trace, snapshot_trace, summed

from clew.model.names import Channel
from clew.trace.life import Life
from clew.trace.reader import Trace
from clew.trace.records import Completed, End, Part, Steps, Stored, Wrote
from clew.verify.explain import Explanation, Unexplained, explain
from clew.verify.explain.explanation import Facts


def explained(trace: Trace, facts: Any = None) -> Explanation:
    found = explain(trace, facts or {})
    assert isinstance(found, Explanation), str(found)
    return found


def refused(trace: Trace, facts: Any = None) -> Unexplained:
    found = explain(trace, facts or {})
    assert isinstance(found, Unexplained)
    return found


def change(life: Life, place: int, **fields: Any) -> None:
    """Other fields of a record."""
    life.told[place] = life.told[place]._replace(**fields)


def change_part(life: Life, place: int, **fields: Any) -> None:
    record = life.told[place]
    assert isinstance(record, Steps)
    life.told[place] = record._replace(parts=(record.parts[0]._replace(**fields),))


# What a trace of a run with a log comes to


def test_what_was_never_committed_is_left_out() -> None:
    found = explained(log_trace())
    assert [(str(step.replica), step.record.number) for step in found.steps] == [  # type: ignore[union-attr]
        ("feed", 1), ("sums", 1), ("feed", 2), ("feed", 3), ("sums", 1), ("sums", 2), ("sums", 3),
    ]  # fmt: skip
    assert (found.step_count, found.discarded, found.is_complete, found.is_whole) == (12, 4, True, True)
    story = found.stories["sums"]
    assert (story.incarnations, story.commits, story.steps, story.discarded) == (2, 4, 8, 4)
    assert (story.taken, story.written, story.settled) == ({"feed.out->sums.in": 4}, {"archive": 3}, 1)


def test_a_recovery_says_what_was_lost_and_done_again() -> None:
    (recovery,) = explained(log_trace()).recoveries
    assert (recovery.who, recovery.died, recovery.incarnation, recovery.to) == (("sums",), ("sums",), 2, 2)
    assert (recovery.last_seen, recovery.back, recovery.went_on, recovery.seconds) == (3.5, 5.0, 6.0, 1.5)
    assert (recovery.discarded_commits, recovery.discarded, recovery.replayed) == (1, 4, 2)
    assert (recovery.refolded, recovery.settled) == (1, 1)


def test_who_could_still_say_why_it_ended_did_not_die_unseen() -> None:
    trace = log_trace()
    trace.lives[SUMS][0].told.append(End(4.9, False, "move: no such column"))
    (recovery,) = explained(trace).recoveries
    assert (recovery.died, recovery.why, recovery.last_seen) == ((), "move: no such column", 4.9)


def test_a_trace_that_goes_on_has_an_explanation_too() -> None:
    trace = log_trace()
    del trace.lives[SUMS][1].told[1:]
    found = explained(trace)
    assert (found.is_complete, found.stories["sums"].taken) == (False, {"feed.out->sums.in": 2})


def test_the_last_commit_counts_if_the_log_has_it() -> None:
    trace = log_trace()
    del trace.lives[SUMS][1]
    channel = Channel(FEED, "out", SUMS, "in")
    durable = Facts(2, {"archive": 1}, {}, {channel: 1})
    assert explained(trace, {SUMS: durable}).stories["sums"].discarded == 4
    assert explained(trace).stories["sums"].discarded == 0
    applied = Facts(6, {"archive": 3}, {"archive": 1}, {channel: 3})
    assert explained(trace, {SUMS: applied}).stories["sums"].discarded == 0


# What a trace of a run with snapshots comes to


def test_generations_are_stripped_and_merged() -> None:
    found = explained(snapshot_trace())
    assert [(str(step.replica), step.life.incarnation, step.part.epoch) for step in found.steps if step.part] == [
        ("feed", 1, 1), ("feed", 1, 1), ("sums", 1, 1), ("sums", 1, 1),
        ("feed", 2, 2), ("feed", 2, 2), ("sums", 2, 2), ("sums", 2, 2),
    ]  # fmt: skip
    assert (found.epochs, found.discarded, found.stories["sums"].written) == (2, 4, {"archive": 3})
    (recovery,) = found.recoveries
    assert (recovery.who, recovery.incarnation, recovery.to) == (("feed", "sums"), 2, 1)
    assert (recovery.discarded_commits, recovery.discarded, recovery.replayed, recovery.settled) == (2, 4, 1, 1)


def test_epochs_that_are_not_complete_are_left_open() -> None:
    trace = snapshot_trace()
    del trace.lives[FEED][1], trace.lives[SUMS][1]
    found = explained(trace)
    assert (found.is_complete, found.epochs, found.discarded) == (False, 1, 0)
    assert {name: story.undecided for name, story in found.stories.items()} == {"feed": 2, "sums": 2}


# Canaries: one thing is not true


def test_an_event_is_missing() -> None:
    trace = log_trace()
    change_part(trace.lives[SUMS][1], 0, took=(0, 3, 3))
    found = refused(trace)
    assert found.step.startswith("sums, incarnation 2, commit 1 at ")
    assert found.step.endswith("(position 4)")
    assert found.why == "it takes feed.out/3 too early; expected feed.out/2 next"


def test_an_event_is_taken_twice() -> None:
    trace = log_trace()
    change_part(trace.lives[SUMS][1], 1, took=(0, 2, 3))
    assert refused(trace).why == "it takes feed.out/2 again; expected feed.out/3 next"


def test_two_events_are_swapped() -> None:
    trace = log_trace()
    trace.lives[SUMS][0].told[:] = [summed(2.5, 1, 1, 1)]
    trace.lives[SUMS][1].told[0:2] = [summed(6.0, 1, 2, 3)]
    change_part(trace.lives[SUMS][1], 0, took=(0, 3, 3, 0, 2, 2))
    assert refused(trace).why == "it takes feed.out/3 too early; expected feed.out/2 next"


def test_an_event_was_never_made() -> None:
    trace = log_trace()
    trace.lives[FEED][0].told[1:] = []
    found = refused(trace)
    assert found.step.startswith("sums, incarnation 2, commit 2")
    assert found.why == "it takes feed.out/3, which was never made; the last that was made is feed.out/2"


def test_a_sender_without_a_trace() -> None:
    trace = log_trace()
    del trace.lives[FEED]
    assert refused(trace).why == "it takes feed.out/1, which was never made; nothing was made there"


def test_an_output_is_missing() -> None:
    trace = log_trace()
    change_part(trace.lives[FEED][0], 1, made=(0, 4, 4))
    assert refused(trace).why == "it makes feed.out/4; expected feed.out/3 next"


def test_the_end_mark_is_taken_for_an_event() -> None:
    trace = log_trace()
    change_part(trace.lives[SUMS][1], 2, ended=(), took=(0, 4, 4))
    assert refused(trace).why == "it takes feed.out/4 as an event, which is the end mark"


def test_an_event_is_taken_for_the_end_mark() -> None:
    trace = log_trace()
    change_part(trace.lives[SUMS][1], 1, took=(), ended=(0, 3))
    assert refused(trace).why == "it takes feed.out/3 as an end mark, which it is not"


def test_something_follows_the_end_mark() -> None:
    trace = log_trace()
    trace.lives[FEED][0].told.insert(3, fed(4.5, 4, 5, 5))
    assert refused(trace).why == "it makes feed.out/5 after the end mark of that port"


def test_a_step_is_missing() -> None:
    trace = log_trace()
    change_part(trace.lives[SUMS][1], 1, counts={})
    assert refused(trace).why == "its position grows by 2; expected 1, the number of steps in its commit"


def test_a_start_from_elsewhere() -> None:
    trace = log_trace()
    life = trace.lives[SUMS][1]
    trace.lives[SUMS][1] = Life(life.head._replace(taken=(0,)), life.told)
    found = refused(trace)
    assert found.step.startswith("sums, incarnation 2, its start at ")
    assert found.why == (
        "it goes on from another place than the explanation has come to: its last event taken on feed.out->sums.in is "
        "0; expected 1"
    )


def test_a_commit_that_lasted_is_lost() -> None:
    trace = log_trace()
    trace.lives[SUMS][0].told.append(summed(3.9, 3, 4, 4))
    assert refused(trace).why == (
        "it was committed, since another commit followed it; afterwards only position 2 was found"
    )


def test_a_write_before_its_commit() -> None:
    trace = log_trace()
    change(trace.lives[SUMS][1], 0, wrote=(0, 1, 0, 2))
    change(trace.lives[SUMS][1], 1, wrote=())
    found = refused(trace)
    assert found.step == "sums, incarnation 2, a write before commit 1"
    assert found.why == "write action sums.archive/2 is executed before it was committed; the last is 1"


def test_a_write_out_of_turn() -> None:
    trace = log_trace()
    change(trace.lives[SUMS][1], 1, wrote=(0, 1))
    assert refused(trace).why == "write action sums.archive/1 is executed out of turn; expected 2 next"


def test_a_write_that_nobody_did() -> None:
    trace = log_trace()
    life = trace.lives[SUMS][1]
    change(trace.lives[SUMS][0], 1, wrote=())
    trace.lives[SUMS][1] = Life(life.head._replace(written=(1,)), life.told)
    assert "its log says that write action sums.archive/1 is done, which nobody was seen to do" in refused(trace).why


def test_a_write_that_is_left_out() -> None:
    trace = log_trace()
    change(trace.lives[SUMS][1], 2, wrote=())
    assert refused(trace).why == "it finished with 2 write actions of sums.archive executed; made were 3"


def test_an_end_before_all_was_taken() -> None:
    trace = log_trace()
    del trace.lives[SUMS][1].told[2]
    assert refused(trace).why == (
        "it finished with feed.out/3 as the last event that it took on feed.out->sums.in; made were 4, the end mark "
        "included"
    )


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (Facts(9, {"archive": 3}, {"archive": 3}, {}), "position 8; its log says 9. Steps are missing in the trace"),
        (Facts(8, {"archive": 4}, {"archive": 3}, {}), "last number of archive 3; its log says 4"),
        (Facts(8, {"archive": 3}, {"archive": 2}, {}), "it says that 2 write actions of sums.archive are done; 3 were"),
        (Facts(8, {"archive": 3}, {"archive": 3}, {}), "last event taken on feed.out->sums.in 4; its log says 0"),
    ],
)
def test_a_log_that_says_something_else(facts: Facts, why: str) -> None:
    assert why in refused(log_trace(), {SUMS: facts}).why


# The same for snapshots


def test_output_of_a_generation_that_was_thrown_away() -> None:
    """The second generation takes what only the first had made."""
    trace = snapshot_trace()
    del trace.lives[FEED][1].told[0:2]
    found = refused(trace)
    assert found.step.startswith("sums, generation 2, commit 1 at ")
    assert found.step.endswith("(position 8, epoch 2)")
    assert found.why == "it takes feed.out/4, which was never made; the last that was made is feed.out/3"


def test_a_write_before_its_epoch_is_complete() -> None:
    trace = snapshot_trace()
    del trace.lives[SUMS][0].told[3]
    found = refused(trace)
    assert found.step == "sums, generation 1, a write before commit 3"
    assert found.why == (
        "write action sums.archive/1 of epoch 1 is executed before that epoch is complete; complete was epoch 0"
    )


def test_a_write_of_a_generation_that_was_thrown_away() -> None:
    trace = snapshot_trace()
    trace.lives[SUMS][0].told.append(Wrote(4.0, (0, 2, 0, 3)))
    assert "write action sums.archive/3 of epoch 2 is executed before that epoch is complete" in refused(trace).why


@pytest.mark.parametrize("epoch", [0, 2])
def test_a_recovery_to_the_wrong_epoch(epoch: int) -> None:
    trace = snapshot_trace()
    for lives in trace.lives.values():
        lives[1] = Life(lives[1].head._replace(recovered=epoch), lives[1].told)
    found = refused(trace)
    assert found.step.startswith("feed, generation 2, its start")
    assert found.why == {
        0: "it goes back to epoch 0, although epoch 1 was complete",
        2: "it goes back to epoch 2, which was not stored by every replica; the last was 1",
    }[epoch]  # fmt: skip


def test_replicas_that_go_back_to_different_epochs() -> None:
    trace = snapshot_trace()
    lives = trace.lives[SUMS]
    lives[1] = Life(lives[1].head._replace(recovered=0), lives[1].told)
    assert refused(trace).why == "it goes back to epoch 0, and others of this generation to epoch 1"


def test_a_snapshot_of_another_moment() -> None:
    """Every number agrees but one: the snapshot of `sums` already held an event of the next epoch."""
    trace = snapshot_trace()
    lives = trace.lives[SUMS]
    lives[1] = Life(lives[1].head._replace(taken=(4,)), lives[1].told)
    assert refused(trace).why.endswith("its last event taken on feed.out->sums.in is 4; expected 3")


def test_an_epoch_that_one_replica_has_not_stored() -> None:
    trace = snapshot_trace()
    del trace.lives[FEED][1:], trace.lives[SUMS][1:]
    trace.lives[SUMS][0].told = [each for each in trace.lives[SUMS][0].told if not isinstance(each, Stored)]
    assert "it was told that epoch 1 is complete; the last that every replica had stored was 0" in refused(trace).why


def test_an_epoch_that_ends_without_alignment() -> None:
    trace = snapshot_trace()
    change_part(trace.lives[SUMS][0], 1, held=(), counts={"Made": 1})
    assert refused(trace).why == "it ends epoch 1 without having taken the border of that epoch from feed.out"


def test_an_event_behind_the_border_in_the_epoch_before() -> None:
    trace = snapshot_trace()
    life = trace.lives[SUMS][0]
    life.told[1] = Steps(3.2, 2, 6, (), (Part(1, took=(0, 3, 3), counts={"Made": 1}, is_border=False),))
    assert refused(trace).why == "it takes feed.out/3 as an event, which is a border"


def test_a_border_that_is_not_passed_on() -> None:
    trace = snapshot_trace()
    change_part(trace.lives[FEED][0], 1, borders=())
    assert refused(trace).why == "it ends epoch 1 without a border on feed.out"


def test_a_completed_epoch_nobody_told_of_is_no_matter() -> None:
    """A word of the coordinator may be lost, as long as nothing was written for it."""
    trace = snapshot_trace()
    trace.lives[FEED][0].told = [each for each in trace.lives[FEED][0].told if not isinstance(each, Completed)]
    assert explained(trace).epochs == 2


def test_a_step_in_another_epoch() -> None:
    trace = snapshot_trace()
    change_part(trace.lives[SUMS][0], 0, epoch=0)
    assert refused(trace).why == "it works in epoch 0; expected 1"


def test_an_event_is_taken_for_a_border() -> None:
    trace = snapshot_trace()
    change_part(trace.lives[SUMS][0], 0, took=(0, 1, 1), counts={"Made": 3})
    change_part(trace.lives[SUMS][0], 1, held=(0, 2))
    assert refused(trace).why == "it takes feed.out/2 as the border of epoch 1, which it is not"


def test_no_alignment() -> None:
    """Both epochs last, and `sums` takes an event of the second before it has ended the first."""
    trace = snapshot_trace()
    feed, sums = trace.lives[FEED][0], trace.lives[SUMS][0]
    del trace.lives[FEED][1], trace.lives[SUMS][1]
    feed.told += [Stored(4.0, 2, True)]
    sums.told[1:] = [
        Steps(3.1, 2, 5, (), (Part(1, held=(0, 3)),)),
        Steps(3.2, 3, 7, (), (Part(1, took=(0, 4, 4), is_border=True),)),
        Stored(3.3, 2, True),
    ]
    found = refused(trace)
    assert found.step.startswith("sums, generation 1, commit 3")
    assert found.why == "it takes feed.out/4 although it has taken the border of epoch 1 there"
