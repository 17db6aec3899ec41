"""Exchanging one part of the simulated world for another, whatever kind of part it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clew.log.epochs import EpochLog
from clew.log.memory import MemoryReplicaLog, MemoryStore, Rows
from clew.log.snapshots import SnapshotLog
from clew.model.names import Replica
from clew.protocol.capabilities import Capabilities
from clew.protocol.epochs import EpochKernel
from clew.protocol.inbound import InChannel
from clew.protocol.logio import OperatorKernel
from clew.protocol.moves import Moves
from clew.protocol.outbound import OutPort
from clew.protocol.source import SourceKernel
from clew.protocol.writes import Writer
from clew.verify.parts import Parts


def exchange(parts: Parts, part: type) -> Parts:
    """The same parts with one of them exchanged; a kernel's own parts are exchanged in sources and operators alike."""
    if issubclass(part, OperatorKernel):
        return replace(parts, operator=part)
    if issubclass(part, SourceKernel):
        return replace(parts, source=part)
    if issubclass(part, EpochKernel):
        return replace(parts, epochs=part)
    if issubclass(part, EpochLog):
        return replace(parts, epoch_log=part)
    if issubclass(part, SnapshotLog):
        return replace(parts, snapshots=part)
    if issubclass(part, Moves):
        return replace(parts, moves=part)
    if issubclass(part, MemoryReplicaLog):
        return replace(parts, store=lambda graph: _StoreOf(part, parts.store(graph)))
    if issubclass(part, OutPort | Writer | InChannel):
        return replace(parts, operator=_kernel_with(parts.operator, part), source=_kernel_with(parts.source, part))
    if issubclass(part, Capabilities):
        return replace(parts, operator=_timed_with(parts.operator, part), source=_timed_with(parts.source, part))
    raise TypeError(f"{part.__name__} is no part of the simulated world")


def _kernel_with(kernel: type[Any], part: type[Any]) -> type[Any]:
    """The kernel with its ports, writers or input channels exchanged."""

    class Exchanged(kernel):  # type: ignore[misc]
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            if issubclass(part, OutPort):
                self.ports = {name: part(name, port.channels, port.settings) for name, port in self.ports.items()}
            elif issubclass(part, Writer):
                self.writers = {name: part(name, writer.kind, writer.settings) for name, writer in self.writers.items()}
            elif issubclass(self.__class__, OperatorKernel):
                self.inputs = {channel: part(channel, each.is_held) for channel, each in self.inputs.items()}

    Exchanged.__name__ = f"{kernel.__name__}With{part.__name__}"
    return Exchanged


def _timed_with(kernel: type[Any], part: type[Capabilities]) -> type[Any]:
    """The kernel with its books of times exchanged."""

    class Exchanged(kernel):  # type: ignore[misc]
        def __init__(self, node: Any, replica: Any, *given: Any) -> None:
            super().__init__(node, replica, *given)
            if self.times is not None:
                outbound = [channel.channel for port in self.ports.values() for channel in port.channels]
                self.times = part(node, replica, getattr(self, "inputs", ()), outbound)

    Exchanged.__name__ = f"{kernel.__name__}With{part.__name__}"
    return Exchanged


class _StoreOf(MemoryStore):
    """A memory store whose logs are of another class."""

    def __init__(self, log: type[MemoryReplicaLog], healthy: Any) -> None:
        super().__init__(healthy.description, healthy.log_id, healthy.file_bytes_min)
        self.log = log

    def open(self, replica: Replica) -> MemoryReplicaLog:
        return self.log(self.logs.setdefault(replica, Rows()), replica, self.file_bytes_min)
