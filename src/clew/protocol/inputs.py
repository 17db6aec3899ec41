"""Inputs: what a driver tells a kernel, in the past tense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from clew.model.event import NO_ATTRIBUTES, Event
from clew.model.history import Expired, Output, Recovered, Stored
from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.model.stamps import Stamped
from clew.protocol.effects import Session


class Choices(NamedTuple):
    """What a move was given that another run might give differently."""

    now: float
    seed: int
    """Where the move's chance began."""
    reads: tuple[pa.RecordBatch, ...] = ()
    backlogs: tuple[int, ...] = ()


@dataclass(slots=True, unsafe_hash=True)
class Changes:
    """What a move changed; it joins the history together with the move's result or not at all."""

    state: dict[bytes, bytes | None] = field(default_factory=dict)
    timers: dict[bytes, float | None] = field(default_factory=dict)
    holds: dict[bytes, Any] = field(default_factory=dict)
    """By name: the time that is held from now on; None: none."""
    counts: dict[str, int] = field(default_factory=dict)
    """By name: what is added to a counter."""


NO_CHANGES = Changes()


class Emission(NamedTuple):
    """One output or write action of a generation."""

    destination: str
    batch: pa.RecordBatch
    keys: tuple[bytes, ...] | None
    """The Input Sets it came from, if the operator said so."""
    attributes: Mapping[str, Any] = NO_ATTRIBUTES
    time: Any = None
    """Its time, if the operator said so."""


class SideRead(NamedTuple):
    """A read action that a generation issued, with its effect."""

    connection: str
    description: bytes
    effect: pa.RecordBatch


@dataclass(slots=True, unsafe_hash=True)
class Started:
    """An incarnation has begun and has read its log."""

    recovered: Recovered
    now: float
    is_predecessor_dead: bool
    is_cautious: bool = False
    """Whether a predecessor died without an explanation, or of a move: not at a first start or after a clean stop."""
    last_error: str = ""
    """What the predecessor died of, as far as it is known."""


@dataclass(slots=True, unsafe_hash=True)
class Buried:
    """Every earlier incarnation is now known to be dead."""


@dataclass(slots=True, unsafe_hash=True)
class Ticked:
    """It is now this late."""

    now: float


@dataclass(slots=True, unsafe_hash=True)
class Greeted:
    """The sender of a channel has begun a new incarnation."""

    channel: Channel
    incarnation: int


@dataclass(slots=True, unsafe_hash=True)
class Broken:
    """What was under way on a channel is lost, although both ends live on.

    The two ends hear of it at different times, so it says which session was lost: the other end may have begun the
    next one already. None means the present one.
    """

    channel: Channel
    session: Session | None = None


@dataclass(slots=True, unsafe_hash=True)
class Connected:
    """The receiver of a channel asks for what comes after `assigned`."""

    channel: Channel
    session: Session
    assigned: int


@dataclass(slots=True, unsafe_hash=True)
class Received:
    """An event came in."""

    channel: Channel
    session: Session
    event: Event


@dataclass(slots=True, unsafe_hash=True)
class Acked:
    """The receiver of a channel is durably this far, and so much work waits behind it."""

    channel: Channel
    session: Session
    assigned: int
    released: IdSet
    pressure: int


@dataclass(slots=True, unsafe_hash=True)
class Committed:
    """A commit became durable."""

    number: int


@dataclass(slots=True, unsafe_hash=True)
class Fetched:
    """The outputs asked for with `Fetch`."""

    port: str
    first: int
    outputs: tuple[Output, ...]


@dataclass(slots=True, unsafe_hash=True)
class EffectFetched:
    """The stored effect asked for with `FetchEffect`."""

    action: int
    stored: tuple[Stored, ...]


@dataclass(slots=True, unsafe_hash=True)
class Pulled:
    """The events asked for with `Pull`, in that order."""

    events: tuple[Event, ...]


@dataclass(slots=True, unsafe_hash=True)
class Surveyed:
    """What retention may remove."""

    expired: Expired


@dataclass(slots=True, unsafe_hash=True)
class Advanced:
    """The tracker says how far locations have moved on: the times that may still come to each."""

    frontiers: Mapping[str, tuple[Any, ...]]
    others: tuple[Any, ...] | None = None
    """To an idle source: the times that the sources which are not idle hold; None if there is no such source."""


@dataclass(slots=True, unsafe_hash=True)
class Marked:
    """The coordinator asks a source to end this epoch."""

    epoch: int


@dataclass(slots=True, unsafe_hash=True)
class Completed:
    """Every replica's snapshot of this epoch is durable, and so is the word that they are."""

    epoch: int


@dataclass(slots=True, unsafe_hash=True)
class Written:
    """A write action has taken effect outside."""

    connection: str
    number: int


@dataclass(slots=True, unsafe_hash=True)
class WriteUnknown:
    """Nobody knows whether a write action has taken effect."""

    connection: str
    number: int


@dataclass(slots=True, unsafe_hash=True)
class Checked:
    """The outside system said whether a write action is in."""

    connection: str
    number: int
    is_in: bool


@dataclass(slots=True, unsafe_hash=True)
class Folded:
    """An event was assigned and folded: keys and notes of its pairs."""

    pairs: tuple[tuple[bytes, bytes | None], ...]
    changes: Changes
    choices: Choices
    times: Mapping[bytes, Any] = field(default_factory=dict)
    """By key: the time of what will be generated from it, where `assign` gave one."""


@dataclass(slots=True, unsafe_hash=True)
class Refolded:
    """An undone pair was folded again."""


@dataclass(slots=True, unsafe_hash=True)
class Answered:
    """The first group that is ready, or None."""

    group: tuple[bytes, ...] | None
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Generated:
    """A group was generated, or the operator finished."""

    emissions: tuple[Emission, ...]
    reads: tuple[SideRead, ...]
    changes: Changes
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Fired:
    """A timer's move is over."""

    changes: Changes
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Moved:
    """The operator was told frontiers."""

    changes: Changes
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Planned:
    """A source's next read action, or None."""

    description: bytes | None
    changes: Changes
    choices: Choices


class Item(NamedTuple):
    """A batch that a source read, and the offset after it."""

    batch: pa.RecordBatch
    offset: bytes
    stamped: tuple[Stamped, ...] | None = None
    """The events that it becomes, where they have times; otherwise it is one."""
    held: tuple[Any, ...] = ()
    """The times that the source holds from then on."""


@dataclass(slots=True, unsafe_hash=True)
class Got:
    """What a source read: batches, each with the offset after it."""

    items: tuple[Item, ...]
    is_complete: bool
    execution: int
    """Which execution of the action gave them, a number that no other execution has."""
    now: float


MoveResult = Folded | Refolded | Answered | Moved | Generated | Fired | Planned | Got
MOVE_RESULTS: frozenset[type[Any]] = frozenset((Folded, Refolded, Answered, Moved, Generated, Fired, Planned, Got))

Input = (
    Started | Buried | Ticked | Greeted | Broken | Connected | Received | Acked | Committed | Fetched | EffectFetched
    | Pulled | Surveyed | Written | WriteUnknown | Checked | Advanced | Marked | Completed
    | MoveResult
)  # fmt: skip
