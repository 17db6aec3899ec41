"""The example of the README is a pipeline that keeps its promises."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from clew.testing import Crash, run

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_example_runs_and_survives_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "orders").mkdir()
    for n in range(12):
        tea = {"hour": 9 + n // 4, "item": "tea", "amount": n}
        jam = {"hour": 9 + (n + 1) // 4, "item": "jam", "amount": 1}
        (tmp_path / "orders" / f"{n:02}.jsonl").write_text(f"{json.dumps(tea)}\n{json.dumps(jam)}\n")
    monkeypatch.chdir(tmp_path)
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found.group(1), names)
    calm = run(names["pipeline"])
    assert calm.rows("report.to")[0] == {"hour": 9, "item": "tea", "total": 6}
    assert run(names["pipeline"], crashes=[Crash("hourly", 4)]).rows("report.to") == calm.rows("report.to")
