"""Propagation: frontiers of all locations from the counts of pointstamps, kept up to date change by change.

A pointstamp (location, time) is a reason why times may still arrive: there, and wherever it could result in. At every
location, the *implications* are the minimal pointstamps there and the frontiers of the locations before it, each after
the summary of its edge; their minimal times are the frontier. What has to be added to implications waits in a
*worklist*. (Progress thesis, chapter 4.)

Invariant: implications + worklist = minimal pointstamps + frontiers from before (Proposition 5.3). Smallest first: the
worklist is taken in an order that "could result in" agrees with, so a round takes each entry once and ends. Where there
is no cycle the places along the edges are such an order, and all entries of a location are taken together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any, TypeAlias

from clew.errors import MoveError, Violation
from clew.progress.agenda import Agenda
from clew.progress.bags import bag_of
from clew.progress.topology import Location, Topology
from clew.times import IDENTITY, Antichain, Changes, Order, Time


class _Site:
    """What is kept of one location."""

    __slots__ = (
        "component", "frontier", "implications", "is_on_cycle", "key", "location", "order", "outs",
        "points", "points_least", "worklist",
    )  # fmt: skip

    def __init__(self, topology: Topology, location: Location) -> None:
        self.location = location
        self.order: Order = topology.orders[location]
        self.component = topology.component(location)
        self.is_on_cycle = topology.is_on_cycle(location)
        self.key = topology.sort_key(location)
        self.outs: list[tuple[_Site, tuple[Callable[[Time], Time] | None, ...]]] = []
        self.points = bag_of(self.order)
        self.points_least: tuple[Time, ...] = ()
        self.implications = bag_of(self.order)
        self.worklist: dict[Time, int] = {}
        self.frontier: tuple[Time, ...] = ()


_Before: TypeAlias = dict[_Site, tuple[Time, ...]]
_Wait: TypeAlias = Callable[[_Site], None]


class Propagation:
    """The frontiers of a topology.

    >>> from clew.times import Add, Integers
    >>> places = Propagation(Topology.of_one_order(Integers(), "ab", [("a", "b", Add(2))]), {"a": Changes({3: 1})})
    >>> places.propagate()
    {'a': Antichain({3}), 'b': Antichain({5})}
    >>> places.change("a", 4, +1)
    >>> places.change("a", 3, -1)
    >>> places.propagate()
    {'a': Antichain({4}), 'b': Antichain({6})}
    """

    def __init__(
        self,
        topology: Topology,
        initial: Mapping[Any, Mapping[Time, int]] | None = None,
        *,
        limit: int | None = None,
    ) -> None:
        self.topology = topology
        self._limit = limit
        self._sites = {location: _Site(topology, location) for location in topology.locations}
        for source, targets in topology.edges.items():
            for target, summaries in targets.items():
                functions = tuple(None if summary == IDENTITY else summary.results_in for summary in summaries)
                self._sites[source].outs.append((self._sites[target], functions))
        self._changed: dict[_Site, None] = {}
        for location, counts in (initial or {}).items():
            self.add(location, counts.items())

    def change(self, location: Location, time: Time, count: int) -> None:
        """Counts pointstamps that came or went. Refused: no change at all, or a time that the frontier has passed.

        Before the first round every frontier is empty, so what is there at the beginning is given as `initial`.
        """
        site = self._site(location)
        if not count:
            raise MoveError(f"a change of 0 at {location!r}, time {site.order.show(time)}: a change must not be 0")
        leq = site.order.leq
        for low in site.frontier:
            if leq(low, time):
                break
        else:
            raise MoveError(
                f"a change at {location!r}, time {site.order.show(time)}, which is over: the frontier there is "
                f"{Antichain.of_minimal(site.order, site.frontier)}. Only times that it covers can change."
            )
        site.points.change(time, count)
        self._changed[site] = None

    def add(self, location: Location, counts: Iterable[tuple[Time, int]]) -> None:
        """Counts pointstamps without asking the frontier: for initial ones, and where another rule guards it."""
        site = self._site(location)
        change = site.points.change
        for time, count in counts:
            change(time, count)
        self._changed[site] = None

    def propagate(self) -> dict[Location, Antichain]:
        """One complete round. Returns the frontiers that it has changed."""
        waiting: dict[int, dict[_Site, None]] = {}  # The sites with a worklist, by component.
        order: list[int] = []  # The numbers of those components, as a heap.
        before: dict[_Site, tuple[Time, ...]] = {}

        def wait(site: _Site) -> None:
            sites = waiting.get(site.component)
            if sites is None:
                waiting[site.component] = {site: None}
                heappush(order, site.component)
            else:
                sites[site] = None

        for site in self._changed:
            least = site.points.least()
            if least != site.points_least:
                for time in site.points_least:
                    if time not in least:
                        site.worklist[time] = site.worklist.get(time, 0) - 1
                for time in least:
                    if time not in site.points_least:
                        site.worklist[time] = site.worklist.get(time, 0) + 1
                site.points_least = least
                wait(site)
        self._changed.clear()
        while order:
            number = heappop(order)
            sites = waiting.pop(number)
            if next(iter(sites)).is_on_cycle:
                self._take_cycle(sites, before, wait)
            else:
                self._take_all(next(iter(sites)), before, wait)
        return {
            site.location: Antichain.of_minimal(site.order, site.frontier)
            for site, old in before.items()
            if site.frontier != old and set(site.frontier) != set(old)
        }

    def frontier(self, location: Location) -> Antichain:
        """The frontier of a location, as of the last round."""
        site = self._site(location)
        return Antichain.of_minimal(site.order, site.frontier)

    def frontiers(self) -> dict[Location, Antichain]:
        """The frontier of every location, as of the last round."""
        return {location: self.frontier(location) for location in self._sites}

    def pointstamps(self, location: Location) -> Changes:
        """The counts at a location."""
        return Changes(self._site(location).points.counts)

    def _take_all(self, site: _Site, before: _Before, wait: _Wait) -> None:
        """Takes the whole worklist of a location that is on no cycle: nothing will be added to it any more."""
        change = site.implications.change
        for time, count in site.worklist.items():
            if count:
                change(time, count)
        site.worklist.clear()
        for target, time, sign in self._moves(site, before):
            target.worklist[time] = target.worklist.get(time, 0) + sign
            wait(target)

    def _take_cycle(self, sites: dict[_Site, None], before: _Before, wait: _Wait) -> None:
        """Takes the worklists of the locations on one cycle, or on several that are connected: smallest first."""
        agenda: Agenda[_Site] = Agenda(self.topology)
        for site in sites:
            for time in site.worklist:
                agenda.put(site, time)
        steps = 0
        while agenda:
            steps += 1
            if self._limit is not None and steps > self._limit:
                raise Violation(f"a round of propagation has not ended after {self._limit} steps")
            site, time = agenda.take()
            count = site.worklist.pop(time)
            if not count:
                continue
            site.implications.change(time, count)
            for target, moved, sign in self._moves(site, before):
                if target.component != site.component:
                    wait(target)
                elif moved not in target.worklist:
                    agenda.put(target, moved)
                target.worklist[moved] = target.worklist.get(moved, 0) + sign

    def _moves(self, site: _Site, before: _Before) -> list[tuple[_Site, Time, int]]:
        """Takes over the frontier that follows from the implications; what that means for the locations after it."""
        old, new = site.frontier, site.implications.least()
        if new == old:
            return []
        before.setdefault(site, old)
        site.frontier = new
        signed = [(time, -1) for time in old if time not in new] + [(time, 1) for time in new if time not in old]
        return [
            (target, time if function is None else function(time), sign)
            for target, functions in site.outs
            for function in functions
            for time, sign in signed
        ]

    def _site(self, location: Location) -> _Site:
        try:
            return self._sites[location]
        except KeyError:
            known = ", ".join(sorted(map(str, self._sites)))
            raise MoveError(f"there is no location {location!r}; the locations are {known}") from None
