"""Replaying files of the format timeaware/1: every key of the format, and a file that is wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clew.verify.vectors.report import BadVectors
from clew.verify.vectors.timeaware import check

FIGURE_1B = [
    "poset",
    ["t0", "t1", "t2", "t3", "t4", "t5"],
    [["t0", "t1"], ["t1", "t4"], ["t0", "t2"], ["t2", "t5"], ["t0", "t3"], ["t3", "t5"]],
]
DIAMOND = ["poset", ["bot", "l", "r", "top"], [["bot", "l"], ["bot", "r"], ["l", "top"], ["r", "top"]]]
PLANE = ["prod", "int", ["prod", "maxplus", DIAMOND]]
STREAM_1 = [
    ["DT", "t0", "a"],
    ["DT", "t1", "c"],
    ["WM", "t1"],
    ["DT", "t2", "b"],
    ["DT", "t3", "a"],
    ["DT", "t5", "a"],
    ["DT", "t4", "d"],
    ["DT", "t5", "c"],
    ["WM", "t5"],
    ["WM", "t2"],
]
FIGURE_6 = [
    ["DT", "t1", ["a", "c"]],
    ["DT", "t0", ["a"]],
    ["WM", "t1"],
    ["DT", "t5", ["a", "a", "a", "b", "c"]],
    ["DT", "t3", ["a", "a"]],
    ["DT", "t2", ["a", "b"]],
    ["WM", "t5"],
    ["WM", "t2"],
    ["DT", "t4", ["a", "c", "d"]],
]


def case(op: dict[str, Any], given: list[Any], expected: list[Any], **more: Any) -> dict[str, Any]:
    return {"op": op, "input": given, "expected": expected, "kind": "timeaware", **more}


OPERATORS = [
    case({"name": "bulk", "f": "sum", "n": 2, "buf": [5]}, [1, 2, 3], [6, 5, 0]),
    case({"name": "bulk", "f": "identity", "n": 2}, [1, 2, 3], [2, 1, 3]),
    case({"name": "bulk", "f": "count", "n": 9}, [1], [1]),
    case(
        {"name": "batch", "order": PLANE, "tds": [[[0, [0, "l"]], "x"]]},
        [["DT", [0, [1, "r"]], "a"], ["WM", [3, [3, "r"]]], ["WM", [0, [0, "top"]]]],
        [
            ["DT", [3, [3, "r"]], [[[0, [1, "r"]], "a"]]],
            ["WM", [3, [3, "r"]]],
            ["DT", [0, [0, "top"]], [[[0, [0, "l"]], "x"]]],
            ["WM", [0, [0, "top"]]],
        ],
    ),
    case({"name": "incr", "abs": [[1, "x"]]}, [["DT", 2, [[2, "a"]]]], [["DT", 2, [[1, "x"], [2, "a"]]]]),
    case(
        {"name": "incr_batch", "order": "int", "tds": [[2, "y"]], "abs": [[1, "x"]]},
        [["WM", 2]],
        [["DT", 2, [[1, "x"], [2, "y"]]], ["WM", 2]],
    ),
    case({"name": "ihist", "order": "int", "abs": [[1, "x"], [9, "z"]]}, [["DT", 2, "a"]], [["DT", 2, ["a", "x"]]]),
    case(
        {"name": "ihist_eff", "order": "maxplus", "H": ["c"], "tds": [[1, "b"]]},
        [["DT", 2, "a"], ["WM", 0], ["WM", 2]],
        [["WM", 0], ["DT", 2, ["a", "b", "c"]], ["DT", 1, ["b", "c"]], ["WM", 2]],
    ),
    case({"name": "ihist_eff", "order": ["poset", ["b", "a"], [["a", "b"]]]}, [["DT", "b", 1]], [["DT", "b", [1]]]),
    case({"name": "flatten"}, [["DT", 2, ["a", ["b"]]], ["WM", 2]], [["DT", 2, ["b"]], ["DT", 2, "a"], ["WM", 2]]),
    case(
        {"name": "union", "order": "int", "wms": [["L", 5], ["L", 3]], "ma": [["L", 5], ["R", 4]]},
        [["WM", ["R", 1]], ["WM", ["R", 7]]],
        [["WM", 1], ["WM", 3], ["WM", 5]],
        expected_without_exit=[["WM", 1], ["WM", 3], ["WM", 5]],
    ),
    case(
        {"name": "join", "order": "int", "join": "key"},
        [["DT", ["L", 1], ["k", 1]], ["DT", ["R", 1], ["k", 2]], ["DT", ["R", 1], ["l", 3]], ["WM", ["L", 1]]],
        [["DT", 1, ["k", 1, 2]]],
        expected_without_exit=[],
    ),
    case(
        {"name": "join", "order": "int", "join": "cross", "tds": [[["L", 1], 7]], "wms": [["L", 2]], "ma": [["L", 2]]},
        [["DT", ["R", 1], 8], ["WM", ["R", 2]]],
        [["WM", 2], ["WM", 2], ["DT", 1, [7, 8]]],
    ),
    case(
        {
            "name": "comp",
            "first": {"name": "ihist", "order": "int"},
            "second": {"name": "comp", "first": {"name": "map_len"}, "second": {"name": "batch", "order": "int"}},
        },
        [["DT", 1, "a"], ["DT", 1, "a"], ["WM", 1]],
        [["DT", 1, [[1, 2]]], ["WM", 1]],
    ),
    case(
        {"name": "skip", "n": 1, "op": {"name": "incr", "abs": []}},
        [["DT", 5, [[1, "a"], [2, "b"], [1, "c"]]]],
        [["DT", 1, [[1, "a"], [2, "b"], [1, "c"]]]],
        expected_first_occurrence_order=[["DT", 2, [[1, "a"], [2, "b"], [1, "c"]]]],
    ),
]


def predicate(order: Any, stream: Any, mono: bool, prod: bool) -> dict[str, Any]:
    return {"order": order, "stream": stream, "mono": mono, "prod": prod}


PREDICATES = [
    predicate("int", [["WM", 1], ["DT", 1, "a"]], False, True),
    predicate("int", {"prefix": [["DT", 99, "a"]], "cycle": [["WM", 0]], "shift": 1}, True, True),
    predicate("int", {"prefix": [["WM", 0]], "cycle": [["DT", 99, "a"]], "shift": -1}, False, False),
    predicate(
        DIAMOND, {"prefix": [], "cycle": [["DT", "top", "a"], ["WM", "l"], ["WM", "r"]], "shift": 0}, True, False
    ),
    predicate(
        PLANE,
        {"prefix": [["DT", [4, [4, "l"]], "a"]], "cycle": [["WM", [0, [0, "l"]]]], "shift": [1, [1, 0]]},
        True,
        True,
    ),
    predicate(
        ["prod", "int", "int"], {"prefix": [["DT", [1, 1], 0]], "cycle": [["WM", [0, 2]]], "shift": 0}, True, False
    ),
    predicate("int", [["WM", ["L", 1]], ["DT", ["R", 1], "a"], ["DT", ["L", 1], "a"]], False, True),
]
DOCUMENT = {
    "format": "timeaware/1",
    "figures": [{**case({"name": "ihist", "order": FIGURE_1B}, STREAM_1, FIGURE_6), "figure": "6"}],
    "operators": OPERATORS,
    "predicates": PREDICATES,
}


def test_all_cases_agree() -> None:
    report = check(DOCUMENT)
    assert report.first is None
    assert report.cases == report.agreed == 1 + len(OPERATORS) + len(PREDICATES)


@pytest.mark.parametrize("number", range(len(OPERATORS)))
def test_a_wrong_expectation_is_found(number: int) -> None:
    wrong: Any = copy.deepcopy(DOCUMENT)
    wrong["operators"][number]["expected"].append(["WM", "never"])
    wrong["operators"][number].pop("expected_first_occurrence_order", None)
    report = check(wrong)
    assert (report.cases - report.agreed, report.first is not None) == (1, True)
    assert report.first is not None
    assert report.first.case == f"operators[{number}], {OPERATORS[number]['op']['name']}"
    assert report.first.came == [*report.first.came]
    assert report.first.expected[-1] == ["WM", "never"]


@pytest.mark.parametrize("number", range(len(PREDICATES)))
@pytest.mark.parametrize("name", ["mono", "prod"])
def test_a_wrong_predicate_is_found(number: int, name: str) -> None:
    wrong: Any = copy.deepcopy(DOCUMENT)
    wrong["predicates"][number][name] = not PREDICATES[number][name]
    first = check(wrong).first
    assert first is not None
    assert (first.case, first.step, first.came) == (f"predicates[{number}]", name, PREDICATES[number][name])


def test_a_difference_says_after_which_watermark() -> None:
    given = case({"name": "flatten"}, [["WM", 1], ["DT", 2, ["a"]]], [["WM", 1], ["DT", 2, "b"]], seed=7)
    first = check({"operators": [given]}).first
    assert first is not None
    assert (first.case, first.step) == ("operators[0], flatten, seed 7", "produce after WM(1)")
    assert first.came == [["WM", 1], ["DT", 2, "a"]]


def test_the_order_of_watermarks_is_compared() -> None:
    first = check({"operators": [case({"name": "flatten"}, [["WM", 1], ["WM", 2]], [["WM", 2], ["WM", 1]])]}).first
    assert first is not None


def test_a_missing_exit_is_told_from_one_too_many() -> None:
    wrong = case({"name": "batch", "order": "int"}, [["DT", 1, "a"]], [["DT", 1, [[1, "a"]]]], expected_without_exit=[])
    assert check({"operators": [wrong]}).first is None
    wrong["expected_without_exit"] = wrong["expected"]
    first = check({"operators": [wrong]}).first
    assert first is not None
    assert (first.step, first.came) == ("produce without exit", [])


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"operators": {}}, "operators: expected a list of cases"),
        ({"operators": [case({"name": "sort"}, [], [])]}, r"operators\[0\]: 'sort' is no operator of this format"),
        ({"operators": [case({"name": "batch", "order": "float"}, [], [])]}, "the domain 'float' is not"),
        ({"operators": [case({"name": "batch"}, [], [])]}, "'order' is missing"),
        ({"operators": [{"op": {"name": "flatten"}, "input": []}]}, "'expected' is missing"),
        ({"operators": [case({"name": "flatten"}, [["XX", 1]], [])]}, "input: .'XX', 1. is no event"),
        ({"figures": [case({"name": "batch", "order": "int"}, [["WM", "noon"]], [])]}, "'noon' is no time of Integers"),
        ({"operators": [case({"name": "union", "order": "int"}, [["WM", 1]], [])]}, "1 is no time of Disjoint"),
        ({"predicates": [{"order": "int", "mono": True}]}, "'stream' is missing"),
        ({"predicates": [predicate("int", {"prefix": []}, True, True)]}, "'cycle' is missing"),
        ({"predicates": [predicate("int", [["WM", "x"]], True, True)]}, "is no time of"),
        ({"predicates": [{"order": "int", "stream": [], "mono": "yes"}]}, "expected true or false"),
        (
            {
                "predicates": [
                    predicate(DIAMOND, {"prefix": [], "cycle": [["WM", "l"], ["DT", "l", 1]], "shift": 1}, True, True)
                ]
            },
            "cannot be moved by the shift 1",
        ),
    ],
)
def test_what_cannot_be_read_is_said(document: Any, said: str) -> None:
    with pytest.raises(BadVectors, match=said):
        check(document)


def test_an_error_of_an_operator_is_a_difference() -> None:
    first = check({"operators": [case({"name": "map_len"}, [["DT", 1, 5]], [["DT", 1, 1]])]}).first
    assert first is not None
    assert (first.step, first.expected, first.came[:9]) == ("replay", "no error", "TypeError")
