"""Workload 4, a slow chain: an event of 10 KB every 30 ms; A takes 5 ms, B collects 2 and takes 10 ms, C collects 50.

Run with the log, without it, and with the log and kill -9 of C's process in the middle, in turns on one Spark: total
time, the ratios, rows lost or doubled in the SQLite table, and how late after its time the latest row came.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.noting_table import NotingTable
from bench.process_tree import machine
from bench.workload_data import start_emitter

import clew
from clew.runtime.session import local_session

INTERVAL_S = 0.03


def stage_a(table: pa.Table) -> pa.Table:
    time.sleep(0.005)
    return table


def stage_b(table: pa.Table) -> pa.Table:
    time.sleep(0.010)
    return table


def stage_c(table: pa.Table) -> dict[str, list[Any]]:
    ids = table["id"].to_pylist()
    latest = max(table["t"].to_pylist())
    return {"first": [ids[0]], "last": [ids[-1]], "count": [len(ids)], "due": [latest]}


def build(folder: Path) -> clew.Pipeline:
    pipeline = clew.Pipeline("w4")
    lines = clew.files(str(folder / "log.jsonl"), follow=True, rows_per_event=1, poll_s=0.005, idle_s=1.0)
    events = pipeline.source("events", lines)
    pairs = events.map(stage_a).batch(2, f=stage_b)
    report = pairs.batch(25, f=stage_c)
    report.write("report", NotingTable(str(folder / "out.db"), ("first", "last", "count", "due")))
    pipeline.group("stage_c", "report")
    return pipeline


def once(spark: Any, count: int, recovery: str, is_killing: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "log.jsonl").touch()
        log = str(folder / "log") if recovery == "log" else None
        run = build(folder).run(spark, log=log, recovery=recovery, blocking=False)
        while not all(group["state"] == "running" for group in run.status()["groups"].values()):
            time.sleep(0.05)
        emitter = start_emitter(folder, count, INTERVAL_S, 10_000)
        begin, begin_at = time.monotonic(), time.time()
        is_killed = not is_killing
        while not run.is_over:
            time.sleep(0.02)
            if not is_killed and time.monotonic() - begin > count * INTERVAL_S / 2:
                is_killed = True
                os.kill(run.status()["groups"]["stage_c+report"]["pid"], signal.SIGKILL)
        emitter.wait()
        run.wait()
        with sqlite3.connect(folder / "out.db") as connection:
            rows = connection.execute("SELECT first, last, count, due, written FROM noted ORDER BY first").fetchall()
    wanted = [(first, first + 49, 50) for first in range(0, count, 50)]
    found = [tuple(row[:3]) for row in rows]
    return {
        "workload": "W4",
        "recovery": recovery,
        "is_killed": is_killing,
        "total_s": round(max(row[4] for row in rows) - begin_at, 3),
        "rows": len(rows),
        "lost": len(set(wanted) - set(found)),
        "doubled": len(found) - len(set(found)),
        "latest_row_s": round(max(row[4] - row[3] for row in rows), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--count", type=int, default=1000)
    args = parser.parse_args()
    spark = local_session("bench", 4)
    results = []
    for _ in range(args.repeats):
        for recovery, is_killing in (("log", False), ("off", False), ("log", True)):
            results.append(once(spark, args.count, recovery, is_killing))
            print(json.dumps(results[-1]), flush=True)
    spark.stop()
    totals = {
        name: statistics.median(
            each["total_s"] for each in results if (each["recovery"], each["is_killed"]) == (recovery, is_killed)
        )
        for name, recovery, is_killed in (("log", "log", False), ("off", "off", False), ("killed", "log", True))
    }
    ratios = {name: round(totals[name] / totals["off"], 4) for name in ("log", "killed")}
    print(json.dumps({"workload": "W4", "machine": machine(), "total_s": totals, "ratio_to_off": ratios}))


if __name__ == "__main__":
    main()
