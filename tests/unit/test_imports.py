"""Imports point one way: each room knows only the rooms below it, and kernels know no engine, socket or database."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "clew"

BOTTOM = {"model", "times"}
DRIVEN = BOTTOM | {"log", "progress", "protocol", "operators"}
EVERYTHING = DRIVEN | {"connect", "lineage", "pipeline", "runtime", "trace", "verify", "testing", "clew"}

# What each room may import besides itself and `clew.errors`. Nothing imports `cli` or `ui`, except these two.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "model": {"times"},
    "times": set(),
    "log": BOTTOM,
    "progress": BOTTOM,
    "protocol": BOTTOM | {"progress"},
    "operators": BOTTOM,
    "connect": BOTTOM,
    "pipeline": BOTTOM | {"operators", "connect", "progress", "sugar", "runtime"},
    "sugar": BOTTOM | {"operators", "connect", "pipeline"},  # The pipeline for its types only.
    "lineage": BOTTOM | {"log"},
    "trace": BOTTOM | {"protocol"},
    "verify": DRIVEN | {"trace"},
    "runtime": DRIVEN | {"trace"},
    "testing": EVERYTHING - {"clew"},
    "clew": EVERYTHING,  # The public surface, src/clew/__init__.py.
    "cli": EVERYTHING | {"cli", "ui"},
    "ui": EVERYTHING | {"cli", "ui"},
}

OUTSIDE = {"psycopg", "py4j", "pyspark", "socket", "sqlite3"}
NEVER: dict[str, set[str]] = {"protocol": OUTSIDE, "times": OUTSIDE, "progress": OUTSIDE}


def room_of(module: str) -> str:
    """`clew.log.sqlite` is in the room `log`; `clew` itself is the room `clew`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "clew"


def imported(module: str, source: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Each import of the source, wherever it stands, as line and full module name."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            if base == "clew":  # `from clew import log` names rooms, `from clew import Pipeline` the public surface.
                for alias in node.names:
                    yield node.lineno, f"clew.{alias.name}" if alias.name in MAY_IMPORT else "clew"
            else:
                yield node.lineno, base


def violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """What in this module's imports points the wrong way."""
    room = room_of(module)
    if room not in MAY_IMPORT:
        return [f"{module}: the room {room!r} has no rule; add it to MAY_IMPORT"]
    allowed = MAY_IMPORT[room] | {room, "errors"}
    found = []
    for line, name in imported(module, source, is_package=is_package):
        top = name.partition(".")[0]
        if top == "clew" and room_of(name) not in allowed:
            found.append(f"{module}:{line}: {room} may not import {name}")
        if top in NEVER.get(room, ()):
            found.append(f"{module}:{line}: {room} may not import {name}, it must run without it")
    return found


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_imports_point_one_way() -> None:
    found = [
        violation
        for module, path in modules()
        for violation in violations(module, path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py")
    ]
    assert not found, "\n".join(found)


def test_all_modules_are_seen() -> None:
    names = {module for module, _ in modules()}
    assert {"clew", "clew.errors", "clew.model", "clew.model.event"} <= names


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("clew.model.event", "import clew.log.sqlite"),
        ("clew.times.order", "from clew.model import event"),
        ("clew.model.event", "import clew"),
        ("clew.times.order", "from clew.model.event import Event"),
        ("clew.log.sqlite", "from ..protocol import logio"),
        ("clew.log.sqlite", "from clew import verify"),
        ("clew.protocol.logio", "from clew.log.contract import Store"),
        ("clew.protocol.logio", "import sqlite3"),
        ("clew.protocol.logio", "import socket as s"),
        ("clew.protocol.logio", "def late():\n    from pyspark.sql import SparkSession"),
        ("clew.protocol.logio", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import psycopg.rows"),
        ("clew.progress.propagation", "import pyspark"),
        ("clew.times.order", "import psycopg"),
        ("clew.operators.window", "from clew.protocol import effects"),
        ("clew.connect.files", "from clew.runtime import host"),
        ("clew.verify.simulator", "from clew.runtime import host"),
        ("clew.verify.simulator", "from clew import Pipeline"),
        ("clew.runtime.host", "import clew.verify"),
        ("clew.testing", "from clew.cli import main"),
        ("clew", "import clew.ui.page"),
        ("clew.attic.old", ""),
    ],
)
def test_the_check_sees_a_wrong_import(module: str, source: str) -> None:
    assert len(violations(module, source, is_package=module == "clew")) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("clew.model.event", "import pyarrow\nfrom clew.errors import MoveError\nfrom .names import Replica"),
        ("clew.log.sqlite", "import sqlite3\nfrom clew.model import history\nfrom . import contract"),
        ("clew.protocol.logio", "from clew.model.event import Event\nfrom clew import times"),
        ("clew.verify.simulator", "from clew.protocol import logio\nfrom ..log.memory import MemoryStore"),
        ("clew.cli.main", "import clew\nfrom clew.ui import page\nimport socket"),
    ],
)
def test_the_check_lets_right_imports_pass(module: str, source: str) -> None:
    assert violations(module, source) == []


def test_relative_imports_of_a_package_are_resolved_from_the_package_itself() -> None:
    assert violations("clew.model", "from .event import Event", is_package=True) == []
    assert len(violations("clew.model", "from ..log import contract", is_package=True)) == 1
