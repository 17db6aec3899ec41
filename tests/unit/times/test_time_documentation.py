"""The examples of the page on time-aware operators run, one after another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from clew.times import algebra

PAGE = Path(__file__).parents[3] / "docs" / "time-aware-operators.md"


def test_the_examples_run() -> None:
    names: dict[str, Any] = {}
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 5
    for example in examples:
        exec(example, names)


def test_every_operator_is_on_the_page() -> None:
    table = PAGE.read_text(encoding="utf-8").split("## Monotone")[0]
    for name in algebra.__all__:
        made = getattr(algebra, name)
        if isinstance(made, type) and issubclass(made, algebra.Logic) and name not in ("Logic", "Composed", "Skip"):
            assert f"`{name}(" in table, name
    for name in ("histogram", "incremental_batches", "join", "produce"):
        assert f"`{name}(" in table, name
