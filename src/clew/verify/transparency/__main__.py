"""Checks the models that come with Clew and prints a table of what was explored."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from typing import Any, TextIO

from clew.verify.ending import end_with
from clew.verify.transparency.catalog import AnyVerdict, verdicts
from clew.verify.transparency.verdict import Explained

COLUMNS = ("configurations", "transitions", "failures", "recoveries", "histories", "rests", "high_configurations")
HEADINGS = ("configurations", "transitions", "failures", "recoveries", "histories", "rests", "explaining")


def main(arguments: list[str], out: TextIO) -> int:
    """0 if every execution of every model is explained, 1 if one is not."""
    parser = argparse.ArgumentParser(prog="python -m clew.verify.transparency", description=__doc__)
    parser.add_argument("--failures", default="2", help="how many failures an execution may have, or 'any' (default 2)")
    parser.add_argument("--large", action="store_true", help="larger programs: minutes, and some gigabytes of memory")
    parser.add_argument("--json", action="store_true", help="one JSON object for each model")
    given = parser.parse_args(arguments)
    if given.failures != "any" and not given.failures.isdecimal():
        parser.error(f"--failures: {given.failures!r} is neither a number nor 'any'")
    if not given.json:
        print(f"{'system':<34}{'explained by':<40}{'seen through':<21}", end="", file=out)
        print("".join(f"{heading:>15}" for heading in HEADINGS) + f"{'seconds':>9}", file=out)
    is_good = True
    begin = time.monotonic()
    for verdict in verdicts(None if given.failures == "any" else int(given.failures), is_large=given.large):
        seconds, begin = time.monotonic() - begin, time.monotonic()
        is_good = is_good and verdict.is_explained
        print(json.dumps(described(verdict, seconds)) if given.json else line(verdict, seconds), file=out, flush=True)
    if not given.json:
        print("every execution is explained" if is_good else "NOT every execution is explained", file=out)
    return 0 if is_good else 1


def line(verdict: AnyVerdict, seconds: float) -> str:
    """A row of the table, or the story of an execution that is not explained."""
    if not isinstance(verdict, Explained):
        return str(verdict)
    claim = verdict.claim
    if verdict.because != "checked":
        return (
            f"{claim.low.name:<34}{claim.high.name:<40}{claim.low_observation.name:<21} by {shortly(verdict.because)}"
        )
    counts = asdict(verdict.counts)
    numbers = "".join(f"{counts[column]:>15,}" for column in COLUMNS)
    return f"{claim.low.name:<34}{claim.high.name:<40}{claim.low_observation.name:<21}{numbers}{seconds:>9.1f}"


def shortly(because: str) -> str:
    """The lemma that a result rests upon.

    >>> shortly("composition (Lemma 5.9) of [checked]")
    'composition (Lemma 5.9)'
    """
    return because.partition(" of [")[0]


def described(verdict: AnyVerdict, seconds: float) -> dict[str, Any]:
    """A verdict as JSON."""
    claim = verdict.claim
    shown: dict[str, Any] = {
        "system": claim.low.name,
        "explained_by": claim.high.name,
        "seen_through": claim.low_observation.name,
        "failures_max": claim.failures_max,
        "is_explained": verdict.is_explained,
        "seconds": round(seconds, 3),
    }
    if isinstance(verdict, Explained):
        return {**shown, "because": verdict.because, **asdict(verdict.counts)}
    return {
        **shown,
        "why": verdict.why.name,
        "execution": list(map(str, verdict.execution.labels)),
        "story": str(verdict),
    }


if __name__ == "__main__":
    end_with(lambda: main(sys.argv[1:], sys.stdout))
