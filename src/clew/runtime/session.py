"""Spark sessions: the one a user gave, or a local one with enough slots for a pipeline."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import UnsuitableSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARE_SLOTS = 2
"""Slots of a local session beyond its hosts: for DataFrame jobs, and for a successor whose predecessor hangs."""


def local_session(pipeline: str, slots: int, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A Spark on this machine, reachable from this machine only."""
    return session_on(f"local[{slots + SPARE_SLOTS}]", pipeline, settings)


def session_on(master: str, pipeline: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session on a master, with what suits a pipeline unless other settings are given."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    suiting = {
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.python.daemon.module": "clew.runtime.daemon",
        "spark.scheduler.mode": "FAIR",
    }
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        suiting |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if master.startswith("local["):
        suiting |= {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.task.maxFailures": "1",
        }
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(f"clew {pipeline}")
    for key, value in {**suiting, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        with _ended_if_cut_off():
            return builder.getOrCreate()
    except Exception as error:
        words = (str(error) or type(error).__name__).splitlines()[0]
        where = "a local Spark" if master.startswith("local") else f"Spark on {master}"
        raise UnsuitableSpark(
            f"{where} could not be started: {words}. Spark needs Java 17 or newer; `clew doctor` says what is missing."
        ) from error


@contextlib.contextmanager
def _ended_if_cut_off() -> Iterator[None]:
    """A Spark whose start is cut off, as by Ctrl-C, would stay for ever: nobody knows its process yet."""
    before = _children()
    try:
        yield
    except BaseException:
        from pyspark import SparkContext

        for pid in _children() - before:
            with contextlib.suppress(OSError):
                if b"spark" in Path(f"/proc/{pid}/cmdline").read_bytes().lower():
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        SparkContext._gateway = SparkContext._jvm = None
        raise


def _children() -> set[int]:
    """The processes that this one has started."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            if int(path.read_text(errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(path.parent.name))
    return found


def active_session() -> SparkSession | None:
    """The session that this process has already, if any."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    return session if session is not None and session.sparkContext._jsc is not None else None
