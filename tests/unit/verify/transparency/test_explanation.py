"""One execution explained by another: in any order, in order, and by search."""

from __future__ import annotations

import pytest
from tests.unit.verify.transparency.toys import GIVEN, counter

from clew.verify.transparency import (
    Observation,
    explain,
    explanation,
    failure_free,
    monotone_explanation,
    run,
)

letters: Observation[str] = Observation("letters", str)


def test_the_order_of_the_thesis_example_matters_only_for_a_monotone_explanation() -> None:
    assert explanation("acbd", "abcd", letters, letters) == (0, 2, 1, 3)
    assert monotone_explanation("acbd", "abcd", letters, letters) is None


def test_what_is_never_seen_is_not_explained() -> None:
    assert explanation("abz", "abcd", letters, letters) is None
    assert monotone_explanation("abz", "abcd", letters, letters) is None


def test_two_observers_may_look_through_different_functions() -> None:
    upper: Observation[str] = Observation("lower case", str.lower)
    assert monotone_explanation("aab", "XABC", letters, upper) == (1, 1, 2)


def test_a_faulty_execution_gets_its_failure_free_one_and_the_mapping() -> None:
    system = counter("exact")
    faulty = run(system, ["give a", "crash", "recover", "give b"])
    found = explain(faulty.configurations, failure_free(system), GIVEN, GIVEN)
    assert found is not None
    assert found.execution.labels == ("give a", "give b")
    assert found.mapping == (0, 1, 1, 1, 2)


def test_no_execution_explains_what_was_given_out_twice() -> None:
    system = counter("start")
    faulty = run(system, ["give a", "crash", "recover", "give a"])
    assert explain(faulty.configurations, failure_free(system), GIVEN, GIVEN) is None


def test_a_step_that_is_not_possible_is_an_error_that_names_the_possible_ones() -> None:
    with pytest.raises(ValueError, match=r"counter to exact, step 2: no step 'give c' from here.* crash, give b\."):
        run(counter("exact"), ["give a", "give c"])
