"""How many count changes per second propagation and the tracker take, for 10, 100 and 1,000 operators.

Each operator has two locations, its input and what it holds. In a batch of changes one operator moves on by one time,
events come at random operators after it, and those of the batch before are taken; then the frontiers are brought up to
date. If that operator is the first, the new time travels through the whole graph, so a round does work at every
location; if it is the tenth from the end, a round should cost the same however large the graph is. The graphs are a
chain, and a random graph in which one edge leads back and advances time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from random import Random
from typing import Any

from clew.progress.propagation import Propagation
from clew.progress.topology import Topology
from clew.progress.tracker import Tracker
from clew.times import IDENTITY, Add, Changes, Integers


def chain(operators: int, random: Random) -> list[tuple[int, int]]:
    return [(n, n + 1) for n in range(operators - 1)]


def with_a_cycle(operators: int, random: Random) -> list[tuple[int, int]]:
    """Each operator reads from the one before it and from one of the ten before it; near the end one leads back."""
    edges = {(n - 1, n) for n in range(1, operators)}
    edges |= {(random.randrange(max(0, n - 10), n), n) for n in range(1, operators)}
    return [*sorted(edges), (operators - 2, max(1, operators - 9))]


def topology(operators: int, edges: list[tuple[int, int]]) -> Topology:
    locations = [f"{n}{part}" for n in range(operators) for part in ("", ".in")]
    inside = [(f"{n}.in", f"{n}", IDENTITY) for n in range(operators)]
    between = [(f"{m}", f"{n}.in", IDENTITY if m < n else Add(1)) for m, n in edges]
    return Topology.of_one_order(Integers(), locations, [*inside, *between])


Batch = dict[str, Changes]


def batches(operators: int, start: int, count: int, size: int, random: Random) -> list[Batch]:
    """Changes, batch by batch: the operator `start` moves on by one, events come and go at operators after it."""
    made = []
    there: list[tuple[str, int]] = []
    for now in range(count):
        changes: dict[str, list[tuple[int, int]]] = {f"{start}": [(now + 1, 1), (now, -1)]}
        for place, moment in there:
            changes.setdefault(place, []).append((moment, -1))
        there = [(f"{random.randrange(start + 1, operators)}.in", now + 3) for _ in range(size // 2 - 1)]
        for place, moment in there:
            changes.setdefault(place, []).append((moment, 1))
        made.append({place: Changes(counts) for place, counts in changes.items()})
    return made


def size(work: list[Batch]) -> int:
    return sum(abs(count) for batch in work for counts in batch.values() for count in counts.values())


def propagation_rate(graph: Topology, start: int, work: list[Batch]) -> tuple[float, float]:
    """Changes per second, and how many frontiers a round changes."""
    kernel = Propagation(graph, {f"{start}": Changes({0: 1})})
    kernel.propagate()
    moved = 0
    begin = time.perf_counter()
    for changes in work:
        for place, counts in changes.items():
            for moment, count in counts.items():
                for _ in range(abs(count)):
                    kernel.change(place, moment, 1 if count > 0 else -1)
        moved += len(kernel.propagate())
    seconds = time.perf_counter() - begin
    return size(work) / seconds, moved / len(work)


def tracker_rate(graph: Topology, start: int, work: list[Batch]) -> tuple[float, float]:
    """The same with the tracker: each batch is a commit of one member."""
    tracker = Tracker(graph, ["member"])
    tracker.joined("member", 0, {f"{start}": Changes({0: 1})}, {})
    tracker.advance()
    moved = 0
    begin = time.perf_counter()
    for number, changes in enumerate(work, start=1):
        tracker.changed("member", number, changes)
        moved += len(tracker.advance())
    seconds = time.perf_counter() - begin
    return size(work) / seconds, moved / len(work)


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=100, help="changes per round")
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long each measurement takes")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    for shape in (chain, with_a_cycle):
        for operators in (10, 100, 1000):
            graph = topology(operators, shape(operators, Random(operators)))
            for where, start in (("the first", 0), ("the tenth from the end", operators - 10)):
                if where != "the first" and operators == 10:
                    continue
                rounds = int(max(20, args.seconds * 200_000 / (args.batch + 3 * (operators - start))))
                work = batches(operators, start, rounds, args.batch, Random(1))
                for name, measure in (("propagation", propagation_rate), ("tracker", tracker_rate)):
                    results = [measure(graph, start, work) for _ in range(args.repeats)]
                    rate = statistics.median(rate for rate, _ in results)
                    moved = results[0][1]
                    line: dict[str, Any] = {
                        "bench": "tracker",
                        "kernel": name,
                        "graph": shape.__name__,
                        "operators": operators,
                        "moves": where,
                        "batch": args.batch,
                        "changes_per_second": round(rate),
                        "frontiers_moved_per_round": round(moved, 1),
                        "us_per_round": round(1e6 * args.batch / rate, 1),
                        "us_per_moved_frontier": round(1e6 * args.batch / rate / max(1.0, moved), 2),
                        "repeats": args.repeats,
                    }
                    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
