"""The store contract: what every store of logs promises, whatever it is made of.

One suite (`tests/store`) holds every store to it. The promises in short:

- `open` takes the next incarnation; from then on every commit of an earlier one raises `Fenced` and changes nothing.
- `commit` applies a transaction all or nothing and returns when it is durable; `stage` comes before it and makes
  bodies that live outside the transaction durable, so that no committed row ever refers to a missing body.
- What `recover` returns depends on committed transactions only. Counters and cursors are rows of their own: removing
  outputs or pairs never changes them.
- Reading is possible at any time, from any process, and never waits for a writer's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from clew.model.event import Event
from clew.model.history import Expired, Output, Recovered, Stored, Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet

FORMAT = 1
"""The version of the log's layout that this version of Clew writes and reads."""


class ReplicaLog(Protocol):
    """The log of one replica, open for its owner."""

    replica: Replica
    incarnation: int

    def recover(self) -> Recovered:
        """Everything the incarnation needs to go on, except bodies and state, which are read when needed."""

    def stage(self, transaction: Transaction) -> None:
        """Makes bodies that are kept outside the transaction durable. Nothing refers to them yet."""

    def commit(self, transaction: Transaction) -> None:
        """Applies a staged transaction atomically and durably, or raises `Fenced`, or `CommitUnknown`.

        Inside a transaction rows are added first and forgotten last, except that a read action's stored effect is
        forgotten before a new one is stored. An empty transaction asks whether this incarnation is still the last.
        """

    def state(self, key: bytes) -> bytes | None:
        """The committed value of one state key."""

    def state_items(self) -> list[tuple[bytes, bytes]]:
        """All committed state, ordered by key."""

    def outputs(self, port: str, first: int, limit: int) -> list[Output]:
        """Up to `limit` of this replica's outputs on a port (or write actions of a connection) from id `first` on."""

    def effect(self, action: int, first: int, limit: int) -> list[Stored]:
        """Up to `limit` batches of a read action's stored effect from index `first` on (indexes count from 0)."""

    def expired(self, released: Mapping[str, IdSet], targets: Mapping[str, float | None]) -> Expired:
        """What may be removed, given what receivers have released on each output port.

        For a port in `targets` an output must also be older than the given moment (None: nothing is old enough).
        With an output go its lineage rows; a closed Input Set without lineage rows left goes, with its pairs, and
        its read actions; an input event of such a set that no remaining pair needs is freed. Changes nothing.
        """

    def close(self) -> None:
        """Lets go of the log without changing it."""


class LogReader(Protocol):
    """Reads the logs of all replicas, of running and of finished pipelines."""

    def replicas(self) -> list[Replica]:
        """The replicas that have a log."""

    def events(self, sender: Replica, port: str, ids: Iterable[int]) -> list[Event]:
        """These output events with their bodies; what is not there is left out."""

    def rows(self, replica: Replica) -> ReplicaRows:
        """All rows of one replica's log except bodies; raises `LogNotFound` if it has none."""


class OutputRow(NamedTuple):
    """One stored output event or write action, without its body."""

    port: str
    id: int
    created: float
    is_end: bool


class PairRow(NamedTuple):
    """One stored pair, done or not."""

    order: int
    channel: Channel
    event: int
    serial: int
    key: bytes | None
    """None for the reserved Input Set of end marks."""
    is_done: bool
    note: bytes | None


class ReplicaRows(NamedTuple):
    """All rows of one replica's log except bodies."""

    incarnation: int
    outputs: list[OutputRow]
    pairs: list[PairRow]
    sets: list[tuple[int, bytes, bool]]
    """Serial, key, whether closed."""
    cursors: dict[Channel, tuple[int, IdSet, bool]]
    counters: dict[str, int]
    state: list[tuple[bytes, bytes]]
    state_versions: list[tuple[int, bytes, bytes | None]]
    timers: dict[bytes, float]
    reads: list[tuple[int, str, bytes, bool, bool, bytes | None, bool]]
    """The fields of ReadAction."""
    stored: list[tuple[int, int]]
    lineage: list[tuple[str, int, int]]
    uses: list[tuple[int, str, int]]
    progress: dict[tuple[str, bytes], bytes]
    """The rows of time: kind and name, and value."""


class Store(Protocol):
    """A place that holds the logs of all replicas of one pipeline."""

    log_id: str
    """Random, made with the log; every id that leaves the log is prefixed with it."""
    description: Mapping[str, Any]
    """The pipeline's graph, as `Graph.describe()` gave it when the log was made."""

    def open(self, replica: Replica) -> ReplicaLog:
        """The replica's log under the next incarnation, made if it is not there."""

    def reader(self) -> LogReader:
        """Reads all logs."""

    def close(self) -> None:
        """Lets go of everything."""


def prefixes(log_id: str, replica: Replica) -> Iterator[str]:
    """The parts that every id of this replica starts with.

    >>> "/".join(prefixes("3f2a", Replica("hourly", 1)))
    '3f2a/hourly/1'
    """
    yield log_id
    yield replica.operator
    yield str(replica.index)
