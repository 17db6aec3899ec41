"""Validation: from what a user declared to a graph in which every name, connection, scope and group holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

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
)
from clew.model.declaration import check_node, listed, nearest
from clew.model.graph import Graph, Node, Scope
from clew.model.names import Channel, Replica, check_name, split_port
from clew.model.operator import Operator
from clew.model.orders import with_orders
from clew.model.scope import captures, reachable


def build_graph(
    name: str,
    nodes: Iterable[Node],
    channels: Sequence[Channel],
    scopes: Iterable[Scope] = (),
    groups: Iterable[tuple[str, ...]] = (),
) -> Graph:
    """The graph of these nodes with the lineage capture of the scopes, or an error that says what is wrong."""
    check_name("pipeline", name)
    by_name: dict[str, Node] = {}
    for node in nodes:
        check_new(name, by_name, node.name)
        check_node(node)
        by_name[node.name] = node
    graph = Graph(name, by_name, tuple(channels), _merged(scopes), tuple(groups))
    _check_sources(graph)
    _check_channels(graph)
    _check_inputs(graph)
    _check_parallel(graph)
    _check_cycles(graph)
    _check_reached(graph)
    for scope in graph.scopes:
        _check_scope(graph, scope)
    _check_groups(graph)
    captured = captures(graph, graph.scopes)
    return replace(
        graph,
        nodes={
            name: replace(each, capture=captured[name]) if name in captured else each
            for name, each in with_orders(graph).items()
        },
    )


def check_new(pipeline: str, nodes: Mapping[str, Node], name: str) -> None:
    """Raises if an operator has this name already."""
    if name in nodes:
        raise DuplicateName(
            f"pipeline {pipeline!r} has an operator named {name!r} already, a {type(nodes[name].definition).__name__}; "
            f"expected each name once. Choose another name for the second one."
        )


def check_output(place: str, node: Node, port: str) -> None:
    """Raises if the node has no output port of this name."""
    if port not in node.outputs:
        hint = nearest(port, node.outputs)
        if port in node.inputs:
            hint = f" {port!r} is one of its input ports; name an output port here."
        elif port in node.writes:
            hint = f" {port!r} is one of its write connections, which lead outside; name an output port here."
        raise UnknownPort(
            f"{place}: operator {node.name!r} has no output port {port!r}; its output ports are {listed(node.outputs)}."
            f"{hint or ' Name one of them.' if node.outputs else ' It is a sink: nothing can be connected behind it.'}"
        )


def check_input(place: str, node: Node, port: str) -> None:
    """Raises if the node has no input port of this name."""
    if port not in node.inputs:
        hint = nearest(port, node.inputs)
        if port in node.outputs:
            hint = f" {port!r} is one of its output ports; name an input port here."
        raise UnknownPort(
            f"{place}: operator {node.name!r} has no input port {port!r}; its input ports are {listed(node.inputs)}."
            f"{hint or ' Name one of them.' if node.inputs else ' It is a source: nothing can be connected before it.'}"
        )


def _merged(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    """Each start and target once, with the longest time asked for."""
    merged: dict[tuple[str, str], Scope] = {}
    for scope in scopes:
        ends = scope.start, scope.target
        known = merged.setdefault(ends, scope)
        if known.keep_s is not None and (scope.keep_s is None or scope.keep_s > known.keep_s):
            merged[ends] = scope
    return tuple(merged.values())


def _node(graph: Graph, place: str, name: str) -> Node:
    if name not in graph.nodes:
        raise UnknownOperator(
            f"{place}: pipeline {graph.name!r} has no operator {name!r}; its operators are {listed(graph.nodes)}."
            f"{nearest(name, graph.nodes) or ' Declare it, or name one of them.'}"
        )
    return graph.nodes[name]


def _check_sources(graph: Graph) -> None:
    if not any(node.is_source for node in graph.nodes.values()):
        raise BuildError(
            f"pipeline {graph.name!r} has no source; expected at least one, since all events come from sources. "
            f"Add one with pipeline.source(name, source)."
        )


def _check_channels(graph: Graph) -> None:
    taken: dict[tuple[Replica, str], Channel] = {}
    for channel in graph.channels:
        place = f"connection {channel}"
        for replica in (channel.sender, channel.receiver):
            node = _node(graph, place, replica.operator)
            if not 0 <= replica.index < node.replicas:
                raise UnknownOperator(
                    f"{place}: operator {node.name!r} has no replica {replica.index}; its replicas are numbered from 0 "
                    f"to {node.replicas - 1}. Name one of them."
                )
        check_output(place, graph.nodes[channel.sender.operator], channel.output)
        check_input(place, graph.nodes[channel.receiver.operator], channel.input)
        port = channel.receiver, channel.input
        if port in taken:
            raise DoublyUsedPort(
                f"input port {channel.receiver}.{channel.input} has two connections, from {taken[port].sender}."
                f"{taken[port].output} and from {channel.sender}.{channel.output}; expected one. Merge the two streams "
                f"first, one.merge(other), or give the operator an input port for each."
            )
        taken[port] = channel


def _check_inputs(graph: Graph) -> None:
    connected = {(channel.receiver, channel.input) for channel in graph.channels}
    for replica in graph.replicas:
        for port in graph.nodes[replica.operator].inputs:
            if (replica, port) not in connected:
                raise MissingConnection(
                    f"input port {replica}.{port} has no connection; expected one. Connect an output port to it with "
                    f"pipeline.connect('operator.port', '{replica.operator}.{port}'), or pass the stream in "
                    f"inputs={{{port!r}: ...}} where {replica.operator!r} is declared."
                )


def _check_parallel(graph: Graph) -> None:
    """Raises if a receiver gets what some of an operator's replicas send, and would never see the rest."""
    senders: defaultdict[tuple[str, str, str], list[Channel]] = defaultdict(list)
    for channel in graph.channels:
        senders[channel.sender.operator, channel.output, channel.receiver.operator].append(channel)
    for (name, port, _), channels in senders.items():
        count = graph.nodes[name].replicas
        if len({channel.sender for channel in channels}) < count:
            raise BuildError(
                f"connection {channels[0]} takes what one of the {count} replicas of operator {name!r} sends; expected "
                f"what all of them send. Connect '{name}-merge.{port}', the output of its merger, or the stream that "
                f"was returned where {name!r} was declared."
            )


