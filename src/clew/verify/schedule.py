"""Schedules: a seed and a few faults, which together decide everything that happens in a simulated run."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from enum import StrEnum

from clew.errors import ClewError


class FaultKind(StrEnum):
    """What goes wrong at a point of a run; the replica concerned is the one that reached the point."""

    CRASH = "crash"
    """The process dies before it does what it was about to do."""
    AFTER = "after"
    """The process dies after doing it, before it can learn of it: an answer is lost."""
    PAUSE = "pause"
    """The process stops, is taken for dead and replaced, and wakes up later."""
    LOSE = "lose"
    """The next write action, or the answer to it, is lost while the process lives on."""
    BREAK = "break"
    """A connection of the process loses what is under way on it, in both directions; both ends live on."""
    POWER = "power"
    """All processes die at once."""


_FAULT = re.compile(r"(crash|after|pause|lose|break|power)@(\d+)(?:\+(\d+))?\Z")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, at the given point of the run; a pause also has a length in points.

    >>> str(Fault(FaultKind.PAUSE, 17, 40)), Fault.parse("crash@3")
    ('pause@17+40', Fault(kind=<FaultKind.CRASH: 'crash'>, at=3, length=0))
    """

    kind: FaultKind
    at: int
    length: int = 0

    def __str__(self) -> str:
        return f"{self.kind}@{self.at}" + (f"+{self.length}" if self.length else "")

    @staticmethod
    def parse(text: str) -> Fault:
        """The fault that a text stands for."""
        found = _FAULT.match(text.strip())
        if found is None:
            raise ClewError(
                f"the fault {text!r} cannot be read; expected crash@N, after@N, pause@N+LENGTH, lose@N, break@N or "
                f"power@N, where N is the number of a point of the run."
            )
        kind, at, length = found.groups()
        return Fault(FaultKind(kind), int(at), int(length or 0))


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything that decides a run.

    >>> schedule = Schedule.parse("7:crash@17,pause@30+40")
    >>> str(schedule), len(schedule.faults)
    ('7:crash@17,pause@30+40', 2)
    """

    seed: int = 0
    faults: tuple[Fault, ...] = ()

    def __str__(self) -> str:
        faults = ",".join(str(fault) for fault in self.faults)
        return f"{self.seed}:{faults}" if faults else str(self.seed)

    @staticmethod
    def parse(text: str) -> Schedule:
        """The schedule that a text stands for."""
        seed, _, faults = text.partition(":")
        if not seed.strip().isdecimal():
            raise ClewError(
                f"the schedule {text!r} cannot be read; expected SEED or SEED:FAULT,... such as 7:crash@17."
            )
        return Schedule(int(seed), tuple(Fault.parse(each) for each in faults.split(",") if each.strip()))

    @staticmethod
    def chance(seed: int, points: int, faults_max: int) -> Schedule:
        """A random schedule for a run of about so many points; the seed alone decides it."""
        chance = random.Random(f"schedule {seed}")
        often = [FaultKind.CRASH, FaultKind.AFTER, FaultKind.PAUSE]
        kinds = [*often * 3, FaultKind.CRASH, FaultKind.LOSE, FaultKind.BREAK, FaultKind.BREAK, FaultKind.POWER]
        faults = []
        for _ in range(chance.randint(1, faults_max) if faults_max else 0):
            kind = chance.choice(kinds)
            length = chance.randint(1, max(2, points // 3)) if kind is FaultKind.PAUSE else 0
            faults.append(Fault(kind, chance.randint(1, max(1, points)), length))
        return Schedule(seed, tuple(sorted(faults, key=lambda fault: fault.at)))

    def with_faults(self, *faults: Fault) -> Schedule:
        """The same seed with other faults."""
        return replace(self, faults=faults)
