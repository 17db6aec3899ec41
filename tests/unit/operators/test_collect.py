"""The collecting sink: all records in its state, in the order in which they came."""

from __future__ import annotations

import clew
from clew.operators.collect import Collect, collected
from clew.testing import Alone, scripted, verify


def test_what_is_collected_is_in_the_state_of_the_sink() -> None:
    alone = Alone(Collect())
    for rows in ([{"x": 1}, {"x": 2}], [{"x": 3}]):
        alone.send(rows)
    assert collected(alone.context.state.items()).to_pylist() == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_nothing_is_collected_twice_or_lost() -> None:
    pipeline = clew.Pipeline("collecting")
    pipeline.source("numbers", scripted([[{"x": 1}, {"x": 2}], [{"x": 3}]])).collect("found")
    verify(pipeline, schedules=20)
