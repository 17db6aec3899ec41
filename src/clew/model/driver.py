"""What works with the Spark session of the run, and so lives in the driver: operators, sources and connections."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from clew.errors import UnsuitableSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class InDriver:
    """Base of what needs a Spark session; it is hosted in a thread of the driver, and copied there, never pickled.

    A run lends it its session. In the simulator and in tests nobody does: then it uses the session that is there, or
    makes a small local one.
    """

    is_in_driver = True
    _session: SparkSession | None = None
    _job_group = ""
    _label = ""

    def lend(self, spark: SparkSession, job_group: str, label: str) -> None:
        """Takes the session of the run, and the name under which Spark is to show and cancel its jobs."""
        self._session = spark
        self._job_group = job_group
        self._label = label

    @property
    def is_lent(self) -> bool:
        """Whether this is a run on Spark, not a simulation."""
        return self._session is not None

    @property
    def spark(self) -> SparkSession:
        """The session; what the calling thread does with it from now on is shown under this operator's name."""
        if self._session is None:
            return _session_without_run()
        self._session.sparkContext.setJobGroup(self._job_group, self._label, interruptOnCancel=True)
        return self._session

    def interrupt(self) -> None:
        """Its host ends: gives up what is under way. Called from another thread, perhaps several times."""
        if self._session is not None:
            with contextlib.suppress(Exception):  # Spark itself may be gone.
                self._session.sparkContext.cancelJobGroup(self._job_group)


def _session_without_run() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        from pyspark.sql import SparkSession

        found = SparkSession.getActiveSession()
        if found is not None:
            return found
        builder = SparkSession.builder.master("local[2]").appName("clew simulation")
        for key, value in {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "OFF",
            "spark.sql.shuffle.partitions": "2",
        }.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except Exception as error:
        words = (str(error) or type(error).__name__).splitlines()[0]
        raise UnsuitableSpark(
            f"DataFrames need a Spark session in the simulator too, and a local one could not be started: {words}. "
            f"Spark needs Java 17 or newer; or replace this operator by a function on Arrow tables for the test."
        ) from error
