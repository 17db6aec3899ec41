"""Every pipeline of the catalog that can run with snapshots, under crashes of any process and of all.

Short epochs, one after the other. `python -m tests.simulation.replay NAME SCHEDULE --epochs 0` repeats one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import pytest
from tests.simulation.pipelines import PIPELINES, Case
from tests.simulation.replay import check

from clew.errors import ClewError
from clew.protocol.eligible import check_snapshots
from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.simulator import simulate
from clew.verify.sweep import one_crash, random_schedules, try_all, two_crashes

PAUSE_POINTS = 10
LARGE = ("timers", "idle")
"""Their runs have many points, since time must pass in them."""


def is_eligible(case: Case) -> bool:
    """Whether a pipeline can run with snapshots."""
    graph = case.graph("small")
    try:
        check_snapshots(replace(graph, scopes=()))  # Without the log nothing is captured for lineage.
    except ClewError:
        return False
    return True


ELIGIBLE = [name for name, case in PIPELINES.items() if is_eligible(case) and "poison" not in name]
pipelines = pytest.mark.parametrize("name", ELIGIBLE)


def one_fault(points: int) -> Iterator[Schedule]:
    """At every point: a crash before and after, one of all processes, a broken connection, a pause."""
    yield from one_crash(points, 0, [FaultKind.CRASH, FaultKind.AFTER, FaultKind.POWER, FaultKind.BREAK])
    for at in range(1, points + 1):
        yield Schedule(0, (Fault(FaultKind.PAUSE, at, PAUSE_POINTS),))


def sweep(name: str, size: str, every: int, counted: Callable[..., None]) -> None:
    case = PIPELINES[name]
    tally = try_all(
        name,
        case.graph(size),
        lambda points, _: islice(one_fault(points), 0, None, every),
        parts=case.with_snapshots(size),
    )
    check(name, size, tally, "0")
    counted(name, **{f"snapshot points ({size})": tally.points, f"snapshot runs ({size})": tally.runs})


@pipelines
def test_one_fault_at_some_points(name: str, counted: Callable[..., None]) -> None:
    sweep(name, "small", 331 if name in LARGE else 7, counted)


@pytest.mark.soak
@pytest.mark.parametrize("size", ["small", "tight", "middle"])
@pipelines
def test_one_fault_at_every_point(name: str, size: str, counted: Callable[..., None]) -> None:
    sweep(name, size, 1, counted)


@pytest.mark.soak
@pipelines
def test_two_crashes_at_every_pair_of_points(name: str, counted: Callable[..., None]) -> None:
    case = PIPELINES[name]
    every = 97 if name in LARGE else 1
    tally = try_all(
        name,
        case.graph("small"),
        lambda points, run: islice(two_crashes(points, run), 0, None, every),
        parts=case.with_snapshots("small"),
    )
    check(name, "small", tally, "0")
    counted(name, **{"snapshot two-crash runs": tally.runs})


@pytest.mark.soak
@pytest.mark.parametrize("size", ["middle", "large"])
@pipelines
def test_random_faults(name: str, size: str, counted: Callable[..., None]) -> None:
    case = PIPELINES[name]
    tally = try_all(
        name,
        case.graph(size),
        lambda points, _: random_schedules(200, points, 5),
        parts=case.with_snapshots(size, None),
    )
    check(name, size, tally, "seed")
    counted(name, **{f"snapshot random runs ({size})": tally.runs})


@pytest.mark.parametrize("name", ["linear", "join", "kinds"])
def test_a_few_faults_at_once(name: str) -> None:
    case = PIPELINES[name]
    tally = try_all(
        name,
        case.graph("middle"),
        lambda points, _: random_schedules(12, points, 5),
        parts=case.with_snapshots("middle", None),
    )
    check(name, "middle", tally, "seed")


def test_enough_pipelines_can_run_with_snapshots() -> None:
    assert len(ELIGIBLE) >= 25


def test_the_same_schedule_gives_the_same_run() -> None:
    case = PIPELINES["join"]
    schedule = Schedule.parse("3:crash@40,power@90,pause@120+10")
    one, other = (
        simulate(case.graph("middle"), schedule, parts=case.with_snapshots("middle", None), is_tracing=True)
        for _ in range(2)
    )
    assert one == other
    assert one.trace == other.trace
    assert any("coordinator -> Rewind(2" in line for line in one.trace)
