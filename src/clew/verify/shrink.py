"""Shrinking: a failing schedule becomes a shorter one that still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.simulator import Report


def shrink(report: Report, run: Callable[[Schedule], Report], tries_max: int = 300) -> Report:
    """The simplest failing run found: fewer faults first, then simpler ones, then earlier ones."""
    tries = 0
    is_better = True
    while is_better and tries < tries_max:
        is_better = False
        for candidate in _simpler(report.schedule):
            tries += 1
            attempt = run(candidate)
            if not attempt.is_good:
                report = attempt
                is_better = True
                break
            if tries >= tries_max:
                break
    return report


def _simpler(schedule: Schedule) -> Iterator[Schedule]:
    faults = schedule.faults
    for place in range(len(faults)):
        yield schedule.with_faults(*faults[:place], *faults[place + 1 :])
    for place, fault in enumerate(faults):
        for simpler in _simpler_fault(fault):
            yield schedule.with_faults(*faults[:place], simpler, *faults[place + 1 :])


def _simpler_fault(fault: Fault) -> Iterator[Fault]:
    if fault.kind in (FaultKind.POWER, FaultKind.PAUSE):
        yield Fault(FaultKind.CRASH, fault.at)
    if fault.kind is FaultKind.PAUSE and fault.length > 1:
        yield replace(fault, length=fault.length // 2)
    for at in (fault.at // 2, fault.at * 3 // 4, fault.at - 1):
        if 0 < at < fault.at:
            yield replace(fault, at=at)
