"""A million records out of order through a window join and through histograms, with kills, against a Spark batch job.

Each case runs twice, with a quarter of the records and with all of them. Two processes are killed on the way. What
comes out, and how many records were late, must be exactly what the batch job computes. Twice a second memory, log,
open time windows and rows of time are looked at: their maxima must not grow with the number of records. One more case
lets one side of the join run ahead of the other and shows what that costs, and what `ahead_by` makes of it. Each run is
a JSON line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import timed_data as data
from bench.process_tree import machine

import clew
from clew.errors import ClewError
from clew.model.names import Replica
from clew.model.values import decode
from clew.operators.windows import tumbling
from clew.runtime.run import Run
from clew.runtime.session import local_session
from clew.runtime.spec import Timing, Tuning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S = 0.5
LIMIT_S = 900.0
AHEAD_S = 20
WINDOWS = tumbling(data.WINDOW_S)
TUNING = Tuning(timing=Timing(beat_s=0.1))


# The pipelines


def source_of(directory: Path, **options: Any) -> clew.Source:
    return clew.files(directory, rows_per_event=data.PER_EVENT, **options)


def times(ahead_by: float | None = None) -> clew.Stamps:
    return clew.event_time("ts", late_by=data.LATE_S, resolution=data.RESOLUTION_S, ahead_by=ahead_by)


def join(folder: Path, ahead_by: float | None = None, **right: Any) -> clew.Pipeline:
    pipeline = clew.Pipeline("join")
    lefts = pipeline.source("left", source_of(folder / "left"), times=times(ahead_by))
    rights = pipeline.source("right", source_of(folder / "right", **right), times=times(ahead_by))
    pairs = lefts.join("pairs", rights, on="key", within=WINDOWS)
    pairs.write("report", clew.parquet(folder / "pairs"), ["id", "id_right"])
    return pipeline


def histogram(folder: Path) -> clew.Pipeline:
    pipeline = clew.Pipeline("histogram")
    lefts = pipeline.source("left", source_of(folder / "left"), times=times())
    for name, running in (("counts", False), ("running", True)):
        made = lefts.histogram(name, "value", WINDOWS, running=running)
        made.write(f"{name}-report", clew.parquet(folder / name), ["window_start", "value", "count"])
    return pipeline


# What is looked at while they run


class Look:
    """The greatest of everything that was seen of a run."""

    def __init__(self, run: Run, operators: tuple[str, ...], log: Path) -> None:
        self.run = run
        self.operators = operators
        self.log = log
        self.watermarks = {name: data.BEGIN_US for name, node in run.graph.nodes.items() if node.is_source}
        """By source: as its log had it last."""
        self.most: Counter[str] = Counter()
        self.samples = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Look:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._is_over.wait(EVERY_S):
            with contextlib.suppress(ClewError, OSError):
                self._look()
                self.samples += 1

    def _look(self) -> None:
        for group in self.run.status()["groups"].values():
            for name in group.get("replicas", ()):
                self._seen(f"rss_mb of {name}", round(group["rss_bytes"] / (1 << 20)))
        sizes = [path.stat().st_size for path in self.log.rglob("*") if path.is_file()]
        self._seen("log_mb", round(sum(sizes) / (1 << 20)))
        reader = self.run.store.reader()
        for name in self.operators:
            rows = reader.rows(Replica(name))
            kinds = Counter(kind for kind, _ in rows.progress)
            self._seen(f"open windows of {name}", sum(not is_closed for _, _, is_closed in rows.sets))
            self._seen(f"held times of {name}", kinds["hold"])
            self._seen(f"rows of time of {name}", sum(kinds.values()))
        behind = []
        for name in self.watermarks:
            for (kind, _), value in reader.rows(Replica(name)).progress.items():
                if kind == "hold":  # Otherwise it has not begun, or has ended.
                    self.watermarks[name] = max(self.watermarks[name], *decode(value))
                    behind.append(self.watermarks[name])
        if behind:
            self._seen("ahead_s", round((max(self.watermarks.values()) - min(behind)) / 1e6))

    def _seen(self, what: str, number: int) -> None:
        self.most[what] = max(self.most[what], number)


def kill(run: Run, name: str) -> None:
    """Kills the process of an operator with SIGKILL, as soon as it has one."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and not run.is_over:
        group = run.status()["groups"][name]
        if group["state"] == "running":
            with contextlib.suppress(ProcessLookupError):
                os.kill(group["pid"], signal.SIGKILL)
            return
        time.sleep(0.02)


def follow(run: Run, victims: tuple[str, ...], events: int) -> None:
    """Kills one after another, at equal distances on the way through the left source; waits for the end."""
    deadline = time.monotonic() + LIMIT_S
    for number, name in enumerate(victims, 1):
        while not run.is_over and sent(run, "left") < events * number // (len(victims) + 1):
            if time.monotonic() > deadline:
                raise AssertionError(f"{run} is not that far in {LIMIT_S:.0f} s")
            time.sleep(0.01)
        kill(run, name)
    run.wait(LIMIT_S)
    if not run.is_over:
        raise AssertionError(f"{run} has not ended in {LIMIT_S:.0f} s: {json.dumps(run.status(), default=str)}")


