"""The hunt: one bounded search through schedules, the same for broken and for healthy parts.

First runs without faults, then every single crash, every single pause and lost answer, some pairs of crashes, and
random schedules with several faults of every kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from clew.errors import LogError
from clew.model.graph import Graph
from clew.verify.parts import Parts
from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.shrink import shrink
from clew.verify.simulator import Report, simulate
from clew.verify.sweep import one_crash, random_schedules, two_crashes

CALM_SEEDS = 10
CRASH_SEEDS = 3
PAUSE_SEEDS = 1
PAUSE_LENGTHS = (4, 25, 60)
TWO_CRASHES = 200
RANDOM_SCHEDULES = 200
RANDOM_FAULTS = 4
SHRINK_TRIES = 80
STEPS_MAX = 5_000
"""Many times as many as any habitat needs: a run that takes longer will not end."""


@dataclass(frozen=True)
class Catch:
    """A violation, and how long it took to find it."""

    found: Report
    shrunk: Report
    stage: str
    runs: int


class Hunt:
    """A search on one pipeline with one set of parts."""

    def __init__(self, graph: Graph, parts: Parts, is_checking: bool = True) -> None:
        self.graph = graph
        self.parts = parts
        self.is_checking = is_checking
        self.runs = 0
        self.stage = ""

    def run(self, schedule: Schedule) -> Report:
        """Runs one schedule."""
        self.runs += 1
        try:
            return simulate(self.graph, schedule, parts=self.parts, is_checking=self.is_checking, steps_max=STEPS_MAX)
        except LogError as error:
            return Report(schedule, str(error), 0, 0, 0)

    def reports(self) -> Iterator[Report]:
        """All runs of the search, one after another."""
        points = []
        self.stage = "no fault"
        for seed in range(CALM_SEEDS):
            report = self.run(Schedule(seed))
            points.append(report.points)
            yield report
        self.stage = "one crash"
        for seed in range(CRASH_SEEDS):
            yield from map(self.run, one_crash(points[seed], seed))
        self.stage = "one pause or lost answer"
        for seed in range(PAUSE_SEEDS):
            yield from map(self.run, _pauses(points[seed], seed))
        self.stage = "two crashes"
        pairs = list(two_crashes(points[0], self.run))
        yield from map(self.run, pairs[:: len(pairs) // TWO_CRASHES + 1])
        self.stage = "random schedules"
        yield from map(self.run, random_schedules(RANDOM_SCHEDULES, max(points), RANDOM_FAULTS))

    def first_violation(self) -> Report | None:
        """The first run that goes wrong."""
        return next((report for report in self.reports() if not report.is_good), None)

    def catch(self, expected: re.Pattern[str]) -> Catch | None:
        """The first violation, and the simplest schedule found that leads to one that is expected."""
        found = self.first_violation()
        if found is None:
            return None
        runs, stage = self.runs, self.stage

        def run(schedule: Schedule) -> Report:
            report = self.run(schedule)
            return report if expected.search(report.violation or "") else replace(report, violation=None)

        shrunk = shrink(found, run, SHRINK_TRIES) if expected.search(found.violation or "") else found
        return Catch(found, shrunk, stage, runs)


def _pauses(points: int, seed: int) -> Iterator[Schedule]:
    for at in range(1, points + 1):
        yield Schedule(seed, (Fault(FaultKind.LOSE, at),))
        for length in PAUSE_LENGTHS:
            yield Schedule(seed, (Fault(FaultKind.PAUSE, at, length),))
