"""The coordinator of a run with snapshots, with hosts that say what a test wants: when all go back, and where to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.runtime.test_coordinator import SECRET, TIMING, Caller, wait_until

from clew.errors import LogError, RunError
from clew.log.contract import ReplicaRows
from clew.log.epochs import EPOCHS, EpochLog
from clew.log.memory import MemoryStore
from clew.log.processes import Process
from clew.model.names import Replica
from clew.protocol import effects as does
from clew.runtime import control, preflight
from clew.runtime.coordinator import Coordinator
from clew.runtime.groups import Group
from clew.runtime.loop import Loop
from clew.runtime.snapshot_reading import rows_together
from clew.runtime.spec import LogPlace
from clew.runtime.tracking import Tracking


class Host(Caller):
    """A host of one replica, which says with everything which generation it is of."""

    def __init__(self, coordinator: Coordinator, group: Group) -> None:
        self.name = group.name
        super().__init__(coordinator, group.submission, Process.current(), group.name)

    def joined(self, generation: int, is_finished: bool = False) -> None:
        self.say("joined", replica=self.name, generation=generation, is_finished=is_finished)

    def stored(self, generation: int, epoch: int, is_final: bool = False) -> None:
        self.say("stored", replica=self.name, generation=generation, epoch=epoch, is_final=is_final)


class Stage:
    """A coordinator of two groups, whose epochs end as soon as they can."""

    def __init__(self, restarts_max: int = 10) -> None:
        self.groups = [Group((Replica(name),), is_in_driver=False) for name in ("one", "other")]
        self.store = MemoryStore({})
        self.log = EpochLog(self.store.open(EPOCHS))
        self.coordinator = Coordinator(self.groups, SECRET, "127.0.0.1", TIMING, restarts_max, True)
        self.coordinator.recover_together(self.log, 0.001, lambda: None)

    def start(self) -> list[Host]:
        self.coordinator.start()
        wait_until("a generation has begun", lambda: self.report()["generation"] == 1)
        return [self.host(0), self.host(1)]

    def host(self, number: int) -> Host:
        wait_until("it may come", lambda: self.groups[number].state == "waiting" and self.groups[number].submission)
        return Host(self.coordinator, self.groups[number])

    def report(self) -> dict[str, Any]:
        assert self.coordinator.generations is not None
        return self.coordinator.generations.report()


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.coordinator.stop()
    made.coordinator.close()


def complete(hosts: list[Host], generation: int, epoch: int) -> None:
    """Every host stores an epoch that it was told to end, and hears that it is complete."""
    for host in hosts:
        said = host.hear("mark")
        assert (said["generation"], said["epoch"]) == (generation, epoch)
        host.stored(generation, epoch)
    for host in hosts:
        said = host.hear("epoch")
        assert (said["generation"], said["epoch"]) == (generation, epoch)


def test_epochs_end_one_after_another_and_are_durable_before_anybody_hears(stage: Stage) -> None:
    hosts = stage.start()
    for host in hosts:
        said = host.hear("accepted")
        assert (said["generation"], said["epoch"]) == (1, 0)
        host.joined(1)
    for epoch in (1, 2, 3):
        complete(hosts, 1, epoch)
        assert stage.log.epoch >= epoch
    assert stage.report()["epochs_completed"] == 3


def test_after_a_loss_all_begin_anew_from_the_last_complete_epoch(stage: Stage) -> None:
    one, other = stage.start()
    for host in (one, other):
        host.hear("accepted")
        host.joined(1)
    complete([one, other], 1, 1)
    one.hear("mark")
    one.stored(1, 2)
    other.sock.close()
    said = one.hear("rewind")
    assert (said["generation"], said["epoch"]) == (2, 1)
    successor = stage.host(1)
    said = successor.hear("accepted")
    assert (said["generation"], said["epoch"], said["cautious"]) == (2, 1, [])
    one.stored(1, 2)  # Of the generation that is over.
    successor.joined(2)
    successor.stored(2, 2)
    one.joined(2)
    complete([one, successor], 2, 2)
    assert (stage.log.generation, stage.log.epoch) == (2, 2)
    assert [group.starts for group in stage.groups] == [1, 2], "going back is no death"


def test_a_host_that_comes_while_nobody_knows_where_to_begin_is_told_later(stage: Stage) -> None:
    """An epoch that is about to be recorded may still become the one that all go on from."""
    is_free = threading.Event()
    begin = stage.log.begin_generation
    stage.log.begin_generation = lambda: is_free.wait(30) and begin()  # type: ignore[method-assign,assignment]
    stage.coordinator.start()
    host = stage.host(0)
    assert host.hear("accepted")["generation"] == 0
    is_free.set()
    said = host.hear("rewind")
    assert (said["generation"], said["epoch"]) == (1, 0)


def test_epochs_that_cannot_be_recorded_end_the_run(stage: Stage) -> None:
    def full(epoch: int) -> None:
        raise LogError("the disk is full")

    stage.log.complete = full  # type: ignore[method-assign]
    hosts = stage.start()
    for host in hosts:
        host.hear("accepted")
        host.joined(1)
    for host in hosts:
        host.hear("mark")
        host.stored(1, 1)
    assert stage.coordinator.over.wait(30)
    assert stage.coordinator.error == (
        "the epochs of the run cannot be kept: LogError: the disk is full. Mend the log's disk or database, and run "
        "the pipeline again with the same log."
    )


def test_deaths_in_a_row_without_an_epoch_end_the_run_and_it_says_what_is_safe() -> None:
    stage = Stage(restarts_max=1)
    one, other = stage.start()
    for host in (one, other):
        host.hear("accepted")
        host.joined(1)
    complete([one, other], 1, 1)
    for _ in range(2):
        other.say("died", reason="move", replica="other", why="it failed.")
        wait_until("it is gone", lambda: stage.groups[1].state != "opening")
        if not stage.coordinator.over.is_set():
            other = stage.host(1)
            other.hear("accepted")
    assert stage.coordinator.over.wait(30)
    assert stage.coordinator.error == (
        "other died 2 times in a row without getting anything done; the last time: it failed. Everything up to epoch "
        "1 is in the log; mend the cause and run the pipeline again with the same log."
    )
    stage.coordinator.close()


def test_words_about_a_replica_of_somebody_else_cost_a_host_and_not_the_run(stage: Stage) -> None:
    one, _ = stage.start()
    one.hear("accepted")
    one.say("joined", replica="other", generation=1, is_finished=True)
    wait_until("it is replaced", lambda: stage.groups[0].submission == 2)
    assert stage.coordinator.error is None


# Frontiers


class Heard:
    """Frontiers that keep what they are told."""

    is_new = False

    def __init__(self) -> None:
        self.numbers: list[tuple[int, int]] = []

    def announced(self, member: str, announcement: does.Announce) -> None:
        self.numbers.append(announcement.number)


def test_what_is_announced_of_another_generation_is_not_heard() -> None:
    group = Group((Replica("one"),), is_in_driver=False)
    first, second = Heard(), Heard()
    tracking = Tracking(first, Loop("test", print), {"one": group}, print)  # type: ignore[arg-type]

    def announce(*number: int) -> None:
        said = control.progress({"one": does.Announce((number[0], number[1]), {}, is_whole=True)})
        tracking.heard(group, control.read_message(control.CONTROL, said[5:]))

    announce(1, 0)
    tracking.begin_anew(second, 2)  # type: ignore[arg-type]
    announce(1, 7)
    announce(2, 0)
    assert (first.numbers, second.numbers) == ([(1, 0)], [(2, 0)])


# Before anything starts


@pytest.mark.parametrize("every_s", [0, -1.0, float("inf"), float("nan"), "5", True])
def test_an_interval_that_is_none_is_refused(every_s: Any) -> None:
    with pytest.raises(RunError, match=r"snapshot_every_s=.* is no time between snapshots; expected a posi"):
        preflight.check_interval(every_s)


def test_a_log_that_was_made_to_recover_in_another_way_is_refused() -> None:
    place = LogPlace("sqlite", "/data/sales.log")
    with pytest.raises(
        RunError,
        match=r"the log /data/sales.log was made with recovery='log', and the run was asked for with "
        r"recovery='snapshot'.* Run with recovery='log', or name another place",
    ):
        preflight.check_recovery(MemoryStore({}), place, "snapshot")
    preflight.check_recovery(MemoryStore({"recovery": "snapshot"}), place, "snapshot")
    preflight.check_recovery(MemoryStore({}), place, "log")


def test_the_age_of_the_last_epoch_counts_from_when_it_was_complete() -> None:
    stage = Stage()
    hosts = stage.start()
    for host in hosts:
        host.hear("accepted")
        host.joined(1, is_finished=True)
    assert stage.report()["age_s"] is None
    for host in hosts:
        host.stored(1, 1, is_final=True)
    wait_until("it is complete", lambda: stage.report()["epoch"] == 1)
    time.sleep(0.02)
    assert 0.01 < stage.report()["age_s"] < 30
    stage.coordinator.stop()
    stage.coordinator.close()


# Reading beside a run


def rows(epoch: int, is_final: bool = False) -> ReplicaRows:
    counters = {"epoch": epoch, "final": int(is_final)}
    return ReplicaRows(1, [], [], [], {}, counters, [], [], {}, [], [], [], [], {})


ONE, OTHER = Replica("one"), Replica("other")


@pytest.mark.parametrize(
    ("stored", "complete", "expected"),
    [
        ({ONE: rows(3), OTHER: rows(3)}, 3, 3),
        ({ONE: rows(4), OTHER: rows(3)}, 3, 3),
        ({ONE: rows(3), OTHER: rows(3)}, 4, 3),  # It was stored and complete after the rows had been read.
        ({ONE: rows(2, is_final=True), OTHER: rows(5)}, 5, 5),
        ({ONE: rows(0), OTHER: rows(1)}, 0, 0),
    ],
)
def test_rows_are_read_as_of_one_epoch(stored: dict[Replica, ReplicaRows], complete: int, expected: int) -> None:
    assert rows_together(stored, stored.__getitem__, lambda: complete) == (expected, stored)


def test_rows_that_were_read_too_far_apart_are_read_again() -> None:
    """The second has removed by then what the epoch of the first needs."""
    answers = iter([rows(3), rows(5), rows(5), rows(5)])
    epoch, found = rows_together([ONE, OTHER], lambda _: next(answers), lambda: 5)
    assert (epoch, found[ONE].counters["epoch"]) == (5, 5)


def test_rows_that_can_never_be_read_together_are_an_error() -> None:
    with pytest.raises(RunError, match=r"the snapshots of one, other cannot be read together: .* Ask again"):
        rows_together([ONE, OTHER], lambda each: rows(3 if each == ONE else 5), lambda: 5)
