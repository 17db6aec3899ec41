"""A pipeline as times see it: a location for what each replica holds, and one for each of its input ports."""

from __future__ import annotations

from clew.errors import BuildError
from clew.model.graph import Graph
from clew.progress.topology import Edge, Topology
from clew.times.order import Order
from clew.times.summary import IDENTITY


def topology_of(graph: Graph) -> Topology | None:
    """The locations of a pipeline and how times travel between them; None if no event has a time.

    A cycle that does not advance time is an error, and so is one whose events have no times.
    """
    orders: dict[str, Order] = {}
    edges: list[Edge] = []
    for replica in graph.replicas:
        node = graph.nodes[replica.operator]
        if node.order is not None:
            orders[str(replica)] = node.order
        summaries = getattr(node.definition, "summaries", {})
        for port, order in node.input_orders.items():
            orders[f"{replica}.{port}"] = order
            if node.order is not None:
                edges.append((f"{replica}.{port}", str(replica), summaries.get(port, IDENTITY)))
    for channel in graph.channels:
        if f"{channel.receiver}.{channel.input}" in orders and str(channel.sender) in orders:
            edges.append((str(channel.sender), f"{channel.receiver}.{channel.input}", IDENTITY))
    for node in graph.nodes.values():
        if node.order is None and getattr(node.definition, "is_feedback", False):
            raise BuildError(
                f"operator {node.name!r} closes a cycle in which events have no times, so nobody could know when the "
                f"cycle is over. Give all sources before it times, such as "
                f"pipeline.source(name, source, times=clew.numbered())."
            )
    return Topology(orders, edges) if orders else None
