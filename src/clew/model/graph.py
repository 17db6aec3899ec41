"""The graph: a pipeline after validation, as the drivers and the log see it. It is never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from clew.model.connection import Kind, ReadConnection, WriteConnection
from clew.model.names import Channel, Replica
from clew.model.operator import Operator
from clew.model.source import Source


@dataclass(frozen=True, slots=True)
class Scope:
    """A lineage scope: from an output port to an output port or write connection, and how long to keep it."""

    start: str
    target: str
    keep_s: float | None = None
    """The retention time; None keeps lineage for as long as the log exists."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What of one operator's lineage is captured."""

    inputs: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()
    targets: Mapping[str, float | None] = field(default_factory=dict)
    """Destinations at which a scope ends, with the longest retention time asked for (None: for ever)."""

    @property
    def is_on(self) -> bool:
        """Whether anything is captured."""
        return bool(self.outputs)


@dataclass(frozen=True, slots=True)
class Node:
    """One operator or source of the graph."""

    name: str
    definition: Operator | Source
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    writes: Mapping[str, WriteConnection] = field(default_factory=dict)
    reads: Mapping[str, ReadConnection] = field(default_factory=dict)
    writes_first: bool = False
    capture: Capture = field(default_factory=Capture)

    @property
    def is_source(self) -> bool:
        """Whether it has no input ports and brings events in."""
        return isinstance(self.definition, Source)

    @property
    def is_sink(self) -> bool:
        """Whether it has no output ports."""
        return not self.outputs


@dataclass(frozen=True)
class Graph:
    """A validated pipeline."""

    name: str
    nodes: Mapping[str, Node]
    channels: tuple[Channel, ...]
    scopes: tuple[Scope, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    """Host groups: operators that share one process. Operators that are in none have one of their own."""

    @cached_property
    def replicas(self) -> tuple[Replica, ...]:
        """All replicas, in the order in which their operators were declared."""
        return tuple(Replica(name) for name in self.nodes)

    def inbound(self, replica: Replica) -> tuple[Channel, ...]:
        """The channels into a replica, in the order of its input ports."""
        return self._inbound[replica]

    def outbound(self, replica: Replica) -> tuple[Channel, ...]:
        """The channels out of a replica, in the order of its output ports."""
        return self._outbound[replica]

    @cached_property
    def has_cycle(self) -> bool:
        """Whether some operator can receive what its own output led to."""
        remaining = {replica: {channel.sender for channel in self.inbound(replica)} for replica in self.replicas}
        while leaves := [replica for replica, senders in remaining.items() if not senders]:
            for leaf in leaves:
                del remaining[leaf]
            for senders in remaining.values():
                senders.difference_update(leaves)
        return bool(remaining)

    @cached_property
    def _inbound(self) -> dict[Replica, tuple[Channel, ...]]:
        return {
            replica: tuple(
                channel
                for port in self.nodes[replica.operator].inputs
                for channel in self.channels
                if channel.receiver == replica and channel.input == port
            )
            for replica in self.replicas
        }

    @cached_property
    def _outbound(self) -> dict[Replica, tuple[Channel, ...]]:
        return {
            replica: tuple(
                channel
                for port in self.nodes[replica.operator].outputs
                for channel in self.channels
                if channel.sender == replica and channel.output == port
            )
            for replica in self.replicas
        }

    def describe(self) -> dict[str, Any]:
        """What makes two pipelines the same for a log: names, ports and connections; no code."""
        return {
            "pipeline": self.name,
            "operators": {
                node.name: {
                    "replicas": sum(replica.operator == node.name for replica in self.replicas),
                    "inputs": list(node.inputs),
                    "outputs": list(node.outputs),
                    "reads": _reads(node),
                    "writes": {name: str(Kind(connection.kind or "")) for name, connection in node.writes.items()},
                }
                for node in self.nodes.values()
            },
            "connections": [
                [channel.sender.operator, channel.output, channel.receiver.operator, channel.input]
                for channel in self.channels
            ],
            "scopes": [[scope.start, scope.target] for scope in self.scopes],
            "capture": {
                node.name: {"inputs": sorted(node.capture.inputs), "outputs": sorted(node.capture.outputs)}
                for node in self.nodes.values()
                if node.capture.is_on
            },
        }


def _reads(node: Node) -> dict[str, str]:
    words = {True: "replayable", False: "not replayable"}
    if isinstance(node.definition, Source):
        return {node.definition.connection: words[node.definition.is_replayable]}
    return {name: words[connection.is_replayable] for name, connection in node.reads.items()}
