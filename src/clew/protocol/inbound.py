"""Input channels: the obsolete filter and the three cursors; and the Input Sets that need their events.

Invariant: events are taken in the order of their ids, each once: seen counts what was accepted, assigned what joined
the history, released what no pair needs any more (seed 002, Algorithm 2 step 1, where obsolete
means smaller or equal).
"""

from __future__ import annotations

from clew.model.history import Cursor
from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.protocol.effects import Ack, Connect, Effect, Session


class InChannel:
    """One input channel of a replica."""

    __slots__ = (
        "assigned",
        "channel",
        "durable",
        "durable_released",
        "ended",
        "incarnation",
        "is_held",
        "needed",
        "peer",
        "pressure",
        "released",
        "seen",
        "session",
    )

    def __init__(self, channel: Channel, is_held: bool) -> None:
        self.channel = channel
        self.is_held = is_held
        """Whether captured lineage keeps this channel's events after their Input Sets are closed."""
        self.seen = 0
        self.assigned = 0
        self.durable = 0
        """The assigned cursor as the log has it."""
        self.durable_released = IdSet()
        """The released cursor as the log has it; never changed, only replaced."""
        self.pressure = 0
        self.released = IdSet()
        self.needed: dict[int, int] = {}
        """How many open pairs each event still has."""
        self.ended = False
        self.incarnation = 0
        self.peer = 0
        self.session = Session(0, 0)

    def restore(self, incarnation: int, cursor: Cursor | None) -> None:
        """Continues where the log says."""
        self.incarnation = incarnation
        if cursor is not None:
            self.seen = self.assigned = self.durable = cursor.assigned
            self.durable_released = cursor.released
            self.released = cursor.released.copy()
            self.ended = cursor.ended

    def connect(self, effects: list[Effect]) -> None:
        """Asks the sender, in a new session, for what comes after the assigned cursor."""
        self.session = Session(self.incarnation, self.session.number + 1)
        effects.append(Connect(self.channel, self.session, self.durable))
        self.acknowledge(effects)

    def acknowledge(self, effects: list[Effect]) -> None:
        """Tells the sender what is durable here."""
        effects.append(Ack(self.channel, self.session, self.durable, self.durable_released, self.pressure))

    def greeted(self, incarnation: int, effects: list[Effect]) -> None:
        """A new incarnation of the sender has begun."""
        if incarnation > self.peer:
            self.peer = incarnation
            self.connect(effects)

    def accepts(self, session: Session, number: int, effects: list[Effect]) -> bool:
        """Whether an event is the next one; a gap means that the session must begin anew."""
        if session != self.session or number <= self.seen:
            return False
        if number > self.seen + 1:
            self.connect(effects)
            return False
        self.seen = number
        return True

    def assign(self, number: int, pairs: int) -> None:
        """The event joined the history with this many pairs."""
        self.assigned = number
        if pairs:
            self.needed[number] = pairs
        else:
            self.released.add(number)

    def let_go(self, number: int) -> None:
        """One pair of the event is done; returns nothing, releases the event with its last pair."""
        count = self.needed[number] - 1
        if count:
            self.needed[number] = count
        else:
            del self.needed[number]
            if not self.is_held:
                self.released.add(number)

    def became_durable(self, cursor: Cursor) -> None:
        """The log has this cursor now."""
        self.durable = cursor.assigned
        self.durable_released = cursor.released

    def cursor(self) -> Cursor:
        """The row that the next commit stores."""
        return Cursor(self.assigned, self.released.copy(), self.ended)

    def check(self) -> None:
        """Raises when the invariant is broken."""
        assert self.durable <= self.assigned <= self.seen, (
            f"{self.channel}: {self.durable}, {self.assigned}, {self.seen}"
        )
        assert self.released.floor <= self.assigned, f"{self.channel}: released more than was assigned"


class InputSet:
    """An Input Set that was not generated yet, and the events in it."""

    __slots__ = ("events", "key", "serial")

    def __init__(self, serial: int, key: bytes) -> None:
        self.serial = serial
        self.key = key
        self.events: list[tuple[InChannel, int]] = []
