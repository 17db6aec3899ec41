"""Checks that every execution of a system is explained by one of another: Definitions 5.5 and 5.10 of the ABS thesis.

Executions are not walked one by one. Observations only grow, so an execution is explained if its history (the
observations it showed, in order) is shown by one execution of the other system. For each history it is enough to keep
the configurations of the other system in which such an execution can be; a pair of a configuration and that set
stands for all executions that lead to it. The walk over these pairs is complete: if no set ever becomes empty, every
execution has an explanation, of any length; and if one does, the path to it is an execution that has none.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from clew.verify.transparency.graph import CONFIGURATIONS_MAX, Edge, Graph, Observations
from clew.verify.transparency.histories import Histories
from clew.verify.transparency.monotony import first_lapse
from clew.verify.transparency.observation import Observation
from clew.verify.transparency.system import Execution, System, failure_free, traced
from clew.verify.transparency.verdict import Claim, Counts, Explained, Refuted, Verdict, Why

C = TypeVar("C", bound=Hashable)
D = TypeVar("D", bound=Hashable)

LAPSE = -1
"""Stands for the history after a step that is not monotone."""


def check_transparency(
    system: System[C],
    observation: Observation[C],
    *,
    failures_max: int | None,
    ends: bool = True,
    configurations_max: int = CONFIGURATIONS_MAX,
) -> Verdict[C, C]:
    """Whether the system is explained by its own failure-free part: failure transparency (Definition 5.10).

    >>> def forgetful(n: int):
    ...     return [("count", False, n + 1)] * (n < 2) + [("forget", True, 0)] * (n == 2)
    >>> seen = Observation("number", lambda n: n, lambda first, second: first <= second)
    >>> print(check_transparency(System("counter", (0,), forgetful), seen, failures_max=1))
    counter by counter without failures, seen through number, at most 1 failures: not explained
    an execution of counter:
      begins                               seen: 0
        1  count                           seen: 1
        2  count                           seen: 2
        3  forget                          seen: 0
    its last step is not monotone: what was seen before is not seen any more.
    """
    same = tuple((configuration, configuration) for configuration in system.initial)
    return check_explainability(
        system,
        failure_free(system),
        observation,
        observation,
        same,
        failures_max=failures_max,
        ends=ends,
        configurations_max=configurations_max,
    )


def check_explainability(
    low: System[C],
    high: System[D],
    low_observation: Observation[C],
    high_observation: Observation[D],
    translation: Iterable[tuple[D, C]],
    *,
    failures_max: int | None,
    ends: bool = True,
    configurations_max: int = CONFIGURATIONS_MAX,
) -> Verdict[C, D]:
    """Whether each execution of `low` with at most so many failures is explained by one of `high` (Definition 5.5)."""
    pairs = tuple(translation)
    if not pairs:
        raise ValueError(
            f"{low.name} by {high.name}: the translation has no pairs of initial configurations, so nothing would be "
            f"checked. Give at least one."
        )
    claim = Claim(low, high, low_observation, high_observation, pairs, failures_max, ends)
    observations = Observations()
    upper = Graph(high, high_observation, observations, configurations_max)
    broken = first_lapse(upper, [above for above, _ in pairs], None)
    if broken is not None:
        return Refuted(claim, Why.NOT_MONOTONE, broken, is_in_high=True)
    lower = Graph(low, low_observation, observations, configurations_max)
    return _Walk(claim, lower, upper).verdict()


class _Walk(Generic[C, D]):
    """The walk over pairs of a configuration and a class of histories, fewest failures first, then fewest steps."""

    def __init__(self, claim: Claim[C, D], lower: Graph[C], upper: Graph[D]) -> None:
        self.claim = claim
        self.lower = lower
        self.upper = upper
        self.histories = Histories(upper)
        self.came: dict[tuple[int, int], tuple[tuple[int, int], Hashable] | None] = {}
        self.open: list[tuple[int, int, int, int]] = []
        """Failures, steps, configuration, history: a heap."""
        self.walked: set[tuple[int, int]] = set()
        self.best: dict[tuple[int, int], tuple[int, int]] = {}
        self.rests = 0

    def verdict(self) -> Verdict[C, D]:
        for above, below in self.claim.translation:
            begin = self.lower.number(below)
            history = self.histories.begin(self.upper.number(above), self.lower.observed[begin])
            self._reach((begin, history), 0, 0, None)
        bound = self.claim.failures_max
        while self.open:
            failures, steps, configuration, history = heapq.heappop(self.open)
            node = (configuration, history)
            if node in self.walked:
                continue
            self.walked.add(node)
            # Judged here, not when it was reached: only now is it known that nothing shorter comes before it.
            if history == LAPSE:
                return self._refuted(node, Why.NOT_MONOTONE)
            if self.histories.is_empty(history):
                return self._refuted(node, Why.NO_EXPLANATION)
            is_at_rest = True
            for edge in self.lower.edges(configuration):
                is_at_rest = is_at_rest and edge.is_counted
                cost = failures + edge.is_counted
                if bound is not None and cost > bound:
                    continue
                seen, then = self.lower.observed[edge.after], history
                if seen != self.lower.observed[configuration]:
                    is_more = self.lower.is_monotone(configuration, edge.after)
                    then = self.histories.then(history, seen) if is_more else LAPSE
                self._reach((edge.after, then), cost, steps + 1, (node, edge.label))
            if is_at_rest:
                self.rests += 1
                if self.claim.ends and not self.histories.has_rest(history):
                    return self._refuted(node, Why.ENDED_EARLY)
        return self._explained()

    def _reach(
        self, node: tuple[int, int], failures: int, steps: int, came: tuple[tuple[int, int], Hashable] | None
    ) -> None:
        if node not in self.best or (failures, steps) < self.best[node]:
            self.best[node] = (failures, steps)
            self.came[node] = came
            heapq.heappush(self.open, (failures, steps, *node))

    def _refuted(self, node: tuple[int, int], why: Why) -> Refuted[C, D]:
        nodes, labels = traced(self.came, node)
        configurations = tuple(self.lower.configurations[configuration] for configuration, _ in nodes)
        return Refuted(self.claim, why, Execution(configurations, tuple(labels)))

    def _taken(self) -> Iterable[tuple[int, Edge, bool]]:
        """Each step from a configuration that was reached, and whether the bound lets it be taken."""
        bound = self.claim.failures_max
        fewest: dict[int, int] = {}
        for (configuration, _), (failures, _) in self.best.items():
            fewest[configuration] = min(failures, fewest.get(configuration, failures))
        for configuration, failures in fewest.items():
            for edge in self.lower.edges(configuration):
                yield configuration, edge, bound is None or failures + edge.is_counted <= bound

    def _explained(self) -> Explained[C, D]:
        lower, upper, values = self.lower, self.upper, self.upper.observations.values
        transitions = failures = recoveries = left_out = high_transitions = 0
        changes: set[tuple[int, int]] = set()
        for configuration, edge, is_taken in self._taken():
            if not is_taken:
                left_out += 1
                continue
            transitions += 1
            failures += edge.is_counted
            recoveries += edge.is_failure and not edge.is_counted
            changes.add((lower.observed[configuration], lower.observed[edge.after]))
        for configuration in range(len(upper.configurations)):
            for edge in upper.edges(configuration):
                high_transitions += 1
                changes.add((upper.observed[configuration], upper.observed[edge.after]))
        counts = Counts(
            configurations=len({configuration for configuration, _ in self.best}),
            transitions=transitions,
            failures=failures,
            recoveries=recoveries,
            left_out=left_out,
            histories=len(self.histories),
            pairs=len(self.walked),
            rests=self.rests,
            high_configurations=len(upper.configurations),
            high_transitions=high_transitions,
        )
        seen = frozenset((values[before], values[after]) for before, after in changes if before != after)
        return Explained(self.claim, counts, seen)
