"""Monotone streams to try time-aware operators on: from a seed, or as a Hypothesis strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from clew.errors import BuildError
from clew.times import Order
from clew.times.algebra import DT, WM, TimedEvent

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def random_streams(
    order: Order, times: Sequence[Any], data: Sequence[Any], *, seed: int = 0, count: int = 200, length: int = 12
) -> Iterator[list[TimedEvent]]:
    """So many monotone streams of at most this length, the same for the same seed.

    >>> from clew.times import Integers
    >>> from clew.times.algebra import is_monotone
    >>> streams = list(random_streams(Integers(), range(5), "ab", seed=1, count=50))
    >>> len(streams), all(is_monotone(Integers(), stream) for stream in streams)
    (50, True)
    """
    if not times or not data:
        raise BuildError("random_streams needs at least one time and one data item to choose from.")
    dice = Random(seed)
    for _ in range(count):
        draft: list[TimedEvent] = []
        for _ in range(dice.randint(0, length)):
            time = dice.choice(times)
            draft.append(WM(time) if dice.random() < 0.3 else DT(time, dice.choice(data)))
        yield made_monotone(order, draft)


def monotone_streams(
    order: Order, times: Sequence[Any], data: SearchStrategy[Any], *, length: int = 12
) -> SearchStrategy[list[TimedEvent]]:
    """A Hypothesis strategy for monotone streams over these times. Needs Hypothesis to be installed."""
    from hypothesis import strategies as st

    moments = st.sampled_from(times)
    events = st.one_of(st.builds(DT, moments, data), st.builds(WM, moments))
    return st.lists(events, max_size=length).map(lambda draft: made_monotone(order, draft))


def made_monotone(order: Order, draft: Sequence[TimedEvent]) -> list[TimedEvent]:
    """The stream without the data that comes too late.

    >>> from clew.times import Integers
    >>> made_monotone(Integers(), [WM(2), DT(1, "late"), DT(3, "a")])
    [WM(2), DT(3, 'a')]
    """
    kept: list[TimedEvent] = []
    for event in draft:
        marks = [one.time for one in kept if isinstance(one, WM)]
        if isinstance(event, WM) or not any(order.leq(event.time, mark) for mark in marks):
            kept.append(event)
    return kept
