"""The graph, as drivers and logs see it."""

from __future__ import annotations

import pytest

from clew.model.graph import Graph
from clew.model.names import Replica
from clew.pipeline import Pipeline
from clew.testing import Outside, scripted


@pytest.fixture
def graph() -> Graph:
    pipeline = Pipeline("sales")
    orders = pipeline.source("orders", scripted([]))
    returns = pipeline.source("returns", scripted([], replayable=False))
    returns.merge(orders, name="all").write("report", Outside("report").writer("idempotent"))
    pipeline.lineage("orders.out", "all.out")
    return pipeline.build()


def test_replicas_are_in_the_order_of_declaration(graph: Graph) -> None:
    assert graph.replicas == (Replica("orders"), Replica("returns"), Replica("all"), Replica("report"))


def test_channels_are_in_the_order_of_ports(graph: Graph) -> None:
    assert [str(channel) for channel in graph.inbound(Replica("all"))] == [
        "returns.out->all.in1",
        "orders.out->all.in2",
    ]
    assert [str(channel) for channel in graph.outbound(Replica("all"))] == ["all.out->report.in"]
    assert graph.inbound(Replica("orders")) == graph.outbound(Replica("report")) == ()


def test_what_makes_two_pipelines_the_same(graph: Graph) -> None:
    assert graph.describe() == {
        "pipeline": "sales",
        "operators": {
            "orders": {"replicas": 1, "inputs": [], "outputs": ["out"], "reads": {"in": "replayable"}, "writes": {}},
            "returns": {
                "replicas": 1,
                "inputs": [],
                "outputs": ["out"],
                "reads": {"in": "not replayable"},
                "writes": {},
            },
            "all": {"replicas": 1, "inputs": ["in1", "in2"], "outputs": ["out"], "reads": {}, "writes": {}},
            "report": {"replicas": 1, "inputs": ["in"], "outputs": [], "reads": {}, "writes": {"to": "idempotent"}},
        },
        "connections": [
            ["returns", "out", "all", "in1"],
            ["orders", "out", "all", "in2"],
            ["all", "out", "report", "in"],
        ],
        "scopes": [["orders.out", "all.out"]],
        "capture": {"all": {"inputs": ["in2"], "outputs": ["out"]}},
    }
