"""`clew check`: what it says of files that agree, that differ, and that it cannot read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
GRAPH = {"domain": "int", "locations": ["a", "b"], "edges": [["a", "b", [1]]]}
PROPAGATION = {
    "graph": GRAPH,
    "initial": {"a": [[3, 1]]},
    "steps": [
        {"op": "PR"},
        {"op": "CM", "loc": "a", "t": 4, "n": 1},
        {"op": "CM", "loc": "a", "t": 3, "n": -1},
        {"op": "PR"},
    ],
    "expected": [
        {"after_step": 0, "frontiers": {"a": [3], "b": [4]}, "pointstamps": {"a": [[3, 1]], "b": []}},
        {"after_step": 3, "frontiers": {"a": [4], "b": [5]}, "pointstamps": {"a": [[4, 1]], "b": []}},
    ],
}
PROTOCOL = {
    "graph": GRAPH,
    "mode": "caps",
    "workers": ["p", "q"],
    "initial_caps": {"p": [[["a", 0], 1]], "q": []},
    "steps": [["performop_caps", "p", [["a", 0]], [], [["q", ["b", 3]]]], ["send_update", "p", [["a", 0], ["b", 3]]]],
    "expected": [],
    "rejected": [{"after_steps": 0, "step": ["recv_update", "p", "q"], "code": "uninitialised"}],
    "final_frontiers": {"a": [], "b": [3]},
    "final_nrec": [[["b", 3], 1]],
}
INVALID = {
    "graph": GRAPH,
    "initial": {"a": [[3, 1]]},
    "steps": [{"op": "PR"}, {"op": "CM", "loc": "a", "t": 2, "n": 1}],
}
GOOD = {"format": "progress/1", "propagation": [PROPAGATION], "protocol": [PROTOCOL], "invalid": [INVALID]}


@pytest.fixture
def vectors(file: Callable[..., str]) -> Callable[..., str]:
    return lambda document, name="vectors.json": file(json.dumps(document), name)


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The good file with one thing changed."""
    document: dict[str, Any] = json.loads(json.dumps(GOOD))
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return document


def test_a_file_that_agrees(run: Run, vectors: Any) -> None:
    path = vectors(GOOD)
    result = run("check", path)
    assert result.code == 0
    assert result.lines == [f"{path}: 3 of 3 cases agree"]
    assert run("check", path, "--json").json == {
        "files": [{"file": path, "cases": 3, "agreed": 3, "first": None}],
        "exit_code": 0,
    }


@pytest.mark.parametrize(
    ("document", "case", "step", "expected", "came"),
    [
        (
            changed("propagation", 0, "expected", 1, "frontiers", "b", to=[6]),
            "propagation[0]",
            'step 3 {"op": "PR"}: frontier of b',
            [6],
            [5],
        ),
        (
            changed("propagation", 0, "expected", 1, "pointstamps", "a", to=[[4, 2]]),
            "propagation[0]",
            'step 3 {"op": "PR"}: pointstamps of a',
            [[4, 2]],
            [[4, 1]],
        ),
        (
            changed("protocol", 0, "rejected", 0, to={"after_steps": 1, "step": ["propagate", "q"]}),
            "protocol[0]",
            'after 1 steps ["propagate", "q"]',
            "refused",
            "accepted",
        ),
        (
            changed("protocol", 0, "final_frontiers", "b", to=[]),
            "protocol[0]",
            "at the end: frontier of b at p",
            [],
            [3],
        ),
        (changed("protocol", 0, "final_nrec", to=[]), "protocol[0]", "at the end: final_nrec", [], [[["b", 3], 1]]),
        (
            changed("invalid", 0, "steps", 1, "t", to=3),
            "invalid[0]",
            'after 1 steps {"op": "CM", "loc": "a", "t": 3, "n": 1}',
            "refused",
            "accepted",
        ),
    ],
)
def test_the_first_difference(
    run: Run, vectors: Any, document: Any, case: str, step: str, expected: Any, came: Any
) -> None:
    path = vectors(document)
    result = run("check", path, "--json")
    assert result.code == 1
    assert result.json["files"] == [
        {
            "file": path,
            "cases": 3,
            "agreed": 2,
            "first": {"case": case, "step": step, "expected": expected, "came": came},
        }
    ]
    words = run("check", path)
    assert words.lines[0] == f"{path}: 2 of 3 cases agree"
    assert words.lines[1] == f"  first difference: {case}, {step}"