def sent(run: Run, source: str) -> int:
    return int(run.metrics().get(source, {}).get("events", 0))


# The cases


def run_case(
    spark: SparkSession,
    folder: Path,
    pipeline: clew.Pipeline,
    operators: tuple[str, ...],
    victims: tuple[str, ...],
    records: int,
    beside: Callable[[Run], None] = lambda run: None,
) -> tuple[Run, dict[str, Any]]:
    log = folder / f"{pipeline.name}.log"
    shutil.rmtree(log, ignore_errors=True)
    run = pipeline.run(spark, log=log, blocking=False, tuning=TUNING)
    try:
        with Look(run, operators, log) as look:
            beside(run)
            follow(run, victims, records // data.PER_EVENT // (2 if pipeline.name == "join" else 1))
    finally:
        if not run.is_over:
            run.stop()
    seconds = run.status()["seconds"]
    killed = [loss["group"] for loss in run.losses()]
    assert Counter(victims) <= Counter(killed), f"{victims} were to be killed, {killed} were"
    return run, {
        "case": pipeline.name,
        "records": records,
        "seconds": seconds,
        "records_per_s": round(records / seconds),
        "killed": killed,
        "recovery_s": [loss["recovery_s"] for loss in run.losses()],
        "samples": look.samples,
        "most": dict(sorted(look.most.items())),
    }


def check(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["rows"], f"{name}: there was nothing to compare"
    assert not answer["lost"], f"{name}: {answer}"
    assert not answer["too_many"], f"{name}: {answer}"
    return answer


def join_case(spark: SparkSession, folder: Path, records: int) -> dict[str, Any]:
    """Half of the records on each side; while one of the sources recovers, the other waits."""
    run, result = run_case(spark, folder, join(folder, AHEAD_S), ("pairs",), ("pairs", "left"), records)
    return {**result, **join_answer(spark, folder, run)}


def join_answer(spark: SparkSession, folder: Path, run: Run) -> dict[str, Any]:
    left, right = (data.judged(spark, folder / side).cache() for side in ("left", "right"))
    answer = data.differences(data.found(spark, folder / "pairs", "id", "id_right"), data.batch_pairs(left, right))
    late = sum(side.filter("is_late").count() for side in (left, right))
    counted = run.status()["counts"]["pairs"]["late"]
    assert late == counted, f"the batch job has {late} late records, the join {counted}"
    return {"answer": check("pairs", answer), "late": late}


def histogram_case(spark: SparkSession, folder: Path, records: int) -> dict[str, Any]:
    names = ("counts", "running")
    run, result = run_case(spark, folder, histogram(folder), names, names, records)
    judged = data.judged(spark, folder / "left").cache()
    late = judged.filter("is_late").count()
    answers = {}
    for name, expected in (("counts", data.batch_counts(judged)), ("running", data.batch_running(judged))):
        found = data.found(spark, folder / name, "unix_micros(window_start) as start", "value", "count")
        answers[name] = check(name, data.differences(found, expected))
        counted = run.status()["counts"][name]["late"]
        assert late == counted, f"the batch job has {late} late records, {name} {counted}"
    return {**result, "answer": answers, "late": late}


def skew_case(
    spark: SparkSession, folder: Path, records: int, name: str = "one side first", ahead_by: float | None = None
) -> dict[str, Any]:
    """The right side comes when the left one has ended, or waits for it: what waits is in memory and in the log."""
    (folder / "right").rename(folder / "later")
    (folder / "right").mkdir()

    def bring(run: Run) -> None:
        before, now = -1, 0
        while not run.is_over and (now == 0 or now != before):
            time.sleep(2 * EVERY_S)
            before, now = now, sent(run, "left")
        for path in sorted((folder / "later").iterdir()):
            path.rename(folder / "right" / path.name)

    pipeline = join(folder, ahead_by, follow=True, idle_s=3.0)
    run, result = run_case(spark, folder, pipeline, ("pairs",), (), records, bring)
    return {**result, "case": f"join, {name}", **join_answer(spark, folder, run)}


def bounded_case(spark: SparkSession, folder: Path, records: int) -> dict[str, Any]:
    """The same, but no source may be far ahead of the other."""
    return skew_case(spark, folder, records, f"one side first, at most {AHEAD_S} s ahead", AHEAD_S)


CASES = {"join": join_case, "histogram": histogram_case, "skew": skew_case, "bounded": bounded_case}


def measured(spark: SparkSession, directory: Path, case: str, records: int) -> dict[str, Any]:
    """One case with fresh data."""
    folder = directory / f"{case}-{records}"
    data.write_records(folder / "left", records if case == "histogram" else records // 2, seed=1)
    if case != "histogram":
        data.write_records(folder / "right", records // 2, seed=2)
    try:
        return CASES[case](spark, folder, records)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--only", choices=CASES)
    args = parser.parse_args()
    spark = local_session("bench", 5)
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    with tempfile.TemporaryDirectory(dir=os.environ.get("CLEW_BENCH_DIR")) as directory:
        for case in [args.only] if args.only else list(CASES):
            for records in (args.records // 4, args.records):
                print(json.dumps(measured(spark, Path(directory), case, records)), flush=True)
    spark.stop()
    print(json.dumps({"machine": machine()}))


if __name__ == "__main__":
    main()
