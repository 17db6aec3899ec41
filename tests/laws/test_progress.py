"""Laws of progress: propagation computes frontiers by definition, and views are never ahead of the truth."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.chapter4 import Configuration
from tests.laws.progress_graphs import DOMAINS, Case, random_case, random_nested_case

from clew.errors import MoveError, Violation
from clew.progress.propagation import Propagation
from clew.progress.safety import check_propagation
from clew.progress.topology import Topology
from clew.times import Add, Changes, Integers, Order, Product

seeds = st.integers(0, 2**32)
Make = Callable[[Random], Case]


def shown(propagation: Propagation) -> dict[Any, set[Any]]:
    return {location: set(frontier) for location, frontier in propagation.frontiers().items()}


def start(random: Random, case: Case) -> dict[tuple[str, Any], int]:
    """Some pointstamps to begin with, a few of them negative."""
    counts: dict[tuple[str, Any], int] = {}
    for _ in range(random.randrange(6)):
        location = random.choice(case.topology.locations)
        counts[str(location), case.draw(str(location))] = random.choice([-1, 1, 1, 2, 3])
    return counts


def some_changes(random: Random, case: Case, propagation: Propagation) -> list[tuple[str, Any, int]]:
    """Changes that are allowed now: new ones, and those that take back what is there."""
    found = []
    for _ in range(random.randrange(1, 5)):
        location = str(random.choice(case.topology.locations))
        counts = propagation.pointstamps(location)
        if counts and random.random() < 0.6:
            time, count = random.choice(list(counts.items()))
            change = -count if random.random() < 0.7 else random.choice([-1, 1])
        else:
            time, change = case.draw(location), random.choice([-1, 1, 1, 2])
        if propagation.frontier(location).covers(time):
            found.append((location, time, change))
    return found


def follow(seed: int, make: Make, rounds: int = 5) -> int:
    """Drives propagation through some rounds beside the oracle; how many frontiers were compared."""
    random = Random(seed)
    case = make(random)
    counts = start(random, case)
    initial: dict[str, dict[Any, int]] = {}
    for (location, time), count in counts.items():
        initial.setdefault(location, {})[time] = count
    propagation = Propagation(case.topology, initial, limit=100_000)
    before: dict[Any, set[Any]] = {location: set() for location in case.topology.locations}
    for _ in range(rounds):
        changed = propagation.propagate()
        expected = case.naive(counts)
        assert shown(propagation) == expected
        assert {location: set(frontier) for location, frontier in changed.items()} == {
            location: times for location, times in expected.items() if times != before[location]
        }
        check_propagation(propagation)
        before = expected
        for location, time, count in some_changes(random, case, propagation):
            propagation.change(location, time, count)
            counts[location, time] = counts.get((location, time), 0) + count
    return rounds * len(case.topology.locations)


@settings(max_examples=300)
@given(seeds)
def test_propagation_gives_the_frontiers_of_the_definition(seed: int) -> None:
    follow(seed, random_case)


@settings(max_examples=150)
@given(seeds)
def test_so_it_does_in_nested_loops(seed: int) -> None:
    follow(seed, random_nested_case)


def has_cycle_of_products(case: Case) -> bool:
    orders = case.topology.orders
    return any(isinstance(orders[place], Product) and case.topology.is_on_cycle(place) for place in orders)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_graphs_with_cycles_and_product_times(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    compared, graphs, seed = 0, 0, part * 1_000_000
    while graphs < 1000:
        make = random_nested_case if seed % 4 == 0 else random_product_case
        try:
            compared += follow(seed, make)
        except BaseException:
            print(f"repeat with follow({seed}, {make.__name__}) of {__name__}")
            raise
        graphs += has_cycle_of_products(make(Random(seed)))
        seed += 1
    with capsys.disabled():
        print(f"\n{graphs} random graphs with cycles and product times (part {part}): {compared} frontiers agree")


def random_product_case(random: Random) -> Case:
    return random_case(random, domain=random.choice([domain for domain in DOMAINS if domain[0] == "prod"]))


class Unsorted(Integers):
    """Whole numbers without a sort key: everything waits its turn by comparisons alone."""

    def sort_key(self, time: Any) -> Any:
        return None


@settings(max_examples=60)
@given(seeds)
def test_an_order_without_sort_keys_gives_the_same(seed: int) -> None:
    def make(random: Random) -> Case:
        case = random_case(random, domain="int")
        edges = [(one, two, parts) for one, targets in case.topology.edges.items() for two, parts in targets.items()]
        case.topology = Topology.of_one_order(Unsorted(), case.topology.locations, edges)
        return case

    follow(seed, make)


@settings(max_examples=100)
@given(seeds)
def test_every_allowed_sequence_of_single_steps_gives_the_same(seed: int) -> None:
    """Section 8.2: the frontiers do not depend on which of the smallest times is taken first."""
    random = Random(seed)
    case = random_case(random, locations_max=4)
    initial: dict[str, dict[Any, int]] = {}
    for (location, time), count in start(random, case).items():
        initial.setdefault(location, {})[time] = count
    steps = Configuration(case.leq, case.edges, initial)
    propagation = Propagation(case.topology, initial)
    for _ in range(3):
        propagation.propagate()
        while steps.waiting():
            smallest = [entry for entry in steps.waiting() if steps.is_smallest(*entry)]
            steps.propagate(*random.choice(smallest))
        assert steps.frontiers() == shown(propagation)
        for location, time, count in some_changes(random, case, propagation):
            propagation.change(location, time, count)
            steps.change_multiplicity(location, time, count)


RING = [("loc1", "loc2", 0), ("loc2", "loc3", 0), ("loc3", "loc4", 1), ("loc4", "loc1", 0)]
"""Appendix A: a cycle of four, on which a pointstamp at (loc3, 2) is taken away."""


def test_largest_first_never_ends() -> None:
    """Appendix A, in single steps."""
    leq: dict[Any, Any] = {f"loc{n}": lambda one, other: one <= other for n in (1, 2, 3, 4)}
    edges = [(one, two, lambda time, n=n: time + n) for one, two, n in RING]  # type: ignore[misc]
    ends = {}
    for choose in (min, max):
        steps = Configuration(leq, edges, {"loc3": {2: 1}})
        while steps.waiting():
            steps.propagate(*min(steps.waiting(), key=lambda entry: entry[1]))
        steps.change_multiplicity("loc3", 2, -1)
        taken = 0
        while steps.waiting() and taken < 1000:
            steps.propagate(*choose(steps.waiting(), key=lambda entry: entry[1]), is_any=True)
            taken += 1
        ends[choose] = taken, steps.frontiers()["loc1"]
    assert ends[min] == (5, set())
    assert ends[max][0] == 1000
    assert min(ends[max][1]) > 100  # The frontier has run on and on, where it should have become empty.


class LargestFirst(Integers):
    """A broken order, for a canary: its sort key turns smallest first into largest first."""

    def sort_key(self, time: Any) -> Any:
        return -time


@pytest.mark.parametrize(("order", "is_ending"), [(Integers(), True), (LargestFirst(), False)])
def test_largest_first_never_ends_in_the_kernel_either(order: Order, is_ending: bool) -> None:
    topology = Topology.of_one_order(order, ["loc1", "loc2", "loc3", "loc4"], [(a, b, Add(n)) for a, b, n in RING])
    propagation = Propagation(topology, {"loc3": Changes({2: 1})}, limit=1000)
    propagation.propagate()
    propagation.change("loc3", 2, -1)
    if is_ending:
        assert all(not frontier for frontier in propagation.propagate().values())
    else:
        with pytest.raises(Violation, match="has not ended after 1000 steps"):
            propagation.propagate()


def test_the_oracle_notices_a_wrong_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary: what if a frontier kept only the first of several minimal times, or took negative counts for there?"""
    from clew.progress import bags

    real = bags.minimal
    monkeypatch.setattr(bags, "minimal", lambda order, elements: real(order, elements)[:1])
    with pytest.raises((AssertionError, Violation)):
        [follow(seed, random_case) for seed in range(500)]


def test_the_safety_check_notices_a_wrong_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    from clew.progress import bags

    monkeypatch.setattr(bags.NumberBag, "least", lambda self: tuple(sorted(t for t in self.counts)[-1:]))
    propagation = Propagation(Topology.of_one_order(Integers(), "ab", [("a", "b", Add(1))]), {"a": {1: 1, 5: 1}})
    propagation.propagate()
    with pytest.raises(Violation, match="could result in"):
        check_propagation(propagation)


@given(seeds)
@settings(max_examples=50)
def test_a_change_at_a_time_that_is_over_is_refused_and_changes_nothing(seed: int) -> None:
    random = Random(seed)
    case = random_case(random)
    propagation = Propagation(case.topology)
    propagation.add("l0", [(case.draw("l0"), 1)])
    propagation.propagate()
    before = shown(propagation)
    for location in case.topology.locations:
        time = case.draw(str(location))
        if propagation.frontier(location).passed(time):
            with pytest.raises(MoveError, match="which is over"):
                propagation.change(location, time, 1)
    assert propagation.propagate() == {}
    assert shown(propagation) == before
