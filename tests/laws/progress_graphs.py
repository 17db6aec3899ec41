"""Random graphs for laws of progress, each in two forms: as Clew's topology, and as plain functions for the oracle.

The plain form shares no code with the package: it compares and moves times by itself. All of a graph follows from one
number, so that the number repeats a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

from clew.errors import CycleWithoutFeedback
from clew.progress.naive import naive_frontiers
from clew.progress.topology import Topology
from clew.times import IDENTITY, Add, Componentwise, Enter, Integers, Leave, Order, Product, Summary
from clew.verify.vectors.domains import order_of, summary_of

DIAMOND = ["poset", ["bot", "l", "r", "top"], [["bot", "l"], ["bot", "r"], ["l", "top"], ["r", "top"]]]
ZIGZAG = ["poset", ["a", "b", "c", "d"], [["a", "c"], ["b", "c"], ["b", "d"]]]
DOMAINS: list[Any] = [
    "int",
    "maxplus",
    DIAMOND,
    ZIGZAG,
    ["prod", "int", "int"],
    ["prod", "int", ZIGZAG],
    ["prod", "maxplus", "int"],
    ["prod", "int", ["prod", "int", "int"]],
    ["prod", DIAMOND, "int", "maxplus"],
]


def plain_leq(domain: Any, one: Any, other: Any) -> bool:
    if isinstance(domain, str):
        return bool(one <= other)
    if domain[0] == "prod":
        return all(plain_leq(part, one[n], other[n]) for n, part in enumerate(domain[1:]))
    return one == other or any(plain_leq(domain, great, other) for small, great in domain[2] if small == one)


def plain_move(domain: Any, summary: Any, time: Any) -> Any:
    if domain == "int":
        return time + summary
    if domain == "maxplus":
        return max(time + summary[0], summary[1])
    if domain[0] == "prod":
        return tuple(plain_move(part, summary[n], time[n]) for n, part in enumerate(domain[1:]))
    return summary[domain[1].index(time)]


def tables(domain: Any) -> list[list[Any]]:
    """All monotone tables of a poset that never decrease an element."""
    elements = domain[1]
    pairs = [(m, n) for m, one in enumerate(elements) for n, two in enumerate(elements) if plain_leq(domain, one, two)]
    above = [[two for two in elements if plain_leq(domain, one, two)] for one in elements]
    return [
        list(images) for images in product(*above) if all(plain_leq(domain, images[m], images[n]) for m, n in pairs)
    ]


def random_time(random: Random, domain: Any) -> Any:
    if isinstance(domain, str):
        return random.randrange(4)
    if domain[0] == "prod":
        return tuple(random_time(random, part) for part in domain[1:])
    return random.choice(domain[1])


def random_summary(random: Random, domain: Any, *, advances: bool) -> Any:
    """A summary in the words of vector files; None if it is to advance and the domain has none that does."""
    if domain == "int":
        return random.randrange(1, 3) if advances else random.choice([0, 0, 1, 2])
    if domain == "maxplus":
        return [random.randrange(1, 3) if advances else random.choice([0, 0, 1, 2]), random.randrange(5)]
    if domain[0] == "poset":
        return None if advances else random.choice(tables(domain))
    parts = [random_summary(random, part, advances=False) for part in domain[1:]]
    if advances:
        number = random.randrange(len(parts))
        for turn in range(len(parts)):
            at = (number + turn) % len(parts)
            part = random_summary(random, domain[1 + at], advances=True)
            if part is not None:
                parts[at] = part
                return parts
        return None
    return parts


@dataclass
class Case:
    """A graph in both forms, with a way to draw times."""

    topology: Topology
    leq: dict[str, Callable[[Any, Any], bool]]
    edges: list[tuple[str, str, Callable[[Any], Any]]]
    draw: Callable[[str], Any]
    graph: dict[str, Any] = field(default_factory=dict)
    """The graph as vector files have it, where it has one order only."""

    def naive(self, counts: dict[tuple[str, Any], int]) -> dict[str, set[Any]]:
        return naive_frontiers(self.leq, self.edges, [(place, time, n) for (place, time), n in counts.items()])


def random_case(random: Random, *, domain: Any = None, locations_max: int = 6) -> Case:
    """A graph of one order: edges forward as they come, edges back only if they advance time."""
    domain = random.choice(DOMAINS) if domain is None else domain
    locations = [f"l{n}" for n in range(random.randrange(1, locations_max + 1))]
    density = random.choice([0.2, 0.4, 0.7])
    edges = []
    for m, source in enumerate(locations):
        for n, target in enumerate(locations):
            if m != n and random.random() < density:
                found = [random_summary(random, domain, advances=m > n) for _ in range(random.choice([1, 1, 2, 3]))]
                if None not in found:
                    edges.append([source, target, found])
    random.shuffle(edges)
    order = order_of(domain)
    topology = Topology.of_one_order(
        order, locations, [(source, target, [summary_of(domain, s) for s in found]) for source, target, found in edges]
    )
    return Case(
        topology,
        dict.fromkeys(locations, lambda one, other: plain_leq(domain, one, other)),
        [
            (source, target, lambda time, s=summary: plain_move(domain, s, time))  # type: ignore[misc]
            for source, target, found in edges
            for summary in found
        ],
        lambda location: random_time(random, domain),
        {"domain": domain, "locations": locations, "edges": edges},
    )


def random_nested_case(random: Random) -> Case:
    """Loops in loops: times have one component more for each, entered at round 0, forgotten on leaving."""
    locations = {f"l{n}": random.choice([0, 0, 1, 1, 2]) for n in range(random.randrange(2, 7))}
    orders: list[Order] = [Integers()]
    for _ in range(2):
        orders.append(Product(orders[-1], Integers()))

    def advance(depth: int, at: int, n: int) -> tuple[Summary, Callable[[Any], Any]]:
        """Adds n to the component that belongs to depth `at`."""
        if depth == at:
            if depth == 0:
                return Add(n), lambda time: time + n
            return Componentwise(IDENTITY, Add(n)), lambda time: (time[0], time[1] + n)
        inner, move = advance(depth - 1, at, n)
        return Componentwise(inner, IDENTITY), lambda time: (move(time[0]), time[1])

    edges: list[tuple[str, str, Summary, Callable[[Any], Any]]] = []
    for source, depth in locations.items():
        for target, goal in locations.items():
            if source == target or random.random() < 0.5:
                continue
            if depth == goal:
                edges.append((source, target, *advance(depth, random.randrange(depth + 1), random.choice([0, 1, 2]))))
            elif goal == depth + 1:
                edges.append((source, target, Enter(), lambda time: (time, 0)))
            elif goal == depth - 1:
                edges.append((source, target, Leave(), lambda time: time[0]))
    while True:
        try:
            topology = Topology(
                {location: orders[depth] for location, depth in locations.items()},
                [(source, target, summary) for source, target, summary, _ in edges],
            )
            break
        except CycleWithoutFeedback:
            del edges[random.randrange(len(edges))]

    def leq(depth: int) -> Callable[[Any, Any], bool]:
        if depth == 0:
            return lambda one, other: bool(one <= other)
        outer = leq(depth - 1)
        return lambda one, other: outer(one[0], other[0]) and one[1] <= other[1]

    def draw(location: str) -> Any:
        time: Any = random.randrange(4)
        for _ in range(locations[location]):
            time = (time, random.randrange(3))
        return time

    return Case(
        topology,
        {location: leq(depth) for location, depth in locations.items()},
        [(source, target, move) for source, target, _, move in edges],
        draw,
    )
