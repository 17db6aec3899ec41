"""A process is paused, its successor takes over, it is continued: it changes nothing, inside or outside, and ends."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark import pipelines
from tests.spark.harness import Watch, is_there, state_of, wait_until
from tests.spark.running import rows_of

import clew
from clew.connect.sqlite_writer import SqliteWriter
from clew.runtime.spec import Timing, Tuning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUICK = Tuning(timing=Timing(beat_s=0.05, silence_s=1.0))
COUNT, PAUSED_AT = 200, 50


def pause_once(marker: Path) -> None:
    """Stops this process, the first time; what follows is done when it is continued."""
    try:
        marker.with_suffix(".tmp").write_text(str(os.getpid()))
        os.link(marker.with_suffix(".tmp"), marker)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.5)  # The other threads may be stopped first; this one must not get any further.


class Adding(clew.Operator):
    """Adds up in its state, and is paused in the middle of a move."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def open(self, ctx: clew.Context) -> None:
        self.number = 0

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        return [event.rows[0]["x"]]

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        self.number = number

    def ready(self, ctx: clew.Context) -> list[list[int]]:
        return [[self.number]] if self.number else []

    def generate(self, numbers: list[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        (number,) = numbers
        if number == PAUSED_AT:
            pause_once(self.marker)
        ctx.state["sum"] = total = ctx.state.get("sum", 0) + number
        self.number = 0
        yield "out", [{"x": number, "sum": total}]


class PausingWriter(SqliteWriter):
    """A table; the process that writes is paused right before one of its actions."""

    def __init__(self, path: Path, marker: Path) -> None:
        super().__init__(path, "sums", True, ())
        self.marker = marker

    def execute(self, action: clew.WriteAction) -> None:
        if action.number == PAUSED_AT:
            pause_once(self.marker)
        super().execute(action)


def number_rows(number: int) -> list[dict[str, Any]]:
    return [{"x": number + 1}]


def build(directory: Path, where: str) -> clew.Pipeline:
    marker, nowhere = directory / "paused", directory / "nowhere"
    nowhere.touch()
    pipeline = clew.Pipeline("fencing")
    numbers = pipeline.source("numbers", pipelines.Steady(COUNT, 200.0, pipelines.gate_of(directory), number_rows))
    adding = numbers.operator("adding", Adding(marker if where == "move" else nowhere))
    adding.write("report", PausingWriter(directory / "out.db", marker if where == "write" else nowhere))
    return pipeline


def expected() -> list[tuple[int, int]]:
    return [(number, number * (number + 1) // 2) for number in range(1, COUNT + 1)]


def paused_process(watch: Watch, directory: Path) -> int:
    marker = directory / "paused"
    watch.until("a process is paused", marker.exists)
    pid = int(marker.read_text())
    watch.until("it is paused", lambda: state_of(pid)[0] in "T")
    return pid


@pytest.fixture
def patient_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that leaves Python workers alone whose job was cancelled."""
    conf = spark.sparkContext._jsc.sc().conf()
    before = conf.get("spark.python.task.killTimeout", "2s")
    conf.set("spark.python.task.killTimeout", "600s")
    yield spark
    conf.set("spark.python.task.killTimeout", before)


@pytest.mark.postgres
@pytest.mark.parametrize("where", ["move", "write"])
def test_with_postgresql_a_process_that_comes_back_changes_nothing(
    patient_spark: SparkSession, tmp_path: Path, dsn: str, where: str
) -> None:
    group = {"move": "adding", "write": "report"}[where]
    run = build(tmp_path, where).run(patient_spark, log=dsn, blocking=False, tuning=QUICK)
    with Watch(run) as watch:
        paused = paused_process(watch, tmp_path)
        try:
            watch.returns(group, paused)
            watch.until("its successor has done more", lambda: len(found(tmp_path)) > PAUSED_AT + 20)
            assert state_of(paused)[0] == "T", "somebody ended the paused process: there is nothing to see here"
            os.kill(paused, signal.SIGCONT)
            wait_until("the process that was paused is gone", lambda: not is_there(paused))
        finally:
            if is_there(paused):
                os.kill(paused, signal.SIGKILL)
        pipelines.gate_of(tmp_path).touch()
        watch.finish()
    assert (group, "hung", paused) in [(loss["group"], loss["reason"], loss["pid"]) for loss in run.losses()]
    assert found(tmp_path) == expected()


@pytest.mark.parametrize("where", ["move", "write"])
def test_with_sqlite_the_successor_ends_the_paused_process_first(
    patient_spark: SparkSession, tmp_path: Path, where: str
) -> None:
    group = {"move": "adding", "write": "report"}[where]
    run = build(tmp_path, where).run(patient_spark, log=tmp_path / "log", blocking=False, tuning=QUICK)
    with Watch(run) as watch:
        paused = paused_process(watch, tmp_path)
        watch.returns(group, paused)
        assert not is_there(paused)
        pipelines.gate_of(tmp_path).touch()
        watch.finish()
    assert (group, "hung", paused) in [(loss["group"], loss["reason"], loss["pid"]) for loss in run.losses()]
    assert found(tmp_path) == expected()


def found(directory: Path) -> list[tuple[Any, ...]]:
    try:
        return rows_of(directory / "out.db", "sums")
    except sqlite3.OperationalError:
        return []  # Nothing was written yet.
