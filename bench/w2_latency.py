"""Workloads 2 and 3: 100 events a second from a live file, one Python step, a sink that notes arrivals durably.

Workload 2 measures the latency from the moment an event was written to the file until its row is in the sink's table:
it has then been committed by source, step and sink. Workload 3 is the same with kill -9 of the step's process in the
middle: the longest gap between two arrivals, events lost and doubled, and whether the others kept committing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.noting_table import NotingTable
from bench.process_tree import machine
from bench.workload_data import start_emitter

import clew
from clew.runtime.session import local_session


def step(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": row["id"], "t": row["t"]}


def build(folder: Path) -> clew.Pipeline:
    pipeline = clew.Pipeline("w2")
    lines = clew.files(str(folder / "log.jsonl"), follow=True, rows_per_event=1, poll_s=0.002, idle_s=2.0)
    events = pipeline.source("events", lines)
    events.map(step, rows=True).write("arrivals", NotingTable(str(folder / "out.db"), ("id", "t")))
    return pipeline


def once(spark: Any, seconds: float, kill_at_s: float | None, recovery: str = "log") -> dict[str, Any]:
    count = int(seconds * 100)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "log.jsonl").touch()
        log = str(folder / "log") if recovery == "log" else None
        run = build(folder).run(spark, log=log, recovery=recovery, blocking=False)
        while not all(group["state"] == "running" for group in run.status()["groups"].values()):
            time.sleep(0.05)
        emitter = start_emitter(folder, count, 0.01)
        begin = time.monotonic()
        killed = None
        while not run.is_over:
            time.sleep(0.02)
            if kill_at_s is not None and killed is None and time.monotonic() - begin > kill_at_s:
                killed = run.status()["groups"]["step"]["pid"]
                os.kill(killed, signal.SIGKILL)
        emitter.wait()
        run.wait()
        with sqlite3.connect(folder / "out.db") as connection:
            rows = connection.execute("SELECT id, t, written FROM noted ORDER BY written").fetchall()
        losses = run.losses()
    late = sorted(1000 * (arrived - t) for _, t, arrived in rows)
    gaps = [after - before for (_, _, before), (_, _, after) in itertools.pairwise(rows)]
    ids = [number for number, _, _ in rows]
    result: dict[str, Any] = {
        "workload": "W2" if kill_at_s is None else "W3",
        "recovery": recovery,
        "events": count,
        "lost": count - len(set(ids)),
        "doubled": len(ids) - len(set(ids)),
        "p50_ms": round(late[len(late) // 2], 2),
        "p95_ms": round(late[int(len(late) * 0.95)], 2),
        "p99_ms": round(late[int(len(late) * 0.99)], 2),
        "max_ms": round(late[-1], 2),
        "longest_gap_s": round(max(gaps), 3),
    }
    if kill_at_s is not None:
        result["recovery_s"] = [loss["recovery_s"] for loss in losses]
        result["others_committed_meanwhile"] = [loss["others_committed_meanwhile"] for loss in losses]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    spark = local_session("bench", 3)
    for _ in range(args.repeats):
        for kill_at_s, recovery in ((None, "log"), (None, "off"), (0.4 * args.seconds, "log")):
            result = once(spark, args.seconds, kill_at_s, recovery)
            print(json.dumps(result), flush=True)
    spark.stop()
    print(json.dumps({"workload": "W2, W3", "machine": machine()}))


if __name__ == "__main__":
    main()
