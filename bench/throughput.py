"""Source, map, sink on Spark: what the log costs against `recovery="off"`, saturated and at 100 events per second.

Both modes run in turns on one Spark, so that noise hits both. Saturated: the source makes events as fast as they are
taken; the rate is measured at the sink between its first and its last event. Paced: 100 events per second, each with
the moment at which it was due; the latency is taken at the sink, over two hops. Each run is a JSON line; the last line
sums up: medians, the ratio of `log` to `off`, CPU seconds of the hosts and of the whole process tree, and the floors.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.process_tree import Tree, machine

import clew
from clew.runtime.session import local_session

FLOORS = {"200 bytes": 5_000, "10 KB": 2_000, "1000 records": 1_000}
"""Events per second on 2 cores."""


class Events(clew.Source):
    """Events of one record with so many bytes, or of so many records."""

    def __init__(self, count: int, size: int, records: int) -> None:
        self.count = count
        self.size = size
        self.records = records

    def read(self, action: Any, offset: Any) -> Iterator[tuple[pa.RecordBatch, int]]:
        numbers = pa.array(range(self.records))
        values = pa.array([1.5] * self.records)
        body = pa.array(["x" * self.size])
        for number in range(offset or 0, self.count):
            if self.records > 1:
                yield pa.RecordBatch.from_arrays([numbers, values], names=["id", "value"]), number + 1
            else:
                yield pa.RecordBatch.from_arrays([pa.array([number]), body], names=["id", "body"]), number + 1


class Count(clew.Operator):
    """Counts, and notes when its first and its last event came, or how late each was."""

    outputs = ()

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self, ctx: clew.Context) -> None:
        self.first = 0.0
        self.late: list[float] = []

    def assign(self, event: clew.Event, ctx: clew.Context) -> tuple[()]:
        self.first = self.first or time.time()
        ctx.state["count"] = ctx.state.get("count", 0) + 1
        if "at" in event.batch.schema.names:
            self.late.append(time.time() - event.batch.column("at")[0].as_py())
        return ()

    def update(self, input_set: Any, event: clew.Event, note: Any = None) -> None:
        """Nothing is kept."""

    def generate(self, input_sets: Any, ctx: clew.Context) -> tuple[()]:
        return ()

    def finish(self, input_sets: Any, ctx: clew.Context) -> tuple[()]:
        found = {"seconds": time.time() - self.first, "count": ctx.state.get("count"), "late": self.late}
        Path(self.path).write_text(json.dumps(found))
        return ()


class Paced(Events):
    """One event every hundredth of a second, with the moment at which it was due."""

    def read(self, action: Any, offset: Any) -> Iterator[tuple[Any, int]]:
        begin = time.time()
        for number in range(self.count):
            at = begin + number / 100
            time.sleep(max(0.0, at - time.time()))
            yield pa.RecordBatch.from_pydict({"id": [number], "at": [at]}), number + 1


def same(table: pa.Table) -> pa.Table:
    return table


def once(spark: Any, folder: Path, name: str, source: clew.Source, recovery: str) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    notes = folder / "count.json"
    pipeline = clew.Pipeline("throughput")
    pipeline.source("source", source).map(same, name="map").operator("sink", Count(str(notes)))
    with Tree() as tree:
        run = pipeline.run(spark, log=str(folder / "log") if recovery == "log" else None, recovery=recovery)
    found = json.loads(notes.read_text())
    metrics = run.metrics()
    count = found["count"]
    result = {
        "case": name,
        "recovery": recovery,
        "events": count,
        "events_per_s": round(count / found["seconds"]),
        "host_cpu_us_per_event": {each: round(it["cpu_s"] / count * 1e6, 1) for each, it in metrics.items()},
        "tree_cpu_s": round(tree.cpu_s, 2),
        "tree_rss_peak_mb": tree.rss_peak >> 20,
        "commits": {each: it["counts"]["commits"] for each, it in metrics.items()},
    }
    if found["late"]:
        late = sorted(1000 * each for each in found["late"])
        result["latency_ms"] = {
            "p50": round(late[len(late) // 2], 2),
            "p95": round(late[int(len(late) * 0.95)], 2),
            "p99": round(late[int(len(late) * 0.99)], 2),
            "max": round(late[-1], 2),
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="shrinks the number of events")
    parser.add_argument("--only", help="one case: 200, 10, 1000 or paced")
    parser.add_argument("--modes", default="log,off")
    args = parser.parse_args()
    cases: dict[str, Any] = {
        "200 bytes": lambda: Events(int(40_000 * args.scale), 180, 1),
        "10 KB": lambda: Events(int(20_000 * args.scale), 10_000, 1),
        "1000 records": lambda: Events(int(10_000 * args.scale), 0, 1000),
        "paced": lambda: Paced(int(1_000 * args.scale), 0, 1),
    }
    os.environ.setdefault("CLEW_BENCH", "1")
    spark = local_session("bench", 3)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("CLEW_BENCH_DIR")) as folder:
        for _ in range(args.repeats):
            for name, source in cases.items():
                if args.only and not name.startswith(args.only):
                    continue
                for recovery in args.modes.split(","):
                    results.append(once(spark, Path(folder) / "run", name, source(), recovery))
                    print(json.dumps(results[-1]), flush=True)
    spark.stop()
    print(json.dumps({"machine": machine(), "summary": [summary(name, results) for name in cases]}))


def summary(name: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"case": name, "floor_events_per_s": FLOORS.get(name)}
    by_mode = {
        mode: [each for each in results if (each["case"], each["recovery"]) == (name, mode)] for mode in ("log", "off")
    }
    for mode, runs in by_mode.items():
        if runs:
            rates = [each["events_per_s"] for each in runs]
            found[mode] = {
                "events_per_s": statistics.median(rates),
                "spread": [min(rates), max(rates)],
                "tree_cpu_ms_per_event": round(
                    statistics.median(1000 * each["tree_cpu_s"] / each["events"] for each in runs), 3
                ),
                "host_cpu_us_per_event": round(
                    statistics.median(sum(each["host_cpu_us_per_event"].values()) for each in runs), 1
                ),
            }
            if "latency_ms" in runs[0]:
                found[mode]["latency_p50_ms"] = statistics.median(each["latency_ms"]["p50"] for each in runs)
    if "log" in found and "off" in found:
        found["ratio"] = round(found["log"]["events_per_s"] / found["off"]["events_per_s"], 3)
        found["log_cpu_us_per_event_and_operator"] = round(
            (found["log"]["host_cpu_us_per_event"] - found["off"]["host_cpu_us_per_event"]) / 3, 1
        )
    return found


if __name__ == "__main__":
    main()
