"""Lineage scopes: which ports lie between a scope's start and its target, and the paths through them.

Every input port of an operator leads to all its output ports and write connections. What is captured is found by
reachability, forward from the start and backward from the target, since there can be exponentially many paths. A scope
names ports of operators: all replicas of an operator capture the same. Implements section 3.1 of LOG.io.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from clew.model.graph import Capture, Graph, Scope
from clew.model.names import Replica, split_port


def paths(graph: Graph, scope: Scope) -> Iterator[tuple[str, ...]]:
    """The lineage paths of a scope, one after another, each as the ports that it visits, of one replica each.

    No path visits a port twice, except that it may end where it started. In a graph with a cycle, `capture` also
    covers the events that go round more than once.
    """
    passed = capture(graph, scope)
    receivers: defaultdict[tuple[Replica, str], list[tuple[Replica, str]]] = defaultdict(list)
    for channel in graph.channels:
        receivers[channel.sender, channel.output].append((channel.receiver, channel.input))

    def steps(replica: Replica, output: str) -> Iterator[tuple[Replica, str, str]]:
        for receiver, port in receivers[replica, output]:
            name = receiver.operator
            if name in passed and port in passed[name].inputs:
                for onward in (*graph.nodes[name].outputs, *graph.nodes[name].writes):
                    if onward in passed[name].outputs:
                        yield receiver, port, onward

    operator, start = split_port(scope.start)
    for replica in graph.replicas:
        if replica.operator != operator:
            continue
        path, open_steps = [f"{replica}.{start}"], [steps(replica, start)]
        while open_steps:
            step = next(open_steps[-1], None)
            if step is None:
                open_steps.pop()
                del path[-2:]
                continue
            receiver, port, onward = step
            visited = f"{receiver}.{port}", f"{receiver}.{onward}"
            if f"{receiver.operator}.{onward}" == scope.target:
                yield (*path, *visited)
            elif visited[0] not in path and visited[1] not in path:
                path.extend(visited)
                open_steps.append(steps(receiver, onward))


def captures(graph: Graph, scopes: Iterable[Scope]) -> dict[str, Capture]:
    """What of each operator's lineage several scopes capture together; operators without capture are left out."""
    found: dict[str, Capture] = {}
    for scope in scopes:
        for name, more in capture(graph, scope).items():
            found[name] = _union(found.get(name, Capture()), more)
    return found


def capture(graph: Graph, scope: Scope) -> dict[str, Capture]:
    """What of each operator's lineage one scope captures; nothing, if its target cannot be reached."""
    entered = _entered(graph, scope.start)
    left = _left(graph, scope.target)
    target_operator, target_port = split_port(scope.target)
    return {
        name: Capture(
            inputs=frozenset(entered[name]),
            outputs=frozenset(left[name]),
            targets={target_port: scope.keep_s} if name == target_operator else {},
        )
        for name in graph.nodes
        if name in entered and name in left
    }


def reachable(graph: Graph, start: str) -> list[str]:
    """The output ports and write connections at which a scope with this start may end."""
    entered = _entered(graph, start)
    return [
        f"{name}.{port}"
        for name, node in graph.nodes.items()
        if name in entered
        for port in (*node.outputs, *node.writes)
    ]


def _entered(graph: Graph, start: str) -> dict[str, set[str]]:
    """The input ports, by operator, that something sent on the start port can lead to."""
    inputs_behind: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for channel in graph.channels:
        sender = channel.sender.operator, channel.output
        inputs_behind[sender].append((channel.receiver.operator, channel.input))
    entered: dict[str, set[str]] = {}
    outputs = [split_port(start)]
    while outputs:
        for name, port in inputs_behind[outputs.pop()]:
            if name not in entered:
                entered[name] = set()
                outputs.extend((name, output) for output in graph.nodes[name].outputs)
            entered[name].add(port)
    return entered


def _left(graph: Graph, target: str) -> dict[str, set[str]]:
    """The output ports and write connections, by operator, through which something can lead to the target."""
    outputs_before: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for channel in graph.channels:
        outputs_before[channel.receiver.operator].append((channel.sender.operator, channel.output))
    left: dict[str, set[str]] = {}
    outputs = [split_port(target)]
    while outputs:
        name, port = outputs.pop()
        if name not in left:
            left[name] = set()
            outputs.extend(outputs_before[name])
        left[name].add(port)
    return left


def _union(one: Capture, other: Capture) -> Capture:
    targets = dict(one.targets)
    for port, keep_s in other.targets.items():
        known = targets.get(port, 0.0)
        targets[port] = None if keep_s is None or known is None else max(known, keep_s)
    return Capture(one.inputs | other.inputs, one.outputs | other.outputs, targets)
