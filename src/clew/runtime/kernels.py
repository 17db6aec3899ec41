"""Which kernel a replica has: by whether it is a source, and by how its run recovers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clew.model.graph import Node
from clew.model.names import Channel, Replica
from clew.protocol.barriers import SnapshotOperator, SnapshotSource
from clew.protocol.logio import OperatorKernel
from clew.protocol.replica import ReplicaKernel
from clew.protocol.settings import Settings
from clew.protocol.source import SourceKernel

Make = Callable[[Node, Replica, Iterable[Channel], Iterable[Channel], Settings], ReplicaKernel]


def kernel_of(node: Node, *, has_epochs: bool) -> Make:
    """Makes the kernel from a node, a replica, its inbound and outbound channels, and settings."""
    if not node.is_source:
        return SnapshotOperator if has_epochs else OperatorKernel
    source = SnapshotSource if has_epochs else SourceKernel
    return lambda node, replica, inbound, outbound, settings: source(node, replica, outbound, settings)
