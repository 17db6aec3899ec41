"""Sweeps: every way to crash once or twice, or many random schedules; the first violation is shrunk.

Exhaustive means: at every point of the run, in turn, the process that reached it dies, before doing what it was
about to do and after. No luck is needed to find what breaks there.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from clew.model.graph import Graph
from clew.verify.parts import HEALTHY, Parts
from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.shrink import shrink
from clew.verify.simulator import Report, simulate

Run = Callable[[Schedule], Report]
_BOTH = (FaultKind.CRASH, FaultKind.AFTER)


@dataclass(slots=True)
class Tally:
    """What became of many schedules."""

    name: str
    runs: int = 0
    points: int = 0
    """How many points the run without faults has."""
    restarts: int = 0
    struck: int = 0
    """How many faults struck; a fault beyond the end of its run does not."""
    failed: Report | None = None
    """The first violation, shrunk."""
    found: Report | None = field(default=None, repr=False)
    """The same before shrinking."""

    @property
    def is_good(self) -> bool:
        """Whether every guarantee held in every run."""
        return self.failed is None


def one_crash(points: int, seed: int = 0, kinds: Iterable[FaultKind] = _BOTH) -> Iterator[Schedule]:
    """Every schedule with one crash.

    >>> [str(schedule) for schedule in one_crash(2)]
    ['0:crash@1', '0:after@1', '0:crash@2', '0:after@2']
    """
    for at in range(1, points + 1):
        for kind in kinds:
            yield Schedule(seed, (Fault(kind, at),))


def two_crashes(points: int, run: Run, seed: int = 0, kind: FaultKind = FaultKind.CRASH) -> Iterator[Schedule]:
    """Every schedule with two crashes, the second at any point that is left after the first."""
    for first in range(1, points + 1):
        rest = run(Schedule(seed, (Fault(kind, first),))).points
        for second in range(first + 1, rest + 1):
            yield Schedule(seed, (Fault(kind, first), Fault(kind, second)))


def random_schedules(count: int, points: int, faults_max: int, seed: int = 0) -> Iterator[Schedule]:
    """So many random schedules; each is decided by its own seed."""
    return (Schedule.chance(number, points, faults_max) for number in range(seed, seed + count))


def try_all(
    name: str,
    graph: Graph,
    schedules: Callable[[int, Run], Iterable[Schedule]],
    *,
    parts: Parts = HEALTHY,
    is_checking: bool = True,
    jobs: int = 1,
    progress: Callable[[Tally], None] | None = None,
    seed: int = 0,
) -> Tally:
    """Runs all schedules until one is violated; `schedules` is given the points of the run without faults."""
    tally = Tally(name)

    def run(schedule: Schedule) -> Report:
        return simulate(graph, schedule, parts=parts, is_checking=is_checking)

    calm = run(Schedule(seed))
    tally.points = calm.points
    if not calm.is_good:
        tally.failed = tally.found = calm
        return tally
    is_forking = not graph.in_driver  # A child that was forked cannot use its parent's Spark.
    with _runner(run, jobs if is_forking else 1) as run_many:
        for report in run_many(schedules(calm.points, run)):
            tally.runs += 1
            tally.restarts += report.restarts
            tally.struck += len(report.struck)
            if not report.is_good:
                tally.found = report
                break
            if progress is not None:
                progress(tally)
    if tally.found is not None:
        tally.failed = shrink(tally.found, run)
    return tally


_run_here: Run | None = None


def _run_in_child(schedules: list[Schedule]) -> list[Report]:
    assert _run_here is not None
    return [_run_here(schedule) for schedule in schedules]


@contextmanager
def _runner(run: Run, jobs: int) -> Iterator[Callable[[Iterable[Schedule]], Iterator[Report]]]:
    """Runs schedules one after another, or in child processes that share the graph by being forked."""
    global _run_here
    if jobs <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield lambda schedules: map(run, schedules)
        return
    _run_here = run
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"))

    def run_many(schedules: Iterable[Schedule]) -> Iterator[Report]:
        """Gives reports in order, with a few pieces of work ahead."""
        rest = iter(schedules)
        waiting: deque[Future[list[Report]]] = deque()
        while piece := list(islice(rest, 8)):
            waiting.append(pool.submit(_run_in_child, piece))
            if len(waiting) > 2 * jobs:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    try:
        yield run_many
    finally:  # Children are never killed: one that dies while it answers would hold a lock for ever.
        pool.shutdown(cancel_futures=True)
        _run_here = None
