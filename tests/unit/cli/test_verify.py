"""`clew verify`: exit codes, summary, JSON, the replay of a failing schedule, and errors that say what to do."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.cli.main import main

HEAD = """
import clew
from clew.testing import Outside, scripted

NUMBERS = scripted([[{"x": number}] for number in range(1, 5)])
"""
PIPELINE = """
pipeline = clew.Pipeline("numbers")
pipeline.source("numbers", NUMBERS).operator("sums", Sums()).write("save", Outside("store").writer("checkable"))
"""
GOOD = (
    HEAD
    + """
class Sums(clew.Operator):
    def open(self, ctx):
        self.sums = {}

    def assign(self, event, ctx):
        count = ctx.state.get("count", 0)
        ctx.state["count"] = count + 1
        return [count // 2]

    def update(self, key, event):
        self.sums[key] = self.sums.get(key, 0) + event.rows[0]["x"]

    def ready(self, ctx):
        return [[key] for key in self.sums if ctx.state["count"] >= 2 * key + 2]

    def generate(self, keys, ctx):
        yield "out", [{"sum": self.sums.pop(keys[0])}]
"""
    + PIPELINE
)
FORGETFUL = GOOD.replace("        self.sums = {}", "        self.sums = {}\n        self.count = 0").replace(
    """        count = ctx.state.get("count", 0)
        ctx.state["count"] = count + 1
""",
    """        count = self.count
        ctx.state["count"] = self.count = count + 1
""",
)
RAISES = GOOD.replace('self.sums.get(key, 0) + event.rows[0]["x"]', "1 / (3 - event.id)")


Run = Callable[..., Any]


def test_a_good_pipeline_is_summarised(file: Any, run: Run) -> None:
    result = run("verify", file(GOOD), "--schedules", 30, "--jobs", 2)
    assert result.code == 0
    assert len(result.lines) == 3
    assert result.lines[0].startswith("one crash at every point: ")
    assert result.lines[1].startswith("random schedules with up to 3 faults: 30 runs (")
    assert result.lines[0].endswith(": every guarantee held")
    assert result.lines[1].endswith(": every guarantee held")
    assert result.lines[2].startswith("pipeline 'numbers': ")


def test_a_good_pipeline_as_json(file: Any, run: Run) -> None:
    path = file(GOOD)
    result = run("verify", path, "--schedules", 5, "--jobs", 1, "--json", "--seed", 40)
    assert result.code == 0
    told = json.loads(result.out)
    assert (told["file"], told["pipeline"], told["is_good"]) == (path, "numbers", True)
    crashes, chance = told["sweeps"]
    assert crashes["runs"] == 2 * crashes["points"] == crashes["faults_struck"] == crashes["restarts"]
    assert (chance["runs"], chance["violation"]) == (5, None)
    assert told["seconds"] > 0


def test_what_is_run_can_be_chosen(file: Any, run: Run) -> None:
    result = run("verify", file(GOOD), "--crashes", 0, "--schedules", 2, "--faults", 1, "--jobs", 1, "--no-invariants")
    assert result.code == 0
    assert [line.split(":")[0] for line in result.lines] == [
        "random schedules with up to 1 faults",
        "pipeline 'numbers'",
    ]


def test_two_crashes_at_every_pair_of_points(file: Any, run: Run) -> None:
    tiny = HEAD + 'pipeline = clew.Pipeline("p")\npipeline.source("one", scripted([]))'
    result = run("verify", file(tiny), "--crashes", 2, "--schedules", 0, "--jobs", 1)
    assert result.code == 0
    assert [line.split(":")[0] for line in result.lines] == [
        "one crash at every point",
        "two crashes at every pair of points (crash)",
        "two crashes at every pair of points (after)",
        "pipeline 'p'",
    ]


def test_state_kept_in_the_operator_itself_is_a_violation_that_can_be_replayed(file: Any, run: Run) -> None:
    path = file(FORGETFUL)
    result = run("verify", path, "--jobs", 2)
    assert result.code == 1
    assert result.lines[0].endswith(": VIOLATED")
    violated, struck, repeat = result.lines[-3:]
    assert violated.startswith("violated: sums")
    assert struck.startswith("  point ")
    assert struck.endswith(" hit sums")
    assert repeat.startswith(f"repeat it with its trace: clew verify {path} --schedule 0:")
    command = shlex.split(repeat.split(": ", 1)[1])
    again = run(*command[1:])
    assert again.code == 1
    assert again.lines[-1] == violated
    assert again.lines[-2] == struck.strip()
    assert any("** " in line for line in again.lines)
    assert any("sums#2 begins as incarnation 2" in line for line in again.lines)


def test_a_violation_as_json_names_the_shrunk_schedule(file: Any, run: Run) -> None:
    path = file(FORGETFUL)
    result = run("verify", path, "--jobs", 1, "--json", "--crashes", 0, "--schedules", 200, "--faults", 1)
    assert result.code == 1
    told = json.loads(result.out)
    assert not told["is_good"]
    violation = told["sweeps"][-1]["violation"]
    assert violation["violation"].startswith("sums")
    assert [each["replica"] for each in violation["struck"]] == ["sums"]
    again = json.loads(run("verify", path, "--schedule", violation["schedule"], "--json").out)
    assert again["violation"] == violation["violation"]
    assert again["schedule"] == violation["schedule"]
    assert again["trace"]


def test_a_schedule_that_does_no_harm_shows_its_trace(file: Any, run: Run) -> None:
    result = run("verify", file(GOOD), "--schedule", "3:crash@20,pause@30+5")
    assert result.code == 0
    assert result.lines[-1] == "every guarantee held"
    assert [line.split(" ")[0:3] for line in result.lines if line.startswith("point ")] == [
        ["point", "20:", "crash"],
        ["point", "30:", "pause"],
    ]
    assert any("<- Started(" in line for line in result.lines)


def test_an_operator_that_raises_is_named(file: Any, run: Run) -> None:
    path = file(RAISES)
    result = run("verify", path, "--jobs", 2)
    assert result.code == 1
    assert "violated: operator 'sums': assign() and update() for event numbers.out/3 on input port 'in'" in result.out
    assert "operator 'sums': update(1) for event numbers.out/3 raised ZeroDivisionError" in result.out
    assert result.lines[-1] == f"repeat it with its trace: clew verify {path} --schedule 0"


def test_an_operator_that_names_a_wrong_set_is_told_so(file: Any, run: Run) -> None:
    result = run("verify", file(GOOD.replace("return [[key] for key", "return [[-1] for key")), "--jobs", 1)
    assert result.code == 1
    assert "operator sums: ready() named the Input Set -1, which is not open; open are 0" in result.out


def test_build_is_called_when_there_is_no_pipeline(file: Any, run: Run) -> None:
    text = GOOD.replace('pipeline = clew.Pipeline("numbers")', 'built = clew.Pipeline("made")')
    text = text.replace("\npipeline.source", "\nbuilt.source") + "\n\ndef build():\n    return built\n"
    result = run("verify", file(text), "--schedules", 1, "--crashes", 0, "--jobs", 1)
    assert result.code == 0
    assert result.lines[-1].startswith("pipeline 'made': 1 runs")


def test_a_file_may_import_its_neighbours(file: Any, run: Run, tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_mine.py").write_text(GOOD)
    result = run(
        "verify", file("from neighbour_of_mine import pipeline"), "--schedules", 1, "--crashes", 0, "--jobs", 1
    )
    assert result.code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "defines neither `pipeline` nor `build()`; expected `pipeline = clew.Pipeline(...)`, or a function"),
        ("pipeline = 3", "gives a int; expected `pipeline = clew.Pipeline(...)`, or a function `build()`"),
        ("def build(): return 'x'", "gives a str; expected"),
        ("def build(): raise KeyError('x')", "build() of "),
        ("1 / 0", "could not be run: ZeroDivisionError: division by zero"),
        ("this is no python", "could not be run: SyntaxError"),
        ("import clew\npipeline = clew.Pipeline('p')", "pipeline 'p' has no source; expected at least one"),
        (GOOD.replace('"checkable"', '"hopeful"'), "is of kind 'hopeful'; expected 'conditional', 'checkable'"),
    ],
)
def test_a_file_that_gives_no_pipeline_is_an_error_that_says_why(file: Any, run: Run, text: str, words: str) -> None:
    result = run("verify", file(text))
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("clew: ")
    assert words in result.err


@pytest.mark.parametrize("name", ["nowhere.py", "", "."])
def test_a_file_that_is_not_there(run: Run, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name) if name else ""
    result = run("verify", path)
    assert result.code == 2
    assert result.err == f"clew: there is no file {path!r}. Name a Python file that defines `pipeline` or `build()`.\n"


def test_a_file_of_another_kind(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("x")
    result = run("verify", path)
    assert result.code == 2
    assert "is not a Python file. Name a .py file" in result.err


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("crash@3", "the schedule 'crash@3' cannot be read; expected SEED or SEED:FAULT,... such as 7:crash@17."),
        (
            "3:boom@3",
            "the fault 'boom@3' cannot be read; expected crash@N, after@N, pause@N+LENGTH, lose@N, break@N or power@N",
        ),
    ],
)
def test_a_schedule_that_cannot_be_read(file: Any, run: Run, schedule: str, words: str) -> None:
    result = run("verify", file(GOOD), "--schedule", schedule)
    assert result.code == 2
    assert words in result.err


def test_an_operator_that_cannot_be_copied_is_an_error_that_says_what_to_do(file: Any, run: Run) -> None:
    text = GOOD.replace(
        "    def open(self, ctx):", "    def __init__(self):\n        self.lock = Lock()\n\n    def open(self, ctx):"
    )
    result = run("verify", file("from threading import Lock\n" + text), "--jobs", 1)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(
        "clew: operator 'sums', a Sums, cannot be copied: cannot pickle '_thread.lock' object."
    )
    assert "make what cannot be copied in open() instead of __init__()." in result.err


def test_nothing_to_do_is_an_error(file: Any, run: Run) -> None:
    result = run("verify", file(GOOD), "--schedules", 0, "--crashes", 0)
    assert (result.code, result.out) == (2, "")
    assert result.err == "clew: nothing to do: --schedules 0 and --crashes 0. Leave one of them out.\n"


def test_a_cycle_is_an_error_that_says_what_to_do(file: Any, run: Run) -> None:
    text = GOOD.replace(
        "class Sums(clew.Operator):", 'class Sums(clew.Operator):\n    inputs = ("in", "back")'
    ).replace("def open", "is_feedback = True\n\n    def open")
    text += '\npipeline.connect("sums.out", "sums.back")\n'
    result = run("verify", file(text), "--jobs", 1)
    assert result.code == 2
    assert "operator 'sums' closes a cycle in which events have no times" in result.err


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["verify"], ["verify", "x.py", "--schedules", "-1"], ["verify", "x.py", "--crashes", "3"]],
)
def test_a_wrong_call_shows_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: clew" in capsys.readouterr().err


def test_an_interruption_has_an_exit_code_of_its_own(file: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("clew.cli.verify.try_all", interrupted)
    result = run("verify", file(GOOD))
    assert (result.code, result.err) == (130, "clew: interrupted\n")


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("clew ")


def test_snapshots_are_verified_too(file: Any, run: Run) -> None:
    result = run("verify", file(GOOD), "--recovery", "snapshot", "--schedule", "0:crash@40")
    assert result.code == 0
    assert any("coordinator -> Rewind(2" in line for line in result.lines)


def test_a_violation_with_snapshots_is_repeated_with_snapshots(file: Any, run: Run) -> None:
    path = file(FORGETFUL)
    result = run("verify", path, "--recovery", "snapshot", "--jobs", 2)
    assert result.code == 1
    repeat = shlex.split(result.lines[-1].partition("clew ")[2])
    assert repeat[:4] == ["verify", str(path), "--recovery", "snapshot"]
    assert run(*repeat).code == 1


def test_a_pipeline_that_cannot_have_snapshots_is_refused(file: Any, run: Run) -> None:
    result = run("verify", file(GOOD + '\npipeline.lineage("numbers.out", "sums.out")\n'), "--recovery", "snapshot")
    assert result.code == 2
    assert "lineage needs recovery='log'" in result.err
