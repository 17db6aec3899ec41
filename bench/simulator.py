"""How many random schedules of the sales pipeline the simulator runs per minute, with and without invariants.

Alternates both ways in one run, so that noise hits both alike. Each schedule: 200 events, up to 3 faults.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

from clew.model.graph import Graph
from clew.testing import scripted
from clew.verify.sweep import random_schedules, try_all

SALES = Path(__file__).parent.parent / "examples" / "sales.py"


def sales(events: int) -> Graph:
    """The sales pipeline of the examples."""
    spec = importlib.util.spec_from_file_location("sales", SALES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph: Graph = module.build(scripted(module.sales(events, records=3, hours=6)), every=100).build()
    return graph


def rate(graph: Graph, count: int, seed: int, is_checking: bool, jobs: int) -> float:
    """Schedules per minute."""
    begin = time.perf_counter()
    tally = try_all(
        "bench",
        graph,
        lambda points, _: random_schedules(count, points, 3, seed),
        is_checking=is_checking,
        jobs=jobs,
    )
    seconds = time.perf_counter() - begin
    assert tally.is_good, tally.failed
    return 60 * tally.runs / seconds


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--schedules", type=int, default=400, help="per repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    graph = sales(args.events)
    rates: dict[bool, list[float]] = {False: [], True: []}
    for repeat in range(args.repeats):
        for is_checking in (False, True):
            rates[is_checking].append(rate(graph, args.schedules, repeat * args.schedules, is_checking, args.jobs))
    results: list[dict[str, Any]] = [
        {
            "bench": "simulator",
            "invariants": is_checking,
            "events": args.events,
            "faults_max": 3,
            "jobs": args.jobs,
            "schedules_per_minute": round(statistics.median(values)),
            "lowest": round(min(values)),
            "highest": round(max(values)),
            "repeats": len(values),
        }
        for is_checking, values in rates.items()
    ]
    for result in results:
        if args.json:
            print(json.dumps(result))
        else:
            words = "with invariants at each step" if result["invariants"] else "judged at the end only"
            print(
                f"{words}: {result['schedules_per_minute']} schedules per minute "
                f"({result['lowest']} to {result['highest']} in {result['repeats']} repeats, {args.jobs} processes)"
            )


if __name__ == "__main__":
    main()
