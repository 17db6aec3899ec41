"""Capabilities: the times that a replica holds back, the counts it tells the tracker, and the frontiers it was told.

Invariant: whatever the replica may still send is at or after a time that it holds, or that an event on its way to it
has; each transaction moves both together, and its counts are announced as one, once they are durable. So the sum over
all replicas never lacks a time that can still arrive (progress thesis, section 9.2 and chapter 5).

A location is a replica (what it holds) or one of its input ports (what is on its way there). The sender of an event
counts it up at the receiver's port, the receiver counts it down when it has taken it; at times that a port's frontier
has passed the two make nothing together, so each removes its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from clew.model.graph import Node
from clew.model.history import Transaction
from clew.model.names import Channel, Replica
from clew.model.values import decode, encode
from clew.protocol.effects import Announce
from clew.times.antichain import Antichain, minimal
from clew.times.everything import Everything
from clew.times.order import Order, as_tuples
from clew.times.summary import IDENTITY, Summary

Owner = Hashable
"""Who holds times: the serial of an Input Set, the bytes of a name, or `SOURCE`."""
SOURCE = "source"
_FEW = 32
_Place = tuple[str, Any]


class Capabilities:
    """The times of one replica."""

    def __init__(self, node: Node, replica: Replica, inbound: Iterable[Channel], outbound: Iterable[Channel]) -> None:
        self.order = node.order
        self.core = str(replica)
        summaries = getattr(node.definition, "summaries", {})
        self.summaries: dict[str, Summary] = {port: summaries.get(port, IDENTITY) for port in node.inputs}
        self.ports = {f"{replica}.{port}": port for port in node.input_orders}
        """By location: the input ports whose events have times."""
        self.orders: dict[str, Order] = {f"{replica}.{port}": order for port, order in node.input_orders.items()}
        self.receivers: dict[str, tuple[str, ...]] = dict.fromkeys(node.outputs, ())
        if node.order is not None:
            for channel in outbound:
                location = f"{channel.receiver}.{channel.input}"
                self.receivers[channel.output] += (location,)
                self.orders[location] = node.order
        self.held: dict[Owner, tuple[Any, ...]] = {}
        self._names: dict[bytes, None] = {}
        """The owners that are names."""
        self.sums: defaultdict[str, dict[Any, int]] = defaultdict(dict)
        """By location and time: what this replica has counted in all, less what was removed."""
        self.frontiers: dict[str, Antichain] = {}
        """By location, as the tracker told them last; what the operator was told is `shown`."""
        self.shown: dict[str, Antichain] = {
            port: Everything(self.orders[location]) for location, port in self.ports.items()
        }
        self._limits: defaultdict[str, int] = defaultdict(lambda: _FEW)
        """By location: with so many times it is worth looking for those that have passed."""
        self._rows: set[_Place] = set()
        """Sums with a row in the log, or in the transaction that is being committed."""
        self._stored: set[Owner] = set()
        """Owners with a row in the log, or in the transaction that is being committed."""
        self._changed_owners: dict[Owner, None] = {}
        self._changed_sums: dict[_Place, None] = {}
        self._changed_frontiers: dict[str, None] = {}
        self._changed_shown: dict[str, None] = {}
        self._changes: dict[_Place, int] = {}
        """What was counted since the last commit was begun."""
        self._committing: dict[_Place, int] = {}

    @property
    def is_prunable(self) -> bool:
        """Whether rows wait to be removed, or frontiers to be logged, that no other commit may take along."""
        return bool(self._changed_frontiers or self._changed_shown)

    # Counting

    def sent(self, port: str, time: Any) -> None:
        """An event with this time leaves."""
        for location in self.receivers[port]:
            self._count(location, time, 1)

    def took(self, port: str, time: Any) -> None:
        """An event with this time has joined the history."""
        if time is not None and (location := f"{self.core}.{port}") in self.ports:
            self._count(location, time, -1)

    def arriving(self, port: str, time: Any) -> Any:
        """The earliest time of what an event on this port may lead to here."""
        return None if time is None or self.order is None else self.summaries[port].results_in(time)

    def hold(self, owner: Owner, times: tuple[Any, ...]) -> None:
        """An owner holds these times from now on, and no others."""
        before = self.held.get(owner, ())
        if before != times:
            for time in times:
                self._count(self.core, time, 1)
            for time in before:
                self._count(self.core, time, -1)
            if times:
                self.held[owner] = times
            else:
                del self.held[owner]
            if isinstance(owner, bytes):
                self._names.pop(owner, None)
                if times:
                    self._names[owner] = None
            self._changed_owners[owner] = None

    def hold_also(self, owner: Owner, time: Any) -> None:
        """An owner holds this time, too."""
        assert self.order is not None
        before = self.held.get(owner, ())
        if not before:
            self.hold(owner, (time,))
        elif time not in before:
            self.hold(owner, minimal(self.order, (*before, time)))

    def drop(self, owner: Owner) -> None:
        """An owner holds nothing any more."""
        self.hold(owner, ())

    def move(self, old: Owner, new: Owner) -> None:
        """Another owner holds what this one held."""
        times = self.held.get(old, ())
        self.hold(new, times)
        self.drop(old)

    def names(self) -> list[bytes]:
        """The owners that are names."""
        return list(self._names)

    def is_held(self, time: Any, owners: Iterable[Owner]) -> bool:
        """Whether the time is at or after one that any of these holds."""
        assert self.order is not None
        leq = self.order.leq
        return any(leq(each, time) for owner in owners for each in self.held.get(owner, ()))

    def least(self, owners: Iterable[Owner]) -> tuple[Any, ...]:
        """The minimal times that these hold."""
        assert self.order is not None
        return minimal(self.order, (time for owner in owners for time in self.held.get(owner, ())))

    def _count(self, location: str, time: Any, number: int) -> None:
        place = location, time
        sums = self.sums[location]
        total = sums.get(time, 0) + number
        if total:
            sums[time] = total
        else:
            sums.pop(time, None)
        if location != self.core:  # What it holds itself is known from its holds.
            self._changed_sums[place] = None
        change = self._changes.get(place, 0) + number
        if change:
            self._changes[place] = change
        else:
            del self._changes[place]

    # Frontiers

    def told(self, frontiers: Mapping[str, Iterable[Any]]) -> bool:
        """The tracker says how far locations are; what passed there is removed. Whether a port of its own moved."""
        has_moved = False
        for location, elements in frontiers.items():
            order = self.orders.get(location)
            if order is None:
                continue
            frontier = Antichain(order, elements)
            before = self.frontiers.get(location)
            if before is None or (frontier != before and before.is_at_most(frontier)):
                self.frontiers[location] = frontier
                has_moved = has_moved or location in self.ports
                self._prune(location, frontier)
        return has_moved

    def _prune(self, location: str, frontier: Antichain) -> None:
        sums = self.sums[location]
        if frontier and len(sums) < self._limits[location]:
            return  # It is not worth looking yet.
        gone = [time for time in sums if frontier.passed(time)]
        for time in gone:
            del sums[time]
            self._changed_sums[location, time] = None
        self._limits[location] = max(_FEW, 2 * len(sums))
        if gone:
            self._changed_frontiers[location] = None

    def is_over(self) -> bool:
        """Whether nothing with a time can come on any port any more."""
        return all(location in self.frontiers and not self.frontiers[location] for location in self.ports)

    def moved(self) -> dict[str, Antichain]:
        """By input port: frontiers that the operator has not been shown yet."""
        return {
            port: self.frontiers[location]
            for location, port in self.ports.items()
            if location in self.frontiers and self.frontiers[location] != self.shown[port]
        }

    def show(self, frontiers: Mapping[str, Antichain]) -> None:
        """The operator was shown these, which joins the history."""
        self.shown = {**self.shown, **frontiers}
        self._changed_shown.update(dict.fromkeys(frontiers))

    # The log

    def restore(self, rows: Mapping[tuple[str, bytes], bytes]) -> None:
        """Goes on where the log says."""
        for (kind, name), value in rows.items():
            if kind == "hold":
                owner = decode(name)
                self.held[owner] = tuple(decode(value))
                self._stored.add(owner)
            elif kind == "sum":
                location, time = decode(name)
                self.sums[location][time] = decode(value)
                self._rows.add((location, time))
            elif kind == "frontier":
                location = decode(name)
                self.frontiers[location] = Antichain(self.orders[location], as_tuples(decode(value)))
            else:
                port = decode(name)
                self.shown[port] = Antichain(self.shown[port].order, as_tuples(decode(value)))
        for owner, times in self.held.items():
            if isinstance(owner, bytes):
                self._names[owner] = None
            for time in times:
                self.sums[self.core][time] = self.sums[self.core].get(time, 0) + 1
        for location, port in self.ports.items():
            shown, known = self.shown[port], self.frontiers.get(location)
            if not isinstance(shown, Everything) and (known is None or known.is_at_most(shown)):
                self.frontiers[location] = shown

    def begin(self, start: tuple[Any, ...]) -> None:
        """A source at its very first start holds these, as everybody has to know before anything is durable."""
        self.hold(SOURCE, start)
        self._changes.clear()

    def seal(self, transaction: Transaction) -> None:
        """Adds what has changed to a transaction that is about to be committed."""
        rows = transaction.progress
        for owner in self._changed_owners:
            times = self.held.get(owner)
            if times is not None:
                rows["hold", encode(owner)] = encode(list(times))
                self._stored.add(owner)
            elif owner in self._stored:
                rows["hold", encode(owner)] = None
                self._stored.discard(owner)
        for place in self._changed_sums:
            total = self.sums[place[0]].get(place[1])
            if total is not None:
                rows["sum", encode(list(place))] = encode(total)  # A list is encoded faster than a tuple.
                self._rows.add(place)
            elif place in self._rows:
                rows["sum", encode(list(place))] = None
                self._rows.discard(place)
        for location in self._changed_frontiers:
            rows["frontier", encode(location)] = encode(self.frontiers[location].elements)
        for port in self._changed_shown:
            rows["shown", encode(port)] = encode(self.shown[port].elements)
        self._changed_shown.clear()
        self._changed_owners.clear()
        self._changed_sums.clear()
        self._changed_frontiers.clear()
        self._committing, self._changes = self._changes, {}

    def durable(self, number: tuple[int, int], is_idle: bool = False) -> Announce | None:
        """The announcement of the commit that has become durable, if there is anything to announce."""
        counts, self._committing = self._committing, {}
        return Announce(number, counts, is_idle=is_idle) if counts else None

    def whole(self, number: tuple[int, int]) -> Announce:
        """The announcement of all that there is, as long as all of it is durable."""
        assert not self._changes, "something was counted before the replica has joined"
        counts = {(location, time): total for location, sums in self.sums.items() for time, total in sums.items()}
        passed = {location: frontier.elements for location, frontier in self.frontiers.items()}
        return Announce(number, counts, is_whole=True, passed=passed)
