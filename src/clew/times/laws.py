"""Tries the laws of orders and summaries on sample times: an order or a summary of a user's own is checked with it."""

from __future__ import annotations

from collections.abc import Iterable

from clew.errors import BuildError
from clew.times.order import Order, Time
from clew.times.summary import IDENTITY, Summary


def check_order(order: Order, sample_times: Iterable[Time]) -> None:
    """Raises `BuildError` with a witness where `order` is no partial order on these times.

    >>> from clew.times.order import Integers
    >>> check_order(Integers(), range(5))
    """
    times = [order.check(time) for time in sample_times]
    for one in times:
        if not order.leq(one, one):
            raise _broken(order, "reflexive", f"{one!r} <= {one!r} does not hold")
        key = order.sort_key(one)
        for two in times:
            if order.less(one, two) != (one != two and order.leq(one, two)):
                raise _broken(order, "of one mind", f"less and leq disagree on {one!r} and {two!r}")
            if one != two and order.leq(one, two) and order.leq(two, one):
                raise _broken(order, "antisymmetric", f"{one!r} <= {two!r} and {two!r} <= {one!r} both hold")
            if order.is_total and not order.leq(one, two) and not order.leq(two, one):
                raise _broken(order, "total, as it claims", f"neither of {one!r} and {two!r} is before the other")
            if key is not None and order.less(one, two) and not key < order.sort_key(two):
                raise _broken(order, "sorted by its sort_key", f"{one!r} is before {two!r}, its key is not")
            if order.has_upper_bounds:
                _check_upper_bounds(order, one, two, times)
            for three in times:
                if order.leq(one, two) and order.leq(two, three) and not order.leq(one, three):
                    raise _broken(
                        order,
                        "transitive",
                        f"{one!r} <= {two!r} and {two!r} <= {three!r} hold, {one!r} <= {three!r} does not",
                    )


def _check_upper_bounds(order: Order, one: Time, two: Time, times: list[Time]) -> None:
    bounds = order.upper_bounds(one, two)
    for bound in bounds:
        if not (order.leq(one, bound) and order.leq(two, bound)):
            raise _broken(order, "right about upper bounds", f"{bound!r} is not after both {one!r} and {two!r}")
        if any(order.less(other, bound) for other in bounds):
            raise _broken(
                order, "right about upper bounds", f"of {bounds!r} for {one!r} and {two!r}, some are not least"
            )
    for time in times:
        if order.leq(one, time) and order.leq(two, time) and not any(order.leq(bound, time) for bound in bounds):
            raise _broken(
                order,
                "right about upper bounds",
                f"{time!r} is after {one!r} and {two!r}, but after none of {bounds!r}",
            )


def check_summaries(order: Order, summaries: Iterable[Summary], times: Iterable[Time]) -> None:
    """Raises `BuildError` with a witness where one of the summaries breaks a law on these times.

    >>> from clew.times import Add, Integers
    >>> check_summaries(Integers(), [Add(0), Add(3)], range(5))
    """
    known = [order.check(time) for time in times]
    every = [IDENTITY, *summaries]
    for summary in every:
        _check_summary(order, summary, known)
    for one in every:
        for two in every:
            both = one.followed_by(two)
            for time in known:
                found, expected = both.results_in(time), two.results_in(one.results_in(time))
                if found != expected:
                    raise BuildError(
                        f"{one!r}.followed_by({two!r}) makes {time!r} {found!r}; one after the other, they make it "
                        f"{expected!r}. Correct followed_by()."
                    )
                if one.is_at_most(two) and not order.leq(one.results_in(time), two.results_in(time)):
                    raise BuildError(
                        f"{one!r} is said to be at most {two!r}, but {time!r} becomes {one.results_in(time)!r} by it, "
                        f"which is not before {two.results_in(time)!r}. Correct is_at_most()."
                    )


def _check_summary(order: Order, summary: Summary, times: list[Time]) -> None:
    for time in times:
        image = summary.results_in(time)
        if not order.leq(time, image):
            raise BuildError(f"{summary!r} decreases a time: {time!r} becomes {image!r}. A summary never does.")
        if summary.advances() and time == image:
            raise BuildError(f"{summary!r} is said to advance every time, but leaves {time!r}. Correct advances().")
        for later in times:
            if order.leq(time, later) and not order.leq(image, summary.results_in(later)):
                raise BuildError(
                    f"{summary!r} is not monotone: {time!r} is before {later!r}, but {image!r} is not before "
                    f"{summary.results_in(later)!r}"
                )


def _broken(order: Order, law: str, witness: str) -> BuildError:
    return BuildError(f"{order!r} is not {law}: {witness}. Times need a partial order; correct {type(order).__name__}.")
