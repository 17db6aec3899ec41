"""What a replica writes to its log, and what it finds there again after a restart.

A transaction is the next piece of the replica's history over all its ports: it holds whole moves only, and
everything decided before its last move is in it or in an earlier one. Keys, notes and state are already bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew.model.event import Event
from clew.model.names import Channel
from clew.model.ranges import IdSet

END_SERIAL = 0
"""The serial of the reserved Input Set that all end marks of a replica go to."""


class Output(NamedTuple):
    """An output event, or a write action: then the port is the name of the write connection."""

    event: Event
    created: float
    """When the move made it, seconds since the epoch."""
    requires: tuple[tuple[str, int], ...] = ()
    """Write actions (connection, number) that must be done before this event may be sent."""


class Pair(NamedTuple):
    """An event assigned to an Input Set; `order` numbers all pairs of a replica in the order of assignment."""

    order: int
    channel: Channel
    event: int
    serial: int
    note: bytes | None


class Cursor(NamedTuple):
    """How far a receiver is on one channel."""

    assigned: int
    released: IdSet
    ended: bool


class ReadAction(NamedTuple):
    """A read action and how much of its effect has been turned into events."""

    number: int
    connection: str
    description: bytes
    is_complete: bool
    is_done: bool
    """Whether all of its stored effect was used; a replayable action is done when it is complete."""
    offset: bytes | None
    is_stored: bool
    """Whether the log holds the effect, as it does for actions that are not replayable and for captured lineage."""


class Stored(NamedTuple):
    """One batch of the stored effect of a read action."""

    action: int
    index: int  # type: ignore[assignment]  # Hides tuple.index, which nobody needs here.
    event: Event


class Lineage(NamedTuple):
    """An output event or write action came from an Input Set."""

    port: str
    event: int
    serial: int


class Use(NamedTuple):
    """An Input Set's generation used a read action's effect, or a version of the state."""

    serial: int
    kind: str
    """`read` or `state`."""
    number: int


@dataclass(slots=True)
class Transaction:
    """One commit: appended in the order of the moves, applied all or nothing."""

    outputs: list[Output] = field(default_factory=list)
    opened: list[tuple[int, bytes]] = field(default_factory=list)
    """Input Sets that begin: serial and key."""
    pairs: list[Pair] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    """Serials of Input Sets that were generated: their pairs are done from now on."""
    taken: list[tuple[Channel, Event]] = field(default_factory=list)
    """With snapshots: the events that were taken, since senders do not keep those of open pairs."""
    cursors: dict[Channel, Cursor] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    state: dict[bytes, bytes | None] = field(default_factory=dict)
    """Changed keys; None removes a key."""
    state_versions: list[tuple[int, dict[bytes, bytes | None]]] = field(default_factory=list)
    """With captured lineage: each version number and the keys that it changed."""
    timers: dict[bytes, float | None] = field(default_factory=dict)
    reads: list[ReadAction] = field(default_factory=list)
    """Read actions that are new or changed; a later row of a number replaces an earlier one."""
    stored: list[Stored] = field(default_factory=list)
    lineage: list[Lineage] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    forget_outputs: list[tuple[str, int, int]] = field(default_factory=list)
    """Ranges (port, first, last) of output events to remove, with their lineage rows."""
    forget_sets: list[int] = field(default_factory=list)
    """Closed Input Sets to remove, with their pairs and uses."""
    forget_reads: list[int] = field(default_factory=list)
    """Read actions to remove, with their stored effects."""
    forget_effects: list[int] = field(default_factory=list)
    """Read actions whose stored effect is removed while the action's row stays."""
    progress: dict[tuple[str, bytes], bytes | None] = field(default_factory=dict)
    """Changed rows of time: kind (`hold`, `sum`, `frontier` or `shown`), name and value; None removes a row."""
    journal: list[Any] = field(default_factory=list)
    """The decisions behind all this, for whoever re-executes or traces the run; stores need not keep them."""


class UndonePair(NamedTuple):
    """A pair whose Input Set was not generated yet."""

    order: int
    channel: Channel
    event: int
    serial: int
    key: bytes
    note: bytes | None


@dataclass(slots=True)
class Recovered:
    """What a replica's log holds when an incarnation begins."""

    incarnation: int
    cursors: dict[Channel, Cursor] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    undone: list[UndonePair] = field(default_factory=list)
    """In the order of assignment. The pairs of the reserved Input Set of end marks are not among them."""
    open_sets: list[tuple[int, bytes]] = field(default_factory=list)
    """Serial and key of every Input Set that is not closed, in the order of opening; not the reserved one."""
    timers: dict[bytes, float] = field(default_factory=dict)
    reads: list[ReadAction] = field(default_factory=list)
    """Read actions that are not done, by number."""
    progress: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    """All rows of time: kind and name, and value."""


class Expired(NamedTuple):
    """What retention may remove from a replica's log, as found by a query that changes nothing."""

    outputs: tuple[tuple[str, int, int], ...]
    sets: tuple[int, ...]
    reads: tuple[int, ...]
    freed: tuple[tuple[Channel, int], ...]
    """Input events that no remaining pair needs."""
