"""Shrinking: fewer faults first, then simpler ones, then earlier ones, and never one that does not fail."""

from __future__ import annotations

from collections.abc import Callable

from clew.verify.schedule import Schedule
from clew.verify.shrink import shrink
from clew.verify.simulator import Report


def shrunk(text: str, fails: Callable[[Schedule], bool], tries_max: int = 300) -> tuple[str, int]:
    """The schedule that remains, and how many were tried."""
    tried: list[Schedule] = []

    def run(schedule: Schedule) -> Report:
        tried.append(schedule)
        return report(schedule, fails(schedule))

    result = shrink(report(Schedule.parse(text), True), run, tries_max)
    assert not result.is_good
    return str(result.schedule), len(tried)


def report(schedule: Schedule, is_failing: bool) -> Report:
    return Report(schedule, "broken" if is_failing else None, 100, 100, 0)


def test_a_schedule_that_fails_by_itself_loses_all_faults() -> None:
    assert shrunk("7:crash@17,pause@30+40", lambda schedule: True)[0] == "7"


def test_only_the_fault_that_matters_stays_at_the_first_point_where_it_does() -> None:
    def fails(schedule: Schedule) -> bool:
        return any(fault.kind == "after" and fault.at >= 12 for fault in schedule.faults)

    assert shrunk("7:crash@3,after@90,power@95,pause@96+9", fails)[0] == "7:after@12"


def test_a_pause_or_a_power_cut_becomes_a_crash_if_that_is_enough() -> None:
    assert shrunk("1:pause@8+50", lambda schedule: bool(schedule.faults))[0] == "1:crash@1"
    assert shrunk("1:power@8", lambda schedule: bool(schedule.faults))[0] == "1:crash@1"


def test_a_pause_that_is_needed_becomes_short() -> None:
    def fails(schedule: Schedule) -> bool:
        return any(fault.kind == "pause" and fault.length >= 5 for fault in schedule.faults)

    assert shrunk("1:pause@1+44", fails)[0] == "1:pause@1+5"


def test_two_faults_that_need_each_other_both_stay() -> None:
    def fails(schedule: Schedule) -> bool:
        points = [fault.at for fault in schedule.faults]
        return len(points) == 2 and points[1] - points[0] >= 10

    assert shrunk("1:crash@40,crash@90,after@95", fails)[0] in ("1:crash@1,crash@11", "1:crash@1,after@11")


def test_what_fails_only_as_it_is_stays_as_it_is() -> None:
    assert shrunk("1:crash@40,crash@90", lambda schedule: str(schedule) == "1:crash@40,crash@90")[0] == (
        "1:crash@40,crash@90"
    )


def test_it_gives_up_after_a_while() -> None:
    text, tried = shrunk("1:crash@1000000", lambda schedule: bool(schedule.faults), tries_max=5)
    assert tried <= 6
    assert Schedule.parse(text).faults[0].at < 1_000_000
