"""`clew explain RUN`: the failure-free execution that shows what a real run has shown, or the step that has none."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from clew.cli.explain_page import page
from clew.cli.follow import columns
from clew.cli.snapshot_status import standings
from clew.errors import ClewError, LogNotFound
from clew.log.sqlite import open_sqlite
from clew.log.standing import Standing
from clew.model.names import Replica
from clew.trace.reader import Trace, read_trace
from clew.trace.records import LOG
from clew.verify.explain import Explanation, Unexplained, explain
from clew.verify.explain.explanation import Facts, clock
from clew.verify.explain.words import NUMBERS, counted, end_words, recovery_lines, story_numbers, verdict_lines


def add_to(commands: Any) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "explain",
        help="explain a real run with failures by one without",
        description="Reads the trace that a run has written beside its log, and builds a failure-free execution that "
        "shows the same; every step of it is checked, and its end is compared with the log if nobody works on it. Exit "
        "code 1 if there is none: then the first step that cannot be explained is named.",
    )
    parser.add_argument("run_of", metavar="RUN", help="the directory of a log, or of a trace")
    parser.add_argument("--html", metavar="FILE", help="write a page with a picture of it, which needs nothing else")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Runs the command."""
    begin = time.monotonic()
    trace = read_trace(args.run_of)
    found = explain(trace, *facts_of(args.run_of, trace))
    seconds = time.monotonic() - begin
    if args.json:
        print(json.dumps({"run": args.run_of, **found.as_dict(), "seconds": round(seconds, 3)}), file=out)
    else:
        for line in _lines(args.run_of, trace, found, seconds):
            print(line, file=out)
    if args.html is not None:
        _save(args.html, page(args.run_of, found))
    return 0 if isinstance(found, Explanation) else 1


def facts_of(place: str, trace: Trace) -> tuple[Mapping[Replica, Facts], int | None]:
    """What the log beside a trace says, unless it is not there or somebody works on it; with snapshots, the epoch."""
    path = Path(place)
    with contextlib.suppress(LogNotFound):
        store = open_sqlite(path if (path / "log.json").exists() else path.parent)
        with contextlib.closing(store):
            reader = store.reader()
            epoch: int | None = None
            if trace.mode == LOG:
                found = {replica: reader.standing(replica) for replica in reader.replicas()}
            else:
                last, found = standings(reader, list(trace.lives))
                epoch = last.number
        if not any(each.holder is not None and each.holder.is_alive for each in found.values()):
            return {replica: _facts(each) for replica, each in found.items()}, epoch
    return {}, None


def _facts(standing: Standing) -> Facts:
    counters = standing.counters
    return Facts(
        counters.get("position", 0),
        {name[4:]: number for name, number in counters.items() if name.startswith("out:")},
        {name[8:]: number for name, number in counters.items() if name.startswith("written:")},
        {channel: cursor.assigned for channel, cursor in standing.cursors.items()},
    )


def _save(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ClewError(f"--html {name} cannot be written: {error}. Name a file that can be.") from error
    print(f"clew: the page is in {name}", file=sys.stderr)


# Words


def _lines(place: str, trace: Trace, found: Explanation | Unexplained, seconds: float) -> Iterator[str]:
    replicas = len(trace.lives)
    yield f"{place}: recovery by {trace.mode}, {counted(replicas, 'replica')}, {trace.size_bytes:,} bytes of trace"
    if isinstance(found, Unexplained):
        yield "There is no failure-free explanation. The first step that cannot be explained:"
        yield f"  {found.step}"
        yield f"  {found.why}"
        return
    yield ""
    yield from (f"  {line}" for line in columns(_table(found)))
    yield ""
    if not found.is_whole:
        yield f"{clock(found.began)}  the trace begins, with the oldest segments that were kept"
    for recovery in found.recoveries:
        yield from recovery_lines(recovery, found.mode)
    yield f"{clock(found.ended)}  {end_words(found)}"
    yield ""
    yield from verdict_lines(found)
    yield f"Explained in {seconds:.2f} s."


def _table(found: Explanation) -> list[tuple[str, ...]]:
    word = "incarnations" if found.mode == LOG else "generations"
    rows: list[tuple[str, ...]] = [("replica", word, *NUMBERS)]
    rows += [(name, *(f"{number:,}" for number in story_numbers(story))) for name, story in found.stories.items()]
    return rows
