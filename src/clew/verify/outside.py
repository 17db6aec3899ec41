"""Simulated outside systems: the twins that stand for databases and services, with the manners of each kind."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pyarrow as pa

from clew.model.connection import Kind, WriteAction
from clew.model.graph import Graph
from clew.model.history import Output
from clew.model.names import Replica
from clew.protocol.inputs import Got


class System:
    """One outside system: what has been applied to it, in order."""

    def __init__(self) -> None:
        self.applied: list[WriteAction] = []
        self._last: dict[str, WriteAction] = {}
        self._ids: set[str] = set()

    def apply(self, kind: Kind, action: WriteAction) -> None:
        """Executes a write action with the manners of the connection's kind."""
        last = self._last.get(action.writer)
        if kind is Kind.CONDITIONAL and last is not None and action.number <= last.number:
            return  # Recorded already, so refused.
        if kind is Kind.IDEMPOTENT and last is not None and action.number == last.number:
            return  # Twice in a row is like once.
        self._last[action.writer] = action
        self._ids.add(action.id)
        self.applied.append(action)

    def has(self, action: WriteAction) -> bool:
        """Whether a write action has taken effect."""
        return action.id in self._ids


class Reading:
    """One execution of a source's read action: what it gave, and whether that was all."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.is_complete = False


class Outside:
    """All outside systems of one simulated run."""

    def __init__(self, graph: Graph) -> None:
        self._systems: dict[Hashable, System] = {}
        self.kinds: dict[tuple[str, str], Kind] = {}
        self.writes: dict[tuple[str, str], System] = {}
        self.reads: dict[tuple[str, str], System] = {}
        self.readings: dict[tuple[Replica, int], dict[int, Reading]] = {}
        """What each execution of a source's read action gave."""
        for node in graph.nodes.values():
            for name, connection in node.writes.items():
                self.kinds[node.name, name] = Kind(connection.kind or "")
                self.writes[node.name, name] = self._system(connection.system, (node.name, name))
            for name, reader in node.reads.items():
                self.reads[node.name, name] = self._system(reader.system, (node.name, name))

    def _system(self, name: Hashable, default: Hashable) -> System:
        return self._systems.setdefault(("own", default) if name is None else ("shared", name), System())

    def action(self, log_id: str, replica: Replica, connection: str, output: Output) -> WriteAction:
        """A write action as its outside system sees it."""
        writer = f"{log_id}/{replica.operator}/{replica.index}/{connection}"
        return WriteAction(writer, output.event.id, output.event.batch)

    def write(self, log_id: str, replica: Replica, connection: str, output: Output) -> None:
        """Executes a write action."""
        place = replica.operator, connection
        self.writes[place].apply(self.kinds[place], self.action(log_id, replica, connection, output))

    def has(self, log_id: str, replica: Replica, connection: str, output: Output) -> bool:
        """Whether a write action has taken effect."""
        return self.writes[replica.operator, connection].has(self.action(log_id, replica, connection, output))

    def written(self, operator: str, connection: str) -> list[WriteAction]:
        """What an operator has written through one of its connections, in order."""
        applied = self.writes[operator, connection].applied
        return [action for action in applied if action.writer.split("/")[1::2] == [operator, connection]]

    def gave(self, replica: Replica, action: int, got: Got) -> None:
        """Notes what a source was given, so that nobody has to take its word for it."""
        reading = self.readings.setdefault((replica, action), {}).setdefault(got.execution, Reading())
        reading.batches.extend(item.batch for item in got.items)
        reading.is_complete = got.is_complete

    def read(self, connection: Any, operator: str, name: str, query: Any) -> Any:
        """Executes a read action."""
        return connection.read_simulated(query, self.reads[operator, name].applied)
