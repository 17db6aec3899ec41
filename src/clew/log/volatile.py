"""The store of runs without protection: what is needed again before its process ends stays in memory, nothing else.

It is what overheads are measured against: commits cost next to nothing, and a process that ends loses all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from clew.errors import LogNotFound
from clew.log.contract import ReplicaRows
from clew.model.event import Event
from clew.model.history import Expired, Output, Recovered, Stored, Transaction
from clew.model.names import Replica
from clew.model.ranges import IdSet


class VolatileLog:
    """One replica's outputs, state and stored effects, for as long as its process lives."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.incarnation = 1
        self.is_predecessor_dead = True
        self._outputs: dict[str, dict[int, Output]] = {}
        self._state: dict[bytes, bytes] = {}
        self._effects: dict[int, list[Stored]] = {}

    def recover(self) -> Recovered:
        """Nothing: every process begins anew."""
        return Recovered(self.incarnation)

    def stage(self, transaction: Transaction) -> None:
        """There is nothing to prepare."""

    def commit(self, transaction: Transaction) -> None:
        """Takes what may be asked for again."""
        for output in transaction.outputs:
            event = output.event
            port = self._outputs.get(event.port)
            if port is None:
                port = self._outputs[event.port] = {}
            port[event.id] = output
        for number in transaction.forget_effects:
            self._effects.pop(number, None)
        for stored in transaction.stored:
            self._effects.setdefault(stored.action, []).append(stored)
        for key, value in transaction.state.items():
            if value is None:
                self._state.pop(key, None)
            else:
                self._state[key] = value
        for name, first, last in transaction.forget_outputs:
            kept = self._outputs.get(name)
            if kept:
                for number in range(first, last + 1):
                    kept.pop(number, None)
        for number in transaction.forget_reads:
            self._effects.pop(number, None)

    def state(self, key: bytes) -> bytes | None:
        """The value of one state key."""
        return self._state.get(key)

    def state_items(self) -> list[tuple[bytes, bytes]]:
        """All state, ordered by key."""
        return sorted(self._state.items())

    def outputs(self, port: str, first: int, limit: int) -> list[Output]:
        """Up to `limit` outputs from id `first` on."""
        kept = self._outputs.get(port, {})
        return [kept[number] for number in range(first, first + limit) if number in kept]

    def effect(self, action: int, first: int, limit: int) -> list[Stored]:
        """Up to `limit` batches of a stored effect."""
        return self._effects.get(action, [])[first : first + limit]

    def expired(self, released: Mapping[str, IdSet], targets: Mapping[str, float | None]) -> Expired:
        """Nothing is kept for lineage."""
        return Expired((), (), (), ())

    def close(self) -> None:
        """Everything is gone."""


class VolatileStore:
    """The logs of a run without protection; each process has only its own."""

    def __init__(self, log_id: str, description: Mapping[str, Any]) -> None:
        self.log_id = log_id
        self.description = description

    def open(self, replica: Replica) -> VolatileLog:
        """A log that begins empty."""
        return VolatileLog(replica)

    def reader(self) -> VolatileReader:
        """There is nothing to read."""
        return VolatileReader()

    def close(self) -> None:
        """Everything is gone."""


class VolatileReader:
    """Reads nothing."""

    def replicas(self) -> list[Replica]:
        """None has a log."""
        return []

    def events(self, sender: Replica, port: str, ids: Iterable[int]) -> list[Event]:
        """None is there."""
        return []

    def rows(self, replica: Replica) -> ReplicaRows:
        """There are none."""
        raise LogNotFound("the run has no log: it was started with recovery='off'. Run it with a log.")
