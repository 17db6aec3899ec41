"""Orders in a pipeline: who has times, of which order, and what does not fit together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.simulation.timed import Windows

import clew
from clew.errors import BuildError, CycleWithoutFeedback
from clew.operators.stateless import Stateless
from clew.testing import scripted
from clew.times import Integers, Product


class Plain(Stateless):
    def __init__(self, *inputs: str) -> None:
        self.inputs = inputs or ("in",)

    def apply(self, event: clew.Event, ctx: clew.Context) -> Iterable[Any]:
        return ()


class Closes(Plain):
    """Closes a cycle without advancing time."""

    is_feedback = True


@pytest.fixture
def pipeline() -> clew.Pipeline:
    return clew.Pipeline("p")


def test_times_pass_through_and_stop_where_an_input_has_none(pipeline: clew.Pipeline) -> None:
    timed = pipeline.source("timed", scripted([]), times=clew.numbered())
    plain = pipeline.source("plain", scripted([]))
    passed = timed.operator("passed", Plain())
    pipeline.operator("both", Plain("one", "two"), {"one": passed, "two": plain})
    nodes = pipeline.build().nodes
    assert nodes["passed"].order == Integers()
    assert nodes["both"].order is None
    assert nodes["both"].input_orders == {"one": Integers()}
    assert not nodes["plain"].is_timed


def test_inside_a_loop_a_time_is_a_pair(pipeline: clew.Pipeline) -> None:
    numbers = pipeline.source("numbers", scripted([]), times=clew.numbered())

    def body(entered: clew.Stream, back: clew.Stream) -> tuple[clew.Stream, clew.Stream]:
        step = entered.operator("step", Plain("in", "back"), {"back": back})
        return step, step

    numbers.iterate("loop", body).operator("after", Plain())
    nodes = pipeline.build().nodes
    inside = Product(Integers(), Integers())
    assert {name: node.order for name, node in nodes.items()} == {
        "numbers": Integers(),
        "loop-enter": inside,
        "loop-again": inside,
        "step": inside,
        "loop-leave": Integers(),
        "after": Integers(),
    }


def test_an_operator_that_works_by_time_needs_times(pipeline: clew.Pipeline) -> None:
    pipeline.source("plain", scripted([])).operator("windows", Windows(4))
    with pytest.raises(
        BuildError, match="operator 'windows' works by time, but the events of its input in have no times"
    ):
        pipeline.build()


def test_two_kinds_of_times_do_not_meet(pipeline: clew.Pipeline) -> None:
    numbers = pipeline.source("numbers", scripted([]), times=clew.numbered())
    moments = pipeline.source("moments", scripted([]), times=clew.event_time("ts"))
    pipeline.operator("both", Plain("one", "two"), {"one": numbers, "two": moments})
    with pytest.raises(BuildError) as caught:
        pipeline.build()
    assert str(caught.value) == (
        "operator 'both': its inputs have times of different orders, Integers() and EventTime(). Give all its sources "
        "times of the same kind, or define order() in Plain."
    )


def test_a_cycle_that_does_not_advance_time_is_named(pipeline: clew.Pipeline) -> None:
    numbers = pipeline.source("numbers", scripted([]), times=clew.numbered())
    numbers.operator("step", Plain("in", "back"))
    pipeline.operator("close", Closes(), "step.out")
    pipeline.connect("close.out", "step.back")
    with pytest.raises(CycleWithoutFeedback) as caught:
        pipeline.build()
    assert "step" in str(caught.value)
    assert "close" in str(caught.value)


def test_times_are_an_object_with_stamp(pipeline: clew.Pipeline) -> None:
    with pytest.raises(BuildError, match="times of source 'numbers' is the class Stamps; expected an object"):
        pipeline.source("numbers", scripted([]), times=clew.Stamps)  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="times of source 'numbers' is a str; expected an object of a subclass"):
        pipeline.source("numbers", scripted([]), times="ts")  # type: ignore[arg-type]


def test_a_body_that_returns_no_pair_is_refused(pipeline: clew.Pipeline) -> None:
    numbers = pipeline.source("numbers", scripted([]), times=clew.numbered())
    with pytest.raises(BuildError, match="the body of loop 'loop' did not return a pair of streams"):
        numbers.iterate("loop", lambda entered, back: entered)  # type: ignore[arg-type,return-value]
