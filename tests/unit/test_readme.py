"""The example of the README is a pipeline that keeps its promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from clew.testing import Crash, run

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_example_runs_and_survives_a_crash() -> None:
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found.group(1), names)
    calm = run(names["pipeline"])
    assert calm.rows("report.to")[0] == {"hour": 9, "item": "tea", "total": 6}
    assert run(names["pipeline"], crashes=[Crash("hourly", 4)]).rows("report.to") == calm.rows("report.to")
