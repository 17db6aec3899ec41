"""Replay of `abs/1` files: what agrees, what the first difference is called, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.cli.main import main
from clew.verify.vectors import check_file
from clew.verify.vectors.abs import check
from clew.verify.vectors.report import BadVectors

BORDERS = [["in", 1, 1, "BD", None], ["s", 1, 1, "BD", None]]
RUN = {
    "program": {
        "inputs": {"in": [[5]]},
        "tail": {"in": [6]},
        "tasks": [{"f": "sum", "S": ["in"], "o": "s", "init": 1}],
    },
    "schedule": [["event", 0, "in"], ["fail", 0], ["recover"], ["event", 0, "in"], ["border", 0], ["event", 0, "in"]],
    "gce": [0, 0, 0, 0, 0, 1, 1],
    "outs": [[], [["in", 0, 1, "EV", 5], ["s", 0, 1, "EV", 6], *BORDERS]],
    "expected_out": [0, 0, 0, 0, 0, 1, 1],
    "explanation": [["event", 0, "in"], ["border", 0]],
    "mapping": [0, 0, 0, 0, 1, 2, 2],
}
LOST = {"program": RUN["program"], "observations": [[], [["in", 0, 1, "EV", 5], *BORDERS]], "variant": "lossy"}
GOOD = {"format": "abs/1", "note": "any", "figure_1": RUN, "random": [RUN], "unexplainable": [LOST], "more": [RUN]}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The good file with one thing changed."""
    document: dict[str, Any] = json.loads(json.dumps(GOOD))
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return document


def test_all_sections_are_replayed() -> None:
    report = check(GOOD)
    assert (report.cases, report.agreed, report.first) == (4, 4, None)
    assert check({"format": "abs/1", "history": [1, 2], "who": {}}).cases == 0


@pytest.mark.parametrize(
    ("document", "case", "step", "expected", "came"),
    [
        (changed("random", 0, "gce", 5, to=0), "random[0]", 'step 4 ["border", 0]: gce', 0, 1),
        (changed("figure_1", "gce", 0, to=1), "figure_1", "before the first step: gce", 1, 0),
        (
            changed("random", 0, "outs", 1, to=BORDERS),
            "random[0]",
            'step 4 ["border", 0]: out',
            BORDERS,
            [["in", 0, 1, "EV", 5], ["in", 1, 1, "BD", None], ["s", 0, 1, "EV", 6], ["s", 1, 1, "BD", None]],
        ),
        (
            changed("random", 0, "schedule", 3, to=["border", 0]),
            "random[0]",
            'step 3 ["border", 0]',
            "accepted",
            "refused: no rule allows it here",
        ),
        (
            changed("random", 0, "schedule", 0, to=["recover"]),
            "random[0]",
            'step 0 ["recover"]',
            "accepted",
            "refused: no rule allows it here",
        ),
        (
            changed("random", 0, "explanation", to=[["fail", 0], ["recover"]]),
            "random[0]",
            'explanation: step 0 ["fail", 0]',
            "accepted",
            "refused: no rule without failures allows it here",
        ),
        (
            changed("random", 0, "mapping", to=[0, 0, 1, 0, 1, 2, 2]),
            "random[0]",
            "explanation: mapping[3]",
            "a number from 1 to 2",
            0,
        ),
        (
            changed("random", 0, "mapping", 6, to=3),
            "random[0]",
            "explanation: mapping[6]",
            "a number from 2 to 2",
            3,
        ),
        (changed("random", 0, "mapping", 4, to=2), "random[0]", "explanation: mapping[4]", [], GOOD),
        (
            changed("unexplainable", 0, "observations", 1, to=RUN["outs"][1]),
            "unexplainable[0], variant lossy",
            "observations",
            "no explanation",
            ["I-EVENT 0 [-in 1:EV 5, +s 1:EV 6]", "I-BORDER 0 [-in 1:BD, +s 1:BD]"],
        ),
        (
            changed("random", 0, "program", "tasks", 0, "init", to="text"),
            "random[0]",
            "replay",
            "no error",
            'TypeError: can only concatenate str (not "int") to str',
        ),
    ],
)
def test_the_first_difference(document: Any, case: str, step: str, expected: Any, came: Any) -> None:
    report = check(document)
    assert report.agreed == report.cases - 1
    assert report.first is not None
    assert (report.first.case, report.first.step, report.first.expected) == (case, step, expected)
    if came is not GOOD:
        assert report.first.came == came


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (changed("random", to={}), "random: expected a list of cases"),
        (changed("unexplainable", to=3), "unexplainable: expected a list of cases"),
        (changed("random", 0, to=[]), r"random\[0\]: expected an object with a program, found \[\]"),
        (changed("figure_1", to=None), "figure_1: expected an object with a program, found None"),
        (changed("unexplainable", 0, to=RUN), r"unexplainable\[0\]: 'observations' is missing"),
        (changed("unexplainable", 0, "observations", to=[]), "observations: there is none to explain"),
        (changed("unexplainable", 0, "observations", to=5), r"unexplainable\[0\]: does not have the form"),
        (changed("random", 0, to={"schedule": []}), r"random\[0\]: program: 'program' is missing"),
        (changed("random", 0, "program", "tasks", to=None), r"program: expected a list, found None"),
        (changed("random", 0, "program", "tasks", to=[]), r"random\[0\]: program: the program has no task"),
        (
            changed("random", 0, "program", "tasks", 0, "f", to="fly"),
            r"tasks\[0\]: 'fly' is no function of this format",
        ),
        (changed("random", 0, "program", "tasks", 0, "f", to=[]), r"tasks\[0\]: does not have the form"),
        (changed("random", 0, "program", "tasks", 0, "S", to=["x"]), "task 0 reads the stream 'x', which nobody"),
        (changed("random", 0, "program", "tasks", 0, "S", to=[1]), "expected the name of a stream, found 1"),
        (changed("random", 0, "program", "inputs", to=[1]), "program: inputs: does not have the form"),
        (changed("random", 0, "program", "inputs", "in", to=[5]), "program: inputs: expected a list, found 5"),
        (changed("random", 0, "program", "tail", to={"x": []}), "program: tail: 'x' is no input stream"),
        (changed("random", 0, "schedule", 0, to=["event", 1, "in"]), r"schedule\[0\]: \['event', 1, 'in'\] is no step"),
        (changed("random", 0, "schedule", 0, to=["event", 0, "s"]), r"schedule\[0\]: \['event', 0, 's'\] is no step"),
        (changed("random", 0, "schedule", 0, to=["fail", True]), r"schedule\[0\]: \['fail', True\] is no step"),
        (changed("random", 0, "explanation", to={}), "explanation: expected a list of steps, found {}"),
        (changed("random", 0, "gce", to=[0]), r"gce: expected 7 numbers, one for each configuration .* found \[0\]"),
        (changed("random", 0, "mapping", 2, to="x"), "mapping: expected 7 numbers"),
        (changed("random", 0, "expected_out", 3, to=2), r"expected_out\[3\]: 2 is not the number of one of the 2 outs"),
        (changed("random", 0, "expected_out", 3, to=-1), r"expected_out\[3\]: -1 is not the number"),
        (changed("random", 0, "outs", 1, 0, to=["in", 0, 1, "XX", 5]), r"outs\[1\]: message 0, .* does not have the"),
        (changed("random", 0, "outs", 1, 0, to=["in", True, 1, "EV", 5]), r"outs\[1\]: message 0"),
        (changed("more", 0, "program", to={}), r"more\[0\]: program: 'tasks' is missing"),
    ],
)
def test_what_cannot_be_read(document: Any, words: str) -> None:
    with pytest.raises(BadVectors, match=words):
        check(document)


