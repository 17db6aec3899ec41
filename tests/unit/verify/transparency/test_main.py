"""The table of what was checked, as text and as JSON."""

from __future__ import annotations

import io
import json

import pytest
from tests.unit.verify.transparency.toys import GIVEN, counter

from clew.verify.transparency import __main__ as command
from clew.verify.transparency import check_transparency


def test_the_table_has_a_row_for_each_model() -> None:
    out = io.StringIO()
    assert command.main(["--failures", "0"], out) == 0
    lines = out.getvalue().splitlines()
    assert lines[0].split()[:3] == ["system", "explained", "by"]
    assert len([line for line in lines if line.startswith("LOG.io")]) == 7
    assert any("by transitivity (Lemma 5.8)" in line for line in lines)
    assert lines[-1] == "every execution is explained"


def test_json_has_the_counts() -> None:
    out = io.StringIO()
    assert command.main(["--failures", "0", "--json"], out) == 0
    shown = [json.loads(line) for line in out.getvalue().splitlines()]
    assert shown[0]["system"] == "LOG.io chain"
    assert shown[0]["is_explained"]
    assert shown[0]["configurations"] == shown[0]["high_configurations"] > 0


def test_an_execution_without_explanation_is_told_and_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = check_transparency(counter("start"), GIVEN, failures_max=1)
    monkeypatch.setattr(command, "verdicts", lambda failures_max, is_large: iter([bad]))
    out = io.StringIO()
    assert command.main([], out) == 1
    assert "4  give a" in out.getvalue()
    assert out.getvalue().endswith("NOT every execution is explained\n")
    out = io.StringIO()
    assert command.main(["--json"], out) == 1
    shown = json.loads(out.getvalue())
    assert (shown["why"], shown["execution"]) == ("NO_EXPLANATION", ["give a", "crash", "recover", "give a"])


def test_a_wrong_number_of_failures_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command.main(["--failures", "many"], io.StringIO())
    assert raised.value.code == 2
    assert "--failures: 'many' is neither a number nor 'any'" in capsys.readouterr().err
