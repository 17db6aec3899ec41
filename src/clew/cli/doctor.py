"""`clew doctor`: looks at this machine and says what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, TextIO

from clew.cli.checks import Check, machine_checks
from clew.cli.checks_of_spark import java_check, python_check, spark_check

_SIGNS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def add_to(commands: Any) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "doctor",
        help="check whether this machine can run pipelines",
        description="Checks Python, Java, Spark, SQLite, the disk and what processes may do here, and runs a tiny job "
        "on a local Spark. Exit code 1 if something that is needed fails.",
    )
    parser.add_argument("--directory", default=".", metavar="DIR", help="where the log would be (default: here)")
    parser.add_argument("--no-spark", action="store_true", help="leave out the job on a real Spark")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Runs the command."""
    found: list[Check] = []

    def take(check: Check) -> None:
        found.append(check)
        if not args.json:
            do = f" {check.remedy}" if check.remedy else ""
            print(f"{_SIGNS[check.result]}  {check.what}: {check.found}.{do}", file=out, flush=True)

    for check in machine_checks(args.directory):
        take(check)
    take(python_check())
    java = java_check()
    take(java)
    if args.no_spark:
        take(Check("Spark job", "warn", "not tried", "Leave out --no-spark to try it."))
    elif java.result == "fail":
        take(Check("Spark job", "fail", "not tried, because there is no Java"))
    else:
        if not args.json:
            print("...   a job on a local Spark", file=sys.stderr, flush=True)
        take(spark_check())
    failed = [check.what for check in found if check.result == "fail"]
    if args.json:
        print(json.dumps({"is_fit": not failed, "checks": [check._asdict() for check in found]}), file=out)
    else:
        words = (
            f"this machine cannot run pipelines: {', '.join(failed)}" if failed else "this machine can run pipelines"
        )
        print(words, file=out)
    return 1 if failed else 0
