"""`clew demo FILE`: shows a pipeline crash and find its way back, in the simulator."""

from __future__ import annotations

import argparse
import os
from typing import Any, TextIO

from clew.cli.load import load
from clew.model.graph import Graph
from clew.verify.oracle import judge
from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.sweep import one_crash, random_schedules, try_all
from clew.verify.world import World


def add_to(commands: Any) -> None:
    """Declares the command."""
    parser = commands.add_parser("demo", help="watch a pipeline crash and recover in the simulator")
    parser.add_argument("file", metavar="FILE", help="a Python file that defines `pipeline`, or `build()`")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Runs the command."""
    graph = load(args.file)
    print(f"The pipeline {graph.name!r}:\n", file=out)
    for channel in graph.channels:
        print(f"  {channel.sender}.{channel.output} -> {channel.receiver}.{channel.input}", file=out)
    for node in graph.nodes.values():
        for name, connection in node.writes.items():
            print(f"  {node.name} writes to outside system {connection.system!r} ({connection.kind}, {name})", file=out)
    calm = World(graph, Schedule(1))
    calm.run(10_000_000)
    print(f"\n1. Without failures it takes {calm.points} steps. Outside then is:\n", file=out)
    _show_outside(graph, calm, out)
    faults = tuple(Fault(FaultKind.CRASH, calm.points * part // 7) for part in range(1, 7))
    print("\n2. The same with a process killed six times; all its memory is lost each time:\n", file=out)
    world = World(graph, Schedule(1, faults), is_tracing=True)
    world.run(10_000_000)
    judge(graph, world.archive, world.outside, world.store.log_id)
    _show_trace(world, out)
    print("\nOutside, afterwards:\n", file=out)
    _show_outside(graph, world, out)
    is_same = _contents(graph, world) == _contents(graph, calm)
    print(f"\nThe same as without failures: {'yes' if is_same else 'no'}.", file=out)
    print("\n3. One crash at every single step, and 200 random schedules of crashes, pauses, lost answers:\n", file=out)
    jobs = os.cpu_count() or 1
    for name, schedules in (
        ("one crash at every step", lambda points, _: one_crash(points)),
        ("random schedules", lambda points, _: random_schedules(200, points, 4)),
    ):
        tally = try_all(name, graph, schedules, jobs=jobs)
        words = "nothing lost, doubled or unexplained" if tally.is_good else f"VIOLATED: {tally.failed}"
        print(f"  {name}: {tally.runs} runs, {tally.restarts} restarts: {words}", file=out)
        is_same = is_same and tally.is_good
    print(f"\nTry it on a pipeline of your own: clew verify {args.file}", file=out)
    return 0 if is_same else 1


def _contents(graph: Graph, world: World) -> list[tuple[str, str, list[Any]]]:
    return [
        (
            node.name,
            name,
            [row for action in world.outside.written(node.name, name) for row in action.batch.to_pylist()],
        )
        for node in graph.nodes.values()
        for name in node.writes
    ]


def _show_outside(graph: Graph, world: World, out: TextIO) -> None:
    for operator, connection, rows in _contents(graph, world):
        print(f"  {operator}.{connection}: {len(rows)} rows", file=out)
        for row in rows[:2]:
            print("    " + ", ".join(f"{name}={value}" for name, value in row.items()), file=out)
        if len(rows) > 2:
            print("    ...", file=out)


def _show_trace(world: World, out: TextIO) -> None:
    """Deaths and rebirths only."""
    for line in world.trace or ():
        if "**" in line or "begins as" in line or "Started(" in line or "Refold(" in line or "is fenced" in line:
            words = line if len(line) <= 110 else line[:107] + "..."
            if "begins as incarnation 1" not in line and "#1 <- Started" not in line:
                print(f"  {words}", file=out)
