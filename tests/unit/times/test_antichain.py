"""Antichains: the examples of section 4.1.2, and the edge cases of frontiers."""

from __future__ import annotations

import pickle

from clew.times import Antichain, Disjoint, EventTime, Integers, Product, maximal, minimal

PAIRS = Product(Integers(), Integers())


def test_the_example_of_the_seed() -> None:
    times = [(1, 2), (2, 3), (4, 1), (3, 1)]
    assert set(Antichain(PAIRS, times)) == {(1, 2), (3, 1)}
    assert maximal(PAIRS, times) == ((2, 3), (4, 1))
    assert minimal(Integers(), []) == ()


def test_the_empty_antichain_is_the_greatest() -> None:
    over, five = Antichain(Integers()), Antichain(Integers(), [5])
    assert not over
    assert len(five) == 1
    assert over.passed(10**9)
    assert five.is_at_most(over)
    assert not over.is_at_most(five)
    assert five.meet(over) == five
    assert five.join(over) == over


def test_equality_is_that_of_sets() -> None:
    one, two = Antichain(PAIRS, [(1, 2), (2, 1)]), Antichain(PAIRS, [(2, 1), (1, 2), (2, 2)])
    assert one == two
    assert hash(one) == hash(two)
    assert one != Antichain(Product(Integers(), EventTime()), [(1, 2), (2, 1)])
    assert one != {(1, 2), (2, 1)}
    assert (1, 2) in one
    assert (2, 2) not in one


def test_nothing_is_after_times_of_both_sides() -> None:
    sides = Disjoint(Integers(), Integers())
    assert Antichain(sides, [("L", 1)]).join(Antichain(sides, [("R", 1)])) == Antichain(sides)


def test_it_is_shown_as_its_order_shows_times() -> None:
    assert repr(Antichain(EventTime(), [0])) == "Antichain({1970-01-01T00:00:00+00:00})"


def test_it_can_be_sent() -> None:
    frontier = Antichain(PAIRS, [(1, 2), (2, 1)])
    assert pickle.loads(pickle.dumps(frontier)) == frontier  # noqa: S301 (our own bytes)
