"""Orders: what they take for a time, how they show it, and what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from clew.errors import BuildError, MoveError
from clew.times import Disjoint, EventTime, Integers, Order, Poset, Product

PAIRS = Product(Integers(), Integers())


class Divides(Order):
    """A user's own order: a number is before its multiples."""

    def leq(self, one: Any, other: Any) -> bool:
        return bool(other % one == 0)


def test_json_lists_become_tuples() -> None:
    nested = Product(Integers(), Product(Integers(), Poset("ab")))
    assert nested.check([1, [2, "a"]]) == (1, (2, "a"))
    assert Disjoint(PAIRS, PAIRS).check(["L", [1, 2]]) == ("L", (1, 2))
    assert Divides().check([1, [2]]) == (1, (2,))


@pytest.mark.parametrize(
    ("order", "time", "words"),
    [
        (Integers(), 1.5, "expected a whole number, found a value of type float"),
        (Integers(), True, "expected a whole number, found a value of type bool"),
        (Integers(), None, "expected a whole number, found a value of type NoneType"),
        (EventTime(), "now", "expected whole microseconds since 1970 or a datetime with a time zone"),
        (EventTime(), datetime(2025, 1, 1), "it has no time zone"),
        (PAIRS, (1, 2, 3), "expected a tuple of 2 times"),
        (PAIRS, 7, "expected a tuple of 2 times"),
        (PAIRS, (1, "b"), "'b' is no time of Integers()"),
        (Disjoint(Integers(), Integers()), ("M", 1), 'expected ("L", time) or ("R", time)'),
        (Poset("ab"), "c", "expected one of 'a', 'b'"),
        (Poset("ab"), {}, "expected one of 'a', 'b'"),
        (Divides(), {}, "a time is hashable"),
    ],
)
def test_what_is_no_time_is_refused(order: Order, time: Any, words: str) -> None:
    with pytest.raises(MoveError) as caught:
        order.check(time)
    assert words in str(caught.value)


def test_moments_of_all_time_zones_are_one_line() -> None:
    order = EventTime()
    there = datetime(2025, 2, 25, 17, tzinfo=timezone(timedelta(hours=2)))
    assert order.check(there) == order.check(datetime(2025, 2, 25, 15, tzinfo=UTC))
    assert order.show(-1) == "1969-12-31T23:59:59.999999+00:00"
    assert order.show(10**30) == f"{10**30} µs"


def test_a_poset_follows_from_its_pairs() -> None:
    order = Poset("abcd", [("a", "b"), ("b", "c")])
    assert order.leq("a", "c")
    assert not order.leq("c", "a")
    assert order.upper_bounds("a", "d") == ()
    with pytest.raises(BuildError, match="'a' before 'b' and 'b' before 'a'"):
        Poset("ab", [("a", "b"), ("b", "a")])
    with pytest.raises(BuildError, match="'z', which is not among its elements"):
        Poset("ab", [("a", "z")])


def test_two_least_upper_bounds_are_both_given() -> None:
    crown = Poset("abcd", [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")])
    assert crown.upper_bounds("a", "b") == ("c", "d")
    assert Product(crown, Integers()).upper_bounds(("a", 1), ("b", 5)) == (("c", 5), ("d", 5))


def test_an_order_of_a_users_own_needs_leq_only() -> None:
    order = Divides()
    assert order.less(2, 6)
    assert not order.less(2, 2)
    assert order.upper_bounds(2, 6) == (6,)
    assert order == Divides()
    with pytest.raises(MoveError, match=r"Define upper_bounds\(\) in Divides"):
        order.upper_bounds(2, 3)
    assert not Product(Integers(), order).has_upper_bounds
    assert Product(Integers(), order).sort_key((1, 2)) is None


def test_orders_are_equal_by_value() -> None:
    assert Product(Integers(), Poset("ab")) == Product(Integers(), Poset("ab"))
    assert Product(Integers()) != Product(EventTime())
    assert Disjoint(Integers(), Integers()) != PAIRS


@pytest.mark.parametrize("wrong", [(), (Integers,)])
def test_a_product_is_made_of_orders(wrong: Any) -> None:
    with pytest.raises(BuildError, match=r"Product\(Integers\(\), Integers\(\)\)"):
        Product(*wrong)
