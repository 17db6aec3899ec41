"""Frontiers by brute force, straight from their definition: an oracle that shares nothing with what it judges.

The frontier of a location is the set of minimal times among all that some pointstamp there or elsewhere becomes along
some path. Here all paths are followed, edge by edge; a time is not followed further where an earlier one at the same
place has been. Orders are plain functions, graphs plain lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Leq = Callable[[Any, Any], bool]


def naive_frontiers(
    leq: Mapping[Any, Leq],
    edges: Iterable[tuple[Any, Any, Callable[[Any], Any]]],
    counts: Iterable[tuple[Any, Any, int]],
) -> dict[Any, set[Any]]:
    """The frontier of every key of `leq`: `counts` lists pointstamps as location, time and count.

    >>> number = lambda one, other: one <= other
    >>> naive_frontiers({"a": number, "b": number}, [("a", "b", lambda time: time + 2)], [("a", 3, 1), ("a", 1, -1)])
    {'a': {3}, 'b': {5}}
    """
    edges = list(edges)
    totals: dict[tuple[Any, Any], int] = {}
    for location, time, count in counts:
        totals[location, time] = totals.get((location, time), 0) + count
    reached: dict[Any, set[Any]] = {location: set() for location in leq}
    travelling = [pointstamp for pointstamp, total in totals.items() if total > 0]
    while travelling:
        location, time = travelling.pop(0)
        if any(leq[location](early, time) for early in reached[location]):
            continue
        reached[location].add(time)
        travelling += [(target, function(time)) for source, target, function in edges if source == location]
    return {
        location: {time for time in times if not any(early != time and leq[location](early, time) for early in times)}
        for location, times in reached.items()
    }
