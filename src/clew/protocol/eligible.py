"""Which pipelines can run with barrier snapshots: sources that read again, no cycles, nothing that needs a log.

A failure sends every replica back to the last complete epoch, so whatever came in since must come in again, and
borders must reach every operator from above (seed 000, section 2.2).
"""

from __future__ import annotations

from clew.errors import RunError
from clew.model.graph import Graph, Node
from clew.model.source import Source

_OTHERWISE = "or run with recovery='log'."


def check_snapshots(graph: Graph) -> None:
    """Raises if the pipeline cannot run with recovery='snapshot', and says what to do."""
    for node in graph.nodes.values():
        _check_node(node)
    cycle = _cycle(graph)
    if cycle:
        raise RunError(
            f"pipeline {graph.name!r}: {' -> '.join(cycle)} is a cycle; recovery='snapshot' needs a pipeline without "
            f"one, since a border would wait for itself there. Take the feedback out, {_OTHERWISE}"
        )
    if graph.scopes:
        scope = graph.scopes[0]
        raise RunError(
            f"pipeline {graph.name!r} captures lineage from {scope.start} to {scope.target}; recovery='snapshot' keeps "
            f"no events to trace, and lineage needs recovery='log'. Leave out lineage(...), {_OTHERWISE}"
        )


def _check_node(node: Node) -> None:
    if isinstance(node.definition, Source) and not node.definition.is_replayable:
        raise RunError(
            f"source {node.name!r}, a {type(node.definition).__name__}, is not replayable; recovery='snapshot' reads "
            f"again after a failure what came since the last snapshot, and needs the same data in the same order. Use "
            f"a replayable source, {_OTHERWISE}"
        )
    if node.writes_first and node.writes:
        raise RunError(
            f"operator {node.name!r} was declared with writes_first=True: its outputs wait until its writes are done; "
            f"with recovery='snapshot' writes wait for the end of their epoch, which its outputs must pass first. "
            f"Leave out writes_first, {_OTHERWISE}"
        )
    if node.dead_letters:
        raise RunError(
            f"operator {node.name!r} was declared with dead_letters=True; to find the input that always fails, every "
            f"move must be in a log, and recovery='snapshot' has none. Leave out dead_letters, {_OTHERWISE}"
        )


def _cycle(graph: Graph) -> list[str]:
    """Operators of which each sends to the next and the last is the first; empty if there is no such cycle."""
    receivers: dict[str, list[str]] = {name: [] for name in graph.nodes}
    for channel in graph.channels:
        receivers[channel.sender.operator].append(channel.receiver.operator)
    done: set[str] = set()
    for first in graph.nodes:
        way: dict[str, int] = {}
        waiting = [(first, iter(receivers[first]))] if first not in done else []
        while waiting:
            name, rest = waiting[-1]
            way.setdefault(name, len(way))
            following = next((each for each in rest if each not in done), None)
            if following is None:
                done.add(name)
                del way[name]
                waiting.pop()
            elif following in way:
                return [*list(way)[way[following] :], following]
            else:
                waiting.append((following, iter(receivers[following])))
    return []
