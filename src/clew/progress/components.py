"""Strongly connected components of a directed graph, in an order in which every edge points forward."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def components(nodes: Iterable[N], after: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """The components; an edge leads to the same component or to a later one.

    >>> components("abcd", {"a": "b", "b": "c", "c": "b", "d": "a"})
    [['d'], ['a'], ['b', 'c']]
    """
    nodes = list(nodes)
    inside = set(nodes)
    before: dict[N, list[N]] = {node: [] for node in nodes}
    for node in nodes:
        for target in after.get(node, ()):
            if target in inside:
                before[target].append(node)
    forward = {node: [target for target in after.get(node, ()) if target in inside] for node in nodes}
    seen: set[N] = set()
    finished = [node for start in nodes for node in _postorder(start, forward, seen)]
    found: list[list[N]] = []
    seen = set()
    for start in reversed(finished):
        members = list(_postorder(start, before, seen))
        if members:
            found.append(members[::-1])
    return found


def _postorder(start: N, after: Mapping[N, list[N]], seen: set[N]) -> Iterator[N]:
    """What can be reached and was not seen yet, each node after those that were reached from it."""
    if start in seen:
        return
    seen.add(start)
    path = [(start, iter(after[start]))]
    while path:
        node, targets = path[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                path.append((target, iter(after[target])))
                break
        else:
            path.pop()
            yield node


def cycle_through(start: N, members: Iterable[N], after: Mapping[N, Iterable[N]]) -> list[N]:
    """A shortest cycle from a node of a component back to it, closed: the first node is also the last.

    >>> cycle_through("b", "bc", {"b": "c", "c": "b"})
    ['b', 'c', 'b']
    """
    inside = set(members)
    paths = [[start]]
    seen: set[N] = set()
    for path in paths:  # The list grows while it is read.
        for target in after[path[-1]]:
            if target == start:
                return [*path, start]
            if target in inside and target not in seen:
                seen.add(target)
                paths.append([*path, target])
    raise ValueError(f"no cycle leads through {start!r}")
