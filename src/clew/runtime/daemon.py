"""A Spark Python daemon that has imported what hosts need before it forks them, so that a successor starts sooner.

Spark starts it instead of its own when `spark.python.daemon.module` names this module; it is otherwise the same.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # A process that forks must have no threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import clew.log.postgres
import clew.log.sqlite
import clew.runtime.task  # noqa: F401

if __name__ == "__main__":
    manager()
