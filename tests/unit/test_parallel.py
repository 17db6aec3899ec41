"""Parallel operators: how they are declared, what graph they become, and that one replica's failure stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from clew.errors import BuildError, DuplicateName, LogOfAnotherPipeline, UnknownOperator, UnknownPort
from clew.log.manifest import check_same_pipeline
from clew.log.tables import read_tables
from clew.model.event import Event
from clew.model.graph import Graph, Scope
from clew.model.names import Channel, Replica
from clew.model.operator import Context
from clew.model.scope import paths
from clew.model.validation import build_graph
from clew.operators.dispatch import KeyDispatch, RoundRobin
from clew.operators.merge import Merger
from clew.operators.stateless import Stateless
from clew.pipeline import Pipeline, Stream
from clew.protocol.settings import Settings
from clew.testing import Crash, Outside, run, scripted, verify
from clew.verify.oracle import judge
from clew.verify.parts import Parts
from clew.verify.schedule import Schedule
from clew.verify.world import World


class Split(Stateless):
    outputs = ("even", "odd")

    def apply(self, event: Event, ctx: Context) -> Iterator[tuple[str, Any]]:
        for row in event.rows:
            yield "odd" if row["x"] % 2 else "even", [row]


class Join(Stateless):
    inputs = ("left", "right")

    def apply(self, event: Event, ctx: Context) -> Iterator[tuple[str, Any]]:
        yield "out", [{**row, "from": event.input} for row in event.rows]


def same(table: pa.Table) -> pa.Table:
    return table


def numbers(count: int, first: int = 0) -> list[list[dict[str, int]]]:
    return [[{"x": x}] for x in range(first, first + count)]


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline("sales")


@pytest.fixture
def orders(pipeline: Pipeline) -> Stream:
    return pipeline.source("orders", scripted(numbers(6)))


def wires(pipeline: Pipeline) -> list[str]:
    return [str(channel) for channel in pipeline.build().channels]


# Declaring


def test_a_parallel_operator_has_a_dispatcher_replicas_and_a_merger(pipeline: Pipeline, orders: Stream) -> None:
    split = orders.parallel(2, key="x").operator("split", Split())
    assert (str(split), str(split["odd"])) == ("split-merge.even", "split-merge.odd")
    assert wires(pipeline) == [
        "orders.out->split-dispatch.in",
        "split-dispatch.out-0->split.in",
        "split-dispatch.out-1->split/1.in",
        "split.even->split-merge.even-0",
        "split/1.even->split-merge.even-1",
        "split.odd->split-merge.odd-0",
        "split/1.odd->split-merge.odd-1",
    ]
    graph = pipeline.build()
    assert graph.replicas == (
        Replica("orders"),
        Replica("split-dispatch"),
        Replica("split", 0),
        Replica("split", 1),
        Replica("split-merge"),
    )
    kinds = [type(graph.nodes[name].definition) for name in ("split-dispatch", "split", "split-merge")]
    assert kinds == [KeyDispatch, Split, Merger]
    assert [str(channel) for channel in graph.inbound(Replica("split", 1))] == ["split-dispatch.out-1->split/1.in"]
    assert [str(channel) for channel in graph.outbound(Replica("split", 1))] == [
        "split/1.even->split-merge.even-1",
        "split/1.odd->split-merge.odd-1",
    ]


def test_a_parallel_sink_has_no_merger(pipeline: Pipeline, orders: Stream) -> None:
    report = orders.parallel(3).write("report", Outside("report").writer(), every=2)
    assert (str(report), report.port) == ("report", None)
    graph = pipeline.build()
    assert list(graph.nodes) == ["orders", "report-dispatch", "report"]
    assert graph.nodes["report"].replicas == 3
    assert isinstance(graph.nodes["report-dispatch"].definition, RoundRobin)


def test_all_sugar_is_there(orders: Stream) -> None:
    assert repr(orders.parallel(2)) == "<Parallel orders.out.parallel(2)>"
    streams = [
        orders.parallel(2).map(same),
        orders.parallel(2).map(same),
        orders.parallel(2).filter(lambda row: True, rows=True),
        orders.parallel(2).flat_map(lambda frame: [frame], pandas=True),
        orders.parallel(2).batch(3),
    ]
    assert [str(stream) for stream in streams] == [
        "same-merge.out",
        "same-2-merge.out",
        "filter-1-merge.out",
        "flat_map-1-merge.out",
        "batch-1-merge.out",
    ]


def test_one_replica_is_parallel_as_well(pipeline: Pipeline, orders: Stream) -> None:
    orders.parallel(1).map(same)
    assert wires(pipeline) == [
        "orders.out->same-dispatch.in",
        "same-dispatch.out-0->same.in",
        "same.out->same-merge.out-0",
    ]


def test_a_parallel_stream_can_be_used_twice(pipeline: Pipeline, orders: Stream) -> None:
    parallel = orders.parallel(2)
    parallel.map(same)
    parallel.map(same)
    assert [node.replicas for node in pipeline.build().nodes.values()] == [1, 1, 2, 1, 1, 2, 1]


@pytest.mark.parametrize("n", [0, -1, 257, 2.0, True, "2", None])
def test_a_number_of_replicas_that_cannot_be(orders: Stream, n: Any) -> None:
    with pytest.raises(BuildError) as caught:
        orders.parallel(n)
    assert str(caught.value) == (
        f"the operator behind stream orders.out.parallel({n!r}) has {n!r} replicas; expected a whole number from 1 to "
        f"256. Pass how many copies of the operator are to run."
    )


def test_a_key_that_cannot_be(orders: Stream) -> None:
    with pytest.raises(BuildError, match=r"parallel\(\) was given the key 5; expected the name of a column"):
        orders.parallel(2, key=5)  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="expected one of them, or neither for a function on"):
        orders.parallel(2, key=lambda row: 1, rows=True, pandas=True)


def test_a_name_that_is_taken_leaves_nothing_behind(pipeline: Pipeline, orders: Stream) -> None:
    orders.map(same, name="slow-merge")
    with pytest.raises(DuplicateName, match="has an operator named 'slow-merge' already"):
        orders.parallel(2).map(same, name="slow")
    assert wires(pipeline) == ["orders.out->slow-merge.in"]


def test_a_parallel_stream_is_no_output_port(pipeline: Pipeline, orders: Stream) -> None:
    pipeline.operator("join", Join())
    parallel: Any = orders.parallel(2)
    for use in (
        lambda: pipeline.connect(parallel, "join.left"),
        lambda: pipeline.lineage(parallel, "join.out"),
    ):
        with pytest.raises(
            BuildError, match=r"orders\.out\.parallel\(2\) is a parallel stream, .* Declare the operator"
        ):
            use()


# Several inputs


def test_several_parallel_inputs_have_a_dispatcher_each(pipeline: Pipeline, orders: Stream) -> None:
    items = pipeline.source("items", scripted([]))
    orders.parallel(2, key="x").operator("join", Join(), {"right": items.parallel(2, key="y")})
    assert wires(pipeline)[:6] == [
        "orders.out->join-dispatch.in",
        "join-dispatch.out-0->join.left",
        "join-dispatch.out-1->join/1.left",
        "items.out->join-dispatch-right.in",
        "join-dispatch-right.out-0->join.right",
        "join-dispatch-right.out-1->join/1.right",
    ]


def test_a_plain_stream_goes_to_every_replica(pipeline: Pipeline, orders: Stream) -> None:
    rates = pipeline.source("rates", scripted(numbers(2, first=100)))
    orders.parallel(3).operator("join", Join(), {"right": rates})
    result = run(pipeline, crashes=[Crash("join/2", 1)])
    assert [wire for wire in wires(pipeline) if wire.startswith("rates")] == [
        "rates.out->join.right",
        "rates.out->join/1.right",
        "rates.out->join/2.right",
    ]
    rows = result.rows("join-merge.out")
    assert sorted(row["x"] for row in rows if row["from"] == "left") == list(range(6))
    assert sorted(row["x"] for row in rows if row["from"] == "right") == [100] * 3 + [101] * 3
    assert result.restarts == 1


@pytest.mark.parametrize("way", ["behind a plain stream", "by the pipeline"])
def test_an_operator_is_parallel_if_one_of_its_inputs_is(pipeline: Pipeline, orders: Stream, way: str) -> None:
    rates = pipeline.source("rates", scripted([]))
    if way == "by the pipeline":
        pipeline.operator("join", Join(), {"left": rates, "right": orders.parallel(2)})
    else:
        rates.operator("join", Join(), {"right": orders.parallel(2)})
    assert wires(pipeline)[:5] == [
        "rates.out->join.left",
        "rates.out->join/1.left",
        "orders.out->join-dispatch.in",
        "join-dispatch.out-0->join.right",
        "join-dispatch.out-1->join/1.right",
    ]


def test_connected_later_means_all_replicas(pipeline: Pipeline, orders: Stream) -> None:
    pipeline.connect("rates.out", "join.right")
    orders.parallel(2).operator("join", Join())
    pipeline.source("rates", scripted([]))
    assert wires(pipeline)[:2] == ["rates.out->join.right", "rates.out->join/1.right"]


def test_inputs_divided_over_different_numbers_of_replicas(pipeline: Pipeline, orders: Stream) -> None:
    with pytest.raises(BuildError) as caught:
        orders.parallel(2).operator("join", Join(), {"right": orders.parallel(3)})
    assert str(caught.value) == (
        "inputs of operator 'join': port 'left' is divided over 2 replicas, port 'right' is divided over 3 replicas; "
        "expected the same number everywhere, since each replica has all ports. Pass the same n to parallel(); a "
        "stream that is not parallel goes to every replica as a whole."
    )
    assert list(pipeline.build().nodes) == ["orders"]


# The graph


def test_what_replicas_send_is_taken_from_the_merger(pipeline: Pipeline, orders: Stream) -> None:
    orders.parallel(3).map(same, name="slow")
    pipeline.operator("join", Join(), {"left": "slow.out", "right": orders})
    with pytest.raises(BuildError) as caught:
        pipeline.build()
    assert str(caught.value) == (
        "connection slow.out->join.left takes what one of the 3 replicas of operator 'slow' sends; expected what all "
        "of them send. Connect 'slow-merge.out', the output of its merger, or the stream that was returned where "
        "'slow' was declared."
    )


def test_replicas_that_are_not_there(pipeline: Pipeline, orders: Stream) -> None:
    orders.parallel(2).map(same, name="slow")
    graph = pipeline.build()
    channels = [*graph.channels, Channel(Replica("orders"), "out", Replica("slow", 2), "in")]
    with pytest.raises(UnknownOperator, match=r"'slow' has no replica 2; its replicas are numbered from 0 to 1\."):
        build_graph("sales", graph.nodes.values(), channels)


def test_an_input_port_of_one_replica_without_connection(pipeline: Pipeline, orders: Stream) -> None:
    orders.parallel(2).map(same, name="slow")
    graph = pipeline.build()
    channels = [channel for channel in graph.channels if channel.receiver != Replica("slow", 1)]
    with pytest.raises(BuildError, match=r"input port slow/1\.in has no connection"):
        build_graph("sales", graph.nodes.values(), channels)


def test_each_replica_has_a_process_of_its_own(pipeline: Pipeline, orders: Stream) -> None:
    slow = orders.parallel(3).map(same, name="slow")
    pipeline.group("orders", "slow-dispatch", slow)
    assert pipeline.build().groups == (("orders", "slow-dispatch", "slow-merge"),)
    pipeline.group("slow")
    with pytest.raises(
        BuildError, match=r"group \(slow\): operator 'slow' has 3 replicas; expected operators with one"
    ):
        pipeline.build()


def test_replicas_by_name(pipeline: Pipeline, orders: Stream) -> None:
    orders.parallel(2).map(same, name="slow")
    graph = pipeline.build()
    assert graph.replicas_named("slow") == (Replica("slow", 0), Replica("slow", 1))
    assert graph.replicas_named("slow/0") == (Replica("slow", 0),)
    assert graph.replicas_named("slow/2") == graph.replicas_named("fast") == ()


def graph_of(n: int) -> Graph:
    pipeline = Pipeline("sales")
    pipeline.source("orders", scripted([])).parallel(n, key="x").map(same, name="slow")
    return pipeline.build()


def test_a_log_of_another_number_of_replicas_is_refused() -> None:
    two, three = graph_of(2).describe(), graph_of(3).describe()
    check_same_pipeline("sales.log", two, graph_of(2).describe())
    with pytest.raises(LogOfAnotherPipeline) as caught:
        check_same_pipeline("sales.log", two, three)
    assert str(caught.value) == (
        "the log at sales.log belongs to the pipeline 'sales', which is not the pipeline 'sales' given: operator "
        "'slow-dispatch', output ports: out-0, out-1 in the log, out-0, out-1, out-2 in the pipeline; operator 'slow', "
        "replicas: 2 in the log, 3 in the pipeline; operator 'slow-merge', input ports: out-0, out-1 in the log, "
        "out-0, out-1, out-2 in the pipeline; connection slow-dispatch.out-2 to slow/2.in: nothing in the log, there "
        "in the pipeline; connection slow/2.out to slow-merge.out-2: nothing in the log, there in the pipeline. Run "
        "the pipeline that the log was made for, or name another place for the log of this one."
    )
    wires = [wire for wire in two["connections"] if "slow/1" in wire]
    assert wires == [["slow-dispatch", "out-1", "slow/1", "in"], ["slow/1", "out", "slow-merge", "out-1"]]


# Lineage


def test_a_scope_covers_all_replicas(pipeline: Pipeline, orders: Stream) -> None:
    slow = orders.parallel(2).map(same, name="slow")
    pipeline.lineage(orders, slow)
    graph = pipeline.build()
    assert graph.nodes["slow-dispatch"].capture.outputs == {"out-0", "out-1"}
    assert graph.nodes["slow"].capture.inputs == {"in"}
    assert graph.nodes["slow-merge"].capture.inputs == {"out-0", "out-1"}
    assert list(paths(graph, Scope("orders.out", "slow-merge.out"))) == [
        ("orders.out", "slow-dispatch.in", f"slow-dispatch.out-{n}", f"{r}.in", f"{r}.out", f"slow-merge.out-{n}", end)
        for n, r, end in ((0, "slow", "slow-merge.out"), (1, "slow/1", "slow-merge.out"))
    ]
    assert list(paths(graph, Scope("slow.out", "slow-merge.out"))) == [
        ("slow.out", "slow-merge.out-0", "slow-merge.out"),
        ("slow/1.out", "slow-merge.out-1", "slow-merge.out"),
    ]
    assert list(paths(graph, Scope("slow-dispatch.out-1", "slow.out"))) == [
        ("slow-dispatch.out-1", "slow/1.in", "slow/1.out")
    ]


def test_the_tables_name_the_replicas(pipeline: Pipeline, orders: Stream) -> None:
    slow = orders.parallel(2).map(same, name="slow")
    pipeline.lineage(orders, slow)
    world = World(pipeline.build(), Schedule(0))
    world.run(100_000)
    tables = read_tables(world.store)
    rows = [tuple(row.values())[2:6] for row in tables.event_log.to_pylist()]
    for wire in (("slow-dispatch", "out-1", "slow/1", "in"), ("slow/1", "out", "slow-merge", "out-1")):
        assert wire in rows
    assert ("slow-dispatch", "out-1", "slow", "in") not in rows
    assert {row["Send_Op"] for row in tables.event_lineage.to_pylist()} == {
        "slow-dispatch",
        "slow",
        "slow/1",
        "slow-merge",
    }


# Running


def test_results_of_all_replicas_and_of_one(pipeline: Pipeline, orders: Stream) -> None:
    orders.parallel(2).map(same, name="slow").parallel(2, key="x").write("save", Outside("store").writer())
    result = run(pipeline, crashes=[Crash("slow/1", 2), Crash("save", 1)])
    assert result.restarts == 2
    parts = [result.rows(f"slow/{index}.out") for index in range(2)]
    assert result.rows("slow.out") == parts[0] + parts[1]
    assert sorted(row["x"] for row in result.rows("slow-merge.out")) == list(range(6))
    saved = [result.rows(f"save/{index}.to") for index in range(2)]
    assert sorted(row["x"] for part in saved for row in part) == list(range(6))
    assert len(result.rows("save.to")) == 6
    assert all(saved)
    with pytest.raises(UnknownPort, match=r"the run has nothing of 'slow/2\.out'; there is orders, slow-dispatch"):
        result.rows("slow/2.out")
    with pytest.raises(UnknownOperator, match=r"crash point \('slow/2', 1\) names no operator that takes events"):
        run(pipeline, crashes=[Crash("slow/2", 1)])


def test_every_guarantee_holds_with_several_parallel_inputs() -> None:
    pipeline = Pipeline("join")
    left = pipeline.source("left", scripted(numbers(2)))
    right = pipeline.source("right", scripted([[{"x": 0}, {"x": 1}]]))
    left.parallel(2, key="x").operator("join", Join(), {"right": right.parallel(2, key="x")})
    assert verify(pipeline, schedules=10) > 100


class OneDown(World):
    """A world in which one replica begins only when nothing else can happen."""

    down = Replica("slow", 1)
    merged = 0

    def start(self, replica: Replica) -> None:
        if replica != self.down or self.merged:
            super().start(replica)

    def _idle(self) -> bool:
        if self.merged:
            return super()._idle()
        self.merged = len(self.archive[Replica("slow-merge")].outputs["out"])
        self.start(self.down)
        return True


def test_while_a_replica_is_down_the_others_get_its_events() -> None:
    """Section 7.1 of LOG.io: round robin goes on with the replicas that live."""
    pipeline = Pipeline("robin")
    pipeline.source("numbers", scripted(numbers(60))).parallel(2).map(same, name="slow")
    tight = Settings(window=2, commit_max=2, read_max=1, backlog_max=8)
    world = OneDown(pipeline.build(), Schedule(1), Parts(settings=tight))
    world.run(100_000)
    assert world.merged > 45
    assert 0 < len(world.archive[world.down].outputs["out"]) < 15
    judge(world.graph, world.archive, world.outside, world.store.log_id)
