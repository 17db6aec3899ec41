"""Whole pipelines: every mistake between operators is refused by build(), in words that name the place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from clew.errors import (
    BuildError,
    CycleWithoutFeedback,
    DoublyUsedPort,
    DuplicateName,
    MissingConnection,
    ScopeWithoutPath,
    UnknownOperator,
    UnknownPort,
    UnreachableOperator,
    UnsafeWriteConnection,
)
from clew.model.connection import Kind
from clew.model.event import Event
from clew.model.graph import Capture, Graph, Scope
from clew.model.names import Channel, Replica
from clew.model.operator import Context, Operator
from clew.model.stamps import numbered
from clew.model.validation import build_graph
from clew.pipeline import Pipeline
from clew.testing import Outside, scripted
from clew.times import IDENTITY, Add


class Pass(Operator):
    def __init__(self, inputs: str = "in", outputs: str = "out", is_feedback: bool = False) -> None:
        self.inputs = tuple(inputs.split())
        self.outputs = tuple(outputs.split())
        self.is_feedback = is_feedback
        self.summaries = dict.fromkeys(self.inputs, Add(1) if is_feedback else IDENTITY)

    def assign(self, event: Event, ctx: Context) -> list[int]:
        return [event.id]

    def update(self, input_set: Any, event: Event, note: Any = None) -> None: ...

    def generate(self, input_sets: Any, ctx: Context) -> Iterable[tuple[str, Any]]:
        return ()


@pytest.fixture
def pipeline() -> Pipeline:
    """orders -> hourly -> report, with a second source."""
    pipeline = Pipeline("sales")
    orders = pipeline.source("orders", scripted([[{"x": 1}]]))
    pipeline.source("returns", scripted([[{"x": 2}]]), times=numbered())
    orders.operator("hourly", Pass()).write("report", Outside("report").writer())
    return pipeline


def refusal(pipeline: Pipeline, error: type[BuildError]) -> str:
    with pytest.raises(error) as caught:
        pipeline.build()
    assert type(caught.value) is error
    return str(caught.value)


def test_a_right_pipeline_becomes_a_graph(pipeline: Pipeline) -> None:
    graph = pipeline.build()
    assert isinstance(graph, Graph)
    assert list(graph.nodes) == ["orders", "returns", "hourly", "report"]
    assert [str(channel) for channel in graph.channels] == ["orders.out->hourly.in", "hourly.out->report.in"]
    assert graph.nodes["report"].is_sink
    assert not graph.nodes["hourly"].capture.is_on
    assert graph.describe()["operators"]["report"]["writes"] == {"to": "conditional"}


@pytest.mark.parametrize("kind", list(Kind))
def test_writes_of_each_safe_kind_are_accepted(pipeline: Pipeline, kind: Kind) -> None:
    pipeline.operator("archive", Pass(outputs=""), "orders.out", writes={"to": Outside("archive").writer(kind)})
    assert pipeline.build().nodes["archive"].writes["to"].kind == kind


def test_a_write_of_no_safe_kind_is_refused(pipeline: Pipeline) -> None:
    with pytest.raises(
        UnsafeWriteConnection, match=r"'to' of operator 'archive', a .*, is of kind 'hopeful'; expected"
    ):
        pipeline.operator("archive", Pass(), "orders.out", writes={"to": Outside("archive").writer("hopeful")})
    node = replace(pipeline.build().nodes["hourly"], writes={"to": Outside("archive").writer("hopeful")})
    with pytest.raises(UnsafeWriteConnection, match="'to' of operator 'hourly'"):
        build_graph("sales", [node], [])


def test_no_source() -> None:
    message = refusal(Pipeline("empty"), BuildError)
    assert message.startswith("pipeline 'empty' has no source; expected at least one")
    assert message.endswith("Add one with pipeline.source(name, source).")


def test_unknown_operator(pipeline: Pipeline) -> None:
    pipeline.connect("returns.out", "hourli.in")
    assert refusal(pipeline, UnknownOperator) == (
        "connection returns.out->hourli.in: pipeline 'sales' has no operator 'hourli'; its operators are orders, "
        "returns, hourly, report. Did you mean 'hourly'?"
    )


def test_unknown_operator_that_is_like_none(pipeline: Pipeline) -> None:
    pipeline.connect("xyz.out", "hourly.in")
    assert refusal(pipeline, UnknownOperator).endswith("Declare it, or name one of them.")


def test_unknown_input_port(pipeline: Pipeline) -> None:
    pipeline.connect("returns.out", "hourly.ins")
    assert refusal(pipeline, UnknownPort) == (
        "connection returns.out->hourly.ins: operator 'hourly' has no input port 'ins'; its input ports are in. "
        "Did you mean 'in'?"
    )


def test_unknown_output_port(pipeline: Pipeline) -> None:
    pipeline.operator("join", Pass("left right", "both"), {"left": "returns.oot", "right": "orders.out"})
    assert refusal(pipeline, UnknownPort) == (
        "connection returns.oot->join.left: operator 'returns' has no output port 'oot'; its output ports are out. "
        "Did you mean 'out'?"
    )


def test_ports_the_wrong_way_round(pipeline: Pipeline) -> None:
    pipeline.connect("hourly.in", "orders.out")
    assert refusal(pipeline, UnknownPort).endswith(
        "operator 'hourly' has no output port 'in'; its output ports are out. 'in' is one of its input ports; name an "
        "output port here."
    )


def test_into_an_output(pipeline: Pipeline) -> None:
    pipeline.connect("returns.out", "hourly.out")
    assert refusal(pipeline, UnknownPort).endswith("'out' is one of its output ports; name an input port here.")


def test_into_a_source(pipeline: Pipeline) -> None:
    pipeline.connect("hourly.out", "returns.in")
    assert refusal(pipeline, UnknownPort).endswith(
        "its input ports are none. It is a source: nothing can be connected before it."
    )


def test_out_of_a_sink(pipeline: Pipeline) -> None:
    pipeline.operator("after", Pass(), "report.to")
    assert refusal(pipeline, UnknownPort).endswith(
        "its output ports are none. It is a sink: nothing can be connected behind it."
    )


def test_out_of_a_write_connection(pipeline: Pipeline) -> None:
    pipeline.operator("both", Pass(), "orders.out", writes={"to": Outside("x").writer()})
    pipeline.operator("after", Pass(), "both.to")
    assert refusal(pipeline, UnknownPort).endswith(
        "'to' is one of its write connections, which lead outside; name an output port here."
    )


def test_doubly_used_port(pipeline: Pipeline) -> None:
    pipeline.connect("returns.out", "hourly.in")
    assert refusal(pipeline, DoublyUsedPort) == (
        "input port hourly.in has two connections, from orders.out and from returns.out; expected one. Merge the two "
        "streams first, one.merge(other), or give the operator an input port for each."
    )


def test_the_same_connection_twice(pipeline: Pipeline) -> None:
    pipeline.connect("orders.out", "hourly.in")
    assert "from orders.out and from orders.out" in refusal(pipeline, DoublyUsedPort)


def test_missing_connection(pipeline: Pipeline) -> None:
    pipeline.operator("join", Pass("left right"), {"left": "orders.out"})
    assert refusal(pipeline, MissingConnection) == (
        "input port join.right has no connection; expected one. Connect an output port to it with "
        "pipeline.connect('operator.port', 'join.right'), or pass the stream in inputs={'right': ...} where 'join' is "
        "declared."
    )


def test_an_output_port_without_connection_is_allowed(pipeline: Pipeline) -> None:
    pipeline.operator("probe", Pass(outputs="out other"), "orders.out")
    assert pipeline.build().nodes["probe"].outputs == ("out", "other")


def test_duplicate_operator(pipeline: Pipeline) -> None:
    with pytest.raises(DuplicateName) as caught:
        pipeline.operator("hourly", Pass(), "orders.out")
    assert str(caught.value) == (
        "pipeline 'sales' has an operator named 'hourly' already, a Pass; expected each name once. Choose another name "
        "for the second one."
    )
    assert pipeline.build()  # What was refused left nothing behind.


def test_a_source_may_not_be_named_like_an_operator(pipeline: Pipeline) -> None:
    with pytest.raises(DuplicateName, match="an operator named 'hourly' already"):
        pipeline.source("hourly", scripted([]))


def test_duplicate_nodes_are_refused_whoever_builds(pipeline: Pipeline) -> None:
    nodes = list(pipeline.build().nodes.values())
    with pytest.raises(DuplicateName, match="an operator named 'orders' already"):
        build_graph("twice", [*nodes, nodes[0]], [])


def test_a_cycle_without_feedback_operator(pipeline: Pipeline) -> None:
    pipeline.operator("enter", Pass("in back"), {"in": "returns.out"})
    pipeline.operator("work", Pass(outputs="again done"), "enter.out")
    pipeline.operator("way", Pass(), "work.again")
    pipeline.operator("after", Pass(), "work.done")
    pipeline.connect("way.out", "enter.back")
    assert refusal(pipeline, CycleWithoutFeedback) == (
        "the connections enter.out->work.in, work.again->way.in, way.out->enter.back form a cycle, and none of its "
        "operators (enter, work, way) is a feedback operator; expected one, which counts the rounds. Remove a "
        "connection, or put an operator with is_feedback = True on the way back."
    )


def test_an_operator_that_feeds_itself(pipeline: Pipeline) -> None:
    pipeline.operator("self", Pass("in back"), {"in": "returns.out", "back": "self.out"})
    assert "the connections self.out->self.back form a cycle" in refusal(pipeline, CycleWithoutFeedback)


def test_a_cycle_with_feedback_operator(pipeline: Pipeline) -> None:
    pipeline.operator("enter", Pass("in back"), {"in": "returns.out"})
    pipeline.operator("way", Pass(is_feedback=True), "enter.out")
    pipeline.connect("way.out", "enter.back")
    assert pipeline.build().nodes["way"].order is not None


def test_each_cycle_needs_one(pipeline: Pipeline) -> None:
    pipeline.operator("enter", Pass("in back more"), {"in": "returns.out"})
    pipeline.operator("way", Pass(is_feedback=True), "enter.out")
    pipeline.operator("short", Pass(), "enter.out")
    pipeline.connect("way.out", "enter.back")
    pipeline.connect("short.out", "enter.more")
    message = refusal(pipeline, CycleWithoutFeedback)
    assert "enter.out->short.in" in message
    assert "short.out->enter.more" in message
    assert "way.out" not in message


def test_unreachable_operator(pipeline: Pipeline) -> None:
    pipeline.operator("island", Pass(), "ferry.out")
    pipeline.operator("ferry", Pass(is_feedback=True), "island.out")
    assert refusal(pipeline, UnreachableOperator) == (
        "operator 'island' cannot be reached from any source; the sources are orders, returns. Connect one of them, or "
        "an operator that they lead to, to it or to an operator before it, or remove it."
    )


def test_scope_without_path(pipeline: Pipeline) -> None:
    pipeline.lineage("returns.out", "hourly.out")
    assert refusal(pipeline, ScopeWithoutPath) == (
        "lineage scope returns.out -> hourly.out has no path: nothing that leaves returns.out leads to hourly.out; it "
        "leads to none. Choose a target among these, or a start before hourly.out."
    )


def test_scope_the_wrong_way_round(pipeline: Pipeline) -> None:
    pipeline.lineage("hourly.out", "orders.out")
    assert "it leads to report.to." in refusal(pipeline, ScopeWithoutPath)


def test_scope_from_a_port_to_itself(pipeline: Pipeline) -> None:
    pipeline.lineage("hourly.out", "hourly.out")
    refusal(pipeline, ScopeWithoutPath)


def test_scope_with_unknown_ends(pipeline: Pipeline) -> None:
    pipeline.lineage("order.out", "hourly.out")
    assert refusal(pipeline, UnknownOperator).startswith(
        "lineage scope order.out -> hourly.out: pipeline 'sales' has no operator 'order'"
    )


def test_scope_that_starts_at_an_input(pipeline: Pipeline) -> None:
    pipeline.lineage("hourly.in", "report.to")
    assert refusal(pipeline, UnknownPort).endswith("'in' is one of its input ports; name an output port here.")


def test_scope_that_ends_at_an_input(pipeline: Pipeline) -> None:
    pipeline.lineage("orders.out", "hourly.in")
    assert "operator 'hourly' has no output port 'in'" in refusal(pipeline, UnknownPort)


def test_scope_that_ends_at_an_unknown_write_connection(pipeline: Pipeline) -> None:
    pipeline.lineage("orders.out", "report.too")
    assert refusal(pipeline, UnknownPort) == (
        "lineage scope orders.out -> report.too: operator 'report' has no write connection 'too'; its write "
        "connections are to, and it has no output ports. Did you mean 'to'? A scope ends at one of these."
    )


@pytest.mark.parametrize("keep_s", [0, -1.0, "1h", True])
def test_scope_kept_for_no_time(pipeline: Pipeline, keep_s: Any) -> None:
    pipeline.lineage("orders.out", "hourly.out", keep_s=keep_s)
    assert f"keeps lineage for {keep_s!r} seconds; expected a positive number" in refusal(pipeline, BuildError)


def test_a_scope_reaches_the_graph_and_its_nodes(pipeline: Pipeline) -> None:
    pipeline.lineage("orders.out", "hourly.out", keep_s=60)
    graph = pipeline.build()
    assert graph.scopes == (Scope("orders.out", "hourly.out", 60),)
    assert graph.nodes["hourly"].capture == Capture(frozenset({"in"}), frozenset({"out"}), {"out": 60})
    assert not graph.nodes["orders"].capture.is_on
    assert not graph.nodes["report"].capture.is_on


@pytest.mark.parametrize(("first", "second", "longest"), [(5, 9, 9), (9, 5, 9), (None, 5, None), (5, None, None)])
def test_a_scope_asked_for_twice_is_kept_for_the_longer_time(
    pipeline: Pipeline, first: float | None, second: float | None, longest: float | None
) -> None:
    pipeline.lineage("orders.out", "hourly.out", keep_s=first)
    pipeline.lineage("orders.out", "hourly.out", keep_s=second)
    graph = pipeline.build()
    assert graph.scopes == (Scope("orders.out", "hourly.out", longest),)
    assert graph.nodes["hourly"].capture.targets == {"out": longest}


def test_group_of_an_unknown_operator(pipeline: Pipeline) -> None:
    pipeline.group("orders", "hourli")
    assert refusal(pipeline, UnknownOperator).startswith(
        "group (orders, hourli): pipeline 'sales' has no operator 'hourli'"
    )


def test_one_operator_in_two_groups(pipeline: Pipeline) -> None:
    pipeline.group("orders", "hourly")
    pipeline.group("hourly", "report")
    assert refusal(pipeline, BuildError) == (
        "group (hourly, report): operator 'hourly' is in the group (orders, hourly) already; expected each operator in "
        "one group at most. Leave it out of one, or make one group of both."
    )


def test_one_operator_twice_in_a_group(pipeline: Pipeline) -> None:
    pipeline.group("orders", "orders")
    assert "is in the group (orders, orders) already" in refusal(pipeline, BuildError)


def test_groups_reach_the_graph(pipeline: Pipeline) -> None:
    pipeline.group("orders", "hourly")
    assert pipeline.build().groups == (("orders", "hourly"),)


def test_a_channel_to_nowhere_is_refused_whoever_builds(pipeline: Pipeline) -> None:
    nodes = pipeline.build().nodes.values()
    wrong = Channel(Replica("orders"), "out", Replica("nobody"), "in")
    with pytest.raises(UnknownOperator, match="has no operator 'nobody'"):
        build_graph("sales", nodes, [wrong])
