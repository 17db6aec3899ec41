"""Decisions: a replica's history as its journal tells it, so that someone else can re-execute it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from clew.model.names import Channel
from clew.protocol.inputs import Choices
from clew.times.antichain import Antichain


@dataclass(slots=True, unsafe_hash=True)
class Took:
    """An event was assigned and folded."""

    channel: Channel
    event: int
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Ended:
    """The end mark of a channel was taken."""

    channel: Channel
    event: int


@dataclass(slots=True, unsafe_hash=True)
class Held:
    """The border of an epoch was taken on a channel, which waits for the others now."""

    channel: Channel
    event: int
    epoch: int


@dataclass(slots=True, unsafe_hash=True)
class Bordered:
    """The replica's epoch has ended: its state is captured here, and the border passed on."""

    epoch: int


@dataclass(slots=True, unsafe_hash=True)
class Asked:
    """`ready` answered with this first group, or with none."""

    group: tuple[bytes, ...] | None
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Made:
    """A group was generated."""

    group: tuple[bytes, ...]
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Rang:
    """A timer's move ran."""

    name: bytes
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Moved:
    """The operator was told these frontiers, by input port."""

    frontiers: Mapping[str, Antichain]
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Drained:
    """Nothing can come round a feedback operator's cycle any more: its output port has ended."""


@dataclass(slots=True, unsafe_hash=True)
class Closed:
    """The operator finished."""

    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Began:
    """A source began a read action, or found that there is none left."""

    action: int
    description: bytes | None
    choices: Choices


@dataclass(slots=True, unsafe_hash=True)
class Emitted:
    """A source turned a batch of a replayable read action into an event."""

    action: int
    offset: bytes
    held: tuple[Any, ...] = ()
    """The times that the source holds from now on."""


@dataclass(slots=True, unsafe_hash=True)
class Followed:
    """An idle source has moved on with the others, and holds these times from now on."""

    held: tuple[Any, ...]


@dataclass(slots=True, unsafe_hash=True)
class Kept:
    """A source stored a batch of a read action that is not replayable."""

    action: int
    execution: int
    batch: pa.RecordBatch


@dataclass(slots=True, unsafe_hash=True)
class Dropped:
    """A source discarded the stored part of a read action that was cut off."""

    action: int


@dataclass(slots=True, unsafe_hash=True)
class Read:
    """All of a read action has been read."""

    action: int


@dataclass(slots=True, unsafe_hash=True)
class GaveUp:
    """An input was given up: all that comes of it is its dead letters."""

    move: str
    """`fold`, `refold`, `generate`, `finish` or `fire`."""
    tries: int
    error: str
    channel: Channel | None = None
    event: int = 0
    """Of `fold` and `refold`: the event."""
    keys: tuple[bytes, ...] = ()
    """Of `refold`, `generate` and `finish`: the Input Sets."""
    timer: bytes | None = None


Decision = (
    Took | Ended | Asked | Made | Rang | Moved | Drained | Closed | GaveUp
    | Began | Emitted | Followed | Kept | Dropped | Read
)  # fmt: skip
