"""Propositions of the progress thesis, tried as they are stated: 5.3 and 7.1 after every step, 5.6 along every path."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.chapter4 import Bag, Configuration, plus
from tests.laws.progress_graphs import Case, random_case
from tests.laws.test_exchange import a_step, random_system
from tests.laws.test_progress import some_changes, start

from clew.progress.exchange import Refused
from clew.progress.propagation import Propagation
from clew.progress.safety import check_propagation
from clew.times import IDENTITY, Summary

seeds = st.integers(0, 2**32)


def union_frontier(steps: Configuration, location: Any) -> Bag:
    """Definition 5.2: the frontiers of the locations before this one, each after the summary of its edge."""
    total: Bag = {}
    for source, target, move in steps.edges:
        if target == location:
            for time in steps.infimum(source, steps.implications[source]):
                total = plus(total, {move(time): 1})
    return total


def check_proposition_5_3(steps: Configuration) -> None:
    for location in steps.leq:
        known = plus(steps.implications[location], steps.worklist[location])
        minimal = steps.infimum(location, steps.pointstamps[location])
        assert known == plus(minimal, union_frontier(steps, location))


@settings(max_examples=60)
@given(seeds)
def test_implications_and_worklist_are_pointstamps_and_frontiers_from_before(seed: int) -> None:
    random = Random(seed)
    case = random_case(random, locations_max=4)
    initial: dict[str, dict[Any, int]] = {}
    for (location, time), count in start(random, case).items():
        initial.setdefault(location, {})[time] = count
    steps = Configuration(case.leq, case.edges, initial)
    kernel = Propagation(case.topology, initial)
    check_proposition_5_3(steps)
    for _ in range(3):
        kernel.propagate()
        while steps.waiting():
            steps.propagate(*random.choice([entry for entry in steps.waiting() if steps.is_smallest(*entry)]))
            check_proposition_5_3(steps)
        for location, time, count in some_changes(random, case, kernel):
            kernel.change(location, time, count)
            steps.change_multiplicity(location, time, count)
            check_proposition_5_3(steps)


def test_the_check_notices_a_step_that_is_not_passed_on() -> None:
    steps = Configuration(
        dict.fromkeys("ab", lambda one, other: one <= other), [("a", "b", lambda t: t)], {"a": {1: 1}}
    )
    steps.propagate("a", 1)
    steps.worklist["b"].clear()
    with pytest.raises(AssertionError):
        check_proposition_5_3(steps)


@settings(max_examples=60)
@given(seeds, st.sampled_from(["abadi", "caps"]))
def test_every_initialised_worker_is_safe_by_what_it_knows(seed: int, mode: str) -> None:
    random = Random(seed)
    case, system = random_system(random, mode)
    for _ in range(60):
        try:
            a_step(random, case, system)
        except Refused:
            continue
        for worker in system.workers.values():
            if worker.is_initialised:
                check_propagation(worker.propagation)


Path = tuple[tuple[str, ...], Summary]
"""The locations on a path, and its summary."""


def paths(case: Case, start_at: str, edges_max: int) -> list[Path]:
    """All paths of so many edges at most, also those that go round cycles."""
    found: list[Path] = [((start_at,), IDENTITY)]
    for places, summary in found:  # The list grows while it is read.
        if len(places) <= edges_max:
            for target, summaries in case.topology.edges[places[-1]].items():
                found += [((*places, str(target)), summary.followed_by(each)) for each in summaries]
    return found


@settings(max_examples=60)
@given(seeds)
def test_for_every_path_there_is_a_prefix_optimal_one_that_is_no_later(seed: int) -> None:
    """Proposition 5.6. A cycle only makes a path later, so those without one are enough to find optimal ones."""
    random = Random(seed)
    case = random_case(random, domain=random.choice(["int", ["prod", "int", "int"]]), locations_max=4)
    places = [str(place) for place in case.topology.locations]
    every = paths(case, places[0], len(places))
    simple = [(path, summary) for path, summary in every if len(set(path)) == len(path)]

    def is_optimal(path: tuple[str, ...], summary: Summary) -> bool:
        """Definition 5.4."""
        return not any(
            other[-1] == path[-1] and less.is_at_most(summary) and not summary.is_at_most(less)
            for other, less in simple
        )

    def prefix_optimal(path: tuple[str, ...], summary: Summary) -> list[Path]:
        """Definition 5.5: the path with its summary, if all that it begins with is optimal."""
        best = [((places[0],), IDENTITY)]
        for target in path[1:]:
            best = [
                ((*before, target), one.followed_by(each))
                for before, one in best
                for each in case.topology.edges[before[-1]][target]
                if is_optimal((*before, target), one.followed_by(each))
            ]
        return [(found, one) for found, one in best if one == summary]

    best = [found for path, summary in simple for found in prefix_optimal(path, summary)]
    for path, summary in every:
        assert any(other[-1] == path[-1] and less.is_at_most(summary) for other, less in best)
    time = case.draw(places[0])
    for place, earliest in case.topology.reach(places[0], time).items():
        assert earliest == type(earliest)(
            earliest.order, [summary.results_in(time) for path, summary in every if path[-1] == place]
        )
