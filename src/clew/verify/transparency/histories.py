"""Which configurations explain a history of observations: the subset construction over the explaining system's graph.

A history is extended by one observation at a time. Its set holds every configuration that shows the last observation
and can be reached by an execution that showed all of them in order; whatever it showed in between.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from clew.verify.transparency.graph import Graph

D = TypeVar("D", bound=Hashable)


class Histories(Generic[D]):
    """Numbered sets of explaining configurations; histories that the same set explains share a number."""

    def __init__(self, graph: Graph[D]) -> None:
        self._graph = graph
        self._numbers: dict[frozenset[int], int] = {}
        self._sets: list[frozenset[int]] = []
        self._then: dict[tuple[int, int], int] = {}
        self._rests: list[bool] = []

    def __len__(self) -> int:
        return len(self._sets)

    def begin(self, start: int, observation: int) -> int:
        """The history of one observation, explained by executions from `start`."""
        return self._number(self._reached({start}, observation))

    def then(self, history: int, observation: int) -> int:
        """The history extended by an observation."""
        found = self._then.get((history, observation))
        if found is None:
            found = self._then[history, observation] = self._number(self._reached(self._sets[history], observation))
        return found

    def is_empty(self, history: int) -> bool:
        """Whether no execution shows this history."""
        return not self._sets[history]

    def has_rest(self, history: int) -> bool:
        """Whether an execution that shows this history, and no more, has come to rest."""
        return self._rests[history]

    def _number(self, members: frozenset[int]) -> int:
        number = self._numbers.setdefault(members, len(self._sets))
        if number == len(self._sets):
            self._sets.append(members)
            self._rests.append(any(map(self._graph.is_at_rest, members)))
        return number

    def _reached(self, starts: Iterable[int], observation: int) -> frozenset[int]:
        """What can be reached from the starts and shows the observation, by way of what shows less."""
        graph = self._graph
        found, stack = set(), list(starts)
        known = set(stack)
        while stack:
            at = stack.pop()
            if graph.observed[at] == observation:
                found.add(at)
            for edge in graph.edges(at):
                if edge.after not in known and graph.is_less_equal(graph.observed[edge.after], observation):
                    known.add(edge.after)
                    stack.append(edge.after)
        return frozenset(found)
