"""The simulated tracker: announcements on their way to it, and frontiers on their way back."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from clew.model.names import parse_replica
from clew.protocol import effects as does
from clew.protocol.announcements import joined
from clew.protocol.frontiers import Frontiers
from clew.verify.actor import Actor, Link

if TYPE_CHECKING:
    from clew.verify.process import Process
    from clew.verify.world import World


class Announcements(Actor):
    """What one process has announced, on its way; it arrives in the order sent, or not at all."""

    __slots__ = ("messages", "process")

    def __init__(self, process: Process) -> None:
        super().__init__()
        self.process = process
        self.messages: deque[does.Announce] = deque()

    def act(self, world: World) -> None:
        message = self.messages.popleft()
        while self.messages and world.chance.random() < 0.5:
            message = joined(message, self.messages.popleft())
        if not self.messages:
            world.disable(self)
        assert world.tracking is not None
        if world.is_heard(self.process):
            world.tracking.hear(world, str(self.process.replica), message)


class Tracking(Actor):
    """The tracker of a run, which computes frontiers when it is picked and something is new."""

    __slots__ = ("_links", "frontiers")

    def __init__(self, frontiers: Frontiers) -> None:
        super().__init__()
        self.frontiers = frontiers
        self._links: dict[str, Link] = {}

    def hear(self, world: World, member: str, message: does.Announce) -> None:
        """An announcement has come."""
        self.frontiers.announced(member, message)
        if self.frontiers.is_new:
            world.enable(self)

    def act(self, world: World) -> None:
        world.disable(self)
        for member, advanced in self.frontiers.advance().items():
            if world.arrivals is not None:
                world.arrivals.on_told(member, advanced)
            link = self._links.get(member)
            if link is None:
                link = self._links[member] = Link(parse_replica(member))
            link.messages.append(advanced)
            world.enable(link)

    def stop(self, world: World) -> None:
        """It dies, with all that it was about to tell."""
        world.disable(self)
        for link in self._links.values():
            world.disable(link)
