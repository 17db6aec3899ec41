"""Laws of IdSet: it is a plain set of ids, only smaller."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from clew.model.ranges import IdSet

ids = st.integers(1, 30)
LIMIT = 40


def plain(ids: IdSet) -> set[int]:
    return {number for number in range(1, LIMIT) if number in ids}


def made(numbers: list[int]) -> IdSet:
    result = IdSet()
    for number in numbers:
        result.add(number)
    return result


def is_settled(ids: IdSet) -> bool:
    """Whether no two neighbouring ranges touch, and none touches the floor."""
    edges = [(0, ids.floor), *ids.ranges()]
    return all(first <= last for first, last in edges) and all(
        last + 1 < first for (_, last), (first, _) in pairwise(edges)
    )


@given(st.lists(ids))
def test_adding_is_adding_to_a_set(numbers: list[int]) -> None:
    result = made(numbers)
    assert plain(result) == set(numbers)
    assert is_settled(result)


@given(st.lists(ids))
def test_the_order_of_adding_does_not_matter(numbers: list[int]) -> None:
    assert made(numbers) == made(sorted(numbers)) == made(numbers[::-1])


@given(st.integers(0, 30), st.sets(ids))
def test_a_floor_is_all_ids_up_to_it(floor: int, above: set[int]) -> None:
    result = IdSet(floor, above)
    assert plain(result) == set(range(1, floor + 1)) | above
    assert is_settled(result)


@given(st.lists(ids), st.lists(ids))
def test_update_is_union(one: list[int], other: list[int]) -> None:
    result = made(one)
    result.update(made(other))
    assert result == made(one + other)
    assert is_settled(result)


@given(st.lists(st.lists(ids), min_size=1, max_size=4))
def test_common_is_intersection(lists: list[list[int]]) -> None:
    sets = [made(numbers) for numbers in lists]
    before = [repr(each) for each in sets]
    result = IdSet.common(sets)
    assert plain(result) == set.intersection(*map(set, lists))
    assert is_settled(result)
    assert [repr(each) for each in sets] == before


def test_common_of_none_is_empty() -> None:
    assert IdSet.common([]) == IdSet()


@given(st.lists(ids))
def test_ranges_say_the_same(numbers: list[int]) -> None:
    result = made(numbers)
    assert IdSet.of_ranges(result.floor, result.ranges()) == result
    assert IdSet.of_ranges(result.floor, result.ranges()[::-1]) == result


@given(st.lists(ids), ids)
def test_a_copy_is_independent(numbers: list[int], number: int) -> None:
    result = made(numbers)
    twin = result.copy()
    twin.add(number)
    assert result == made(numbers)
    assert twin == made([*numbers, number])


@given(st.lists(ids), ids, ids)
def test_a_range_is_all_ids_in_it(numbers: list[int], first: int, last: int) -> None:
    result = made(numbers)
    result.add_range(first, last)
    assert plain(result) == set(numbers) | set(range(first, last + 1))
    assert is_settled(result)


@given(st.lists(ids), st.lists(ids))
def test_minus_is_difference(one: list[int], other: list[int]) -> None:
    ranges = made(one).minus(made(other))
    assert [number for first, last in ranges for number in range(first, last + 1)] == sorted(set(one) - set(other))
    assert all(first <= last for first, last in ranges)
