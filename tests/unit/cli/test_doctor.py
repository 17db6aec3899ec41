"""`clew doctor`: what it looks at, what it says to do, and when it says that a machine will not do."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.cli.checks import machine_checks
from clew.cli.checks_of_spark import java_check, python_check

Run = Callable[..., Any]


def program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A Java of some version."""

    def make(version: str) -> None:
        program(tmp_path / "jdk" / "bin" / "java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))

    return make


def test_a_machine_that_will_do(run: Run, java: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java("17.0.9")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    result = run("doctor", "--no-spark", "--directory", tmp_path)
    assert result.code == 0
    assert result.lines[-1] == "this machine can run pipelines"
    for words in ("ok    Python: 3.", "ok    pyspark: 4.", "a durable commit takes", "can be seen and ended"):
        assert words in result.out
    assert list(tmp_path.glob(".clew-doctor*")) == []


def test_the_same_as_json(run: Run, java: Any, tmp_path: Path) -> None:
    java("21")
    told = run("doctor", "--no-spark", "--directory", tmp_path, "--json").json
    checks = {check["what"].partition(" ")[0]: check for check in told["checks"]}
    assert told["is_fit"]
    assert {"Python", "pyspark", "pandas", "pyarrow", "loopback", "processes", "disk", "SQLite", "Java"} <= set(checks)
    assert checks["Java"]["found"].startswith("21 at ")
    assert checks["Spark"] == {
        "what": "Spark job",
        "result": "warn",
        "found": "not tried",
        "remedy": "Leave out --no-spark to try it.",
    }


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_292"])
def test_a_java_that_is_too_old(run: Run, java: Any, version: str, tmp_path: Path) -> None:
    java(version)
    result = run("doctor", "--directory", tmp_path)
    assert result.code == 1
    assert f"FAIL  Java: {version} at " in result.out
    assert "Install Java 17 or newer" in result.out
    assert result.lines[-1] == "this machine cannot run pipelines: Java, Spark job"


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_check()[:3] == ("Java", "fail", "none in PATH")


def test_the_python_of_the_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert python_check().result == "ok"
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "nowhere"))
    assert python_check().found.endswith("nowhere is not there")
    monkeypatch.setenv("PYSPARK_PYTHON", program(tmp_path / "old", "echo 3.8"))
    assert "is 3.8, this one is 3." in python_check().found
    own = ".".join(map(str, sys.version_info[:2]))
    monkeypatch.setenv("PYSPARK_PYTHON", program(tmp_path / "bare", f"echo {own}; exit 1"))
    assert python_check().found.endswith("has no Clew")
    assert python_check().remedy == f"Unset PYSPARK_PYTHON, or set it to {sys.executable}."


def test_packages_that_do_not_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def version(name: str) -> str:
        if name == "pyarrow":
            raise importlib.metadata.PackageNotFoundError(name)
        return {"pyspark": "3.5.1", "pandas": "3.0.0"}[name]

    monkeypatch.setattr("importlib.metadata.version", version)
    checks = {check.what: check for check in machine_checks(str(tmp_path))}
    assert checks["pyspark"][1:] == ("fail", "3.5.1", "Install another: pip install 'pyspark>=4,<5'.")
    assert checks["pandas"][1:] == ("fail", "3.0.0", "Install another: pip install 'pandas>=2.2,<3'.")
    assert checks["pyarrow"][1:] == ("fail", "not installed", "Install it: pip install 'pyarrow>=18'.")


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    found = [check for check in machine_checks(str(tmp_path / "x")) if check.result == "fail"]
    assert [check.what for check in found] == ["disk"]
