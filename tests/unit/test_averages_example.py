"""The example with a control stream: every measurement has one average, of those since some reset, in both modes."""

from __future__ import annotations

import pytest
from examples import averages

from clew.testing import Outside, run, scripted
from clew.verify.parts import HEALTHY, SNAPSHOT, Parts
from clew.verify.schedule import Schedule
from clew.verify.simulator import simulate

MEASURED = [[{"number": number, "value": float(number)}] for number in range(1, 7)]


def test_without_resets_each_average_is_that_of_all_before() -> None:
    pipeline = averages.build(scripted(MEASURED), scripted([]), Outside("results").writer())
    for recovery in ("log", "snapshot"):
        result = run(pipeline, crashes=[("averages", 2)], recovery=recovery)
        assert result.restarts == 1
        assert [row["average"] for row in result.rows("results.to")] == [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]


@pytest.mark.parametrize("parts", [HEALTHY, SNAPSHOT], ids=["log", "snapshot"])
@pytest.mark.parametrize("schedule", ["1", "2:crash@30,crash@60", "3:power@50,crash@70", "4:pause@40+20"])
def test_whenever_the_resets_come_the_averages_are_those_of_one_run(parts: Parts, schedule: str) -> None:
    resets = [[{"reset": 1}], [{"reset": 2}]]
    pipeline = averages.build(scripted(MEASURED), scripted(resets), Outside("results").writer())
    report = simulate(pipeline.build(), Schedule.parse(schedule), parts=parts)
    assert report.is_good, report.violation
