"""The graph: a pipeline after validation, as the drivers and the log see it. It is never changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from clew.model.connection import Kind, ReadConnection, WriteConnection
from clew.model.names import Channel, Replica
from clew.model.operator import Operator
from clew.model.source import Source
from clew.model.stamps import Stamps
from clew.times.order import Order

DEAD = "dead"
"""The output port on which an operator with dead letters sets aside what it has given up."""


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
    replicas: int = 1
    """How many copies of it run, each with a log and connections of its own."""
    dead_letters: bool = False
    """Whether inputs that always fail are set aside on its last output port, `dead`."""
    keeps: frozenset[str] = frozenset()
    """Output ports whose events stay in the log when nothing is connected to them."""
    stamps: Stamps | None = None
    """Of a source: how its events get their times, if they have any."""
    order: Order | None = None
    """The order of the times of its outputs; None: they have no times."""
    input_orders: Mapping[str, Order] = field(default_factory=dict)
    """The orders of the times of its inputs, by port, as far as they have times."""

    @property
    def is_source(self) -> bool:
        """Whether it has no input ports and brings events in."""
        return isinstance(self.definition, Source)

    @property
    def is_sink(self) -> bool:
        """Whether it has no output ports, except that for dead letters."""
        return not self.made

    @property
    def made(self) -> tuple[str, ...]:
        """The output ports that its generations give out on: all but that for dead letters."""
        return self.outputs[:-1] if self.dead_letters else self.outputs

    @property
    def is_timed(self) -> bool:
        """Whether any events that it receives or sends have times."""
        return self.order is not None or bool(self.input_orders)

    @property
    def parts(self) -> tuple[Operator | Source | WriteConnection | ReadConnection, ...]:
        """What of it is a user's own: the operator or source, and its connections."""
        return (self.definition, *self.writes.values(), *self.reads.values())

    @property
    def is_in_driver(self) -> bool:
        """Whether it needs Spark's driver, and so is hosted there: it begins Spark jobs itself."""
        return any(getattr(part, "is_in_driver", False) for part in self.parts)


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
        return tuple(Replica(node.name, index) for node in self.nodes.values() for index in range(node.replicas))

    @property
    def is_timed(self) -> bool:
        """Whether any events have times."""
        return any(node.is_timed for node in self.nodes.values())

    def replicas_named(self, name: str) -> tuple[Replica, ...]:
        """All replicas of an operator, or the one that a name such as `slow/1` stands for; perhaps none."""
        return tuple(each for each in self.replicas if name in (each.operator, f"{each.operator}/{each.index}"))

    @cached_property
    def in_driver(self) -> frozenset[str]:
        """The operators that are hosted in Spark's driver: those that need it, with their host groups."""
        needing = {node.name for node in self.nodes.values() if node.is_in_driver}
        return frozenset(needing.union(*(group for group in self.groups if needing.intersection(group))))

    def inbound(self, replica: Replica) -> tuple[Channel, ...]:
        """The channels into a replica, in the order of its input ports."""
        return self._inbound[replica]

    def outbound(self, replica: Replica) -> tuple[Channel, ...]:
        """The channels out of a replica, in the order of its output ports."""
        return self._outbound[replica]

    @cached_property
    def _inbound(self) -> dict[Replica, tuple[Channel, ...]]:
        by_port: defaultdict[tuple[Replica, str], list[Channel]] = defaultdict(list)
        for channel in self.channels:
            by_port[channel.receiver, channel.input].append(channel)
        return {
            replica: tuple(each for port in self.nodes[replica.operator].inputs for each in by_port[replica, port])
            for replica in self.replicas
        }

    @cached_property
    def _outbound(self) -> dict[Replica, tuple[Channel, ...]]:
        by_port: defaultdict[tuple[Replica, str], list[Channel]] = defaultdict(list)
        for channel in self.channels:
            by_port[channel.sender, channel.output].append(channel)
        return {
            replica: tuple(each for port in self.nodes[replica.operator].outputs for each in by_port[replica, port])
            for replica in self.replicas
        }

    def describe(self) -> dict[str, Any]:
        """What makes two pipelines the same for a log: names, replicas, ports, connections and times; no code."""
        times = {node.name: repr(node.order) for node in self.nodes.values() if node.stamps is not None}
        return {
            "pipeline": self.name,
            "operators": {
                node.name: {
                    "replicas": node.replicas,
                    "inputs": list(node.inputs),
                    "outputs": list(node.made),
                    "reads": _reads(node),
                    "writes": {name: str(Kind(connection.kind or "")) for name, connection in node.writes.items()},
                }
                for node in self.nodes.values()
            },
            "connections": [
                [str(channel.sender), channel.output, str(channel.receiver), channel.input] for channel in self.channels
            ],
            "scopes": [[scope.start, scope.target] for scope in self.scopes],
            "capture": {
                node.name: {"inputs": sorted(node.capture.inputs), "outputs": sorted(node.capture.outputs)}
                for node in self.nodes.values()
                if node.capture.is_on
            },
            **({"times": times} if times else {}),
        }


def _reads(node: Node) -> dict[str, str]:
    words = {True: "replayable", False: "not replayable"}
    if isinstance(node.definition, Source):
        return {node.definition.connection: words[node.definition.is_replayable]}
    return {name: words[connection.is_replayable] for name, connection in node.reads.items()}
