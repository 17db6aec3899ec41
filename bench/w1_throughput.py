"""Workload 1: 200,000 JSON-line records, parsed, changed, filtered, summed per key and minute, written exactly once.

Run with many records per event and with one, each with the log and without, in turns on one Spark. The answer is
compared with one that plain Python computed; a run whose answer is wrong does not count. Each run is a JSON line.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.process_tree import Tree, machine
from bench.workload_data import COUNT, MINUTE_MS, expected_sums, write_files

import clew
from clew.runtime.session import local_session

LATE_MS = 1_000


def raised(table: pa.Table) -> pa.Table:
    """The amount with ten percent added."""
    at = table.schema.get_field_index("amount")
    return table.set_column(at, "amount", pc.multiply(table["amount"], 1.1))


def kept(table: pa.Table) -> Any:
    """All but every tenth record."""
    tens = pc.multiply(pc.divide(table["id"], 10), 10)
    return pc.not_equal(pc.subtract(table["id"], tens), 3)


def raised_row(row: dict[str, Any]) -> dict[str, Any]:
    row["amount"] *= 1.1
    return row


def kept_row(row: dict[str, Any]) -> bool:
    return bool(row["id"] % 10 != 3)


class MinuteSums(clew.Operator):
    """Sums per key and minute; a minute is complete once a record came that is a second later than its end."""

    def open(self, ctx: clew.Context) -> None:
        self.parts: dict[int, list[pa.RecordBatch]] = {}
        self.small: dict[int, dict[int, float]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        times = event.batch.column("ts")
        if len(times) == 1:
            latest = first = times[0].as_py()
        else:
            first, latest = pc.min_max(times).values()
            first, latest = first.as_py(), latest.as_py()
        if latest > ctx.state.get("latest", 0):
            ctx.state["latest"] = latest
        return list(range(first // MINUTE_MS * MINUTE_MS, latest + 1, MINUTE_MS))

    def update(self, minute: int, event: clew.Event, note: Any = None) -> None:
        batch = event.batch
        if batch.num_rows == 1:
            key, amount = batch.column("key")[0].as_py(), batch.column("amount")[0].as_py()
            sums = self.small.setdefault(minute, {})
            sums[key] = sums.get(key, 0.0) + amount
            return
        times = batch.column("ts")
        inside = pc.and_(pc.greater_equal(times, minute), pc.less(times, minute + MINUTE_MS))
        self.parts.setdefault(minute, []).append(batch.filter(inside))

    def ready(self, ctx: clew.Context) -> Iterator[list[int]]:
        done = ctx.state.get("latest", 0) - LATE_MS - MINUTE_MS
        for minute in self.small or self.parts:
            if minute < done:
                yield [minute]

    def generate(self, minutes: list[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        for minute in minutes:
            if minute in self.small:
                sums = self.small.pop(minute)
                yield "out", {"key": list(sums), "minute": [minute] * len(sums), "total": list(sums.values())}
            if minute in self.parts:
                table = pa.Table.from_batches(self.parts.pop(minute)).group_by("key").aggregate([("amount", "sum")])
                minutes_of = pa.array([minute] * len(table))
                yield "out", pa.table({"key": table["key"], "minute": minutes_of, "total": table["amount_sum"]})


def build(folder: Path, rows_per_event: int) -> clew.Pipeline:
    pipeline = clew.Pipeline("w1")
    files = pipeline.source("files", clew.files(str(folder.parent / "data"), rows_per_event=rows_per_event))
    if rows_per_event == 1:  # Arrow's functions are made for many rows; for one, Python is faster.
        changed = files.map(raised_row, "raised", rows=True).filter(kept_row, "kept", rows=True)
    else:
        changed = files.map(raised).filter(kept)
    changed.operator("sums", MinuteSums()).write("report", clew.sqlite(str(folder / "out.db"), "sums", create=True))
    pipeline.group("raised", "kept")
    return pipeline


def answer(path: Path) -> list[tuple[int, int, float]]:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT key, minute, total FROM sums").fetchall()


def once(spark: Any, root: Path, rows_per_event: int, recovery: str, wanted: dict[Any, float]) -> dict[str, Any]:
    folder = root / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pipeline = build(folder, rows_per_event)
    begin = time.monotonic()
    with Tree() as tree:
        run = pipeline.run(
            spark, log=str(folder / "log") if recovery == "log" else None, recovery=recovery, blocking=False
        )
        first = None
        while not run.is_over:
            if first is None and any(it["position"] for it in run.metrics().values()):
                first = time.monotonic()
            time.sleep(0.05)
        end = time.monotonic()
        run.wait()
    rows = answer(folder / "out.db")
    found = {(key, minute): total for key, minute, total in rows}
    is_right = len(rows) == len(wanted) and all(
        abs(found.get(place, 0.0) - total) < 1e-6 * max(1.0, total) for place, total in wanted.items()
    )
    return {
        "workload": "W1",
        "recovery": recovery,
        "rows_per_event": rows_per_event,
        "is_right": is_right,
        "wall_s": round(end - begin, 2),
        "running_s": round(end - (first or begin), 2),
        "events_per_s": round(COUNT / (end - begin)),
        "running_events_per_s": round(COUNT / (end - (first or begin))),
        "tree_cpu_s": round(tree.cpu_s, 2),
        "rss_peak_mb": tree.rss_peak >> 20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows-per-event", default="1000,1")
    args = parser.parse_args()
    wanted = expected_sums()
    begin = time.monotonic()
    spark = local_session("bench", 5)
    started_s = round(time.monotonic() - begin, 2)
    results = []
    with tempfile.TemporaryDirectory() as place:
        write_files(Path(place) / "data")
        for _ in range(args.repeats):
            for rows in map(int, args.rows_per_event.split(",")):
                for recovery in ("log", "off"):
                    results.append(once(spark, Path(place), rows, recovery, wanted))
                    print(json.dumps(results[-1]), flush=True)
    spark.stop()
    summary: dict[str, Any] = {"workload": "W1", "machine": machine(), "spark_start_s": started_s}
    for rows in map(int, args.rows_per_event.split(",")):
        rates = {
            mode: [
                each["events_per_s"] for each in results if (each["rows_per_event"], each["recovery"]) == (rows, mode)
            ]
            for mode in ("log", "off")
        }
        summary[f"{rows} rows per event"] = {
            "log_events_per_s": statistics.median(rates["log"]),
            "log_spread": [min(rates["log"]), max(rates["log"])],
            "off_events_per_s": statistics.median(rates["off"]),
            "ratio": round(statistics.median(rates["log"]) / statistics.median(rates["off"]), 3),
        }
    summary["are_right"] = all(each["is_right"] for each in results)
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
