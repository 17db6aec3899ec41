"""Explains one execution: by a given second one, or by one that it looks for.

Definitions 5.4 and 5.6 of the ABS thesis, on sequences of configurations. A mapping has, for each configuration of
the first execution, the place of the one in the second that looks the same; it is monotone if it never goes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from clew.verify.transparency.observation import Observation
from clew.verify.transparency.system import Execution, System, traced

C = TypeVar("C", bound=Hashable)
D = TypeVar("D", bound=Hashable)


def explanation(
    first: Sequence[C], second: Sequence[D], seen: Observation[C], meant: Observation[D]
) -> tuple[int, ...] | None:
    """A mapping that explains the first execution by the second, in any order; None if there is none (5.4).

    >>> letters = Observation("letters", str)
    >>> explanation("acbd", "abcd", letters, letters), explanation("ax", "abcd", letters, letters)
    ((0, 2, 1, 3), None)
    """
    places: dict[Hashable, int] = {}
    for place, configuration in enumerate(second):
        places.setdefault(meant.of(configuration), place)
    mapping = [places.get(seen.of(configuration), -1) for configuration in first]
    return None if -1 in mapping else tuple(mapping)


def monotone_explanation(
    first: Sequence[C], second: Sequence[D], seen: Observation[C], meant: Observation[D]
) -> tuple[int, ...] | None:
    """The earliest mapping that explains the first execution by the second and never goes back, if any (5.6).

    >>> letters = Observation("letters", str)
    >>> monotone_explanation("acbd", "abcd", letters, letters)
    >>> monotone_explanation("aaccd", "abcd", letters, letters)
    (0, 0, 2, 2, 3)
    """
    observed = [meant.of(configuration) for configuration in second]
    mapping, at = [], 0
    for configuration in first:
        wanted = seen.of(configuration)
        while at < len(observed) and observed[at] != wanted:
            at += 1
        if at == len(observed):
            return None
        mapping.append(at)
    return tuple(mapping)


class Explaining(NamedTuple, Generic[D]):
    """An execution that explains another one, and the monotone mapping to it."""

    execution: Execution[D]
    mapping: tuple[int, ...]


def explain(
    first: Sequence[C],
    by: System[D],
    seen: Observation[C],
    meant: Observation[D],
    start: D | None = None,
) -> Explaining[D] | None:
    """A shortest execution of `by` that explains the first one, with the mapping; None if no execution does.

    >>> letters = Observation("letters", str)
    >>> ways = {"a": "bc", "b": "d", "c": "d", "d": ""}
    >>> walk = System("walk", ("a",), lambda c: [(f"to {d}", False, d) for d in ways[c]])
    >>> explain("aacd", walk, letters, letters)
    Explaining(execution=Execution(configurations=('a', 'c', 'd'), labels=('to c', 'to d')), mapping=(0, 0, 1, 2))
    """
    wanted = [seen.of(configuration) for configuration in first]
    at = by.initial[0] if start is None else start

    def advance(configuration: D, found: int) -> int:
        observed = meant.of(configuration)
        while found < len(wanted) and wanted[found] == observed:
            found += 1
        return found

    begin = (at, advance(at, 0))
    came: dict[tuple[D, int], tuple[tuple[D, int], Hashable] | None] = {begin: None}
    queue = deque([begin])
    while queue:
        node = queue.popleft()
        if node[1] == len(wanted):
            nodes, labels = traced(came, node)
            execution = Execution(tuple(configuration for configuration, _ in nodes), tuple(labels))
            mapping = monotone_explanation(first, execution.configurations, seen, meant)
            assert mapping is not None  # The search went through every observation of the first execution.
            return Explaining(execution, mapping)
        for label, _, after in by.steps(node[0]):
            follower = (after, advance(after, node[1]))
            if follower not in came:
                came[follower] = (node, label)
                queue.append(follower)
    return None
