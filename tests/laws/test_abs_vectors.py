"""Laws of the replay of `abs/1` files: what a naive oracle worked out agrees, and anything else is noticed."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.abs_vectors import random_document, random_run, spoiled
from tests.laws.naive_abs import failure_free_schedule

from clew.verify.semantics.explainable import explanation_of
from clew.verify.vectors.abs import check
from clew.verify.vectors.abs_forms import output_in, program_in


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_what_the_oracle_worked_out_agrees(seed: int) -> None:
    report = check(json.loads(json.dumps(random_document(seed))))
    assert report.is_good, report.first


@pytest.mark.soak
def test_many_files(capsys: pytest.CaptureFixture[str]) -> None:
    cases, broken = 0, 0
    for seed in range(400):
        document = random_document(seed, tasks=3)
        report = check(json.loads(json.dumps(document)))
        assert report.is_good, f"random_document({seed}, tasks=3) of tests.laws.abs_vectors: {report.first}"
        cases += report.cases
        broken += len(document["unexplainable"])
    with capsys.disabled():
        print(f"\n{cases} random cases agree, {broken} of them unexplainable")


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_the_search_by_tasks_finds_what_the_search_of_all_executions_finds(seed: int) -> None:
    random = Random(seed)
    for _ in range(2):
        case = random_run(random, tasks=2, events=1)
        outs = [frozenset(tuple(message) for message in out) for out in case["outs"]]
        for observations in (outs, spoiled(random, outs), outs[::-1]):
            program = program_in(case["program"])
            found = explanation_of(program, [output_in([list(m) for m in out]) for out in observations])
            assert (found is None) == (failure_free_schedule(case["program"], observations) is None)


def spoil(random: Random, document: dict[str, Any]) -> None:
    """Makes one expectation wrong."""
    case = random.choice(document["random"])
    match random.choice(["gce", "out", "message", "mapping", "explanation"]):
        case "gce":
            case["gce"][random.randrange(len(case["gce"]))] += 1
        case "out":
            case["outs"].append([["nowhere", 0, 1, "BD", None]])
            case["expected_out"][-1] = len(case["outs"]) - 1
        case "message":
            case["outs"][-1] = case["outs"][-1][1:] or [["nowhere", 0, 1, "BD", None]]
        case "mapping":
            case["mapping"][-1] = len(case["explanation"]) + 1
        case "explanation":
            case["explanation"].append(["fail", 0])


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_what_is_spoiled_is_noticed(seed: int) -> None:
    document = random_document(seed, runs=2, broken=0)
    spoil(Random(seed), document)
    report = check(json.loads(json.dumps(document)))
    assert report.agreed == report.cases - 1


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_what_is_explainable_is_not_taken_for_unexplainable(seed: int) -> None:
    document = random_document(seed, runs=1, broken=0)
    (case,) = document.pop("random")
    document["unexplainable"] = [{"program": case["program"], "observations": case["outs"]}]
    report = check(json.loads(json.dumps(document)))
    assert report.first is not None
    assert (report.agreed, report.first.step, report.first.expected) == (0, "observations", "no explanation")
