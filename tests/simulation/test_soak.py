"""The large pipelines of the catalog: thousands of random schedules, and one crash at every point.

Left out of `make test`; `make soak` runs them and prints a table, of which docs/soak.md keeps a copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.simulation.pipelines import PIPELINES
from tests.simulation.replay import check

from clew.verify.sweep import one_crash, random_schedules, try_all

SCHEDULES = 1_000
FAULTS_MAX = 5

pytestmark = pytest.mark.soak
pipelines = pytest.mark.parametrize("name", PIPELINES)


@pipelines
def test_random_schedules(name: str, counted: Callable[..., None]) -> None:
    case = PIPELINES[name]
    begin = time.monotonic()
    tally = try_all(
        name,
        case.graph("large"),
        lambda points, _: random_schedules(SCHEDULES, points, FAULTS_MAX, seed=1),
        parts=case.parts("large"),
    )
    counted(
        name,
        **{
            "points": tally.points,
            "schedules": tally.runs,
            "faults struck": tally.struck,
            "restarts": tally.restarts,
            "violations": 0 if tally.is_good else 1,
            "minutes": (time.monotonic() - begin) / 60,
        },
    )
    check(name, "large", tally)


@pipelines
def test_one_crash_at_every_point(name: str, counted: Callable[..., None]) -> None:
    case = PIPELINES[name]
    begin = time.monotonic()
    tally = try_all(name, case.graph("large"), lambda points, _: one_crash(points), parts=case.parts("large"))
    counted(
        name,
        **{
            "one-crash runs": tally.runs,
            "their violations": 0 if tally.is_good else 1,
            "their minutes": (time.monotonic() - begin) / 60,
        },
    )
    check(name, "large", tally)
