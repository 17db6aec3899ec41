"""Moments: the oracle's own books of which times an operator holds, and so which time an output must have."""

from __future__ import annotations

from typing import Any

from clew.errors import Violation
from clew.model.graph import Node
from clew.times.summary import IDENTITY


class Moments:
    """The times of one operator's Input Sets and names, worked out from the moves alone."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.sets: dict[Any, list[Any]] = {}
        """By Input Set: the time that was given for it, or the times of its events."""
        self.names: dict[Any, Any] = {}

    def arriving(self, port: str, time: Any) -> Any:
        """The time of what comes of an event."""
        if self.node.order is None or time is None:
            return None
        return getattr(self.node.definition, "summaries", {}).get(port, IDENTITY).results_in(time)

    def take(self, key: Any, port: str, time: Any, given: Any) -> None:
        """An event joins an Input Set."""
        if self.node.order is not None:
            self.sets.setdefault(key, []).append(self.arriving(port, time) if given is None else given)

    def close(self, key: Any) -> None:
        """An Input Set is done."""
        self.sets.pop(key, None)

    def settle(self, holds: dict[Any, Any]) -> None:
        """A move is over; what it held and dropped counts from now on."""
        for name, time in holds.items():
            if time is None:
                self.names.pop(name, None)
            else:
                self.names[name] = time
        holds.clear()

    def least(self, keys: list[Any]) -> Any:
        """The first of the least times of these Input Sets."""
        if self.node.order is None:
            return None
        found = self._minimal([time for key in keys for time in self.sets.get(key, ())])
        return found[0] if found else None

    def of(self, port: str, keys: list[Any], said: Any) -> Any:
        """The time of what is made of these Input Sets."""
        if self.node.order is None or said is not None:
            return said
        found = self._minimal([time for key in keys for time in self.sets.get(key, ())])
        found = found or self._minimal(list(self.names.values()))
        if len(found) > 1 and port not in self.node.writes:
            raise Violation(f"{self.node.name}: an output of {keys} has no one time, but any of {found}")
        return found[0] if found else None

    def _minimal(self, times: list[Any]) -> list[Any]:
        assert self.node.order is not None
        leq = self.node.order.leq
        different = list(dict.fromkeys(time for time in times if time is not None))
        return [time for time in different if not any(leq(other, time) for other in different if other != time)]
