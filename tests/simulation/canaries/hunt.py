"""The hunt: one bounded search through schedules, the same for broken and for healthy parts.

First runs without faults, then every single crash, some pairs of crashes, random schedules with faults of every kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from clew.errors import LogError
from clew.model.graph import Graph
from clew.verify.schedule import Schedule
from clew.verify.shrink import shrink
from clew.verify.simulator import Report, simulate
from clew.verify.sweep import one_crash, random_schedules, two_crashes
from clew.verify.parts import Parts

CALM_SEEDS = 10
CRASH_SEEDS = 3
TWO_CRASHES = 300
RANDOM_SCHEDULES = 400
RANDOM_FAULTS = 4
SHRINK_TRIES = 80


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
        self.points: dict[int, int] = {}
        self.steps_max = 20_000

    def run(self, schedule: Schedule) -> Report:
        """Runs one schedule; whatever ends it early is a violation."""
        self.runs += 1
        try:
            return simulate(
                self.graph, schedule, parts=self.parts, is_checking=self.is_checking, steps_max=self.steps_max
            )
        except LogError as error:
            return Report(schedule, f"the log is damaged: {error}", 0, 0, 0)

    def reports(self) -> Iterator[Report]:
        """All runs of the search, one after another."""
        self.stage = "no fault"
        for seed in range(CALM_SEEDS):
            report = self.run(Schedule(seed))
            self.points[seed] = report.points
            yield report
        self.steps_max = 5_000
        self.stage = "one crash"
        for seed in range(CRASH_SEEDS):
            yield from map(self.run, one_crash(self.points[seed], seed))
        self.stage = "two crashes"
        pairs = list(two_crashes(self.points[0], self.run))
        yield from map(self.run, pairs[:: len(pairs) // TWO_CRASHES + 1])
        self.stage = "random schedules"
        points = max(self.points.values())
        yield from map(self.run, random_schedules(RANDOM_SCHEDULES, points, RANDOM_FAULTS))

    def first_violation(self) -> Report | None:
        """The first run that goes wrong."""
        return next((report for report in self.reports() if not report.is_good), None)

    def catch(self, expected: re.Pattern[str]) -> Catch | None:
        """The first violation, and a simpler schedule that leads to an expected one."""
        found = self.first_violation()
        if found is None:
            return None
        runs, stage = self.runs, self.stage

        def run(schedule: Schedule) -> Report:
            report = self.run(schedule)
            is_expected = report.violation is not None and expected.search(report.violation)
            return report if is_expected else replace(report, violation=None)

        shrunk = shrink(found, run, SHRINK_TRIES) if expected.search(found.violation or "") else found
        return Catch(found, shrunk, stage, runs)