def test_a_step_that_should_be_accepted(run: Run, vectors: Any) -> None:
    result = run("check", vectors(changed("propagation", 0, "steps", 1, "t", to=2)))
    assert result.code == 1
    assert "expected: accepted" in result.out
    assert "came:     refused: a change at 'a', time 2, which is over" in result.out


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], 'expected an object with a "format"'),
        ({"format": "progress/9"}, "the format is 'progress/9': this is not a format that Clew knows"),
        (changed("protocol", to={}), "protocol: expected a list of cases"),
        (changed("propagation", 0, to=7), "propagation[0]: graph: does not have the form of its format"),
        (changed("propagation", 0, "graph", to={}), "propagation[0]: graph: 'domain' is missing"),
        (changed("protocol", 0, "graph", "domain", to="float"), "protocol[0]: graph: the domain 'float' is not"),
        (changed("protocol", 0, "graph", "edges", 0, 2, 0, to="x"), "'x' is no summary of the domain 'int'"),
        (
            changed("propagation", 0, "graph", "edges", to=[["a", "b", [0]], ["b", "a", [0]]]),
            "propagation[0]: graph: the cycle a -> b -> a does not advance time",
        ),
        (changed("propagation", 0, "steps", 1, to={"op": "XX"}), "propagation[0]: steps[1]: {'op': 'XX'} is no step"),
        (changed("protocol", 0, "steps", 0, to=["fly", "p"]), "protocol[0]: steps[0]: ['fly', 'p'] is no step"),
        (changed("protocol", 0, "steps", 1, 2, to=["a"]), "protocol[0]: steps[1]: does not have the form"),
        (changed("protocol", 0, "mode", to="x"), 'protocol[0]: mode: \'x\' is not "abadi" or "caps"'),
        (changed("propagation", 0, "expected", 0, "after_step", to=4), "expected[0]: 4 is not the number of a step"),
        (changed("propagation", 0, "expected", 0, "frontiers", to={"z": []}), "the graph has no location 'z'"),
        (changed("propagation", 0, "initial", "a", to=[[0.5, 1]]), "initial: 0.5 is no time of Integers()"),
        (changed("invalid", 0, "steps", to=[]), "invalid[0]: steps: there is no step to refuse"),
    ],
)
def test_a_file_that_cannot_be_read(run: Run, vectors: Any, document: Any, words: str) -> None:
    path = vectors(document)
    result = run("check", path)
    assert result.code == 2
    assert result.err.startswith(f"clew: {path}: ")
    assert words in result.err


def test_no_file_no_text_no_json(run: Run, file: Any, tmp_path: Any) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe{}")
    assert "cannot be opened: No such file" in run("check", tmp_path / "none.json").err
    assert "is not text in UTF-8" in run("check", tmp_path / "bytes.json").err
    result = run("check", file('{"format":\n oh}', "broken.json"))
    assert result.code == 2
    assert "is not JSON: line 2, column 2" in result.err


def test_every_file_is_looked_at_and_the_worst_decides(run: Run, vectors: Any) -> None:
    good = vectors(GOOD, "good.json")
    worse = vectors(changed("protocol", 0, "final_nrec", to=[]), "worse.json")
    bad = vectors({"format": "abs/7"}, "bad.json")
    assert run("check", good, worse).code == 1
    result = run("check", bad, worse, good, "--json")
    assert result.code == 2
    assert [entry.get("agreed") for entry in result.json["files"]] == [None, 2, 3]
    assert "the format is 'abs/7'" in result.json["files"][0]["error"]


def test_a_graph_that_is_refused_is_refused(run: Run, vectors: Any) -> None:
    cycle = {"domain": "int", "locations": ["a", "b"], "edges": [["a", "b", [0]], ["b", "a", [0]]]}
    assert run("check", vectors(changed("invalid", 0, "graph", to=cycle))).code == 0
