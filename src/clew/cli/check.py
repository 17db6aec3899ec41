"""`clew check FILE...`: replays recorded cases with Clew's kernels and says where they differ."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any, TextIO

from clew.verify.vectors import FORMATS, BadVectors, Report, check_file


def add_to(commands: Any) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "check",
        help="replay vector files with Clew's kernels",
        description="Replays each case of the given vector files with Clew's own kernels and reports, for each file, "
        f"how many cases agree and where the first difference is. Formats: {', '.join(FORMATS)}. Exit code 0 if all "
        "agree, 1 if any differs, 2 if a file cannot be read.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="a vector file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Runs the command."""
    results: list[dict[str, Any]] = []
    codes = {0}
    for path in args.files:
        try:
            report = check_file(path)
        except BadVectors as error:
            codes.add(2)
            results.append({"file": path, "error": str(error)})
            print(f"clew: {error}", file=sys.stderr)
            continue
        codes.add(0 if report.is_good else 1)
        results.append({"file": path, **asdict(report)})
        if not args.json:
            _print(path, report, out)
    if args.json:
        print(json.dumps({"files": results, "exit_code": max(codes)}), file=out)
    return max(codes)


def _print(path: str, report: Report, out: TextIO) -> None:
    print(f"{path}: {report.agreed} of {report.cases} cases agree", file=out)
    if report.first is not None:
        print(f"  first difference: {report.first.case}, {report.first.step}", file=out)
        print(f"    expected: {_words(report.first.expected)}", file=out)
        print(f"    came:     {_words(report.first.came)}", file=out)


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
