"""The semantics shares no code with the engine that is judged by it, and the oracle none with the semantics."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SEMANTICS = sorted((ROOT / "src" / "clew" / "verify" / "semantics").glob("*.py"))


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: {node.lineno}"
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", SEMANTICS, ids=lambda path: path.stem)
def test_the_semantics_knows_only_itself(path: Path) -> None:
    for name in imported(path):
        is_own = name in ("clew.errors", "clew.verify.ending") or name.startswith("clew.verify.semantics")
        assert is_own or name.partition(".")[0] in sys.stdlib_module_names, f"{path.name} imports {name}"


def test_the_oracle_knows_nothing_of_it() -> None:
    for name in imported(ROOT / "tests" / "laws" / "naive_abs.py"):
        assert name in sys.stdlib_module_names
