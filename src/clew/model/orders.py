"""Orders of times in a pipeline: which operators' events have times, and of which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from clew.errors import BuildError
from clew.model.graph import Graph, Node
from clew.model.operator import Operator
from clew.times.order import Order


def with_orders(graph: Graph) -> dict[str, Node]:
    """The nodes of a graph, each with the orders of its times; an operator has times if all its inputs have."""
    senders: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for channel in graph.channels:
        senders[channel.receiver.operator][channel.input] = channel.sender.operator
    orders: dict[str, Order | None] = {
        node.name: node.stamps.order for node in graph.nodes.values() if node.stamps is not None
    }
    for node in graph.nodes.values():
        if node.is_source:
            orders.setdefault(node.name, None)
    waiting = [node for node in graph.nodes.values() if node.name not in orders]
    is_stuck = False
    while waiting:  # Operators in a cycle wait for each other: then those go first that know some of their inputs.
        known = [each for each in waiting if _is_known(senders[each.name], orders, is_stuck)]
        if not known:
            if is_stuck:
                break
            is_stuck = True
            continue
        for node in known if not is_stuck else known[:1]:
            orders[node.name] = _order(node, _inputs(senders[node.name], orders))
        waiting = [each for each in waiting if each.name not in orders]
        is_stuck = False
    nodes = {}
    for node in graph.nodes.values():
        inputs = _inputs(senders[node.name], orders)
        if isinstance(node.definition, Operator):
            found = _order(node, inputs)
            if found != orders.get(node.name):
                raise BuildError(
                    f"operator {node.name!r} is in a cycle in which its outputs have times of {orders.get(node.name)} "
                    f"and of {found}; expected one order. Let an operator inside a cycle change no order."
                )
        timed = {port: order for port, order in inputs.items() if order is not None}
        nodes[node.name] = replace(node, order=orders.get(node.name), input_orders=timed)
    return nodes


def _is_known(senders: Mapping[str, str], orders: Mapping[str, Order | None], is_stuck: bool) -> bool:
    known = [sender in orders for sender in senders.values()]
    return any(known) if is_stuck else all(known)


def _inputs(senders: Mapping[str, str], orders: Mapping[str, Order | None]) -> dict[str, Order | None]:
    return {port: orders[sender] for port, sender in senders.items() if sender in orders}


def _order(node: Node, inputs: Mapping[str, Order | None]) -> Order | None:
    timed = {port: order for port, order in inputs.items() if order is not None}
    definition = node.definition
    assert isinstance(definition, Operator)
    if len(timed) < len(inputs) or not timed:
        if definition.is_timely:
            without = ", ".join(port for port in inputs if port not in timed) or "none"
            raise BuildError(
                f"operator {node.name!r} works by time, but the events of its input {without} have no times; expected "
                f"times on every input. Declare how the sources get them: "
                f"pipeline.source(name, source, times=clew.event_time(column))."
            )
        return None
    try:
        return definition.order(timed)
    except BuildError as error:
        raise BuildError(
            f"operator {node.name!r}: {error}. Give all its sources times of the same kind, or define order() in "
            f"{type(definition).__name__}."
        ) from error
