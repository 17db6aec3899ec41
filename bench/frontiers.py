"""What time costs: source, map, a stateful operator, sink, on Spark, with times and without, in turns in one run.

The operator sums every hundred events. With times its source follows a column (`event_time`), every event has a time,
each hundred holds the time of its first, and the operator asks for frontiers; nothing else differs. `times` is with the
default resolution, by which ten events share a time here; `fine` gives every event a time of its own. The rate is
taken at the sink between its first and its last event; CPU is that of the hosts, by operator, and of the driver's
Python, where the frontiers are computed. Each run is a JSON line; the last line sums up: medians, spreads, ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
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
from bench.throughput import Count, same

import clew
from clew.runtime.session import local_session

LATE_BY = 1000
"""By default times are rounded to a hundredth of it."""
MODES: dict[str, clew.Stamps | None] = {
    "without": None,
    "times": clew.event_time("ts", LATE_BY, whole_numbers=True),
    "fine": clew.event_time("ts", LATE_BY, whole_numbers=True, resolution=1),
}
EVERY = 100


class Events(clew.Source):
    """Events of one record and 200 bytes, or of so many records; each one unit of time after the one before."""

    def __init__(self, count: int, records: int) -> None:
        self.count = count
        self.records = records

    def read(self, action: Any, offset: Any) -> Iterator[tuple[pa.RecordBatch, int]]:
        schema = pa.schema({"ts": pa.int64(), "value": pa.int64(), "body": pa.string()})
        body = pa.array(["x" * 160] if self.records == 1 else [""] * self.records)
        values = pa.array([1] * self.records)
        for number in range(offset or 0, self.count):
            times = pa.array([number] * self.records)
            yield pa.RecordBatch.from_arrays([times, values, body], schema=schema), number + 1


class Sums(clew.Operator):
    """The running sum, every hundred events."""

    def __init__(self, is_timely: bool) -> None:
        self.is_timely = is_timely

    def open(self, ctx: clew.Context) -> None:
        self.sums: dict[int, int] = {}
        self.full: list[int] = []

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        return [(event.id - 1) // EVERY]

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        self.sums[number] = self.sums.get(number, 0) + event.batch.num_rows
        if event.id % EVERY == 0:
            self.full.append(number)

    def ready(self, ctx: clew.Context) -> list[list[int]]:
        full, self.full = self.full, []
        return [[number] for number in full]

    def generate(self, numbers: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        for number in numbers:
            ctx.state["sum"] = ctx.state.get("sum", 0) + self.sums.pop(number)
            yield "out", [{"number": number, "sum": ctx.state["sum"]}]


def once(spark: Any, folder: Path, case: str, count: int, records: int, mode: str) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    notes = folder / "count.json"
    pipeline = clew.Pipeline("frontiers")
    events = pipeline.source("source", Events(count, records), times=MODES[mode])
    mapped = events.map(same, name="map")
    mapped.operator("sums", Sums(mode != "without")).operator("sink", Count(str(notes)))
    driver_s = time.process_time()
    run = pipeline.run(spark, log=str(folder / "log"))
    driver_s = time.process_time() - driver_s
    found = json.loads(notes.read_text())
    assert found["count"] == count // EVERY, f"{found['count']} sums came, {count // EVERY} were to"
    metrics = run.metrics()
    hosts = {each: round(it["cpu_s"] / count * 1e6, 1) for each, it in metrics.items()}
    return {
        "case": case,
        "mode": mode,
        "events": count,
        "events_per_s": round(count * (1 - EVERY / count) / found["seconds"]),
        "cpu_us_per_event": {**hosts, "driver": round(driver_s / count * 1e6, 1)},
        "hosts_cpu_us_per_event": round(sum(hosts.values()), 1),
        "commits": {each: it["counts"]["commits"] for each, it in metrics.items()},
    }


def summary(case: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"case": case}
    for mode in MODES:
        runs = [each for each in results if (each["case"], each["mode"]) == (case, mode)]
        for what in ("events_per_s", "hosts_cpu_us_per_event") if runs else ():
            numbers = [each[what] for each in runs]
            found.setdefault(mode, {})[what] = statistics.median(numbers)
            found[mode][f"{what}_spread"] = [min(numbers), max(numbers)]
        if runs:
            driver = [each["cpu_us_per_event"]["driver"] for each in runs]
            found[mode]["driver_cpu_us_per_event"] = statistics.median(driver)
        if runs and mode != "without" and "without" in found:
            for what in ("events_per_s", "hosts_cpu_us_per_event"):
                found[mode][f"{what}_ratio"] = round(found[mode][what] / found["without"][what], 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="shrinks the number of events")
    parser.add_argument("--only", help="one case: 1 or 1000")
    parser.add_argument("--modes", default=",".join(MODES))
    args = parser.parse_args()
    cases = {"1 record, 200 bytes": (30_000, 1), "1000 records": (10_000, 1000)}
    cases = {name: it for name, it in cases.items() if not args.only or name.split()[0] == args.only}
    spark = local_session("bench", 4)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("CLEW_BENCH_DIR")) as folder:
        once(spark, Path(folder) / "run", "warm", 1000, 1, "without")
        for _ in range(args.repeats):
            for name, (count, records) in cases.items():
                for mode in args.modes.split(","):
                    results.append(once(spark, Path(folder) / "run", name, int(count * args.scale), records, mode))
                    print(json.dumps(results[-1]), flush=True)
    spark.stop()
    print(json.dumps({"machine": machine(), "summary": [summary(name, results) for name in cases]}))


if __name__ == "__main__":
    main()
