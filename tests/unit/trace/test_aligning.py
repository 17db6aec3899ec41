"""Lives that name their connections by other places tell the same."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.laws.traced_runs import Run
from tests.unit.verify.explain.told import SUMS, log_trace

from clew.trace.aligning import _Move, aligned
from clew.trace.life import Life
from clew.trace.reader import Trace
from clew.trace.records import Names
from clew.verify.explain import Explanation, explain


@given(st.integers(0, 10**6), st.sampled_from(("log", "snapshot")))
def test_ports_in_another_order(seed: int, mode: str) -> None:
    trace, chance = Run(seed, mode).trace, Random(seed)
    shuffled: dict[object, list[Life]] = {}
    for replica, lives in trace.lives.items():
        shuffled[replica] = []
        for life in lives:
            names = life.head.names
            channels = tuple(chance.sample(names.channels, len(names.channels)))
            shuffled[replica].append(_Move(names, names._replace(channels=channels)).life(life))
    again = Trace(mode, {replica: aligned(lives) for replica, lives in shuffled.items()})  # type: ignore[misc]
    found, expected = explain(again), explain(trace)
    assert isinstance(found, Explanation), str(found)
    assert isinstance(expected, Explanation)
    for name, story in expected.stories.items():
        assert found.stories[name].taken == story.taken
    assert found.recoveries == expected.recoveries


def test_a_port_that_was_added_later() -> None:
    trace = log_trace()
    first, second = trace.lives[SUMS]
    names = second.head.names._replace(ports=("dead",))
    later = _Move(second.head.names, names).life(second)
    assert later.head.made == (0, 1)
    lives = aligned([first, later])
    assert [life.head.names for life in lives] == [names, names]
    assert lives[0].told[0].parts[0].made == (1, 1, 1)  # type: ignore[union-attr]
    later_closed = Life(lives[1].head, lives[1].told)
    trace.lives[SUMS] = [lives[0], later_closed]
    assert isinstance(explain(trace), Explanation)


def test_lives_with_the_same_names_stay_as_they_are() -> None:
    lives = log_trace().lives[SUMS]
    assert aligned(lives) is lives
    assert isinstance(lives[0].head.names, Names)
