"""Repeats one run of the catalog with its trace: `python -m tests.simulation.replay NAME SCHEDULE --size middle`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from tests.simulation.pipelines import PIPELINES, SIZES

from clew.verify.schedule import Schedule
from clew.verify.simulator import Report, simulate
from clew.verify.sweep import Tally


def command(name: str, size: str, schedule: Schedule, epochs: str | None = None) -> str:
    """The command that repeats a run, to be given at the root of the project; `epochs` for one with snapshots.

    >>> command("linear", "small", Schedule.parse("7:crash@17,pause@30+40"))
    '.venv/bin/python -m tests.simulation.replay linear 7:crash@17,pause@30+40 --size small'
    """
    words = [".venv/bin/python", "-m", "tests.simulation.replay", name, str(schedule), "--size", size]
    return shlex.join(words if epochs is None else [*words, "--epochs", epochs])


def blame(name: str, size: str, report: Report, found: Report | None = None, epochs: str | None = None) -> str:
    """What was violated, under which schedule, and how to see it happen."""
    lines = [f"pipeline {name!r} ({size}) violates a guarantee: {report.violation}"]
    lines += [f"  point {point}: {kind} hit {replica}" for point, kind, replica in report.struck]
    lines.append(f"  schedule: {report.schedule}")
    if found is not None and found.schedule != report.schedule:
        lines.append(f"  before shrinking: {found.schedule} ({found.violation})")
    lines.append(f"  replay: {command(name, size, report.schedule, epochs)}")
    return "\n".join(lines)


def check(name: str, size: str, tally: Tally, epochs: str | None = None) -> Tally:
    """The tally, if every guarantee held in every run."""
    assert tally.failed is None, blame(name, size, tally.failed, tally.found, epochs)
    return tally


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; 0 is good, 1 is a violated guarantee."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.replay", description=__doc__)
    parser.add_argument("name", choices=sorted(PIPELINES), metavar="NAME", help="a pipeline of the catalog")
    parser.add_argument("schedule", type=Schedule.parse, metavar="SCHEDULE", help="such as 7:crash@17,pause@30+40")
    parser.add_argument("--size", choices=SIZES, default="middle")
    parser.add_argument("--epochs", metavar="SECONDS", help="with snapshots; `seed`: the seed chooses how often")
    args = parser.parse_args(argv)
    case = PIPELINES[args.name]
    parts = case.parts(args.size)
    if args.epochs is not None:
        parts = case.with_snapshots(args.size, None if args.epochs == "seed" else float(args.epochs))
    report = simulate(case.graph(args.size), args.schedule, parts=parts, is_tracing=True)
    for line in report.trace:
        print(line)
    print()
    print("every guarantee held" if report.is_good else blame(args.name, args.size, report, epochs=args.epochs))
    return 0 if report.is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
