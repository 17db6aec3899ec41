"""Actors: what can happen next in a simulated world, and messages on their way between two of them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from clew.model.names import Replica
from clew.protocol import inputs as was

if TYPE_CHECKING:
    from clew.verify.world import World


class Actor:
    """Something that can happen next while it is on the list."""

    __slots__ = ("place",)

    def __init__(self) -> None:
        self.place = -1

    def act(self, world: World) -> None:
        """Makes it happen."""
        raise NotImplementedError


class Link(Actor):
    """One direction of a channel as one process uses it: messages arrive in the order sent, or not at all."""

    __slots__ = ("messages", "target")

    def __init__(self, target: Replica) -> None:
        super().__init__()
        self.target = target
        self.messages: deque[was.Input] = deque()

    def act(self, world: World) -> None:
        message = self.messages.popleft()
        if not self.messages:
            world.disable(self)
        process = world.current.get(self.target)
        if process is not None and process.is_running:
            if process.cut and isinstance(message, was.Connected):
                process.cut.pop(message.channel, None)  # It came on a new connection.
            process.take(message)
