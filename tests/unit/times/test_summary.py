"""Summaries: what each does, how they combine, and that none can decrease a time."""

from __future__ import annotations

from typing import Any

import pytest

from clew.errors import BuildError
from clew.times import IDENTITY, Add, Componentwise, Composition, Enter, Leave, MaxPlus, Poset, Summary, Table

CHAIN = Poset("abc", [("a", "b"), ("b", "c")])


@pytest.mark.parametrize(
    ("summary", "time", "result"),
    [
        (IDENTITY, "x", "x"),
        (Add(3), 4, 7),
        (MaxPlus(1, 9), 4, 9),
        (MaxPlus(1, 9), 10, 11),
        (Componentwise(Add(1), IDENTITY), (1, 1), (2, 1)),
        (Table(CHAIN, "bcc"), "a", "b"),
        (Table(CHAIN, {"a": "a", "b": "c", "c": "c"}), "b", "c"),
        (Enter(), 5, (5, 0)),
        (Leave(), (5, 3), 5),
    ],
)
def test_what_a_summary_does(summary: Summary, time: Any, result: Any) -> None:
    assert summary.results_in(time) == result


def test_following_does_not_commute() -> None:
    one, two = MaxPlus(0, 5), MaxPlus(2, 0)
    assert one.followed_by(two) == MaxPlus(2, 7)
    assert two.followed_by(one) == MaxPlus(2, 5)


def test_leaving_and_entering_forgets_the_round() -> None:
    assert Enter().followed_by(Leave()) == IDENTITY
    again = Leave().followed_by(Enter())
    assert again == Composition((Leave(), Enter()))
    assert again.results_in((5, 3)) == (5, 0)
    assert again.followed_by(Leave()) == Leave()


@pytest.mark.parametrize(
    ("one", "other", "is_at_most"),
    [
        (IDENTITY, Add(0), True),
        (Add(0), IDENTITY, True),
        (Add(1), Add(2), True),
        (Add(2), MaxPlus(2, 1), True),
        (MaxPlus(0, 3), MaxPlus(1, 0), False),
        (MaxPlus(2, 1), MaxPlus(2, 0), True),  # The same from 0 up.
        (Componentwise(Add(1), Add(0)), Componentwise(Add(0), Add(1)), False),
        (Table(CHAIN, "abc"), IDENTITY, True),
        (Table(CHAIN, "abc"), Table(CHAIN, "bcc"), True),
        (Table(CHAIN, "bcc"), Table(CHAIN, "abc"), False),
        (Enter(), Leave(), False),
        (IDENTITY, Enter(), False),
    ],
)
def test_comparison(one: Summary, other: Summary, is_at_most: bool) -> None:
    assert one.is_at_most(other) == is_at_most


def test_what_advances_every_time() -> None:
    assert Componentwise(Add(0), MaxPlus(1, 0)).advances()
    assert not Componentwise(Add(0), MaxPlus(0, 9)).advances()
    assert not Table(CHAIN, "ccc").advances()  # c stays.
    assert Componentwise(Componentwise(Add(1), IDENTITY), IDENTITY).advances(depth=2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Add(-1), "would decrease times"),
        (lambda: MaxPlus(-1, 4), "would decrease times"),
        (lambda: Table(CHAIN, "aac"), "may not decrease a time, but 'b' becomes 'a'"),
        (lambda: Table(CHAIN, "cbc"), "must be monotone"),
        (lambda: Table(CHAIN, "ab"), "3 expected, 2 found"),
        (lambda: Table(CHAIN, {"a": "b"}), "an image for each of"),
    ],
)
def test_what_is_no_summary_is_refused(make: Any, words: str) -> None:
    with pytest.raises(BuildError) as caught:
        make()
    assert words in str(caught.value)
