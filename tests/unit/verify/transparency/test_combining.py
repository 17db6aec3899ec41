"""Composition and transitivity: they give what a direct check finds, and never claim more than was checked."""

from __future__ import annotations

import pytest
from tests.unit.verify.transparency.toys import GIVEN, INPUTS, Counter, counter

from clew.verify.transparency import (
    Explained,
    NotCombinable,
    Observation,
    System,
    check_explainability,
    check_transparency,
    composed,
    failure_free,
    transitive,
)

NUMBER: Observation[int] = Observation("number", lambda n: n, lambda a, b: a <= b)


def checked(failures_max: int | None = 2) -> Explained[Counter, Counter]:
    verdict = check_transparency(counter("exact"), GIVEN, failures_max=failures_max)
    assert isinstance(verdict, Explained)
    return verdict


def tally(name: str = "tally") -> System[int]:
    """Counts, and nothing else: a model above the counter."""
    return System(name, (0,), lambda n: [("count", False, n + 1)] * (n < len(INPUTS)))


def test_an_observer_who_sees_less_gets_the_same_verdict_as_a_direct_check() -> None:
    result = composed(checked(), "number", len, lambda a, b: a <= b)
    claim = result.claim
    assert claim.low_observation.name == "number of given"
    assert result.because == "composition (Lemma 5.9) of [checked]"
    direct = check_transparency(claim.low, claim.low_observation, failures_max=2)
    assert isinstance(direct, Explained)
    assert direct.changes == result.changes


def test_a_composed_function_must_keep_observations_growing() -> None:
    with pytest.raises(NotCombinable, match=r"last of given.* goes from 'a' to 'b', which does not include it"):
        composed(checked(), "last", lambda given: given[-1] if given else "", lambda a, b: a in ("", b))


def test_what_is_explained_twice_is_explained_by_the_topmost() -> None:
    first = composed(checked(), "number", len, lambda a, b: a <= b)
    top = tally()
    start = [(0, first.claim.high.initial[0])]
    second = check_explainability(first.claim.high, top, first.claim.high_observation, NUMBER, start, failures_max=0)
    assert isinstance(second, Explained)
    both = transitive(first, second)
    claim = both.claim
    assert (claim.low.name, claim.high.name, claim.failures_max) == ("counter to exact", "tally", 2)
    direct = check_explainability(
        claim.low, claim.high, claim.low_observation, claim.high_observation, claim.translation, failures_max=2
    )
    assert isinstance(direct, Explained)
    assert direct.counts == both.counts


def test_results_about_different_things_cannot_be_combined() -> None:
    first = checked()
    low = first.claim.high
    above = check_explainability(counter("exact"), tally(), _number(), NUMBER, [(0, low.initial[0])], failures_max=0)
    assert isinstance(above, Explained)
    with pytest.raises(NotCombinable, match=r"one and the same System object was expected"):
        transitive(first, above)
    other = check_explainability(low, tally(), _number(), NUMBER, [(0, low.initial[0])], failures_max=0)
    assert isinstance(other, Explained)
    with pytest.raises(NotCombinable, match=r"'given' in the first result and through 'number' in the second"):
        transitive(first, other)


def test_a_bound_in_the_middle_may_not_hide_failures() -> None:
    middle = counter("exact")
    observation = _number()
    same = [(middle.initial[0], middle.initial[0])]
    first = check_explainability(middle, middle, observation, observation, same, failures_max=1)
    second = check_explainability(middle, tally(), observation, NUMBER, [(0, same[0][0])], failures_max=1)
    assert isinstance(first, Explained)
    assert isinstance(second, Explained)
    assert second.counts.left_out == 0  # One crash at each place is all there is: nothing was hidden.
    transitive(first, second)
    narrow = check_explainability(middle, tally(), observation, NUMBER, [(0, same[0][0])], failures_max=0)
    assert isinstance(narrow, Explained)
    with pytest.raises(
        NotCombinable, match=r"with at most 0 failures, but the first may be explained by executions with more"
    ):
        transitive(first, narrow)


def test_translations_must_meet() -> None:
    first = checked()
    low = first.claim.high
    elsewhere = (1, ("a",), False)
    apart = System("apart", (elsewhere,), failure_free(low).steps)
    second = check_explainability(low, apart, GIVEN, GIVEN, [(elsewhere, elsewhere)], failures_max=0)
    assert isinstance(second, Explained)
    with pytest.raises(NotCombinable, match=r"no initial configuration of .* is in both translations"):
        transitive(first, second)


def _number() -> Observation[Counter]:
    return Observation("number", lambda c: len(c[1]), lambda a, b: a <= b)
