"""Failure transparency and monotone observation of small systems: what holds, and each flaw with its shortest story."""

from __future__ import annotations

import pytest
from tests.unit.verify.transparency.toys import GIVEN, INPUTS, Counter, counter

from clew.verify.transparency import (
    Explained,
    Observation,
    Refuted,
    System,
    TooLarge,
    Why,
    check_explainability,
    check_monotone,
    check_transparency,
)


@pytest.mark.parametrize("failures_max", [0, 1, 2, None])
def test_a_recovery_to_where_it_was_cannot_be_seen(failures_max: int | None) -> None:
    verdict = check_transparency(counter("exact"), GIVEN, failures_max=failures_max)
    assert isinstance(verdict, Explained), str(verdict)
    counts = verdict.counts
    places = len(INPUTS) + 1
    is_failing = failures_max != 0
    assert counts.configurations == (2 * places if is_failing else places)
    assert counts.failures == counts.recoveries == (places if is_failing else 0)
    assert counts.left_out == (0 if is_failing else places)
    assert counts.histories == counts.high_configurations == places
    assert counts.rests == 1


def test_a_recovery_that_duplicates_is_told_with_the_shortest_story() -> None:
    verdict = check_transparency(counter("start"), GIVEN, failures_max=2)
    assert isinstance(verdict, Refuted)
    assert verdict.why is Why.NO_EXPLANATION
    assert str(verdict).splitlines() == [
        "counter to start by counter to start without failures, seen through given, at most 2 failures: not explained",
        "an execution of counter to start:",
        "  begins                              seen: ()",
        "    1  give a                         seen: ('a',)",
        "    2  crash",
        "    3  recover",
        "    4  give a                         seen: ('a', 'a')",
        "no execution of counter to start without failures shows these observations in this order.",
    ]


def test_a_recovery_that_forgets_is_caught() -> None:
    verdict = check_transparency(counter("next"), GIVEN, failures_max=1)
    assert isinstance(verdict, Refuted)
    assert verdict.execution.labels == ("crash", "recover", "give b")


def test_what_never_comes_back_is_caught_by_its_rest_alone() -> None:
    verdict = check_transparency(counter("stop"), GIVEN, failures_max=1)
    assert isinstance(verdict, Refuted)
    assert verdict.why is Why.ENDED_EARLY
    assert "nothing more can happen here" in str(verdict)
    # The definition of the thesis alone speaks of safety: a prefix is explained.
    assert check_transparency(counter("stop"), GIVEN, failures_max=1, ends=False).is_explained


def test_what_is_read_goes_back_so_it_is_no_observation() -> None:
    read: Observation[Counter] = Observation("read", lambda c: c[0], lambda a, b: a <= b)
    found = check_monotone(counter("start"), read, failures_max=1)
    assert found is not None
    assert str(found) == (
        "counter to start, step 3 of give a, crash, recover: read goes from 1 to 0, which does not include it; an "
        "observation that only grows was expected. Observe less, or give its order."
    )
    assert check_monotone(counter("start"), read, failures_max=0) is None
    verdict = check_transparency(counter("start"), read, failures_max=1)
    assert isinstance(verdict, Refuted)
    assert verdict.why is Why.NOT_MONOTONE
    assert verdict.execution == found.execution


def test_the_explaining_system_must_be_monotone_too() -> None:
    def steps(n: int) -> list[tuple[str, bool, int]]:
        return [("on", False, (n + 1) % 3)]

    number: Observation[int] = Observation("number", lambda n: n, lambda a, b: a <= b)
    ring = System("ring", (0,), steps)
    still = System("still", (0,), lambda n: [])
    verdict = check_explainability(still, ring, number, number, [(0, 0)], failures_max=0)
    assert isinstance(verdict, Refuted)
    assert verdict.is_in_high
    assert "an execution of ring:" in str(verdict)


def test_each_observation_may_be_explained_but_not_their_order() -> None:
    """Two branches show what the low system shows one after the other: no execution has both."""
    subsets: Observation[frozenset[str]] = Observation("set", lambda c: c)
    nothing, a, ab, b = frozenset[str](), frozenset("a"), frozenset("ab"), frozenset("b")
    low = {nothing: [a], a: [ab]}
    high = {nothing: [a, b], b: [ab]}

    def system(name: str, ways: dict[frozenset[str], list[frozenset[str]]]) -> System[frozenset[str]]:
        return System(name, (nothing,), lambda c: [("to", False, after) for after in ways.get(c, [])])

    verdict = check_explainability(
        system("low", low), system("high", high), subsets, subsets, [(nothing, nothing)], failures_max=0
    )
    assert isinstance(verdict, Refuted)
    assert verdict.execution.configurations == (nothing, a, ab)


def test_a_translation_without_pairs_would_check_nothing() -> None:
    system = counter("exact")
    with pytest.raises(ValueError, match=r"no pairs of initial configurations.*Give at least one"):
        check_explainability(system, system, GIVEN, GIVEN, [], failures_max=0)


def test_a_system_without_end_is_refused() -> None:
    endless = System("endless", (0,), lambda n: [("on", False, n + 1)])
    number: Observation[int] = Observation("number", lambda n: 0, lambda a, b: a <= b)
    with pytest.raises(TooLarge, match=r"endless without failures: more than 1,000 configurations.*fewer failures"):
        check_transparency(endless, number, failures_max=0, configurations_max=1_000)
