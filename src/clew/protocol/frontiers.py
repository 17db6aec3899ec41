"""Frontiers: the one tracker of a run, what it is told by replicas, and what each of them must be told of it.

Invariant: whoever has joined was told, of every location that it cares about, the latest frontier that is known here,
or will be with the next `advance`. There is one of it in a run, and it knows nothing of hosts, links or clocks.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from clew.errors import MoveError
from clew.model.graph import Graph
from clew.progress.pipeline import topology_of
from clew.progress.topology import Topology
from clew.progress.tracker import Tracker
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.times import Antichain, Changes


def frontiers_of(graph: Graph) -> Frontiers | None:
    """The frontiers of a pipeline; None if its events have no times."""
    topology = topology_of(graph)
    return None if topology is None else Frontiers(graph, topology)


class Frontiers:
    """Takes announcements, and says whom to tell what."""

    def __init__(self, graph: Graph, topology: Topology) -> None:
        self.orders = topology.orders
        timed = [replica for replica in graph.replicas if graph.nodes[replica.operator].is_timed]
        self.tracker = Tracker(topology, list(map(str, timed)))
        self.current: dict[str, Antichain] = {}
        """By location: the latest frontier, as soon as there is one."""
        self.cares = {
            str(replica): tuple(
                dict.fromkeys(
                    f"{channel.receiver}.{channel.input}"
                    for channel in (*graph.inbound(replica), *graph.outbound(replica))
                    if f"{channel.receiver}.{channel.input}" in topology.orders
                )
            )
            for replica in timed
        }
        """By replica: the locations whose frontiers it is told: its own input ports and those of its receivers."""
        self._caring: dict[str, list[str]] = {}
        for member, locations in self.cares.items():
            for location in locations:
                self._caring.setdefault(location, []).append(member)
        self._numbers: dict[str, tuple[int, int]] = {}
        self._joining: set[str] = set()
        self._sources = [str(replica) for replica in timed if graph.nodes[replica.operator].is_source]
        self._held: dict[str, Changes] = {}
        """By source that has joined: how often it holds each time."""
        self._idle: set[str] = set()
        stamps = {str(replica): graph.nodes[replica.operator].stamps for replica in timed}
        self._waiting = {name for name, each in stamps.items() if each is not None and each.waits_for_others}
        """The sources that want to know how far the others are, also when they are not idle."""
        self._told: dict[str, Antichain | None] = {}
        """By source: what it was last told of the others."""
        self.is_new = False
        """Whether anything was announced since the last `advance`."""

    def announced(self, member: str, announcement: does.Announce) -> None:
        """A replica has announced something; what an earlier incarnation has left is ignored."""
        number = announcement.number
        known = self._numbers.get(member, (0, 0))
        if number < known:
            return
        changes: dict[str, dict[Any, int]] = {}
        for (location, time), count in announcement.counts.items():
            changes.setdefault(location, {})[time] = count
        for where in (*changes, *announcement.passed):
            if where not in self.orders:
                raise MoveError(f"{member} announces something of {where!r}, which is no location of the pipeline")
        if announcement.is_whole:
            passed = {where: Antichain(self.orders[where], times) for where, times in announcement.passed.items()}
            self.tracker.joined(member, number, changes, passed)
            self._joining.add(member)
            self._idle.discard(member)
            self._told.pop(member, None)
        elif number[0] != known[0]:
            raise MoveError(f"{member} announces changes as {number}, and has not said what they are changes of")
        elif changes:
            self.tracker.changed(member, number, changes)
        self._numbers[member] = number
        if member in self._sources:
            self._source_announced(member, announcement, Changes(changes.get(member, {})))
        self.is_new = True

    def _source_announced(self, source: str, announcement: does.Announce, held: Changes) -> None:
        self._held[source] = held if announcement.is_whole else self._held[source] + held
        if announcement.is_idle is not (source in self._idle):
            self._told.pop(source, None)
            self._idle.symmetric_difference_update((source,))

    def advance(self) -> dict[str, was.Advanced]:
        """Computes the frontiers anew; by replica, what it must be told."""
        self.is_new = False
        told: dict[str, dict[str, tuple[Any, ...]]] = {}
        for location, frontier in self.tracker.advance().items():
            if self.current.get(location) != frontier:
                self.current[location] = frontier
                for member in self._caring.get(location, ()):
                    told.setdefault(member, {})[location] = frontier.elements
        for member in self._joining:
            for location in self.cares[member]:
                if location in self.current:
                    told.setdefault(member, {})[location] = self.current[location].elements
        self._joining.clear()
        for source in self._idle | self._waiting:
            others = self._others(source)
            if others != self._told.get(source):
                self._told[source] = others
                told.setdefault(source, {})
        return {member: was.Advanced(frontiers, self._told_of_others(member)) for member, frontiers in told.items()}

    def _others(self, one: str) -> Antichain | None:
        """What the other sources hold that are neither idle nor finished, and whose times are of the same order.

        If all of these are idle, so far as the furthest of them. None if there is none, or one has not been heard yet.
        """
        order = self.orders[one]
        others = [source for source in self._sources if self.orders[source] == order and source != one]
        if any(source not in self._held for source in others):
            return None
        held = {source: Antichain(order, self._held[source].positive()) for source in others}
        active = [times for source, times in held.items() if times and source not in self._idle]
        if active:
            return reduce(Antichain.meet, active)
        idle = [times for times in held.values() if times]
        if not idle or one not in self._idle or not order.has_upper_bounds:
            return None
        return reduce(Antichain.join, idle)

    def _told_of_others(self, member: str) -> tuple[Any, ...] | None:
        others = self._told.get(member)
        return None if others is None else others.elements

    def shown(self) -> dict[str, list[str]]:
        """The frontiers at input ports, for people; nothing at a port means that nothing more comes there.

        May be called from any thread.
        """
        return {
            location: sorted(map(self.orders[location].show, frontier))
            for location, frontier in list(self.current.items())
            if location in self._caring
        }
