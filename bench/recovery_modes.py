"""What snapshots and traces cost: source, map, a stateful operator with a writer, on Spark, saturated, mode by mode.

`off` has no protection; `snapshot` stores an epoch every 5 seconds; `log` commits every move. Both protected modes run
with and without a trace. The modes take turns in one run on one Spark, so that noise hits all alike. The operator keeps
a count for each of 10,000 keys and writes one row to SQLite for every thousand events. The rate is taken between the
first and the last event of the operator; CPU is that of the hosts. Each run is a JSON line, its table is checked, and
the last line sums up: medians, spreads, and the ratios that are asked for, each of two runs of the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.process_tree import machine
from bench.throughput import same

import clew
from clew.runtime.session import local_session

KEYS = 10_000
EVERY = 1_000
MODES: dict[str, dict[str, Any]] = {
    "off": {"recovery": "off"},
    "snapshot": {"recovery": "snapshot", "trace": False},
    "snapshot traced": {"recovery": "snapshot", "trace": True},
    "log": {"recovery": "log", "trace": False},
    "log traced": {"recovery": "log", "trace": True},
}
RATIOS = (
    ("snapshot", "off", "snapshots every 5 s: target 5 % at most"),
    ("snapshot traced", "snapshot", "tracing with snapshots: target 2 % at most"),
    ("log traced", "log", "tracing with the log: target 2 % at most"),
    ("log", "off", "the log, for comparison"),
)


class Events(clew.Source):
    """Events of one record of about 200 bytes, or of so many records."""

    def __init__(self, count: int, records: int) -> None:
        self.count = count
        self.records = records

    def read(self, action: Any, offset: Any) -> Iterator[tuple[pa.RecordBatch, int]]:
        body = pa.array(["x" * 160 if self.records == 1 else ""] * self.records)
        for number in range(offset or 0, self.count):
            ids = pa.array([number] * self.records)
            yield pa.RecordBatch.from_arrays([ids, body], names=["id", "body"]), number + 1


class Counts(clew.Operator):
    """A count for each key; a row for every thousand events; notes when the first and the last event came."""

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self, ctx: clew.Context) -> None:
        self.first = 0.0
        self.size = 0
        self.taken = 0

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[str]:
        self.first = self.first or time.time()
        self.taken += 1
        key = event.batch.column(0)[0].as_py() * 7919 % KEYS
        ctx.state[key] = ctx.state.get(key, 0) + 1
        return ["all"]

    def update(self, input_set: str, event: clew.Event, note: Any = None) -> None:
        self.size += 1

    def ready(self, ctx: clew.Context) -> list[list[str]]:
        return [["all"]] if self.size >= EVERY else []

    def generate(self, input_sets: Sequence[str], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        size, self.size = self.size, 0
        yield "out", [{"events": size}]

    def finish(self, input_sets: Sequence[str], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        if self.size:
            yield from self.generate(input_sets, ctx)
        note = {"seconds": time.time() - self.first, "events": self.taken}
        Path(self.path).write_text(json.dumps(note))


def once(spark: Any, folder: Path, mode: str, records: int, count: int) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    notes, database = folder / "notes.json", folder / "out.db"
    with sqlite3.connect(database) as table:
        table.execute("CREATE TABLE counts (events INTEGER)")
    pipeline = clew.Pipeline("modes")
    counted = pipeline.source("source", Events(count, records)).map(same, name="map")
    counts = counted.operator("counts", Counts(str(notes)))
    counts.write("table", clew.sqlite(str(database), table="counts"))
    options = dict(MODES[mode])
    if mode != "off":
        options["log"] = str(folder / "log")
    run = pipeline.run(spark, **options)
    found = json.loads(notes.read_text())
    with sqlite3.connect(database) as table:
        (total,) = table.execute("SELECT sum(events) FROM counts").fetchone()
    assert total == count, f"{mode}: {total} events in the table, expected {count}"
    hosts = {name: each["cpu_s"] for name, each in run.metrics().items()}
    return {
        "mode": mode,
        "records": records,
        "events": count,
        "events_per_s": round(count / found["seconds"]),
        "host_cpu_us_per_event": round(sum(hosts.values()) / count * 1e6, 1),
        "by_host": {name: round(cpu_s / count * 1e6, 1) for name, cpu_s in hosts.items()},
        "log_mb": round(sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1e6, 1),
        "trace_mb": round(sum(each.stat().st_size for each in (folder / "log").rglob("*.trace")) / 1e6, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="shrinks the number of events")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--records", default="1,1000", help="records per event: 1, 1000 or both")
    args = parser.parse_args()
    modes = args.modes.split(",")
    sizes = [int(each) for each in args.records.split(",")]
    spark = local_session("bench", 4)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("CLEW_BENCH_DIR")) as folder:
        for repeat in range(args.repeats):
            for records in sizes:
                count = int((100_000 if records == 1 else 30_000) * args.scale)
                for mode in modes if repeat % 2 == 0 else reversed(modes):
                    results.append(once(spark, Path(folder) / "run", mode, records, count))
                    print(json.dumps(results[-1]), flush=True)
    spark.stop()
    summary = [found for records in sizes for found in summed(records, results)]
    print(json.dumps({"machine": machine(), "summary": summary}))


def summed(records: int, results: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    rates = {mode: _all(results, records, mode, "events_per_s") for mode in MODES}
    cpu = {mode: _all(results, records, mode, "host_cpu_us_per_event") for mode in MODES}
    for mode, found in rates.items():
        if found:
            yield {
                "records": records,
                "mode": mode,
                "events_per_s": statistics.median(found),
                "spread": [min(found), max(found)],
                "host_cpu_us_per_event": statistics.median(cpu[mode]),
                "cpu_spread": [min(cpu[mode]), max(cpu[mode])],
            }
    for mode, against, what in RATIOS:
        if rates[mode] and rates[against]:
            yield {"records": records, "ratio": what, **_ratio("rate", rates, mode, against)} | _ratio(
                "cpu", cpu, mode, against
            )


def _ratio(name: str, found: dict[str, list[float]], mode: str, against: str) -> dict[str, Any]:
    """The median of the ratios, each of two runs of the same round, and the smallest and the largest."""
    ratios = sorted(one / other for one, other in zip(found[mode], found[against], strict=True))
    return {name: round(statistics.median(ratios), 3), f"{name}_spread": [round(ratios[0], 3), round(ratios[-1], 3)]}


def _all(results: list[dict[str, Any]], records: int, mode: str, what: str) -> list[float]:
    return [each[what] for each in results if (each["records"], each["mode"]) == (records, mode)]


if __name__ == "__main__":
    main()
