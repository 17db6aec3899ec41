"""Ways: the ends of a channel, over a link to another process or straight to a replica in the same one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.model.names import Channel
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Session
from clew.runtime import wire
from clew.runtime.link import Link
from clew.runtime.loop import Loop
from clew.runtime.replica import RunningReplica

Spoken = does.Send | does.Ack | does.Hello | does.Connect


class LinkWay:
    """A channel's end over a link; what arrives on it goes to the replica at this end."""

    def __init__(self, link: Link, channel: Channel, replica: RunningReplica) -> None:
        self.link = link
        self.channel = channel
        self.replica = replica
        self.session: Session | None = None
        """As a sender: the session that was asked for last on this link."""
        self._outgoing = wire.Outgoing()
        self._incoming = wire.Incoming(channel)
        self._arrived: list[was.Input] = []
        self._frame: dict[type, Callable[[Any], bytes]] = {
            does.Send: self._outgoing.event,
            does.Ack: wire.ack,
            does.Connect: wire.connect,
            does.Hello: wire.hello,
        }
        link.on_frame = self.on_frame
        link.on_read = self.on_read

    def say(self, effect: Spoken) -> None:
        """Queues a message for the other end."""
        self.link.put(self._frame[type(effect)](effect))

    def flush(self) -> None:
        """Sends what is queued."""
        self.link.flush()

    def on_frame(self, kind: int, payload: bytes) -> None:
        """A message came."""
        given = self._incoming.input(kind, payload)
        if given is not None:
            if type(given) is was.Connected:
                self.session = given.session
            self._arrived.append(given)

    def on_read(self) -> None:
        """All that came together is taken together; nothing of a way that has been replaced."""
        arrived, self._arrived = self._arrived, []
        if arrived and self.replica.ways.get(self.channel) is self:
            self.replica.counts.events_in += sum(type(given) is was.Received for given in arrived)
            self.replica.take_all(arrived)


class LocalWay:
    """A channel's end when both replicas are in one process: messages are handed over by the loop."""

    def __init__(self, loop: Loop, other: RunningReplica) -> None:
        self._loop = loop
        self._other = other
        self._queued: list[was.Input] = []

    def say(self, effect: Spoken) -> None:
        """Queues a message for the other replica."""
        self._queued.append(_HEARD[type(effect)](effect))

    def flush(self) -> None:
        """Hands over what is queued."""
        queued, self._queued = self._queued, []
        if queued:
            self._loop.soon(lambda: self._hand_over(queued))

    def _hand_over(self, inputs: list[was.Input]) -> None:
        self._other.counts.events_in += sum(type(given) is was.Received for given in inputs)
        self._other.take_all(inputs)


_HEARD: dict[type, Callable[[Any], was.Input]] = {
    does.Send: lambda said: was.Received(said.channel, said.session, said.event),
    does.Ack: lambda said: was.Acked(said.channel, said.session, said.assigned, said.released, said.pressure),
    does.Connect: lambda said: was.Connected(said.channel, said.session, said.assigned),
    does.Hello: lambda said: was.Greeted(said.channel, said.incarnation),
}
