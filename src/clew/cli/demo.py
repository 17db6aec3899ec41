"""`clew demo`: the sales pipeline on a local Spark, with the process of one operator killed in the middle."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from clew.cli.follow import Follower
from clew.cli.interrupt import interruptible
from clew.cli.load import load_module
from clew.cli.paced import Paced
from clew.cli.sales_check import computed, lineage_of, written
from clew.cli.spark import spark_session
from clew.connect import files
from clew.errors import ClewError
from clew.log.sqlite import open_sqlite
from clew.model.graph import Graph
from clew.runtime.run import Run, groups_of, start
from clew.runtime.spec import Options

EVENTS, RECORDS, HOURS, EVERY = 540, 500, 108, 20
PER_SECOND = 30
OPERATORS = ("orders", "hourly", "totals", "report", "archive")


def add_to(commands: Any) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "demo",
        help="watch the sales pipeline lose a process and recover",
        description="Runs the sales pipeline on a local Spark, kills the process of one operator in the middle, and "
        "compares the result with a plain Spark batch over the same files. Exit code 0 only if both are equal.",
    )
    parser.add_argument("--kill", choices=OPERATORS, default="hourly", help="whose process is killed (default: hourly)")
    parser.add_argument("--directory", metavar="DIR", help="keep orders, log and results here (default: keep nothing)")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object, on the last line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Runs the command."""
    tell = sys.stderr if args.json else out
    begin = time.monotonic()
    with interruptible(), _directory(args.directory) as directory:
        found = _demonstrate(args.kill, directory, tell)
    found["seconds"] = round(time.monotonic() - begin, 1)
    print(f"\n{found['seconds']} s in all.", file=tell)
    if args.json:
        print(json.dumps(found), file=out)
    return 0 if found["exact"] and found["lineage"]["agrees"] else 1


def _demonstrate(kill: str, directory: Path, tell: TextIO) -> dict[str, Any]:
    sales = load_module(str(_example()))
    orders = directory / "orders"
    _make_orders(sales, orders)
    columns = dict(zip(sales.SALE.names, sales.SALE.types, strict=True))
    source = Paced(files(orders, rows_per_event=RECORDS, columns=columns), PER_SECOND)
    graph: Graph = sales.build(source, EVERY, directory).build()
    print(
        f"Sales records, in {EVENTS} events of {RECORDS}, {PER_SECOND} events a second, become totals per hour and "
        f"totals of every {EVERY} events:\n\n"
        "    orders ──┬── hourly ─── report      a table of SQLite\n"
        "             └── totals ─── archive     Parquet files\n\n"
        f"Each operator is a process of its own on Spark. The process of {kill} will be killed in the middle.\n",
        file=tell,
        flush=True,
    )
    follower = Follower(graph, tell)
    follower.say("Spark is starting.")
    with spark_session(graph.name, len(groups_of(graph)), follower.say) as spark:
        follower.say(f"Spark is there after {time.monotonic() - follower.began:.1f} s.")
        killer = Killer(kill, follower)
        with start(graph, spark, Options(log=directory / "sales.log")) as run:
            run.wait(progress=killer)
            follower.look(run)
            follower.done()
            _show(run, follower, tell)
            loss = next((each for each in run.losses() if each["pid"] == killer.pid), None)
        if loss is None:
            raise ClewError(f"the run ended before the process of {kill} could be killed. Try again.")
        print("\nThe same totals by a plain Spark batch over the same files:", file=tell, flush=True)
        lost, doubled = _compare(computed(spark, orders), written(directory), tell)
    with contextlib.closing(open_sqlite(directory / "sales.log")) as store:
        lineage = lineage_of(store, killer.next_hour)
    _show_lineage(lineage, tell)
    return {
        "exact": not lost and not doubled,
        "lost": lost,
        "doubled": doubled,
        "killed": kill,
        "recovery_s": loss["recovery_s"],
        "others_committed_meanwhile": loss["others_committed_meanwhile"],
        "events": EVENTS,
        "records": EVENTS * RECORDS,
        "lineage": lineage,
    }


