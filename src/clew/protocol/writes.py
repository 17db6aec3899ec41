"""Write actions: executed one at a time per connection, in id order, exactly once.

Invariant: at most one action of a connection is under way; an action is begun only when it is durable in the log;
an action that a predecessor may have executed is settled by the rule of its kind (seed 002, Algorithms 5 and 8).
"""

from __future__ import annotations

from clew.model.connection import Kind
from clew.model.history import Output
from clew.protocol.effects import Check, Effect, Fetch, Write
from clew.protocol.settings import Settings


class Writer:
    """The write actions of one connection."""

    __slots__ = (
        "cache",
        "cached_bytes",
        "done",
        "done_durable",
        "doubt",
        "durable",
        "is_blocked",
        "is_fetching",
        "is_under_way",
        "kind",
        "last",
        "name",
        "settings",
    )

    def __init__(self, name: str, kind: Kind, settings: Settings) -> None:
        self.name = name
        self.kind = kind
        self.settings = settings
        self.last = 0
        self.durable = 0
        self.done = 0
        self.done_durable = 0
        self.doubt = 0
        """Actions up to this number may have been executed by a predecessor."""
        self.cache: dict[int, Output] = {}
        self.cached_bytes = 0
        self.is_fetching = False
        self.is_under_way = False
        self.is_blocked = False

    def restore(self, last: int, done: int, is_predecessor_dead: bool) -> None:
        """Continues after what the log says; a predecessor that may live holds back all but conditional writes."""
        self.last = self.durable = self.doubt = last
        self.done = self.done_durable = done
        self.is_blocked = not is_predecessor_dead and self.kind is not Kind.CONDITIONAL

    def buried(self) -> None:
        """Every predecessor is dead."""
        self.is_blocked = False

    def became_durable(self, output: Output) -> None:
        """Takes a committed write action; it may be executed now."""
        self.durable = output.event.id
        settings = self.settings
        if len(self.cache) < settings.cache_max and self.cached_bytes < settings.cache_bytes:
            self._keep(output)

    def fetched(self, outputs: tuple[Output, ...]) -> None:
        """Takes write actions read from the log; if the next one is gone, a successor has done it."""
        self.is_fetching = False
        for output in outputs:
            if output.event.id not in self.cache:
                self._keep(output)
        if self.done < self.durable and self.done + 1 not in self.cache:
            self.is_blocked = True

    def pump(self, effects: list[Effect]) -> None:
        """Begins the next action, if it may begin now."""
        if self.is_under_way or self.is_blocked or self.done >= self.durable:
            return
        if self.kind is Kind.IDEMPOTENT and self.done > self.done_durable:
            return  # Doing it again must come directly after doing it first.
        number = self.done + 1
        output = self.cache.get(number)
        if output is None:
            if not self.is_fetching:
                self.is_fetching = True
                effects.append(Fetch(self.name, number, self.settings.window))
            return
        self.is_under_way = True
        effects.append(self._begin(number, output))

    def _begin(self, number: int, output: Output) -> Effect:
        if self.kind is Kind.CHECKABLE and number <= self.doubt:
            return Check(self.name, number, output)
        return Write(self.name, number, output)

    def checked(self, number: int, is_in: bool, effects: list[Effect]) -> bool:
        """Takes the outside system's word; True when the action turned out to be done."""
        if number != self.done + 1 or not self.is_under_way:
            return False
        if is_in:
            return self.written(number)
        self.doubt = number - 1  # Later actions cannot be in before this one.
        effects.append(Write(self.name, number, self.cache[number]))
        return False

    def unknown(self, number: int, effects: list[Effect]) -> None:
        """The answer was lost: settles the action by its kind."""
        if number == self.done + 1 and self.is_under_way:
            self.doubt = max(self.doubt, number)
            effects.append(self._begin(number, self.cache[number]))

    def written(self, number: int) -> bool:
        """Takes the outside system's acknowledgement; True when it is news."""
        if number != self.done + 1 or not self.is_under_way:
            return False
        self.is_under_way = False
        self.done = number
        self.cached_bytes -= self.cache.pop(number).event.size
        return True

    def _keep(self, output: Output) -> None:
        self.cache[output.event.id] = output
        self.cached_bytes += output.event.size

    @property
    def is_settled(self) -> bool:
        """Whether every action is done, durably."""
        return self.done_durable == self.last

    def check(self) -> None:
        """Raises when the invariant is broken."""
        assert self.done_durable <= self.done <= self.durable <= self.last, f"connection {self.name}: {self.done}"
