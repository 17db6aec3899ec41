"""Checks that an observation only grows along every step of a system: Definition 5.3 of the ABS thesis, on its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from clew.verify.transparency.graph import CONFIGURATIONS_MAX, Graph, Observations
from clew.verify.transparency.observation import Observation
from clew.verify.transparency.system import Execution, System, traced
from clew.verify.transparency.verdict import show

C = TypeVar("C", bound=Hashable)


@dataclass(frozen=True)
class NotMonotone(Generic[C]):
    """An execution whose last step takes back what was seen before: of those with the fewest failures, a short one."""

    system: System[C]
    observation: Observation[C]
    execution: Execution[C]

    def __str__(self) -> str:
        before, after = (self.observation.of(configuration) for configuration in self.execution.configurations[-2:])
        place = len(self.execution.labels)
        labels = ", ".join(map(str, self.execution.labels))
        return (
            f"{self.system.name}, step {place} of {labels}: {self.observation.name} goes from {show(before)} to "
            f"{show(after)}, which does not include it; an observation that only grows was expected. Observe less, or "
            f"give its order."
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
    up, step 3 of up, up, up: n mod 3 goes from 2 to 0, which does not include it; an observation that only grows
    was expected. Observe less, or give its order.
    """
    graph = Graph(system, observation, Observations(), configurations_max)
    found = first_lapse(graph, system.initial, failures_max)
    return None if found is None else NotMonotone(system, observation, found)


def first_lapse(graph: Graph[C], starts: Iterable[C], failures_max: int | None) -> Execution[C] | None:
    """Explores all that can be reached with so many failures; an execution whose last step is not monotone, if any."""
    came: dict[int, tuple[int, Hashable] | None] = {graph.number(start): None for start in starts}
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
                    nodes, labels = traced(came, at)
                    configurations = tuple(graph.configurations[number] for number in (*nodes, edge.after))
                    return Execution(configurations, (*labels, edge.label))
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
