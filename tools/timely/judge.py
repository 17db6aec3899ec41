"""Judges a record without Clew's kernels: do Timely's frontiers follow from the counts, did its operators see them?

A frontier by its definition: the minimal times that some counted pointstamp could result in, by some path. This is a
plain search over the graph, kept apart from the algorithm that it judges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Time = Any
Json = dict[str, Any]


def is_at_most(domain: Any, one: Time, other: Time) -> bool:
    """The order of a domain.

    >>> is_at_most(["prod", "int", "int"], [1, 5], [2, 4])
    False
    """
    if domain[0] == "poset":
        return one == other or any(is_at_most(domain, high, other) for low, high in domain[2] if low == one)
    if domain[0] == "prod":
        return all(is_at_most(part, a, b) for part, a, b in zip(domain[1:], one, other, strict=True))
    return bool(one <= other)


def after(domain: Any, summary: Any, time: Time) -> Time:
    """A time at the end of a path.

    >>> after(["prod", "maxplus", "int"], [[1, 7], 2], [3, 4])
    [7, 6]
    """
    if domain == "int":
        return time + summary
    if domain == "maxplus":
        return max(time + summary[0], summary[1])
    if domain[0] == "poset":
        return summary[domain[1].index(time)]
    return [after(part, s, t) for part, s, t in zip(domain[1:], summary, time, strict=True)]


def frontiers(graph: Json, pointstamps: dict[str, list[list[Any]]]) -> dict[str, list[Time]]:
    """The frontiers of all locations, from nothing but the graph and the counts.

    >>> graph = {"domain": "int", "locations": ["a", "b"], "edges": [["a", "b", [2]], ["b", "a", [1]]]}
    >>> frontiers(graph, {"a": [[9, 1], [0, -1]], "b": [[3, 1]]})
    {'a': [4], 'b': [3]}
    """
    domain = graph["domain"]
    found: dict[str, list[Time]] = {location: [] for location in graph["locations"]}
    todo = [(place, time) for place, counts in pointstamps.items() for time, count in counts if count > 0]
    while todo:
        place, time = todo.pop()
        if any(is_at_most(domain, low, time) for low in found[place]):
            continue
        found[place] = [*(other for other in found[place] if not is_at_most(domain, time, other)), time]
        for source, target, summaries in graph["edges"]:
            if source == place:
                todo += ((target, after(domain, summary, time)) for summary in summaries)
    return found


def faults(record: Json) -> Iterator[str]:
    """What is wrong with a record, in words; nothing if Timely's frontiers are as they must be."""
    if record.get("unannounced"):
        yield f"{record['unannounced']} changes at times that the frontier of their location had passed"
    for number, round_ in enumerate(record["rounds"]):
        for place, frontier in frontiers(record["graph"], round_["pointstamps"]).items():
            timely = round_["frontiers"][place]
            if not same(frontier, timely):
                yield f"round {number}, {place}: Timely has {timely}, by definition it is {frontier}"
    for number, place, frontier in record["observed"]:
        replayed = record["rounds"][number]["frontiers"][place]
        if not same(frontier, replayed):
            yield f"round {number}, {place}: the running operator saw {frontier}, the tracker replayed gives {replayed}"


def same(one: list[Time], other: list[Time]) -> bool:
    """Are two antichains equal, in whatever order they are written?"""
    return len(one) == len(other) and all(time in other for time in one)
