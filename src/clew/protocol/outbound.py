"""Output ports: ids without gaps, sending inside a window, resending from the log, forgetting what is released.

Invariant: only durable events are sent, in the order of their ids, and an event stays in the log until every
receiver has released it (seed 002, Algorithm 3 step 5, Algorithm 7 step 1, section 3.6).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from clew.model.history import Output
from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.protocol.effects import Effect, Fetch, Send, Session
from clew.protocol.settings import Settings

Requires = tuple[tuple[str, int], ...]


class OutChannel:
    """One receiver of a port."""

    __slots__ = ("acked", "bytes", "channel", "flying", "pressure", "released", "sent", "session")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.session: Session | None = None
        self.sent = 0
        self.acked = 0
        self.released = IdSet()
        self.pressure = 0
        self.flying: deque[tuple[int, int]] = deque()
        """Events that were sent in this session and not acknowledged yet: id and size."""
        self.bytes = 0
        """The size of these together."""

    def landed(self) -> None:
        """Takes what was acknowledged off the list of what is under way."""
        flying = self.flying
        while flying and flying[0][0] <= self.acked:
            self.bytes -= flying.popleft()[1]

    def begin(self, session: Session | None) -> None:
        """Another session, in which nothing is under way yet."""
        self.session = session
        self.flying.clear()
        self.bytes = 0


class OutPort:
    """One output port and its receivers."""

    __slots__ = (
        "cache",
        "cached_bytes",
        "channels",
        "durable",
        "is_fetching",
        "last",
        "latest_size",
        "name",
        "removed",
        "settings",
    )

    def __init__(self, name: str, channels: list[OutChannel], settings: Settings) -> None:
        self.name = name
        self.channels = channels
        self.settings = settings
        self.last = 0
        self.durable = 0
        self.cache: dict[int, Output] = {}
        self.cached_bytes = 0
        self.latest_size = 0
        self.is_fetching = False
        self.removed = IdSet()

    def restore(self, last: int) -> None:
        """Continues after the ids that the log has given out."""
        self.last = self.durable = last

    def became_durable(self, output: Output) -> None:
        """Takes a committed output; it may be sent now."""
        self.durable = output.event.id
        settings = self.settings
        if self.channels and len(self.cache) < settings.cache_max and self.cached_bytes < settings.cache_bytes:
            self._keep(output)

    def fetched(self, outputs: tuple[Output, ...], first: int) -> None:
        """Takes outputs read from the log; a receiver that asks for what is gone is none of today's."""
        self.is_fetching = False
        for output in outputs:
            if output.event.id not in self.cache:
                self._keep(output)
        if not outputs or outputs[0].event.id != first:
            for receiver in self.channels:
                if receiver.session is not None and receiver.sent + 1 == first:
                    receiver.begin(None)

    def connected(self, channel: Channel, session: Session, assigned: int) -> None:
        """Begins a session unless a newer one is there."""
        receiver = self._receiver(channel)
        if receiver.session is None or session > receiver.session:
            receiver.begin(session)
            receiver.sent = assigned
            receiver.acked = max(receiver.acked, assigned)

    def session(self, channel: Channel) -> Session | None:
        """The present session of a receiver."""
        return self._receiver(channel).session

    def broken(self, channel: Channel, session: Session | None = None) -> None:
        """Ends this session, or the present one; the receiver will begin another, if it has not done so already."""
        receiver = self._receiver(channel)
        if session is None or session == receiver.session:
            receiver.begin(None)

    def acked(self, channel: Channel, session: Session, assigned: int, released: IdSet, pressure: int) -> None:
        """Takes an acknowledgement; the cursors in it are durable, so in a late one they are only old, never wrong."""
        receiver = self._receiver(channel)
        if session == receiver.session:  # A late one knows nothing of the pressure now, and nobody might correct it.
            receiver.pressure = pressure
        receiver.acked = max(receiver.acked, assigned)
        receiver.sent = max(receiver.sent, assigned)
        receiver.released.update(released)
        receiver.landed()

    def pump(self, is_allowed: Callable[[Requires], bool], effects: list[Effect]) -> None:
        """Sends what can be sent now."""
        window, window_bytes = self.settings.window, self.settings.window_bytes
        for receiver in self.channels:
            session = receiver.session
            if session is None:
                continue
            while (
                receiver.sent < self.durable
                and receiver.sent - receiver.acked < window
                and receiver.bytes < window_bytes
            ):
                output = self.cache.get(receiver.sent + 1)
                if output is None:
                    if not self.is_fetching:
                        self.is_fetching = True
                        effects.append(Fetch(self.name, receiver.sent + 1, self._handful()))
                    break
                if output.requires and not is_allowed(output.requires):
                    break
                receiver.sent += 1
                size = output.event.size
                receiver.flying.append((receiver.sent, size))
                receiver.bytes += size
                effects.append(Send(receiver.channel, session, output.event))
        self._evict()

    def backlog(self) -> int:
        """How far the slowest receiver is behind."""
        return self.last - min((receiver.acked for receiver in self.channels), default=self.last)

    def pressure(self) -> int:
        """How much waits on the fullest way behind this port."""
        return max((self.last - each.acked + each.pressure for each in self.channels), default=0)

    def released(self) -> IdSet:
        """What every receiver has released; all that is durable, if there is none."""
        if not self.channels:
            return IdSet(self.durable)
        return IdSet.common(receiver.released for receiver in self.channels)

    def forgettable(self) -> list[tuple[str, int, int]]:
        """Ranges that every receiver has released and that were not given out before."""
        released = self.released()
        ranges = [(self.name, first, last) for first, last in released.minus(self.removed)]
        if ranges:
            self.removed = released
        return ranges

    def check(self) -> None:
        """Raises when the invariant is broken."""
        assert self.durable <= self.last, f"port {self.name}: durable {self.durable} after last {self.last}"
        for receiver in self.channels:
            assert receiver.sent <= self.durable, f"{receiver.channel}: sent {receiver.sent}, durable {self.durable}"
            assert receiver.acked <= self.durable, f"{receiver.channel}: acked {receiver.acked}, not durable"

    def _receiver(self, channel: Channel) -> OutChannel:
        for receiver in self.channels:
            if receiver.channel == channel:
                return receiver
        raise KeyError(channel)

    def _keep(self, output: Output) -> None:
        self.cache[output.event.id] = output
        self.cached_bytes += output.event.size
        self.latest_size = output.event.size

    def _drop(self, number: int) -> None:
        self.cached_bytes -= self.cache.pop(number).event.size

    def _handful(self) -> int:
        """How many events to read from the log at once: a window full, but not of very large ones."""
        settings = self.settings
        return max(1, min(settings.window, settings.window_bytes // max(1, self.latest_size)))

    def _evict(self) -> None:
        if self.cache:
            low = min((receiver.sent for receiver in self.channels if receiver.session is not None), default=0)
            for number in [number for number in self.cache if number <= low]:
                self._drop(number)
            window = self.settings.window
            if len(self.cache) > self.settings.cache_max + window:  # A slow receiver holds back what others were sent.
                places = [receiver.sent for receiver in self.channels if receiver.session is not None]
                for number in [each for each in self.cache if not any(at < each <= at + window for at in places)]:
                    self._drop(number)
