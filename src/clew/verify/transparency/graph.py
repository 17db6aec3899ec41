"""The graph of a system, explored on demand: each configuration once, with its steps and what is seen of it.

Configurations and observations are numbered, so that everything after this file works on small integers.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from clew.errors import ClewError
from clew.verify.transparency.observation import Observation
from clew.verify.transparency.system import System

C = TypeVar("C", bound=Hashable)

CONFIGURATIONS_MAX = 5_000_000
"""More than this is refused: memory would end before the exploration does."""


class TooLarge(ClewError):
    """A system with more configurations than may be explored."""


class Edge(NamedTuple):
    """A step between numbered configurations."""

    label: Hashable
    is_failure: bool
    is_counted: bool
    after: int


class Observations:
    """Numbers for observations, and their order by number; two systems that are compared share one."""

    def __init__(self) -> None:
        self.values: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: Hashable) -> int:
        """The number of an observation; equal observations have one number."""
        found = self._numbers.setdefault(value, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


class Graph(Generic[C]):
    """What is known so far of a system's configurations."""

    def __init__(
        self,
        system: System[C],
        observation: Observation[C],
        observations: Observations,
        configurations_max: int = CONFIGURATIONS_MAX,
    ) -> None:
        self.system = system
        self.observation = observation
        self.observations = observations
        self.configurations: list[C] = []
        self.observed: list[int] = []
        """For each configuration, the number of what is seen of it."""
        self._numbers: dict[C, int] = {}
        self._edges: list[tuple[Edge, ...] | None] = []
        self._less_equal: dict[tuple[int, int], bool] = {}
        self._configurations_max = configurations_max

    def number(self, configuration: C) -> int:
        """The number of a configuration, new or known."""
        found = self._numbers.setdefault(configuration, len(self.configurations))
        if found == len(self.configurations):
            if found >= self._configurations_max:
                raise TooLarge(
                    f"{self.system.name}: more than {self._configurations_max:,} configurations; a system with fewer "
                    f"was expected. Check a smaller program or fewer failures, or pass a larger configurations_max."
                )
            self.configurations.append(configuration)
            self.observed.append(self.observations.number(self.observation.of(configuration)))
            self._edges.append(None)
        return found

    def edges(self, configuration: int) -> tuple[Edge, ...]:
        """All steps from a configuration."""
        known = self._edges[configuration]
        if known is None:
            is_counted = self.system.is_counted
            known = self._edges[configuration] = tuple(
                Edge(label, is_failure, is_failure and is_counted(label), self.number(after))
                for label, is_failure, after in self.system.steps(self.configurations[configuration])
            )
        return known

    def is_monotone(self, before: int, after: int) -> bool:
        """Whether what is seen of the first configuration is less than or equal to what is seen of the second."""
        seen = (self.observed[before], self.observed[after])
        return seen[0] == seen[1] or self.is_less_equal(*seen)

    def is_less_equal(self, first: int, second: int) -> bool:
        """The order of two numbered observations."""
        known = self._less_equal.get((first, second))
        if known is None:
            values = self.observations.values
            known = self._less_equal[first, second] = self.observation.less_equal(values[first], values[second])
        return known

    def is_at_rest(self, configuration: int) -> bool:
        """Whether nothing but further failures can happen from here."""
        return all(edge.is_counted for edge in self.edges(configuration))
