"""The law of the whole: whatever the pipeline and whatever goes wrong, every guarantee holds.

Pipelines are made up at random: a few sources, a few operators of many habits, connected any way that has no cycle,
writers of every kind, lineage scopes; each is run under a random schedule. A failure prints the plan of the pipeline
and the schedule, smallest first, with the command that repeats it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.simulation import operators as ops
from tests.simulation import timed
from tests.simulation.operators import numbers

import clew
from clew.model.graph import Graph, Scope
from clew.model.scope import reachable
from clew.model.validation import build_graph
from clew.operators.batch import Batch
from clew.testing import Outside, scripted
from clew.verify.parts import SNAPSHOT
from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.simulator import Report, simulate

Writers = Callable[[], clew.WriteConnection]


class From(NamedTuple):
    """A source of a plan."""

    events: int
    actions: int = 1
    is_replayable: bool = True
    is_timed: bool = False


class Step(NamedTuple):
    """An operator of a plan; it takes its inputs from the output ports before it, counted round and round."""

    kind: str
    inputs: tuple[int, int] = (0, 0)
    size: int = 2
    write: str = "conditional"
    replicas: int = 0
    """Parallel, if there are any; its first input is then divided by key or in turn."""


class Plan(NamedTuple):
    """All that is needed to build a pipeline."""

    sources: tuple[From, ...]
    steps: tuple[Step, ...]
    scopes: tuple[tuple[int, int, float | None], ...] = ()
    """Start and target, counted round and round among the ports that can be one, and the retention time."""


def _reading(step: Step, writer: Writers) -> clew.Operator:
    return ops.Lookup(Outside("shared").reader())


STEPS: dict[str, Callable[[Step, Writers], clew.Operator]] = {
    "double": lambda step, writer: ops.Double(),
    "sliding": lambda step, writer: ops.Sliding(step.size, max(1, step.size // 2)),
    "batch": lambda step, writer: Batch(step.size),
    "chance": lambda step, writer: ops.Chance(),
    "arrivals": lambda step, writer: ops.Arrivals(("one", "two")),
    "synchronised": lambda step, writer: ops.Synchronised(step.size, writer()),
    "counted": lambda step, writer: ops.CountedWriter(step.size, writer()),
    "writes-first": lambda step, writer: ops.WriteThenSend(writer()),
    "kinds": lambda step, writer: ops.Kinds(first=writer(), second=Outside("shared").writer()),
    "lookup": _reading,
    "timed": lambda step, writer: ops.Timed(),
    "dispatch": lambda step, writer: ops.Dispatch(2),
    "split": lambda step, writer: ops.Split(),
    "sessions": lambda step, writer: ops.Sessions(step.size),
    "reused": lambda step, writer: ops.Reused(step.size),
    "choosy": lambda step, writer: ops.Choosy(),
    "noted": lambda step, writer: ops.Noted(step.size),
    "histogram": lambda step, writer: ops.Histogram(step.size),
    "end": lambda step, writer: ops.Terminal(),
    "windows": lambda step, writer: timed.EventWindows(step.size + 1),
    "both-windows": lambda step, writer: timed.EventWindows(step.size + 1, ("one", "two")),
}


def build(plan: Plan) -> Graph:
    """The graph of a plan."""
    pipeline = clew.Pipeline("random")
    streams: list[clew.Stream] = []
    for number, each in enumerate(plan.sources, 1):
        source = scripted(numbers(each.events, first=number * 10), actions=each.actions, replayable=each.is_replayable)
        times = clew.event_time("x", late_by=1, whole_numbers=True) if each.is_timed else None
        streams.append(pipeline.source(f"source{number}", source, times))
    for number, step in enumerate(plan.steps, 1):
        outside = Outside("shared" if step.write == "conditional" and number % 2 else f"outside{number}")
        if step.kind.endswith("windows") and not all(each.is_timed for each in plan.sources):
            step = step._replace(kind="double")
        operator = STEPS[step.kind](step, lambda outside=outside, step=step: outside.writer(step.write))
        inputs = {
            port: streams[place % len(streams)] for port, place in zip(operator.inputs, step.inputs, strict=False)
        }
        if step.replicas:
            first = operator.inputs[0]
            parallel = inputs[first].parallel(step.replicas, key="x" if step.size > 1 else None)
            inputs = {**inputs, first: parallel}
        made = pipeline.operator(f"{step.kind}{number}", operator, inputs)
        streams.extend(made[port] for port in operator.outputs)
    return _with_scopes(pipeline.build(), plan)


def _with_scopes(graph: Graph, plan: Plan) -> Graph:
    starts = [f"{node.name}.{port}" for node in graph.nodes.values() for port in node.outputs]
    scopes = []
    for start, target, keep_s in plan.scopes:
        found = reachable(graph, starts[start % len(starts)])
        if found:
            scopes.append(Scope(starts[start % len(starts)], found[target % len(found)], keep_s))
    return build_graph(graph.name, graph.nodes.values(), graph.channels, scopes)


def run(plan: Plan, schedule: Schedule, **options: Any) -> Report:
    """One run of a plan under a schedule."""
    return simulate(build(plan), schedule, steps_max=200_000, **options)


def replay(plan: Plan, schedule: str, **options: Any) -> None:
    """Repeats a run and prints its trace."""
    report = run(plan, Schedule.parse(schedule), is_tracing=True, **options)
    print("\n".join(report.trace))
    print(report.violation or "every guarantee held")


def explained(plan: Plan, report: Report, options: str = "") -> str:
    """What was violated, and the command that repeats it."""
    code = f"from tests.laws.test_simulation import *; replay({plan!r}, {str(report.schedule)!r}{options})"
    return f'{report.violation}\n  replay: .venv/bin/python -c "{code}"'


sources = st.builds(From, st.integers(0, 5), st.integers(1, 3), st.booleans(), st.booleans())
steps = st.builds(
    Step,
    st.sampled_from(sorted(STEPS)),
    st.tuples(st.integers(0, 7), st.integers(0, 7)),
    st.integers(1, 3),
    st.sampled_from([str(kind) for kind in clew.Kind]),
    st.sampled_from([0, 0, 0, 2]),
)
scopes = st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from([None, 0.002, 0.02]))
plans = st.builds(
    Plan,
    st.lists(sources, min_size=1, max_size=2).map(tuple),
    st.lists(steps, min_size=1, max_size=5).map(tuple),
    st.lists(scopes, max_size=2).map(tuple),
)
faults = st.builds(Fault, st.sampled_from(list(FaultKind)), st.integers(1, 130), st.integers(1, 80)).map(
    lambda fault: fault if fault.kind is FaultKind.PAUSE else Fault(fault.kind, fault.at)
)
schedules = st.builds(Schedule, st.integers(0, 1 << 20), st.lists(faults, min_size=1, max_size=5).map(tuple))


@given(plans, schedules)
@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
def test_every_guarantee_holds_for_every_pipeline_under_every_schedule(plan: Plan, schedule: Schedule) -> None:
    report = run(plan, schedule)
    assert report.is_good, explained(plan, report)


def able(plan: Plan) -> Plan:
    """The plan as it can run with snapshots: all sources replayable, no write before an output, no lineage."""
    steps = tuple(each._replace(kind="counted") if each.kind == "writes-first" else each for each in plan.steps)
    return Plan(tuple(each._replace(is_replayable=True) for each in plan.sources), steps)


@given(plans, schedules)
@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])
def test_every_guarantee_holds_with_snapshots_too(plan: Plan, schedule: Schedule) -> None:
    plan = able(plan)
    report = run(plan, schedule, parts=SNAPSHOT)
    assert report.is_good, explained(plan, report, ", parts=SNAPSHOT")


@given(plans, schedules)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_schedule_gives_the_same_run(plan: Plan, schedule: Schedule) -> None:
    one, other = (run(plan, schedule, is_tracing=True) for _ in range(2))
    assert one == other, explained(plan, one)
    assert one.trace == other.trace
