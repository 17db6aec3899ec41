"""`clew demo`: the sales pipeline crashes and comes back, and the outside is the same as without failures."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from clew.cli.main import main
from clew.verify.sweep import one_crash, random_schedules

SALES = Path(__file__).parents[3] / "examples" / "sales.py"


def test_the_sales_pipeline_crashes_and_recovers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # All crash points of the sales pipeline are tried in the simulation's own tests; here, every tenth will do.
    monkeypatch.setattr("clew.cli.demo.one_crash", lambda points: islice(one_crash(points), 0, None, 10))
    monkeypatch.setattr("clew.cli.demo.random_schedules", lambda count, *bounds: random_schedules(count // 10, *bounds))
    assert main(["demo", str(SALES)]) == 0
    out = capsys.readouterr().out
    for words in (
        "The pipeline 'sales':",
        "orders.out -> hourly.in",
        "report writes to outside system 'report' (conditional, to)",
        "1. Without failures it takes",
        "2. The same with a process killed six times",
        "begins as incarnation 2",
        "The same as without failures: yes.",
        "one crash at every step: ",
        "random schedules: 20 runs, ",
    ):
        assert words in out
    assert out.count("** crash at its") == 6
    assert out.count("nothing lost, doubled or unexplained") == 2
    before, after = (part.split("\n\n", 2)[1] for part in (out[out.index("1. ") :], out[out.index("Outside, after") :]))
    assert before == after


def test_a_pipeline_that_forgets_is_shown_to_be_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "forgets.py"
    file.write_text(
        "import clew\n"
        "from clew.operators.stateless import Stateless\n"
        "from clew.testing import Outside, scripted\n\n\n"
        "class Counts(Stateless):\n"
        "    count = 0\n\n"
        "    def apply(self, event, ctx):\n"
        "        self.count += 1\n"
        '        yield "out", [{"count": self.count}]\n\n\n'
        'pipeline = clew.Pipeline("forgets")\n'
        'events = pipeline.source("events", scripted([[{"x": 1}]] * 3))\n'
        'events.operator("counts", Counts()).write("save", Outside("store").writer())\n'
    )
    code = main(["demo", str(file)])
    captured = capsys.readouterr()
    assert code != 0
    assert "a run without failures produces" in captured.out + captured.err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", str(tmp_path / "nowhere.py")]) == 2
    assert "there is no file" in capsys.readouterr().err
