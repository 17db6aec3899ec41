"""`python -m clew.verify.semantics`: explores the small programs and the broken protocols, and prints the counts."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from clew.verify.ending import end_with
from clew.verify.semantics.exploration import explore
from clew.verify.semantics.figure import figure
from clew.verify.semantics.graphs import GRAPHS
from clew.verify.semantics.traces import told
from clew.verify.semantics.variants import VARIANTS


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0: every execution of the thesis' rules was explained, and every broken protocol was caught."""
    parser = argparse.ArgumentParser(prog="python -m clew.verify.semantics", description=__doc__)
    parser.add_argument("--failures", type=int, default=2, metavar="N", help="failures at most (default 2)")
    parser.add_argument("--events", type=int, default=1, metavar="N", help="events in an epoch (default 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--figure", action="store_true", help="only print Figure 5.1, step by step")
    args = parser.parse_args(arguments)
    if args.figure:
        print(figure())
        return 0
    counted = [_counted(name, failures, args) for name in GRAPHS for failures in range(args.failures + 1)]
    caught = [_caught(number, args) for number in range(len(VARIANTS))]
    is_good = all(row["is_transparent"] for row in counted) and all(row["trace"] for row in caught)
    if args.json:
        print(json.dumps({"programs": counted, "broken": caught, "is_good": is_good}))
    return 0 if is_good else 1


def _counted(name: str, failures: int, args: argparse.Namespace) -> dict[str, Any]:
    begin = time.perf_counter()
    found = explore(GRAPHS[name](args.events), failures)
    row = {
        "program": name,
        "failures": failures,
        "configurations": found.configurations,
        "steps": found.steps,
        "histories": found.histories,
        "executions": found.executions,
        "is_transparent": found.is_transparent,
        "time_s": round(time.perf_counter() - begin, 3),
    }
    if not args.json:
        verdict = "all explained" if found.is_transparent else f"not explained:\n{told(found.unexplained or ())}"
        print(
            f"{name}, at most {failures} failures: {found.configurations} configurations, {found.steps} steps, "
            f"{found.histories} histories, {found.executions} executions: {verdict}"
        )
        sys.stdout.flush()
    return row


def _caught(number: int, args: argparse.Namespace) -> dict[str, Any]:
    """The shortest execution of a broken protocol that nothing explains; small programs and one failure are enough."""
    rules = VARIANTS[number]
    found = [(name, explore(GRAPHS[name](), 1, rules).unexplained) for name in ("chain", "two sources", "average")]
    short = min(((name, trace) for name, trace in found if trace), key=lambda one: len(one[1]), default=("none", ()))
    if not args.json:
        print(f"broken: {rules.name}: " + (f"caught with {short[0]}\n{told(short[1])}" if short[1] else "not caught"))
        sys.stdout.flush()
    return {"rules": rules.name, "program": short[0], "trace": [str(step) for step in short[1]]}


if __name__ == "__main__":
    end_with(main)
