"""The law of dead letters: what is poison is set aside, all else goes through as if the poison had never been there."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.simulation.operators import numbers

import clew
from clew.model.names import Replica
from clew.operators.stateless import Stateless
from clew.testing import Outside, scripted
from clew.verify.oracle import judge
from clew.verify.rest import judge_rest
from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.world import World


class Picky(Stateless):
    """Doubles numbers, or fails at them: some when they are taken, others when something is made of them."""

    def __init__(self, untakable: set[int], unusable: set[int]) -> None:
        self.untakable = untakable
        self.unusable = unusable

    def assign(self, event: clew.Event, ctx: clew.Context) -> Any:
        if event.rows[0]["x"] in self.untakable:
            raise ValueError("cannot be taken")
        return super().assign(event, ctx)

    def apply(self, event: clew.Event, ctx: clew.Context) -> Any:
        number = event.rows[0]["x"]
        if number in self.unusable:
            raise ValueError("cannot be used")
        yield "out", [{"x": 2 * number}]


def run(events: int, picky: Picky, schedule: Schedule) -> World:
    pipeline = clew.Pipeline("picky")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    made = stream.operator("picky", picky, dead_letters=True)
    made.write("report", Outside("report").writer())
    made["dead"].write("aside", Outside("aside").writer("checkable"))
    graph = pipeline.build()
    world = World(graph, schedule)
    world.run(200_000)
    judge(graph, world.archive, world.outside, world.store.log_id)
    world.failures.judge(world.archive)
    judge_rest(graph, world.reader, world.archive)
    return world


kinds = st.sampled_from([FaultKind.CRASH, FaultKind.AFTER, FaultKind.POWER, FaultKind.BREAK])
schedules = st.builds(
    Schedule,
    st.integers(0, 1 << 20),
    st.lists(st.builds(Fault, kinds, st.integers(1, 200)), max_size=3).map(tuple),
)
few = st.sets(st.integers(1, 8), max_size=4)


@given(st.integers(0, 8), few, few, schedules)
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_poison_is_set_aside_and_all_else_goes_through(
    events: int, untakable: set[int], unusable: set[int], schedule: Schedule
) -> None:
    world = run(events, Picky(untakable, unusable), schedule)
    outputs = world.archive[Replica("picky")].outputs
    poison = [number for number in range(1, events + 1) if number in untakable | unusable]
    healthy = [number for number in range(1, events + 1) if number not in untakable | unusable]
    assert [output.event.rows[0]["x"] for output in outputs["out"][:-1]] == [2 * number for number in healthy]
    assert [output.event.rows[0]["x"] for output in outputs["dead"][:-1]] == poison
    for output in outputs["dead"][:-1]:
        about = output.event.attributes
        assert about["move"] == ("fold" if output.event.rows[0]["x"] in untakable else "generate")
    assert [action.batch.to_pylist() for action in world.outside.written("aside", "to")] == [[{"x": n}] for n in poison]