def test_a_value_that_is_nested_too_deeply() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    document = json.loads(json.dumps(GOOD))
    document["random"][0]["program"]["tasks"][0]["init"] = value
    with pytest.raises(BadVectors, match=r"random\[0\]: a value is nested too deeply"):
        check(document)


@pytest.mark.parametrize(
    ("observations", "is_explained"),
    [
        ([[]], True),
        ([[], [], RUN["outs"][1], RUN["outs"][1]], True),
        ([RUN["outs"][1]], True),
        ([RUN["outs"][1], []], False),
        ([[["in", 0, 1, "EV", 5]]], False),
        ([[*RUN["outs"][1], ["nowhere", 0, 1, "EV", 0]]], False),
        ([[*RUN["outs"][1], ["s", 0, 1, "EV", 0]]], False),
        ([[*RUN["outs"][1], ["in", 2, 2, "EV", 6]]], False),
        ([[["in", 0, 1, "EV", 5], ["s", 0, 1, "EV", 7], *BORDERS]], False),
    ],
)
def test_what_can_be_explained(observations: Any, is_explained: bool) -> None:
    report = check({"unexplainable": [{"program": RUN["program"], "observations": observations}]})
    assert report.agreed == (0 if is_explained else 1)


def test_a_task_is_not_asked_about_values_that_nobody_can_have_sent() -> None:
    tasks = [{"f": "id", "S": ["in"], "o": "s", "init": 0}, {"f": "sum", "S": ["s"], "o": "t", "init": 0}]
    for order in (tasks, tasks[::-1]):
        program = {"inputs": {"in": [[5]]}, "tasks": order}
        borders = [[stream, 1, 1, "BD", None] for stream in ("in", "s", "t")]
        seen = [["in", 0, 1, "EV", 5], ["s", 0, 1, "EV", "five"], ["t", 0, 1, "EV", 5], *borders]
        assert check({"unexplainable": [{"program": program, "observations": [seen]}]}).is_good


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "abs.json"
    path.write_text(json.dumps(GOOD))
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 4 of 4 cases agree\n"
    path.write_text(json.dumps(changed("random", 0, "gce", to=None)))
    assert main(["check", str(path)]) == 2
    assert f"clew: {path}: random[0]: gce: expected 7 numbers" in capsys.readouterr().err
    with pytest.raises(BadVectors, match=r"abs.json: random\[0\]: gce"):
        check_file(str(path))
