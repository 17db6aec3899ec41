"""The model of LOG.io shares no code with the engine that it is compared with."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).parents[4] / "src" / "clew" / "verify"
ALLOWED = (
    "clew.errors",
    "clew.verify.ending",
    "clew.verify.logging_semantics",
    "clew.verify.semantics",
    "clew.verify.transparency",
)


def test_nothing_of_the_engine_is_imported() -> None:
    seen = 0
    for folder in ("logging_semantics", "transparency"):
        for path in sorted((FOLDER / folder).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("clew"):
                    seen += 1
                    assert node.module.startswith(ALLOWED), f"{path.name} imports {node.module}"
                assert not (isinstance(node, ast.Import) and any(name.name.startswith("clew") for name in node.names))
    assert seen > 30
