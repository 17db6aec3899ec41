"""`clew verify FILE`: runs a user's own pipeline under crashes, pauses and lost answers."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from clew.cli.load import load
from clew.errors import ClewError
from clew.model.graph import Graph
from clew.verify.parts import Parts, parts_for
from clew.verify.schedule import FaultKind, Schedule
from clew.verify.simulator import Report, simulate
from clew.verify.sweep import Tally, one_crash, random_schedules, try_all, two_crashes


def add_to(commands: Any) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "verify",
        help="try to break a pipeline in the simulator",
        description="Runs the pipeline of FILE in the simulator: one crash at every point, then random schedules with "
        "several faults. Exit code 1 if any guarantee is violated; then the shortest failing schedule found is shown "
        "with the command that repeats it.",
    )
    parser.add_argument("file", metavar="FILE", help="a Python file that defines `pipeline`, or `build()`")
    parser.add_argument("--schedules", type=_count, default=300, metavar="N", help="random schedules (default 300)")
    parser.add_argument("--faults", type=_count, default=3, metavar="N", help="faults per random schedule, at most")
    parser.add_argument("--crashes", type=int, choices=(0, 1, 2), default=1, help="exhaustive crashes (default 1)")
    parser.add_argument("--seed", type=_count, default=0, help="the first seed (default 0)")
    parser.add_argument("--schedule", metavar="S", help="repeat one schedule, such as 7:crash@17, and show its trace")
    parser.add_argument("--jobs", type=_count, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("--no-invariants", action="store_true", help="judge only the end of each run (faster)")
    parser.add_argument(
        "--recovery", choices=("log", "snapshot"), default="log", help="how failures are recovered from (default log)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("expected a number that is not negative")
    return number


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Runs the command."""
    graph = load(args.file)
    parts = parts_for(graph, args.recovery)
    if args.schedule is not None:
        return _repeat(args, graph, parts, out)
    if not args.schedules and not args.crashes:
        raise ClewError("nothing to do: --schedules 0 and --crashes 0. Leave one of them out.")
    begin = time.monotonic()
    tallies: list[Tally] = []
    for name, schedules in _plans(args):
        show = _Progress(name, sys.stderr)
        tally = try_all(
            name,
            graph,
            schedules,
            parts=parts,
            is_checking=not args.no_invariants,
            jobs=args.jobs,
            progress=show,
            seed=args.seed,
        )
        show.done()
        tallies.append(tally)
        if not tally.is_good:
            break
    seconds = time.monotonic() - begin
    if args.json:
        print(json.dumps(_as_json(args, graph.name, tallies, seconds)), file=out)
    else:
        _print(args, graph.name, tallies, seconds, out)
    return 0 if all(tally.is_good for tally in tallies) else 1


def _plans(args: argparse.Namespace) -> list[tuple[str, Callable[[int, Any], Any]]]:
    plans: list[tuple[str, Callable[[int, Any], Any]]] = []
    if args.crashes >= 1:
        plans.append(("one crash at every point", lambda points, _: one_crash(points, args.seed)))
    if args.crashes >= 2:
        for kind in (FaultKind.CRASH, FaultKind.AFTER):
            name = f"two crashes at every pair of points ({kind})"
            plans.append((name, lambda points, go, kind=kind: two_crashes(points, go, args.seed, kind)))  # type: ignore[misc]
    if args.schedules:
        name = f"random schedules with up to {args.faults} faults"
        plans.append((name, lambda points, _: random_schedules(args.schedules, points, args.faults, args.seed)))
    return plans


def _repeat(args: argparse.Namespace, graph: Graph, parts: Parts, out: TextIO) -> int:
    schedule = Schedule.parse(args.schedule)
    report = simulate(graph, schedule, parts=parts, is_tracing=True, is_checking=not args.no_invariants)
    if args.json:
        print(json.dumps({**_report_json(report), "trace": list(report.trace)}), file=out)
        return 0 if report.is_good else 1
    for line in report.trace:
        print(line, file=out)
    print(file=out)
    for point, kind, replica in report.struck:
        print(f"point {point}: {kind} hit {replica}", file=out)
    print(f"violated: {report.violation}" if report.violation else "every guarantee held", file=out)
    return 0 if report.is_good else 1


class _Progress:
    """A line on the terminal that says how far a sweep is."""

    def __init__(self, name: str, out: TextIO) -> None:
        self.name = name
        self.out = out
        self.is_terminal = out.isatty()
        self.pause_s = 0.2 if self.is_terminal else 10.0
        self.next_at = time.monotonic() + self.pause_s
        self.is_shown = False

    def __call__(self, tally: Tally) -> None:
        if time.monotonic() >= self.next_at:
            self.next_at = time.monotonic() + self.pause_s
            self.is_shown = True
            end = "\r" if self.is_terminal else "\n"
            print(f"{self.name}: {tally.runs} runs, {tally.restarts} restarts ", end=end, file=self.out, flush=True)

    def done(self) -> None:
        if self.is_shown and self.is_terminal:
            print(" " * 78, end="\r", file=self.out, flush=True)


def _print(args: argparse.Namespace, name: str, tallies: list[Tally], seconds: float, out: TextIO) -> None:
    for tally in tallies:
        words = "every guarantee held" if tally.is_good else "VIOLATED"
        print(
            f"{tally.name}: {tally.runs} runs ({tally.points} points without faults), {tally.struck} faults struck, "
            f"{tally.restarts} restarts: {words}",
            file=out,
        )
    runs = sum(tally.runs for tally in tallies)
    print(f"pipeline {name!r}: {runs} runs in {seconds:.1f} s", file=out)
    failed = next((tally.failed for tally in tallies if tally.failed is not None), None)
    if failed is not None:
        print(f"\nviolated: {failed.violation}", file=out)
        for point, kind, replica in failed.struck:
            print(f"  point {point}: {kind} hit {replica}", file=out)
        mode = "" if args.recovery == "log" else f" --recovery {args.recovery}"
        print(f"repeat it with its trace: clew verify {args.file}{mode} --schedule {failed.schedule}", file=out)


def _as_json(args: argparse.Namespace, name: str, tallies: list[Tally], seconds: float) -> dict[str, Any]:
    return {
        "file": args.file,
        "recovery": args.recovery,
        "pipeline": name,
        "is_good": all(tally.is_good for tally in tallies),
        "seconds": round(seconds, 3),
        "sweeps": [
            {
                "name": tally.name,
                "runs": tally.runs,
                "points": tally.points,
                "faults_struck": tally.struck,
                "restarts": tally.restarts,
                "violation": None if tally.failed is None else _report_json(tally.failed),
            }
            for tally in tallies
        ],
    }


def _report_json(report: Report) -> dict[str, Any]:
    return {
        "schedule": str(report.schedule),
        "violation": report.violation,
        "points": report.points,
        "restarts": report.restarts,
        "struck": [{"point": point, "fault": kind, "replica": replica} for point, kind, replica in report.struck],
    }
