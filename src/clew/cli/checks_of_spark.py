"""Checks of a machine for Spark: Java, the Python of its workers, and a tiny job."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from clew.cli.checks import Check
from clew.cli.spark import spark_session
from clew.errors import ClewError

JAVA_LOWEST = 17
_INSTALL = "Install Java 17 or newer (on Debian and Ubuntu: openjdk-17-jre-headless), or set JAVA_HOME to its folder."


def java_check() -> Check:
    """Which Java Spark would start: that of JAVA_HOME, else the one in PATH."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    where = f"JAVA_HOME={home}" if home else "PATH"
    if path is None or not os.access(path, os.X_OK):
        return Check("Java", "fail", f"none in {where}", _INSTALL)
    try:
        told = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        return Check("Java", "fail", f"{path} does not run ({error})", _INSTALL)
    version = re.search(r'version "([^"]+)"', told.stderr + told.stdout)
    major = major_of(version[1]) if version else 0
    if version is None or major < JAVA_LOWEST:
        return Check("Java", "fail", f"{version[1] if version else 'an unknown version'} at {path}", _INSTALL)
    return Check("Java", "ok", f"{version[1]} at {os.path.realpath(path)}, found by {where}")


def major_of(version: str) -> int:
    """The first number of a Java version that says something.

    >>> major_of("17.0.15"), major_of("1.8.0_292"), major_of("21-ea")
    (17, 8, 21)
    """
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def python_check() -> Check:
    """The Python that Spark's workers use must have the version of this one, and have Clew."""
    name = os.environ.get("PYSPARK_PYTHON")
    what = "Python of Spark's workers"
    if name is None:
        return Check(what, "ok", "this one, as PYSPARK_PYTHON is not set")
    path = shutil.which(name)
    do = f"Unset PYSPARK_PYTHON, or set it to {sys.executable}."
    if path is None:
        return Check(what, "fail", f"PYSPARK_PYTHON={name} is not there", do)
    code = "import sys; print('.'.join(map(str, sys.version_info[:2]))); import clew"
    told = subprocess.run([path, "-c", code], capture_output=True, text=True, timeout=60)
    version = told.stdout.strip()
    own = ".".join(map(str, sys.version_info[:2]))
    if version != own:
        return Check(what, "fail", f"PYSPARK_PYTHON={name} is {version or 'no Python'}, this one is {own}", do)
    if told.returncode:
        return Check(what, "fail", f"PYSPARK_PYTHON={name} has no Clew", do)
    return Check(what, "ok", f"{version} by PYSPARK_PYTHON={name}")


def spark_check() -> Check:
    """A job of two tasks on a local Spark."""
    what = "Spark job"
    words: list[str] = []
    begin = time.monotonic()
    try:
        with spark_session("doctor", 1, words.append) as spark:
            started_s = time.monotonic() - begin
            total = spark.sparkContext.parallelize(range(100), 2).map(lambda number: number + 1).sum()
            took_s = time.monotonic() - begin - started_s
    except (ClewError, OSError) as error:
        return Check(what, "fail", str(error).rstrip("."), " ".join(words[-3:]))
    except Exception as error:
        with contextlib.suppress(IndexError):
            words = [line for line in str(error).splitlines() if "Error" in line][-1:]
        return Check(what, "fail", f"{type(error).__name__}: {' '.join(words)[:300]}", "Look at Spark's own words.")
    if total != 5050:
        return Check(what, "fail", f"the sum of 1 to 100 was {total}", "Please report it.")
    return Check(what, "ok", f"Spark started in {started_s:.1f} s, a first job took {took_s:.1f} s")
