"""The graph that times travel through: locations with their orders, and edges with path summaries.

Invariant: every cycle advances time, so "could result in" is a partial order of pointstamps. A location is an input or
output port of an operator, or any other hashable name. (Progress thesis, sections 4.2 and 5.1.)

Where a loop is nested in another, the times inside have one component more, and `Enter` and `Leave` cross. A cycle must
then advance the time of the outermost location on it: counting rounds that are forgotten on leaving is not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeAlias

from clew.errors import BuildError, CycleWithoutFeedback
from clew.progress.components import components, cycle_through
from clew.progress.fitting import misfit
from clew.times import Antichain, Order, Product, Summary, Time

Location: TypeAlias = Hashable
Pointstamp: TypeAlias = tuple[Location, Time]
Edge: TypeAlias = tuple[Location, Location, Summary | Iterable[Summary]]


class Topology:
    """Locations, each with the order of its times, and edges, each with the minimal of its summaries.

    >>> from clew.times import Add, IDENTITY, Integers
    >>> graph = Topology.of_one_order(Integers(), "abc", [("a", "b", IDENTITY), ("b", "c", Add(1)), ("c", "b", Add(0))])
    >>> graph.could_result_in(("a", 3), ("c", 4)), graph.could_result_in(("c", 3), ("a", 9))
    (True, False)
    """

    def __init__(self, orders: Mapping[Any, Order], edges: Iterable[Edge]) -> None:
        self.orders = dict(orders)
        self.locations = tuple(self.orders)
        self.edges: dict[Location, dict[Location, tuple[Summary, ...]]] = {location: {} for location in self.locations}
        for source, target, summaries in edges:
            for summary in [summaries] if isinstance(summaries, Summary) else summaries:
                self._add_edge(source, target, summary)
        self._places: dict[Location, list[int]] = {location: [] for location in self.locations}
        self._place(self.locations, self.edges)

    @classmethod
    def of_one_order(cls, order: Order, locations: Iterable[Location], edges: Iterable[Edge]) -> Topology:
        """A graph in which all times are of one order."""
        return cls(dict.fromkeys(locations, order), edges)

    def component(self, location: Location) -> int:
        """The number of the component that a location is in; edges lead to the same component or to a later one."""
        return self._places[location][0]

    def is_on_cycle(self, location: Location) -> bool:
        """Is there a way from the location back to itself?"""
        return len(self._places[location]) > 1

    def sort_key(self, location: Location) -> Callable[[Time], tuple[Any, ...]]:
        """A key for the times of a location on a cycle; it grows along "could result in" within the component.

        The keys of one component are compared with each other, whatever the location: first by the outermost times,
        where these are equal by the place along the edges that do not advance them, then by inner times, and so on. A
        part is None where an order has no key.
        """
        place = self._places[location]
        levels = []
        for depth, rank in zip(place[1::2], place[2::2], strict=True):
            levels.append((_outer_order(self.orders[location], depth).sort_key, depth, rank))
        if len(levels) == 1 and levels[0][1] == 0:
            [(only_key, _, only_rank)] = levels
            return lambda time: (only_key(time), only_rank)

        def key(time: Time) -> tuple[Any, ...]:
            return tuple(part for sort_key, depth, rank in levels for part in (sort_key(_outer(time, depth)), rank))

        return key

    def is_before(self, one: Pointstamp, other: Pointstamp) -> bool:
        """Does the one come before the other in a component, as `sort_key` sorts, where keys are not known?"""
        for level in range(1, min(len(self._places[one[0]]), len(self._places[other[0]])), 2):
            (depth, rank), (other_depth, other_rank) = (
                self._places[place][level : level + 2] for place, _ in (one, other)
            )
            time, other_time = _outer(one[1], depth), _outer(other[1], other_depth)
            if time != other_time:
                return _outer_order(self.orders[one[0]], depth).less(time, other_time)
            if rank != other_rank:
                return rank < other_rank
        return False

    def reach(self, location: Location, time: Time) -> dict[Location, Antichain]:
        """The earliest times that this pointstamp could result in, for every location that it can reach."""
        found: dict[Location, Antichain] = {location: Antichain(self.orders[location], [time])}
        waiting: list[Pointstamp] = [(location, time)]
        for source, early in waiting:  # The list grows while it is read.
            if early not in found[source]:
                continue  # An earlier time has come meanwhile.
            for target, summaries in self.edges[source].items():
                known = found.get(target, Antichain(self.orders[target]))
                for late in (summary.results_in(early) for summary in summaries):
                    if known.passed(late):
                        known = Antichain(known.order, [late, *known])
                        waiting.append((target, late))
                found[target] = known
        return found

    def could_result_in(self, one: Pointstamp, other: Pointstamp) -> bool:
        """Could the one, by some path, become the other?"""
        reached = self.reach(*one).get(other[0])
        return reached is not None and reached.covers(other[1])

    def _add_edge(self, source: Location, target: Location, summary: Summary) -> None:
        for location in (source, target):
            if location not in self.orders:
                raise BuildError(
                    f"the edge from {source!r} to {target!r} names a location that the topology does not have: "
                    f"{location!r}. Give it an order, or remove the edge."
                )
        problem = misfit(summary, self.orders[source], self.orders[target])
        if problem is not None:
            raise BuildError(f"the edge from {source!r} to {target!r} cannot have {summary!r}: {problem}")
        known = self.edges[source].get(target, ())
        if not any(other.is_at_most(summary) for other in known):
            rest = (other for other in known if not summary.is_at_most(other))
            self.edges[source][target] = (*rest, summary)

    def _place(self, members: Iterable[Location], edges: Mapping[Location, Iterable[Location]]) -> None:
        """Gives every member its place along the edges, and again within each cycle without those that advance it."""
        for rank, component in enumerate(components(members, edges)):
            for location in component:
                self._places[location].append(rank)
            if len(component) == 1 and component[0] not in edges[component[0]]:
                continue
            depths = self._depths(component)
            idle = {
                source: [
                    target
                    for target in edges[source]
                    if target in depths
                    and not all(part.advances(depths[source]) for part in self.edges[source][target])
                ]
                for source in component
            }
            for cycle in components(component, idle):
                outermost = next((location for location in cycle if depths[location] == 0), None)
                if outermost is not None and (len(cycle) > 1 or outermost in idle[outermost]):
                    raise _idle(cycle_through(outermost, cycle, idle))
            for location in component:
                self._places[location].append(depths[location])
            self._place(component, idle)

    def _depths(self, component: list[Location]) -> dict[Location, int]:
        """How deep each location of a cycle is nested, seen from the outermost ones."""
        chains = {location: _chain(self.orders[location]) for location in component}
        outermost = min(chains.values(), key=len)[0]
        for location, chain in chains.items():
            if outermost not in chain:
                raise BuildError(
                    f"one cycle leads through locations with times of {outermost!r} and of "
                    f"{self.orders[location]!r} ({location!r}), and neither is nested in the other"
                )
        return {location: chain.index(outermost) for location, chain in chains.items()}


def _chain(order: Order) -> list[Order]:
    """The order, the order of its first components, the order of theirs, and so on."""
    chain = [order]
    while isinstance(chain[-1], Product):
        chain.append(chain[-1].orders[0])
    return chain


def _outer_order(order: Order, depth: int) -> Order:
    return _chain(order)[depth]


def _outer(time: Time, depth: int) -> Time:
    for _ in range(depth):
        time = time[0]
    return time


def _idle(cycle: list[Location]) -> CycleWithoutFeedback:
    return CycleWithoutFeedback(
        f"the cycle {' -> '.join(map(str, cycle))} does not advance time: a record could travel around it for ever "
        f"without getting later, and no time on it would ever be over. Put an edge on it whose summary advances "
        f"every time, such as that of a feedback operator."
    )
