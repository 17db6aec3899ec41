"""Laws of failure transparency on random systems: the walk over pairs agrees with the definitions, taken literally."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from clew.verify.transparency import (
    Explained,
    Observation,
    Refuted,
    System,
    check_explainability,
    check_monotone,
    check_transparency,
    composed,
    explain,
    explanation,
    failure_free,
    monotone_explanation,
    transitive,
)

Ways = dict[int, tuple[tuple[str, bool, int], ...]]
SIZE = 6


@st.composite
def ways(draw: st.DrawFn) -> Ways:
    """Steps between a few configurations, forward only, so that every execution ends."""
    found: Ways = {}
    for number in range(SIZE):
        afters = draw(
            st.lists(st.tuples(st.integers(number + 1, SIZE), st.booleans()), min_size=1, max_size=3, unique=True)
        )
        found[number] = tuple((f"{number}-{after}{'!' * fails}", fails, after) for after, fails in afters)
    return found


@st.composite
def fewer(draw: st.DrawFn, found: Ways) -> Ways:
    """Some of the steps."""
    return {number: tuple(step for step in steps if draw(st.booleans())) for number, steps in found.items()}


def system(name: str, found: Ways) -> System[int]:
    return System(name, (0,), lambda number: found.get(number, ()))


@st.composite
def observations(draw: st.DrawFn) -> Observation[int]:
    """Sets that a configuration shows; growing in most cases, so that there is something to explain."""
    shown = [frozenset[str]()]
    for _ in range(SIZE):
        base = shown[-1] if draw(st.integers(0, 9)) else frozenset[str]()
        shown.append(base | draw(st.frozensets(st.sampled_from("ab"), max_size=1)))
    return Observation("shown", shown.__getitem__)


def executions(of: System[int], failures_max: int, start: int = 0) -> Iterator[tuple[int, ...]]:
    """All executions with at most so many failures, prefixes included, one by one."""
    yield (start,)
    for _, fails, after in of.steps(start):
        if failures_max >= fails:
            for rest in executions(of, failures_max - fails, after):
                yield (start, *rest)


def is_monotone(of: System[int], seen: Observation[int], failures_max: int) -> bool:
    shown = [[seen.of(c) for c in execution] for execution in executions(of, failures_max)]
    return all(seen.less_equal(before, after) for one in shown for before, after in pairwise(one))


def is_explained(one: tuple[int, ...], other: tuple[int, ...], seen: Observation[int], meant: Observation[int]) -> bool:
    shown = {meant.of(c) for c in other}
    return all(seen.of(c) in shown for c in one)


@given(ways(), ways(), observations(), observations(), st.integers(0, 2))
def test_the_walk_agrees_with_definition_5_5(
    low: Ways, high: Ways, seen: Observation[int], meant: Observation[int], failures_max: int
) -> None:
    lower, upper = system("low", low), system("high", high)
    verdict = check_explainability(lower, upper, seen, meant, [(0, 0)], failures_max=failures_max, ends=False)
    if not is_monotone(upper, meant, SIZE) or not is_monotone(lower, seen, failures_max):
        assert isinstance(verdict, Refuted)
        return
    above = list(executions(upper, SIZE))
    unexplained = [
        one
        for one in executions(lower, failures_max)
        if not any(is_explained(one, other, seen, meant) for other in above)
    ]
    assert isinstance(verdict, Explained) == (not unexplained)
    if isinstance(verdict, Refuted):
        told = verdict.execution.configurations
        assert told in unexplained
        failures = sum(str(label).endswith("!") for label in verdict.execution.labels)
        assert (failures, len(told)) == min((_fewest(lower, one), len(one)) for one in unexplained)


def _fewest(of: System[int], execution: tuple[int, ...]) -> int:
    """The fewest failures with which an execution's configurations can follow each other."""
    return sum(
        min(fails for _, fails, found in of.steps(before) if found == after) for before, after in pairwise(execution)
    )


@given(ways(), observations(), st.integers(0, 2))
def test_monotone_observation_is_definition_5_3(found: Ways, seen: Observation[int], failures_max: int) -> None:
    of = system("random", found)
    lapse = check_monotone(of, seen, failures_max=failures_max)
    assert (lapse is None) == is_monotone(of, seen, failures_max)
    if lapse is not None:
        before, after = lapse.execution.configurations[-2:]
        assert not seen.less_equal(seen.of(before), seen.of(after))


@given(ways(), observations(), st.integers(0, 2))
def test_explained_executions_have_an_explanation_that_can_be_shown(
    found: Ways, seen: Observation[int], failures_max: int
) -> None:
    of = system("random", found)
    verdict = check_transparency(of, seen, failures_max=failures_max, ends=False)
    if isinstance(verdict, Explained):
        for one in executions(of, failures_max):
            shown = explain(one, failure_free(of), seen, seen)
            assert shown is not None
            told = shown.execution.configurations
            assert all(seen.of(c) == seen.of(told[place]) for c, place in zip(one, shown.mapping, strict=True))
            assert list(shown.mapping) == sorted(shown.mapping)


@given(ways(), ways(), observations(), observations())
def test_lemma_5_7_an_explanation_by_growing_observations_never_goes_back(
    low: Ways, high: Ways, seen: Observation[int], meant: Observation[int]
) -> None:
    lower, upper = system("low", low), system("high", high)
    if is_monotone(lower, seen, SIZE) and is_monotone(upper, meant, SIZE):
        for one in executions(lower, SIZE):
            for other in executions(upper, SIZE):
                is_any = explanation(one, other, seen, meant) is not None
                assert is_any == (monotone_explanation(one, other, seen, meant) is not None)


@given(ways(), observations(), st.integers(0, 2), st.sampled_from("ab"))
def test_lemma_5_9_composition_agrees_with_a_direct_check(
    found: Ways, seen: Observation[int], failures_max: int, letter: str
) -> None:
    verdict = check_transparency(system("random", found), seen, failures_max=failures_max)
    if isinstance(verdict, Explained):
        result = composed(verdict, letter, _only(letter))
        direct = check_transparency(verdict.claim.low, result.claim.low_observation, failures_max=failures_max)
        assert isinstance(direct, Explained)
        assert direct.changes == result.changes


@given(st.data())
def test_lemma_5_8_transitivity_agrees_with_a_direct_check(data: st.DataObject) -> None:
    high = data.draw(ways())
    middle = data.draw(fewer(high))
    low = data.draw(fewer(middle))
    seen = data.draw(observations())
    lower, between, upper = system("low", low), system("middle", middle), system("high", high)
    first = check_explainability(lower, between, seen, seen, [(0, 0)], failures_max=2, ends=False)
    second = check_explainability(between, upper, seen, seen, [(0, 0)], failures_max=None, ends=False)
    if isinstance(first, Explained) and isinstance(second, Explained):
        both = transitive(first, second)
        direct = check_explainability(lower, upper, seen, seen, both.claim.translation, failures_max=2, ends=False)
        assert isinstance(direct, Explained)
        assert direct.counts.high_configurations == both.counts.high_configurations


def _only(letter: str) -> Callable[[frozenset[str]], frozenset[str]]:
    return lambda shown: shown & frozenset(letter)