class Killer:
    """Follows a run, and in its middle kills the process of one operator."""

    def __init__(self, operator: str, follower: Follower) -> None:
        self.operator = operator
        self.follower = follower
        self.pid: int | None = None
        self.next_hour = 1
        """The first hourly total that is not there yet when the process is killed."""
        self._commits: dict[str, int] = {}
        self._is_back = False

    def __call__(self, run: Run) -> None:
        """Looks whether it is time."""
        self.follower(run)
        if self.pid is None:
            self._look(run)
        elif not self._is_back:
            self._wait(run)

    def _look(self, run: Run) -> None:
        group = run.status()["groups"][self.operator]
        if self.follower.lines["orders"].events < EVENTS // 2 or group["state"] != "running" or not group["pid"]:
            return
        self.pid = int(group["pid"])
        self.next_hour = self.follower.lines["hourly"].events + 1
        self._commits = self._counted()
        os.kill(self.pid, signal.SIGKILL)
        self.follower.say(f"{self._now()}: the process of {self.operator}, {self.pid}, was killed with SIGKILL.")

    def _wait(self, run: Run) -> None:
        for loss in run.losses():
            if loss["pid"] == self.pid and loss["recovery_s"] is not None:
                self._is_back = True
                more = {name: count - self._commits[name] for name, count in self._counted().items()}
                others = ", ".join(f"{name} {count}" for name, count in more.items() if name != self.operator)
                self.follower.say(
                    f"{self._now()}: {self.operator} is back, {loss['recovery_s']} s after its death was noticed. "
                    f"Commits of the others meanwhile: {others}."
                )

    def _counted(self) -> dict[str, int]:
        return {name: int(line.total("commits")) for name, line in self.follower.lines.items()}

    def _now(self) -> str:
        return f"{time.monotonic() - self.follower.began:.1f} s"


@contextlib.contextmanager
def _directory(name: str | None) -> Iterator[Path]:
    if name is None:
        with tempfile.TemporaryDirectory(prefix="clew-demo-") as made:
            yield Path(made)
        return
    path = Path(name)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ClewError(f"{name} is not an empty directory; expected one, or a name that is free. Name another place.")
    path.mkdir(parents=True, exist_ok=True)
    yield path


def _example() -> Path:
    """The sales pipeline: in the checkout, or among the data that is installed with Clew."""
    checkout, installed = Path(__file__).parents[3], Path(sysconfig.get_path("data")) / "share" / "clew"
    for place in (checkout, installed):
        if (place / "examples" / "sales.py").is_file():
            return place / "examples" / "sales.py"
    raise ClewError(f"the example sales.py is neither in {checkout} nor in {installed}. Install Clew again.")


def _make_orders(sales: ModuleType, orders: Path) -> None:
    """Files of made-up records, always the same; one file for each event of totals."""
    import pyarrow as pa
    from pyarrow import parquet

    orders.mkdir()
    batches = sales.sales(EVENTS, RECORDS, HOURS)
    for number, first in enumerate(range(0, EVENTS, EVERY), 1):
        parquet.write_table(pa.Table.from_batches(batches[first : first + EVERY]), orders / f"{number:04}.parquet")


def _compare(expected: tuple[Any, Any], found: tuple[Any, Any], tell: TextIO) -> tuple[int, int]:
    lost = doubled = 0
    for name, wanted, got in zip(("report", "archive"), expected, found, strict=True):
        missing, extra = sum((wanted - got).values()), sum((got - wanted).values())
        print(f"  {name}: {sum(got.values()):,} rows, {missing} lost, {extra} doubled or wrong", file=tell)
        lost, doubled = lost + missing, doubled + extra
    return lost, doubled


def _show(run: Run, follower: Follower, tell: TextIO) -> None:
    print(file=tell)
    for line in follower.table():
        print(f"  {line}", file=tell)
    print(f"\nThe run {run.state} after {run.status()['seconds']:.1f} s.", file=tell, flush=True)


def _show_lineage(lineage: dict[str, Any], tell: TextIO) -> None:
    sources = lineage["from"]
    listed = ", ".join(sources if len(sources) <= 4 else [*sources[:2], "...", sources[-1]])
    agrees = "add up to it" if lineage["agrees"] else "DO NOT add up to it"
    print(
        f"\nThe first total after the kill, {lineage['event']} (the hour {lineage['hour']}, {lineage['rows']} rows), "
        f"came from {len(sources)} events:\n  {listed}\n  Their {lineage['records']:,} records of that hour {agrees}.",
        file=tell,
    )
