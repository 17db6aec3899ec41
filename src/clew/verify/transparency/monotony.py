"""Checks that an observation only grows along every step of a system: Definition 5.3 of the ABS thesis, on its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from clew.verify.transparency.graph import CONFIGURATIONS_MAX, Graph, Observations
from clew.verify.transparency.observation import Observation
from clew.verify.transparency.system import Execution, System
from clew.verify.transparency.verdict import show

C = TypeVar("C", bound=Hashable)


@dataclass(frozen=True)
class NotMonotone(Generic[C]):
    """An execution whose last step takes back what was seen before it: of those with the fewest failures, a shortest."""

    system: System[C]
    observation: Observation[C]
    execution: Execution[C]

    def __str__(self) -> str:
        before, after = (self.observation.of(configuration) for configuration in self.execution.configurations[-2:])
        place = len(self.execution.labels)
        return (
            f"{self.system.name}, step {place} of {', '.join(map(str, self.execution.labels))}: {self.observation.name} goes from {show(before)} "
            f"to {show(after)}, which does not include it; an observation that only grows was expected. Observe less, or give its order."
        )


def check_monotone(
    system: System[C],
    observation: Observation[C],
    *,
    failures_max: int | None,
    configurations_max: int = CONFIGURATIONS_MAX,
) -> NotMonotone[C] | None:
    """The first step that is not monotone, of all that executions with at most so many failures take; None if all are.

    >>> up = System("up", (0,), lambda n: [("up", False, n + 1)] * (n < 3))
    >>> check_monotone(up, Observation("n", lambda n: n, lambda a, b: a <= b), failures_max=0)
    >>> print(check_monotone(up, Observation("n mod 3", lambda n: n % 3, lambda a, b: a <= b), failures_max=0))
    up, step 3 of up, up, up: n mod 3 goes from 2 to 0, which does not include it; an observation that only grows was expected.
    Observe less, or give its order.
    """
    graph = Graph(system, observation, Observations(), configurations_max)
    came: dict[int, tuple[int, Hashable] | None] = {graph.number(start): None for start in system.initial}
    layer, failures = deque(came), 0
    # Each configuration is walked when its fewest failures are known: one layer for each number of failures.
    while layer:
        following: dict[int, tuple[int, Hashable]] = {}
        while layer:
            at = layer.popleft()
            for edge in graph.edges(at):
                if edge.is_counted and failures_max is not None and failures >= failures_max:
                    continue
                if not graph.is_monotone(at, edge.after):
                    return NotMonotone(system, observation, _execution(graph, came, at, edge.label, edge.after))
                if edge.after in came:
                    continue
                if edge.is_counted:
                    following.setdefault(edge.after, (at, edge.label))
                else:
                    came[edge.after] = (at, edge.label)
                    layer.append(edge.after)
        for number, origin in following.items():
            if number not in came:
                came[number] = origin
                layer.append(number)
        failures += 1
    return None


def _execution(
    graph: Graph[C], came: dict[int, tuple[int, Hashable] | None], at: int, label: Hashable, after: int
) -> Execution[C]:
    configurations, labels = [graph.configurations[after], graph.configurations[at]], [label]
    step = came[at]
    while step is not None:
        configurations.append(graph.configurations[step[0]])
        labels.append(step[1])
        step = came[step[0]]
    return Execution(tuple(reversed(configurations)), tuple(reversed(labels)))
