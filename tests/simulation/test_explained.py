"""Every pipeline of the catalog under random faults: its trace is explained, and falsified in any way it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.laws import trace_mutations as mutations
from tests.simulation.pipelines import PIPELINES, TIMED
from tests.simulation.traced import traced_run

from clew.trace.reader import Trace
from clew.trace.records import LOG, SNAPSHOT
from clew.verify import parts
from clew.verify.explain import Explanation, Unexplained, explain
from clew.verify.schedule import Schedule

REFUSED = ("not-replayable", "windows-once", "idle-once", "loop", "writes-first", "poison", "timed-poison")
"""Pipelines that need a log of every replica's own."""
CASES = [(name, mode) for name in PIPELINES for mode in (LOG, SNAPSHOT) if mode == LOG or name not in REFUSED]
FALSIFIED = (
    mutations.event_removed,
    mutations.event_doubled,
    mutations.events_swapped,
    mutations.output_removed,
    mutations.output_doubled,
    mutations.commit_removed,
    mutations.commit_doubled,
    mutations.commits_swapped,
)
POINTS, FAULTS = 150, 3


def explained_run(name: str, mode: str, seed: int, directory: Path) -> tuple[Trace, Explanation]:
    case = PIPELINES[name]
    used = case.parts("middle")
    if mode == SNAPSHOT:
        kernels = parts.SNAPSHOT
        used = replace(used, operator=kernels.operator, source=kernels.source, epochs=kernels.epochs)
    schedule = Schedule.chance(seed, POINTS, FAULTS)
    trace, facts = traced_run(case.graph("middle"), schedule, used, directory / f"{name}-{mode}-{seed}")
    found = explain(trace, facts)
    assert isinstance(found, Explanation), f"{name}, {mode}, schedule {schedule}: {found}"
    assert found.is_complete
    assert found.is_whole
    return trace, found


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_random_schedules_are_explained(name: str, mode: str, tmp_path: Path) -> None:
    for seed in range(3):
        explained_run(name, mode, seed, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_many_random_schedules_are_explained(name: str, mode: str, tmp_path: Path) -> None:
    for seed in range(1000, 1200):
        explained_run(name, mode, seed, tmp_path)


@pytest.mark.parametrize(("name", "mode"), [case for case in CASES if case[0] not in TIMED][::4])
def test_a_falsified_trace_of_real_kernels_is_not_explained(name: str, mode: str, tmp_path: Path) -> None:
    tried = 0
    for seed in (1, 2):
        trace, _ = explained_run(name, mode, seed, tmp_path)
        for mutation in FALSIFIED:
            falsified = mutation(trace, Random(seed))
            if falsified is not None:
                tried += 1
                found = explain(falsified)
                schedule = Schedule.chance(seed, POINTS, FAULTS)
                assert isinstance(found, Unexplained), f"{name}, {mode}, schedule {schedule}, {mutation.__name__}"
    assert tried > len(FALSIFIED)
