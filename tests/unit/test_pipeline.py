"""Pipeline and Stream: how operators are declared, named and connected."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import pyarrow as pa
import pytest

from clew.errors import BadName, BuildError, DoublyUsedPort, UnknownPort, UnsafeWriteConnection
from clew.operators.merge import Merge
from clew.operators.stateless import Stateless
from clew.pipeline import Pipeline, Stream
from clew.testing import Outside, scripted


class Split(Stateless):
    outputs = ("even", "odd")


class Join(Stateless):
    inputs = ("left", "right")


def clean(table: pa.Table) -> pa.Table:
    return table


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline("sales")


@pytest.fixture
def orders(pipeline: Pipeline) -> Stream:
    return pipeline.source("orders", scripted([[{"x": 1}]]))


def wires(pipeline: Pipeline) -> list[str]:
    return [str(channel) for channel in pipeline.build().channels]


def test_a_pipeline_has_a_good_name() -> None:
    with pytest.raises(BadName, match="pipeline name 'my sales' cannot be used"):
        Pipeline("my sales")


def test_streams_are_output_ports(pipeline: Pipeline, orders: Stream) -> None:
    split = orders.operator("split", Split())
    assert [str(orders), str(split), str(split["odd"])] == ["orders.out", "split.even", "split.odd"]
    with pytest.raises(
        UnknownPort, match=r"operator 'split' has no output port 'od'; its output ports are even, odd\."
    ):
        split["od"]
    with pytest.raises(TypeError):
        list(split)  # type: ignore[call-overload]


def test_inputs_by_name(pipeline: Pipeline, orders: Stream) -> None:
    split = orders.operator("split", Split())
    pipeline.operator("join", Join(), inputs={"right": split["odd"], "left": "split.even"})
    assert wires(pipeline) == ["orders.out->split.in", "split.odd->join.right", "split.even->join.left"]


def test_a_stream_takes_the_port_that_is_left(pipeline: Pipeline, orders: Stream) -> None:
    split = orders.operator("split", Split())
    split.operator("join", Join(), {"left": split["odd"]})
    assert wires(pipeline)[1:] == ["split.even->join.right", "split.odd->join.left"]


def test_no_port_is_left(orders: Stream) -> None:
    with pytest.raises(DoublyUsedPort, match=r"behind stream orders\.out: inputs names a stream for every input port"):
        orders.operator("join", Join(), {"left": orders, "right": orders})


def test_inputs_of_an_unknown_port(pipeline: Pipeline, orders: Stream) -> None:
    with pytest.raises(
        UnknownPort, match=r"inputs of operator 'join': operator 'join' has no input port 'lift'.*'left'"
    ):
        pipeline.operator("join", Join(), {"lift": orders})
    pipeline.operator("join", Join(), {"left": orders, "right": orders})  # What was refused left nothing behind.
    assert len(wires(pipeline)) == 2


def test_connections_made_later(pipeline: Pipeline, orders: Stream) -> None:
    pipeline.operator("join", Join())
    pipeline.connect(orders, "join.left")
    pipeline.connect("orders.out", "join.right")
    assert wires(pipeline) == ["orders.out->join.left", "orders.out->join.right"]


def test_a_connection_that_names_no_port(pipeline: Pipeline, orders: Stream) -> None:
    with pytest.raises(BadName, match="'join' does not name a port"):
        pipeline.connect(orders, "join")


def test_a_stream_of_another_pipeline(pipeline: Pipeline, orders: Stream) -> None:
    other = Pipeline("other")
    with pytest.raises(BuildError, match=r"stream orders\.out belongs to pipeline 'sales'; expected one of .*'other'"):
        other.operator("join", Join(), {"left": orders})
    with pytest.raises(BuildError, match="belongs to pipeline 'sales'"):
        other.connect(orders, "join.left")
    with pytest.raises(BuildError, match="belongs to pipeline 'sales'"):
        other.group(orders)
    with pytest.raises(BuildError, match="belongs to pipeline 'sales'"):
        other.lineage(orders, "x.out")
    stranger = other.source("strangers", scripted([]))
    with pytest.raises(BuildError, match="belongs to pipeline 'other'"):
        orders.merge(stranger)


def test_names_of_sugar(orders: Stream) -> None:
    double = functools.partial(clean)
    streams = [
        orders.map(clean),
        orders.map(clean),
        orders.map(lambda table: table),
        orders.map(double),
        orders.filter(lambda table: True),
        orders.flat_map(lambda table: []),
        orders.batch(2),
        orders.batch(2, f=clean),
        orders.merge(orders),
        orders.merge(orders, name="both"),
        orders.map(clean, "tidy"),
    ]
    assert [stream.name for stream in streams] == [
        "clean",
        "clean-2",
        "map-1",
        "map-2",
        "filter-1",
        "flat_map-1",
        "batch-1",
        "clean-3",
        "merge-1",
        "both",
        "tidy",
    ]


def test_merge_connects_every_stream(pipeline: Pipeline, orders: Stream) -> None:
    returns = pipeline.source("returns", scripted([]))
    orders.merge(returns, orders)
    assert wires(pipeline) == ["orders.out->merge-1.in1", "returns.out->merge-1.in2", "orders.out->merge-1.in3"]


def test_write_makes_a_sink(pipeline: Pipeline, orders: Stream) -> None:
    report = orders.write("report", Outside("report").writer())
    node = pipeline.build().nodes["report"]
    assert (node.inputs, node.outputs, list(node.writes)) == (("in",), (), ["to"])
    assert repr(report) == "<Stream report>"
    with pytest.raises(UnknownPort, match=r"'report' is a sink and has no output port; .*'report\.to'"):
        report.map(clean)
    with pytest.raises(UnknownPort, match="its output ports are none"):
        report["out"]


def test_write_refuses_an_unsafe_connection(orders: Stream) -> None:
    with pytest.raises(UnsafeWriteConnection, match="write connection 'to' of operator 'report'"):
        orders.write("report", Outside("report").writer("hopeful"))


def test_groups_take_streams_and_names(pipeline: Pipeline, orders: Stream) -> None:
    pipeline.group(orders, "tidy")
    orders.map(clean, "tidy")
    assert pipeline.build().groups == (("orders", "tidy"),)
    with pytest.raises(BuildError, match=r"group\(\) was given no operators"):
        pipeline.group()


def test_lineage_takes_streams_and_names(pipeline: Pipeline, orders: Stream) -> None:
    tidy = orders.map(clean, "tidy")
    tidy.write("report", Outside("report").writer())
    pipeline.lineage(orders, tidy, keep_s=5)
    pipeline.lineage("orders.out", "report.to")
    graph = pipeline.build()
    assert [(scope.start, scope.target, scope.keep_s) for scope in graph.scopes] == [
        ("orders.out", "tidy.out", 5),
        ("orders.out", "report.to", None),
    ]
    assert graph.nodes["tidy"].capture.targets == {"out": 5}
    assert graph.nodes["report"].capture.targets == {"to": None}


@pytest.mark.parametrize("sugar", ["map", "filter", "flat_map"])
def test_sugar_needs_a_function(orders: Stream, sugar: str) -> None:
    with pytest.raises(BuildError, match=rf"{sugar} was given a int where it expected a function"):
        getattr(orders, sugar)(7)
    with pytest.raises(BuildError, match="rows=True and pandas=True; expected one of them"):
        getattr(orders, sugar)(clean, rows=True, pandas=True)


@pytest.mark.parametrize("every", [0, -1, 2.0, None, True])
def test_a_batch_has_a_size(orders: Stream, every: Any) -> None:
    with pytest.raises(BuildError, match=r"Batch collects .* events at a time; expected a whole number from 1 up"):
        orders.batch(every)


def test_a_graph_can_be_pickled(pipeline: Pipeline, orders: Stream) -> None:
    orders.map(clean).batch(3).merge(orders).write("report", Outside("report").writer(), every=2)
    graph = pipeline.build()
    twin = pickle.loads(pickle.dumps(graph))  # noqa: S301
    assert twin.describe() == graph.describe()


def test_building_twice_gives_equal_graphs(pipeline: Pipeline, orders: Stream) -> None:
    orders.map(clean)
    assert pipeline.build() == pipeline.build()
    assert repr(pipeline) == "<Pipeline sales>"


def test_merge_of_one_is_allowed(orders: Stream) -> None:
    assert orders.merge().name == "merge-1"
    assert Merge(1).inputs == ("in1",)
