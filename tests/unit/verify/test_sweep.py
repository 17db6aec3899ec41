"""Sweeps: what they run, how they count, and that the first violation stops them and is shrunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clew import Operator, Pipeline
from clew.model.graph import Graph
from clew.testing import Outside, scripted
from clew.verify.schedule import FaultKind, Schedule
from clew.verify.simulator import Report
from clew.verify.sweep import Tally, one_crash, random_schedules, try_all, two_crashes


class Forgetful(Operator):
    """Counts in its own memory, which a crash empties."""

    def __init__(self) -> None:
        self.count = 0

    def assign(self, event: Any, ctx: Any) -> list[int]:
        return [event.id]

    def update(self, input_set: Any, event: Any, note: Any = None) -> None:
        self.count += 1
        self.now = input_set

    def ready(self, ctx: Any) -> list[Any]:
        return [[self.now]] if getattr(self, "now", None) else []

    def generate(self, input_sets: Any, ctx: Any) -> Iterator[Any]:
        self.now = None
        yield "out", [{"count": self.count}]


def graph(operator: Operator | None = None, events: int = 3) -> Graph:
    pipeline = Pipeline("p")
    numbers = pipeline.source("numbers", scripted([[{"x": number}] for number in range(events)]))
    rows = numbers.operator("op", operator) if operator else numbers.map(lambda table: table, "op")
    rows.write("save", Outside("store").writer())
    return pipeline.build()


def test_two_crashes_try_every_second_point_that_is_left() -> None:
    def run(schedule: Schedule) -> Report:
        return Report(schedule, None, 3, 3, 1)  # Each run has three points, whatever was done to it.

    assert [str(schedule) for schedule in two_crashes(2, run, seed=5)] == [
        "5:crash@1,crash@2",
        "5:crash@1,crash@3",
        "5:crash@2,crash@3",
    ]
    assert str(next(two_crashes(2, run, kind=FaultKind.AFTER))) == "0:after@1,after@2"


def test_one_crash_can_be_of_any_kind() -> None:
    assert [str(each) for each in one_crash(2, 4, [FaultKind.POWER])] == ["4:power@1", "4:power@2"]


def test_random_schedules_are_numbered_from_the_seed() -> None:
    assert [schedule.seed for schedule in random_schedules(3, 50, 2, seed=7)] == [7, 8, 9]
    assert list(random_schedules(2, 50, 2)) == [Schedule.chance(0, 50, 2), Schedule.chance(1, 50, 2)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_tally_counts_every_run(jobs: int) -> None:
    seen: list[int] = []
    tally = try_all(
        "one crash",
        graph(),
        lambda points, _: one_crash(points),
        jobs=jobs,
        progress=lambda each: seen.append(each.runs),
    )
    assert tally.is_good
    assert tally.runs == 2 * tally.points == tally.struck == len(seen)
    assert tally.restarts == tally.runs  # Each crash was one restart.
    assert (tally.name, tally.failed, tally.found) == ("one crash", None, None)


def test_faults_beyond_the_end_of_a_run_do_not_strike() -> None:
    tally = try_all("late", graph(), lambda points, _: [Schedule.parse(f"0:crash@{points + 50}")])
    assert (tally.is_good, tally.runs, tally.struck, tally.restarts) == (True, 1, 0, 0)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_violation_ends_the_sweep_and_is_shrunk(jobs: int) -> None:
    texts = [f"0:pause@{at}+9" for at in range(1, 90)]
    tally = try_all("many", graph(Forgetful()), lambda *_: map(Schedule.parse, texts), jobs=jobs)
    assert not tally.is_good
    assert tally.found is not None
    assert tally.failed is not None
    assert 0 < tally.runs < len(texts)
    assert str(tally.found.schedule) == texts[tally.runs - 1]  # The first, however many are tried at a time.
    assert [fault.kind for fault in tally.failed.schedule.faults] == ["crash"]  # Simpler than a pause.
    assert "a run without failures produces" in (tally.failed.violation or "")


def test_a_run_that_fails_without_faults_is_reported_as_it_is() -> None:
    class Raises(Forgetful):
        def assign(self, event: Any, ctx: Any) -> list[int]:
            raise ValueError("no")

    tally = try_all("one crash", graph(Raises()), lambda points, _: one_crash(points), seed=4)
    assert (tally.is_good, tally.runs) == (False, 0)
    assert tally.failed is tally.found is not None
    assert str(tally.failed.schedule) == "4"
    assert "operator 'op': assign() for numbers.out/1 raised ValueError: no" in (tally.failed.violation or "")


def test_a_new_tally_is_good() -> None:
    assert Tally("nothing").is_good
