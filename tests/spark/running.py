"""Runs that must come to an end: with a limit of time, with kills on the way, and with nothing left behind."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clew.cli.main import main
from clew.runtime.run import Run

LIMIT_S = 90.0


def finish(run: Run, limit_s: float = LIMIT_S, progress: Callable[[Run], None] | None = None) -> Run:
    """Waits until a run is over; fails with how each of its groups is, if that takes too long."""
    run.wait(limit_s, progress)
    if run.is_over:
        return run
    status = json.dumps(run.status(), indent=1)
    run.stop()
    raise AssertionError(f"the run has not come to an end in {limit_s} s: {status}")


class Killer:
    """Kills the process of a group with SIGKILL, each time that as many further actions were written by an operator."""

    def __init__(self, victims: list[str], writer: str, every: int) -> None:
        self.victims = list(victims)
        self.writer = writer
        self.every = every
        self.killed: list[int] = []
        self._next = every

    def __call__(self, run: Run) -> None:
        if not self.victims or run.metrics().get(self.writer, {}).get("written", 0) < self._next:
            return
        pid = run.status()["groups"][self.victims[0]]["pid"]
        if pid is None:
            return
        assert pid != os.getpid(), f"{self.victims[0]} is hosted in the driver"
        os.kill(pid, signal.SIGKILL)
        self.killed.append(pid)
        self.victims.pop(0)
        self._next += self.every


def rows_of(database: Path, table: str) -> list[tuple[Any, ...]]:
    """All rows of a table of an SQLite database, sorted."""
    with sqlite3.connect(database) as connection:
        return sorted(connection.execute(f"SELECT * FROM {table}").fetchall())


def until(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Waits until something holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {limit_s} s"
        time.sleep(0.02)


def is_explained(log: Path) -> bool:
    """Whether a run without failures explains what the replicas did, as `clew explain` judges it."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = main(["explain", str(log)])
    print(said.getvalue())
    return code == 0
