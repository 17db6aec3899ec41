"""The Spark of a command: started without its greeting, ended so that nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from clew.cli.interrupt import handlers_kept
from clew.errors import UnsuitableSpark
from clew.runtime.session import active_session, local_session, session_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Say = Callable[[str], None]

_GREETING = (
    "WARNING: Using incubator modules",
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "Setting Spark log level to",
    "To adjust logging level use",
    "WARN NativeCodeLoader",
    "WARN Utils: Your hostname",
    "WARN Utils: Set SPARK_LOCAL_IP",
)
_PATIENCE_S = 20.0


@contextlib.contextmanager
def spark_session(
    pipeline: str, slots: int, say: Say, master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session with so many slots on this machine, or on a master; the user's own, if the file has made one."""
    with handlers_kept(), _words_to(say):
        session = active_session()
        if session is not None and (master is not None or settings):
            raise UnsuitableSpark(
                "--master or --conf was given, and the file has made a Spark session of its own, which cannot be "
                "changed any more. Leave out the options, or the session."
            )
        if session is None and master is None:
            session = local_session(pipeline, slots, settings)
        elif session is None:
            session = session_on(str(master), pipeline, settings)
    try:
        yield session
    finally:
        _end(session)


def _end(session: SparkSession) -> None:
    """Stops Spark and waits until its process is gone."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    with contextlib.suppress(Exception):
        session.stop()
    if gateway is None or process is None:
        return
    with contextlib.suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _words_to(say: Say) -> Iterator[None]:
    """Whatever a process that is started inside writes to its standard error is said line by line, for as long as it
    lives; the lines with which every Spark begins are left out."""
    sys.stderr.flush()
    reading, writing = os.pipe()
    own = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)
    thread = threading.Thread(target=_pass_on, args=(reading, say), name="clew-spark-words", daemon=True)
    thread.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, 2)
        os.close(own)


def _pass_on(reading: int, say: Say) -> None:
    with os.fdopen(reading, errors="replace") as lines:
        for line in lines:
            if line.strip() and not any(words in line for words in _GREETING):
                say(line.rstrip())
