"""Laws of times: orders are partial orders, antichains are sets of times, changes a group, summaries a monoid."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.progress_graphs import tables

from clew.times import (
    IDENTITY,
    Add,
    Antichain,
    Changes,
    Componentwise,
    Disjoint,
    Enter,
    EventTime,
    Integers,
    Leave,
    MaxPlus,
    Order,
    Poset,
    Product,
    Summary,
    Table,
    check_order,
    check_summaries,
    maximal,
    minimal,
)

DIAMOND = Poset(["bot", "l", "r", "top"], [("bot", "l"), ("bot", "r"), ("l", "top"), ("r", "top")])
CROWN = Poset("abcdef", [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "e"), ("d", "f")])
numbers = st.integers(-3, 3)
naturals = st.integers(0, 5)


def of_poset(poset: Poset) -> st.SearchStrategy[Any]:
    return st.sampled_from(poset.elements)


# Each order with its times.
ORDERS: list[tuple[Order, st.SearchStrategy[Any]]] = [
    (Integers(), numbers),
    (EventTime(), numbers),
    (DIAMOND, of_poset(DIAMOND)),
    (CROWN, of_poset(CROWN)),
    (Product(Integers(), Integers()), st.tuples(numbers, numbers)),
    (Product(CROWN, Product(Integers(), Integers())), st.tuples(of_poset(CROWN), st.tuples(numbers, numbers))),
    (
        Disjoint(Integers(), CROWN),
        st.one_of(st.tuples(st.just("L"), numbers), st.tuples(st.just("R"), of_poset(CROWN))),
    ),
]
# Each kind of summary with its order and its times.
tables_of_diamond = [
    Table(DIAMOND, images) for images in tables(["poset", list(DIAMOND.elements), [list(p) for p in DIAMOND.pairs]])
]
adds = st.one_of(st.builds(Add, st.integers(0, 3)), st.just(IDENTITY))
plusses = st.one_of(st.builds(MaxPlus, st.integers(0, 3), naturals), adds)
SUMMARIES: list[tuple[Order, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = [
    (Integers(), adds, numbers),
    (Integers(), plusses, naturals),
    (DIAMOND, st.one_of(st.sampled_from(tables_of_diamond), st.just(IDENTITY)), of_poset(DIAMOND)),
    (
        Product(Integers(), Product(Integers(), DIAMOND)),
        st.builds(Componentwise, plusses, st.builds(Componentwise, adds, st.sampled_from(tables_of_diamond))),
        st.tuples(naturals, st.tuples(naturals, of_poset(DIAMOND))),
    ),
]
any_order = st.sampled_from(ORDERS)


@given(any_order.flatmap(lambda pair: st.tuples(st.just(pair[0]), st.lists(pair[1], max_size=5))))
def test_orders_are_partial_orders(case: tuple[Order, list[Any]]) -> None:
    order, times = case
    check_order(order, times)
    for time in times:
        assert order.check(time) == time
        assert order.show(time)


@given(any_order.flatmap(lambda p: st.tuples(st.just(p[0]), st.lists(p[1], max_size=6), st.lists(p[1], max_size=6))))
def test_antichains_stand_for_the_times_they_cover(case: tuple[Order, list[Any], list[Any]]) -> None:
    order, some, others = case
    one, two = Antichain(order, some), Antichain(order, others)
    assert not any(order.less(low, high) for low in one for high in one)
    assert one == Antichain(order, reversed(some))
    assert hash(one) == hash(Antichain(order, reversed(some)))
    for time in (*some, *others):
        assert one.covers(time) == any(order.leq(element, time) for element in some)
        assert one.passed(time) != one.covers(time)
        assert one.meet(two).covers(time) == (one.covers(time) or two.covers(time))
        assert one.join(two).covers(time) == (one.covers(time) and two.covers(time))
    assert one.is_at_most(one.join(two))
    assert two.is_at_most(one.join(two))
    assert one.meet(two).is_at_most(one)
    assert (one.is_at_most(two) and two.is_at_most(one)) == (one == two)
    assert one.is_at_most(Antichain(order))


@given(any_order.flatmap(lambda pair: st.tuples(st.just(pair[0]), st.lists(pair[1], max_size=7))))
def test_minimal_and_maximal_keep_the_order_of_first_occurrence(case: tuple[Order, list[Any]]) -> None:
    order, times = case
    first = list(dict.fromkeys(times))
    assert list(minimal(order, times)) == [t for t in first if not any(order.less(u, t) for u in times)]
    assert list(maximal(order, times)) == [t for t in first if not any(order.less(t, u) for u in times)]


changes = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-3, 3)), max_size=6).map(Changes)


@given(changes, changes, changes)
def test_changes_form_an_abelian_group(one: Changes, two: Changes, three: Changes) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + Changes() == one
    assert one - one == Changes()
    assert one - two == one + -two
    assert one.positive() + one.negative() == one
    assert all(one.values())
    assert hash(one + two) == hash(two + one)
    assert all((one + two).count(element) == one.count(element) + two.count(element) for element in "abcde")


@given(
    st.sampled_from(SUMMARIES).flatmap(
        lambda case: st.tuples(st.just(case[0]), st.lists(case[1], max_size=3), st.lists(case[2], max_size=4))
    )
)
def test_summaries_form_a_monoid_of_monotone_functions(case: tuple[Order, list[Summary], list[Any]]) -> None:
    order, summaries, times = case
    check_summaries(order, summaries, times)
    for one in summaries:
        assert one.followed_by(IDENTITY) == one == IDENTITY.followed_by(one)
        for two in summaries:
            for three in summaries:
                left = one.followed_by(two).followed_by(three)
                right = one.followed_by(two.followed_by(three))
                assert left == right or [left.results_in(t) for t in times] == [right.results_in(t) for t in times]


@given(st.lists(st.sampled_from([Enter(), Leave(), IDENTITY, Componentwise(Add(1), Add(2))]), max_size=6))
def test_paths_into_and_out_of_loops_do_what_their_edges_do(path: list[Summary]) -> None:
    whole: Summary = IDENTITY
    time: Any = ((0, 0), 0)
    depth = 2
    for summary in path:
        if (isinstance(summary, Componentwise) and depth != 1) or (isinstance(summary, Leave) and depth == 0):
            continue
        depth += isinstance(summary, Enter) - isinstance(summary, Leave)
        whole = whole.followed_by(summary)
        time = summary.results_in(time)
    assert whole.results_in(((0, 0), 0)) == time


@given(any_order)
def test_orders_are_values(case: tuple[Order, Any]) -> None:
    order, _ = case
    copied = pickle.loads(pickle.dumps(order))  # noqa: S301 (our own bytes)
    assert copied == order
    assert hash(copied) == hash(order)
    assert eval(repr(order)) == order


@given(st.datetimes(timezones=st.just(UTC)))
def test_moments_keep_their_order_and_can_be_read_back(moment: datetime) -> None:
    order = EventTime()
    assert datetime.fromisoformat(order.show(order.check(moment))) == moment


# Canaries: what check_order and check_summaries are there to find.


class Sometimes(Order):
    def __init__(self, wrong: str) -> None:
        self.wrong = wrong
        self.is_total = wrong == "total"
        self.has_upper_bounds = wrong == "upper bounds"

    def leq(self, one: Any, other: Any) -> bool:
        match self.wrong:
            case "reflexive":
                return bool(one < other)
            case "antisymmetric":
                return True
            case "transitive":
                return bool(other in (one, one + 1))
            case "total":
                return bool(one == other)
        return bool(one <= other)

    def less(self, one: Any, other: Any) -> bool:
        return self.wrong == "of one mind" or super().less(one, other)

    def sort_key(self, time: Any) -> Any:
        return -time if self.wrong == "sort_key" else None

    def upper_bounds(self, one: Any, other: Any) -> tuple[Any, ...]:
        return (min(one, other),)


@pytest.mark.parametrize(
    "wrong", ["reflexive", "antisymmetric", "transitive", "total", "of one mind", "sort_key", "upper bounds"]
)
def test_check_order_finds_a_broken_law(wrong: str) -> None:
    with pytest.raises(Exception, match=wrong) as caught:
        check_order(Sometimes(wrong), range(4))
    assert "Times need a partial order; correct Sometimes." in str(caught.value)


class Odd(Summary):
    def __init__(self, wrong: str) -> None:
        self.wrong = wrong

    def results_in(self, time: Any) -> Any:
        match self.wrong:
            case "decreases":
                return time - 1
            case "monotone":
                return 10 if time == 1 else time + 2
        return time

    def followed_by(self, other: Summary) -> Summary:
        return Add(7) if self.wrong == "followed_by" else super().followed_by(other)

    def advances(self, depth: int = 0) -> bool:
        return self.wrong == "advance every time"


@pytest.mark.parametrize("wrong", ["decreases", "monotone", "followed_by", "advance every time"])
def test_check_summaries_finds_a_broken_law(wrong: str) -> None:
    with pytest.raises(Exception, match=wrong):
        check_summaries(Integers(), [Odd(wrong)], range(5))


def test_check_summaries_finds_a_wrong_comparison() -> None:
    class Most(Add):
        def is_at_most(self, other: Summary) -> bool:
            return True

    with pytest.raises(Exception, match=r"Correct is_at_most\(\)"):
        check_summaries(Integers(), [Most(3), Add(1)], range(3))
