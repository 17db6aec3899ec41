"""The tracker of a running pipeline: frontiers from what many members have durably counted.

A member (an operator replica) counts pointstamps: +1 where it makes one, -1 where it ends one, so that the counts of a
location are a sum over members. The tracker hears of changes once they are durable, numbered by the member's commits.

Invariants. A frontier is shown only of what all members together have said, or of what a member has durably logged;
until then it is None, "not known yet", never empty by mistake. A shown frontier never goes back. Counts at times that
it has passed mean nothing any more: members delete theirs, each at its own moment, so what is left of them is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from clew.errors import MoveError
from clew.progress.propagation import Propagation
from clew.progress.topology import Location, Topology
from clew.times import Antichain, Time

_FEW = 32


class Tracker:
    """Takes counts, gives frontiers.

    >>> from clew.times import IDENTITY, Changes, Integers
    >>> tracker = Tracker(Topology.of_one_order(Integers(), "ab", [("a", "b", IDENTITY)]), ["source", "sink"])
    >>> tracker.joined("source", 1, {"a": Changes({7: 1})}, {})
    >>> tracker.advance(), tracker.frontier("b")
    ({}, None)
    >>> tracker.joined("sink", 1, {}, {})
    >>> tracker.advance()
    {'a': Antichain({7}), 'b': Antichain({7})}
    >>> tracker.changed("source", 2, {"a": Changes({7: -1, 9: 1}), "b": Changes({7: 1})})
    >>> tracker.advance()
    {'a': Antichain({9})}
    """

    def __init__(self, topology: Topology, members: Iterable[Any]) -> None:
        self.topology = topology
        self._propagation = Propagation(topology)
        self._numbers: dict[Any, Any] = dict.fromkeys(members)
        self._waiting = set(self._numbers)
        self._sums: dict[Location, dict[Any, dict[Time, int]]] = {location: {} for location in topology.locations}
        self._is_complete = False
        """Whether all members have joined, and frontiers were computed since then."""
        self._shown: dict[Location, Antichain] = {}
        self._passed: dict[Location, list[Antichain]] = {location: [] for location in topology.locations}
        self._stored: dict[Location, int] = dict.fromkeys(topology.locations, 0)
        self._limits: dict[Location, int] = dict.fromkeys(topology.locations, _FEW)
        self._news: dict[Location, None] = {}

    @property
    def waiting(self) -> frozenset[Any]:
        """The members that have not joined yet."""
        return frozenset(self._waiting)

    def frontier(self, location: Location) -> Antichain | None:
        """The frontier of a location as it was last shown; None if it is not known yet."""
        return self._shown.get(location)

    def joined(
        self,
        member: Any,
        number: Any,
        sums: Mapping[Any, Mapping[Time, int]],
        passed: Mapping[Any, Antichain],
    ) -> None:
        """A member has (re)connected: its net sums as of a commit, and the frontiers that it has durably logged."""
        self._know(member, (*sums, *passed))
        for location, frontier in passed.items():
            self._pass(location, frontier)
            self._forget(location)
        known = self._numbers[member]
        if known is not None and number < known:
            return  # A message of an old connection: later commits are known already.
        self._numbers[member] = number
        self._waiting.discard(member)
        for location, counts in self._sums.items():
            old, new = counts.get(member, {}), sums.get(location, {})
            if old or new:
                changes = [(time, new.get(time, 0) - old.get(time, 0)) for time in dict.fromkeys([*old, *new])]
                self._add(member, location, [(time, count) for time, count in changes if count])

    def changed(self, member: Any, number: Any, changes: Mapping[Any, Mapping[Time, int]]) -> None:
        """A member has committed changes of its counts; what is known already is ignored."""
        self._know(member, changes)
        if member in self._waiting:
            raise MoveError(f"{member} has sent changes before its sums; a member joins before it sends changes")
        if number > self._numbers[member]:
            self._numbers[member] = number
            for location, counts in changes.items():
                self._add(member, location, counts.items())

    def advance(self) -> dict[Any, Antichain]:
        """Brings the frontiers up to date; returns those that were changed since the last call."""
        if not self._waiting:
            for location, frontier in self._propagation.propagate().items():
                self._pass(location, frontier)
            if not self._is_complete:  # Also where nothing was ever counted, or nothing is left of it.
                self._is_complete = True
                for location in self.topology.locations:
                    self._pass(location, self._propagation.frontier(location))
        news, self._news = self._news, {}
        return {location: self._shown[location] for location in news}

    def _pass(self, location: Location, frontier: Antichain) -> None:
        """The times that this frontier does not cover are over at this location, for ever."""
        old = self._shown.get(location)
        if old is None or old.is_at_most(frontier):
            new = frontier
        elif frontier.is_at_most(old):
            return
        elif frontier.order.has_upper_bounds:
            new = old.join(frontier)
        else:
            new = old  # The order cannot say what both cover; a later frontier will be after both.
        latest = [new, frontier] if new is old else [new]
        earlier = [fact for fact in self._passed[location] if fact is not old]
        self._passed[location] = [fact for fact in earlier if not any(map(fact.is_at_most, latest))] + latest
        self._shown[location] = new
        if old is None or new.elements != old.elements:
            self._news[location] = None

    def _add(self, member: Any, location: Location, changes: Iterable[tuple[Time, int]]) -> None:
        """Counts the changes of a member at times that are not over."""
        for fact in self._passed[location]:
            covers = fact.covers
            changes = [(time, count) for time, count in changes if covers(time)]
        counts = self._sums[location].setdefault(member, {})
        size = len(counts)
        kept = list(changes)
        for time, count in kept:
            counts[time] = counts.get(time, 0) + count
        self._stored[location] += len(counts) - size
        self._propagation.add(location, kept)
        if self._stored[location] > self._limits[location]:
            self._forget(location)

    def _forget(self, location: Location) -> None:
        """Deletes the counts at times that are over, and those that are 0."""
        facts = self._passed[location]
        stored = 0
        for member, counts in self._sums[location].items():
            gone = [time for time, count in counts.items() if any(fact.passed(time) for fact in facts)]
            self._propagation.add(location, [(time, -counts.pop(time)) for time in gone])
            self._sums[location][member] = {time: count for time, count in counts.items() if count}
            stored += len(self._sums[location][member])
        self._stored[location] = stored
        self._limits[location] = max(_FEW, 2 * stored)

    def _know(self, member: Any, locations: Iterable[Any]) -> None:
        if member not in self._numbers:
            raise MoveError(f"{member!r} is no member; the members are {', '.join(map(str, self._numbers))}")
        for location in locations:
            if location not in self._sums:
                raise MoveError(f"{member} counts at {location!r}, which is no location of the topology")
