"""Schedules as text and back, and what chance makes of a seed."""

from __future__ import annotations

import pytest

from clew.errors import ClewError
from clew.verify.schedule import Fault, FaultKind, Schedule


@pytest.mark.parametrize(
    "text", ["0", "7", "7:crash@17", "0:after@1", "12:crash@3,after@4,pause@5+60,lose@7,break@8,power@9", "3:pause@5"]
)
def test_a_schedule_is_read_and_written_alike(text: str) -> None:
    assert str(Schedule.parse(text)) == text


def test_spaces_and_empty_faults_are_forgiven() -> None:
    assert Schedule.parse(" 7 : crash@1, after@2 ,") == Schedule.parse("7:crash@1,after@2")


def test_what_a_schedule_says() -> None:
    schedule = Schedule.parse("7:crash@17,pause@30+40")
    assert schedule.seed == 7
    assert schedule.faults == (Fault(FaultKind.CRASH, 17), Fault(FaultKind.PAUSE, 30, 40))
    assert schedule.with_faults() == Schedule(7)


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "crash@17", ":crash@17", "²"])
def test_a_schedule_without_a_seed_is_refused(text: str) -> None:
    with pytest.raises(ClewError) as caught:
        Schedule.parse(text)
    assert str(caught.value) == (
        f"the schedule {text!r} cannot be read; expected SEED or SEED:FAULT,... such as 7:crash@17."
    )


@pytest.mark.parametrize("text", ["crash", "crash@", "crash@x", "fall@3", "crash@-3", "pause@3+", "crash@3 after@4"])
def test_a_fault_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ClewError) as caught:
        Schedule.parse(f"7:{text}")
    assert str(caught.value) == (
        f"the fault {text!r} cannot be read; expected crash@N, after@N, pause@N+LENGTH, lose@N, break@N or power@N, "
        f"where N is the number of a point of the run."
    )


def test_a_seed_alone_decides_a_random_schedule() -> None:
    one, other = (Schedule.chance(5, 100, 4) for _ in range(2))
    assert one == other
    assert one != Schedule.chance(6, 100, 4)


def test_random_schedules_stay_within_their_bounds_and_use_every_kind_of_fault() -> None:
    schedules = [Schedule.chance(seed, 90, 4) for seed in range(300)]
    faults = [fault for schedule in schedules for fault in schedule.faults]
    assert {fault.kind for fault in faults} == set(FaultKind)
    assert {len(schedule.faults) for schedule in schedules} == {1, 2, 3, 4}
    assert all(1 <= fault.at <= 90 for fault in faults)
    assert all((1 <= fault.length <= 30) == (fault.kind is FaultKind.PAUSE) for fault in faults)
    assert all(list(schedule.faults) == sorted(schedule.faults, key=lambda fault: fault.at) for schedule in schedules)
    assert all(Schedule.parse(str(schedule)) == schedule for schedule in schedules)


def test_a_random_schedule_without_faults_and_of_an_empty_run() -> None:
    assert Schedule.chance(3, 100, 0) == Schedule(3)
    assert all(fault.at == 1 for fault in Schedule.chance(3, 0, 2).faults)
