"""Effects: what a kernel asks its driver to do, to be begun in the order in which they were returned.

An effect that has an answer names the input that carries it. Only the answer of a commit allows what depends on it.
Nobody changes an effect, an input or a decision once it is made; they are not frozen because making a frozen one takes
three times as long, and a kernel makes ten of them for every event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew.model.event import Event
from clew.model.history import Output, Transaction
from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.times.antichain import Antichain


class Session(NamedTuple):
    """One (re)connection of a channel, numbered by its receiver; anything of another session is refused."""

    incarnation: int
    number: int


@dataclass(slots=True, unsafe_hash=True)
class Commit:
    """Stage and commit a transaction; answered by `Committed`. One is under way at a time."""

    number: int
    transaction: Transaction


@dataclass(slots=True, unsafe_hash=True)
class Hello:
    """Tell the receiver of a channel that this incarnation of its sender has begun."""

    channel: Channel
    incarnation: int


@dataclass(slots=True, unsafe_hash=True)
class Connect:
    """Tell the sender of a channel to send, in a new session, what comes after `assigned`."""

    channel: Channel
    session: Session
    assigned: int


@dataclass(slots=True, unsafe_hash=True)
class Send:
    """Send an event; events of a channel and session arrive in the order sent, or the session is over."""

    channel: Channel
    session: Session
    event: Event


@dataclass(slots=True, unsafe_hash=True)
class Ack:
    """Tell the sender how far this replica durably is on a channel, and how much work waits behind it."""

    channel: Channel
    session: Session
    assigned: int
    released: IdSet
    pressure: int
    """How many events wait on the fullest way from here to the end of the pipeline."""


@dataclass(slots=True, unsafe_hash=True)
class Fetch:
    """Read outputs (or write actions) of this replica's own log; answered by `Fetched`."""

    port: str
    first: int
    limit: int


@dataclass(slots=True, unsafe_hash=True)
class FetchEffect:
    """Read the stored effect of a read action from this replica's own log; answered by `EffectFetched`."""

    action: int
    first: int
    limit: int


@dataclass(slots=True, unsafe_hash=True)
class Pull:
    """Read events from their senders' logs; answered by `Pulled`."""

    events: tuple[tuple[Channel, int], ...]


@dataclass(slots=True, unsafe_hash=True)
class Survey:
    """Ask this replica's own log what retention may remove; answered by `Surveyed`."""

    released: Mapping[str, IdSet]
    targets: Mapping[str, float | None]


@dataclass(slots=True, unsafe_hash=True)
class Write:
    """Execute a write action; answered by `Written`, or by `WriteUnknown` when no answer came."""

    connection: str
    number: int
    output: Output


@dataclass(slots=True, unsafe_hash=True)
class Check:
    """Ask the outside system whether a write action is in; answered by `Checked`."""

    connection: str
    number: int
    output: Output


@dataclass(slots=True, unsafe_hash=True)
class Announce:
    """Tell the tracker what has become durable of this replica's counts of times; answered, if at all, by `Advanced`.

    Each incarnation begins with a whole one; what it announces arrives in the order of the numbers, or not at all.
    """

    number: tuple[int, int]
    """The incarnation, and the number of the commit in it."""
    counts: Mapping[tuple[str, Any], int]
    """By location and time: how much was added since the last announcement, or, of a whole one, what there is."""
    is_whole: bool = False
    passed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Of a whole one: frontiers that this replica has durably seen, by location."""
    is_idle: bool = False
    """Of a source: whether it has had nothing for longer than it is waited for."""


@dataclass(slots=True, unsafe_hash=True)
class Snapshot:
    """Capture the log as it is now, before anything else is begun; then store it, and tell the coordinator."""

    epoch: int
    is_final: bool
    """Whether the replica has finished: it stands for all later epochs too."""


@dataclass(slots=True, unsafe_hash=True)
class Alarm:
    """Deliver `Ticked` at this time or soon after it."""

    at: float


@dataclass(slots=True, unsafe_hash=True)
class Complete:
    """This replica has nothing left to do except to serve its receivers."""


@dataclass(slots=True, unsafe_hash=True)
class Fail:
    """This replica cannot go on: the user's operator broke a rule."""

    message: str


@dataclass(slots=True, unsafe_hash=True)
class Fold:
    """Run `assign` for an event and `update` for each pair; answered by `Folded`."""

    channel: Channel
    event: Event


@dataclass(slots=True, unsafe_hash=True)
class Refold:
    """Run `update` again for one undone pair; answered by `Refolded`."""

    channel: Channel
    event: Event
    key: bytes
    note: bytes | None


@dataclass(slots=True, unsafe_hash=True)
class Ask:
    """Run `ready`; answered by `Answered`."""

    ended: frozenset[str]
    frontiers: Mapping[str, Antichain] = field(default_factory=dict)
    """By input port, as far as the operator was told them."""


@dataclass(slots=True, unsafe_hash=True)
class Advance:
    """Run `on_frontier` for each of these ports; answered by `Moved`."""

    frontiers: Mapping[str, Antichain]


@dataclass(slots=True, unsafe_hash=True)
class Generate:
    """Run `generate` for a group of Input Sets; answered by `Generated`."""

    keys: tuple[bytes, ...]


@dataclass(slots=True, unsafe_hash=True)
class Finish:
    """Run `finish` for all open Input Sets; answered by `Generated`."""

    keys: tuple[bytes, ...]


@dataclass(slots=True, unsafe_hash=True)
class Fire:
    """Run `on_timer`; answered by `Fired`."""

    name: bytes


@dataclass(slots=True, unsafe_hash=True)
class Plan:
    """Run a source's `plan`; answered by `Planned`."""


@dataclass(slots=True, unsafe_hash=True)
class Read:
    """Run a source's `read` from an offset for up to `limit` batches; answered by `Got`."""

    action: int
    description: bytes
    offset: bytes | None
    limit: int
    held: tuple[Any, ...] = ()
    """The times that the source holds, where its events have times."""


Move = Fold | Refold | Ask | Advance | Generate | Finish | Fire | Plan | Read
"""The effects that run user code; at most one is under way in a replica."""

MOVES: tuple[type[Any], ...] = (Fold, Refold, Ask, Advance, Generate, Finish, Fire, Plan, Read)

Effect = (
    Commit | Hello | Connect | Send | Ack | Fetch | FetchEffect | Pull | Survey | Write | Check | Announce | Snapshot
    | Alarm | Complete | Fail | Move
)  # fmt: skip
