"""`clew run FILE`: runs the pipeline of a file on Spark, shows how it goes, and ends in order when asked to."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any, TextIO

from clew.cli.follow import Follower
from clew.cli.interrupt import Interrupted, interruptible
from clew.cli.load import load
from clew.cli.place import shown
from clew.cli.spark import spark_session
from clew.cli.status import counts_table
from clew.errors import ClewError, RunFailed
from clew.protocol.eligible import check_snapshots
from clew.runtime import preflight
from clew.runtime.run import Run, groups_of, start
from clew.runtime.spec import LOOPBACK, RECOVERIES, LogPlace, Options, log_place


def add_to(commands: Any) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "run",
        help="run a pipeline on Spark",
        description="Runs the pipeline of FILE on Spark. Running it again with the same log goes on where it was. "
        "Exit code 1 if the run fails, 130 or 143 if it was stopped by SIGINT or SIGTERM.",
    )
    parser.add_argument("file", metavar="FILE", help="a Python file that defines `pipeline`, or `build()`")
    parser.add_argument("--log", metavar="PLACE", help="a directory (default: PIPELINE.log) or a PostgreSQL DSN")
    parser.add_argument(
        "--recovery",
        choices=RECOVERIES,
        default="log",
        help="log: each operator recovers alone (default); snapshot: all go back together; off: no protection",
    )
    parser.add_argument(
        "--snapshot-every",
        type=float,
        default=5.0,
        metavar="S",
        help="with --recovery snapshot: seconds between snapshots (default 5)",
    )
    parser.add_argument("--master", metavar="URL", help="the Spark master (default: this machine, enough slots)")
    parser.add_argument("--conf", action="append", default=[], metavar="K=V", help="a Spark setting; can be repeated")
    parser.add_argument("--bind", default=LOOPBACK, metavar="HOST", help=f"where hosts listen (default {LOOPBACK})")
    parser.add_argument("--restarts", type=int, default=10, metavar="N", help="deaths in a row without progress")
    parser.add_argument("--no-trace", action="store_true", help="write no trace for `clew explain` beside the log")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object, on the last line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Runs the command."""
    settings = dict(map(_setting, args.conf))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # The file may make a session of its own.
    graph = load(args.file)
    place = log_place(args.log, graph.name, args.recovery, "")
    trace, every_s = not args.no_trace, args.snapshot_every
    options = Options(args.log, args.recovery, args.restarts, args.bind, trace=trace, snapshot_every_s=every_s)
    if args.recovery == "snapshot":
        check_snapshots(graph)
        preflight.check_interval(every_s)
    preflight.pickled(graph)  # Before Spark is started, which takes some seconds.
    folder = str(Path(args.file).parent.resolve())
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    follower = Follower(graph, sys.stderr, is_quiet=args.quiet)
    if not args.quiet:
        follower.say("Spark is starting.")
    started: Run | None = None
    code = 0
    try:
        with (
            interruptible(),
            spark_session(graph.name, len(groups_of(graph)), follower.say, args.master, settings) as spark,
        ):
            started = start(graph, spark, options)
            try:
                started.wait(progress=follower)
            finally:
                follower.look(started)
                follower.done()
    except RunFailed:
        code = 1
    except Interrupted as interrupted:
        code = interrupted.exit_code
    follower.done()
    if started is None:
        print("clew: stopped before the run had begun", file=sys.stderr)
        return code
    if args.json:
        print(json.dumps(_as_json(started, place)), file=out)
    else:
        _print(started, follower, place, out)
    if started.state == "failed":
        print(f"clew: {started.error}", file=sys.stderr)
    elif code:
        print(_go_on(args), file=sys.stderr)
    return code


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ClewError(f"--conf {text!r} is no Spark setting; expected KEY=VALUE, such as spark.executor.memory=2g.")
    return key, value


def _print(run: Run, follower: Follower, place: LogPlace, out: TextIO) -> None:
    for line in follower.table():
        print(line, file=out)
    for loss in run.losses():
        back = "not back" if loss["recovery_s"] is None else f"back after {loss['recovery_s']} s"
        print(f"{loss['group']} was lost, {back}: {loss['why']}", file=out)
    status = run.status()
    for line in counts_table(status["counts"]) if status["counts"] else ():
        print(line, file=out)
    for location, frontier in status["frontiers"].items():
        if frontier:  # Otherwise nothing can come there any more.
            print(f"{location} had come to {', '.join(frontier)}", file=out)
    if "snapshots" in status:
        found = status["snapshots"]
        print(f"epoch {found['epoch']:,} is the last complete one; generation {found['generation']:,}", file=out)
    print(f"pipeline {run.graph.name!r}: {run.state} after {status['seconds']:.1f} s; log: {shown(place)}", file=out)


def _as_json(run: Run, place: LogPlace) -> dict[str, Any]:
    status = run.status()
    return {
        "pipeline": run.graph.name,
        "status": run.state,
        "error": run.error,
        "seconds": status["seconds"],
        "log": shown(place),
        "metrics": run.metrics(),
        "counts": status["counts"],
        "frontiers": status["frontiers"],
        **({"snapshots": status["snapshots"]} if "snapshots" in status else {}),
        "losses": run.losses(),
    }


def _go_on(args: argparse.Namespace) -> str:
    if args.recovery == "off":
        return "clew: stopped; the run had no protection, so it can only begin anew"
    if args.log is not None and log_place(args.log, "", "log", "").kind == "postgres":
        log = " --log with the same connection string"
    else:
        log = "" if args.log is None else f" --log {shlex.quote(args.log)}"
    kept = "what was committed is"
    if args.recovery == "snapshot":
        kept, log = "everything up to the last snapshot is", f"{log} --recovery snapshot"
    return f"clew: stopped; {kept} in the log. Go on with: clew run {shlex.quote(args.file)}{log}"
