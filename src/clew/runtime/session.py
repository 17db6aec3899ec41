"""Spark sessions: the one a user gave, or a local one with enough slots for a pipeline."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from clew.errors import UnsuitableSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARE_SLOTS = 2
"""Slots of a local session beyond its hosts: for DataFrame jobs, and for a successor whose predecessor hangs."""


def local_session(pipeline: str, slots: int) -> SparkSession:
    """A Spark on this machine, reachable from this machine only."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    settings: dict[str, Any] = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.python.daemon.module": "clew.runtime.daemon",
        "spark.sql.shuffle.partitions": "4",
        "spark.scheduler.mode": "FAIR",
        "spark.task.maxFailures": "1",
    }
    builder = SparkSession.builder.master(f"local[{slots + SPARE_SLOTS}]").appName(f"clew {pipeline}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        words = (str(error) or type(error).__name__).splitlines()[0]
        raise UnsuitableSpark(
            f"a local Spark could not be started: {words}. "
            f"Spark needs Java 17 or newer; `clew doctor` says what is missing."
        ) from error


def active_session() -> SparkSession | None:
    """The session that this process has already, if any."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    return session if session is not None and session.sparkContext._jsc is not None else None
