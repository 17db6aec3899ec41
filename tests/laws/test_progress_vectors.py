"""Laws of the replay of `progress/1` files: what brute force worked out agrees, and anything else is noticed."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.progress_vectors import random_document

from clew.verify.vectors.progress import check


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_what_brute_force_worked_out_agrees(seed: int) -> None:
    report = check(json.loads(json.dumps(random_document(seed))))
    assert report.is_good, report.first
    assert report.cases == 9


@pytest.mark.soak
def test_many_files(capsys: pytest.CaptureFixture[str]) -> None:
    cases, refused = 0, 0
    for seed in range(1500):
        document = random_document(seed)
        report = check(json.loads(json.dumps(document)))
        assert report.is_good, f"random_document({seed}) of tests.laws.progress_vectors: {report.first}"
        cases += report.cases
        refused += sum(len(case["rejected"]) for case in document["protocol"])
    with capsys.disabled():
        print(f"\n{cases} random cases agree; {refused} illegal steps were refused")


def spoil(random: Random, document: dict[str, Any]) -> str | None:
    """Makes one expectation wrong; says which, or None if there was nothing to spoil there."""
    section = random.choice(["propagation", "protocol"])
    case = random.choice(document[section])
    kind = random.choice(["frontier", "counts", "end", "rejected"])
    if kind == "frontier":
        entry = random.choice(case["expected"] or [None])
        if entry is None:
            return None
        place = random.choice(list(entry["frontiers"]))
        entry["frontiers"][place] = entry["frontiers"][place][1:]
        return kind
    if kind == "counts" and section == "propagation":
        entry = random.choice(case["expected"])
        place = random.choice(list(entry["pointstamps"]))
        if not entry["pointstamps"][place]:
            return None
        entry["pointstamps"][place][0][1] += 1
        return kind
    if kind == "end" and section == "protocol" and case["final_nrec"]:
        case["final_nrec"].pop()
        return kind
    if kind == "rejected" and section == "protocol" and case["steps"]:
        case["rejected"].append({"after_steps": 0, "step": case["steps"][0]})
        return kind
    return None


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_a_wrong_expectation_is_noticed(seed: int) -> None:
    document = json.loads(json.dumps(random_document(seed, cases=1)))
    before = json.dumps(document)
    spoiled = spoil(Random(seed), document)
    if spoiled is not None and json.dumps(document) != before:
        report = check(document)
        assert not report.is_good
        assert report.first is not None
        assert report.agreed == report.cases - 1