def _check_cycles(graph: Graph) -> None:
    """Raises if a cycle remains when all feedback operators are taken out."""
    incoming: dict[str, list[Channel]] = {name: [] for name in graph.nodes if not _is_feedback(graph.nodes[name])}
    for channel in graph.channels:
        if channel.sender.operator in incoming and channel.receiver.operator in incoming:
            incoming[channel.receiver.operator].append(channel)
    while first := [name for name, channels in incoming.items() if not channels]:
        for name in first:
            del incoming[name]
        for name, channels in incoming.items():
            incoming[name] = [channel for channel in channels if channel.sender.operator in incoming]
    if not incoming:
        return
    # Each operator that is left has a sender that is left, so that walking back must come round.
    trail: dict[str, Channel] = {}
    name = next(iter(incoming))
    while name not in trail:
        trail[name] = incoming[name][0]
        name = trail[name].sender.operator
    receivers = list(trail)
    cycle = [trail[receiver] for receiver in reversed(receivers[receivers.index(name) :])]
    raise CycleWithoutFeedback(
        f"the connections {', '.join(map(str, cycle))} form a cycle, and none of its operators "
        f"({listed(channel.sender.operator for channel in cycle)}) is a feedback operator; expected one, which counts "
        f"the rounds. Remove a connection, or put an operator with is_feedback = True on the way back."
    )


def _is_feedback(node: Node) -> bool:
    return isinstance(node.definition, Operator) and node.definition.is_feedback


def _check_reached(graph: Graph) -> None:
    reached = [node.name for node in graph.nodes.values() if node.is_source]
    sources = list(reached)
    seen = set(reached)
    outgoing: defaultdict[str, set[str]] = defaultdict(set)
    for channel in graph.channels:
        outgoing[channel.sender.operator].add(channel.receiver.operator)
    while reached:
        fresh = outgoing[reached.pop()] - seen
        seen |= fresh
        reached.extend(fresh)
    for name in graph.nodes:
        if name not in seen:
            raise UnreachableOperator(
                f"operator {name!r} cannot be reached from any source; the sources are {listed(sources)}. Connect one "
                f"of them, or an operator that they lead to, to it or to an operator before it, or remove it."
            )


def _check_scope(graph: Graph, scope: Scope) -> None:
    place = f"lineage scope {scope.start} -> {scope.target}"
    if scope.keep_s is not None and (type(scope.keep_s) not in (int, float) or scope.keep_s <= 0):
        raise BuildError(
            f"{place} keeps lineage for {scope.keep_s!r} seconds; expected a positive number, or None to keep it for "
            f"as long as the log exists. Pass such a keep_s."
        )
    operator, port = split_port(scope.start)
    check_output(place, _node(graph, place, operator), port)
    operator, port = split_port(scope.target)
    target = _node(graph, place, operator)
    if port not in target.writes:
        if not target.outputs:
            raise UnknownPort(
                f"{place}: operator {operator!r} has no write connection {port!r}; its write connections are "
                f"{listed(target.writes)}, and it has no output ports.{nearest(port, target.writes)} "
                f"A scope ends at one of these."
            )
        check_output(place, target, port)
    found = reachable(graph, scope.start)
    if scope.target not in found:
        raise ScopeWithoutPath(
            f"{place} has no path: nothing that leaves {scope.start} leads to {scope.target}; it leads to "
            f"{listed(found)}. Choose a target among these, or a start before {scope.target}."
        )


def _check_groups(graph: Graph) -> None:
    taken: dict[str, tuple[str, ...]] = {}
    for group in graph.groups:
        place = f"group ({listed(group)})"
        for name in group:
            node = _node(graph, place, name)
            if node.replicas > 1:
                raise BuildError(
                    f"{place}: operator {name!r} has {node.replicas} replicas; expected operators with one, since each "
                    f"replica has a process of its own, so that the others go on when it fails. Leave {name!r} out; "
                    f"its dispatcher and its merger may be in a group."
                )
            if name in taken:
                raise BuildError(
                    f"{place}: operator {name!r} is in the group ({listed(taken[name])}) already; expected each "
                    f"operator in one group at most. Leave it out of one, or make one group of both."
                )
            taken[name] = group
