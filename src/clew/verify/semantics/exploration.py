"""Explores the executions of a program: all of them up to a number of failures, or some of them by chance."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from clew.verify.semantics.configuration import Configuration, initial
from clew.verify.semantics.explainable import explanation_of
from clew.verify.semantics.program import Message, Program
from clew.verify.semantics.rules import ABS, F_FAIL, Rules, Step, steps
from clew.verify.semantics.traces import Trace, application, random_trace

Output: TypeAlias = frozenset[Message]
History: TypeAlias = tuple[Output, ...]
"""The outputs that an execution has shown so far, without repetitions."""

Node: TypeAlias = tuple[Configuration, int, History]


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was explored, and the shortest execution that no failure-free one explains, if there is one.

    `executions` counts those that cannot go on within the bound; every other is the beginning of one of them.
    """

    configurations: int
    steps: int
    histories: int
    executions: int
    unexplained: Trace | None = None

    @property
    def is_transparent(self) -> bool:
        """Was every execution explained?"""
        return self.unexplained is None


def explore(program: Program, failures: int, rules: Rules = ABS) -> Exploration:
    """All executions of a program with at most so many failures, each judged by its history of outputs.

    Configurations that are reached in several ways are looked at once for each history and number of failures: what can
    follow depends on nothing else. An execution is explained if its history is part of a failure-free one's, in order.
    """
    explained = _Explained(program)
    root = _root(program, rules)
    came: dict[Node, tuple[Node, Step] | None] = {root: None}
    follow: dict[Node, list[Node]] = {}
    waiting = deque([root])
    unexplained: Trace | None = None
    while waiting:
        node = waiting.popleft()
        if not explained.has(node[2]):  # Nearer ones came before, so none is shorter.
            unexplained = _path(came, node)
            break
        follow[node] = []
        for step, following in _following(node, failures, rules):
            follow[node].append(following)
            if following not in came:
                came[following] = (node, step)
                waiting.append(following)
    return Exploration(
        configurations=len({node[0] for node in came}),
        steps=sum(map(len, follow.values())),
        histories=len({node[2] for node in came}),
        executions=_executions(root, follow) if unexplained is None else 0,
        unexplained=unexplained,
    )


def explore_by_chance(
    program: Program, seeds: range, rules: Rules = ABS, *, failures: int = 3, failure_chance: float = 0.1
) -> tuple[int, int] | None:
    """Draws one execution for each seed; the first whose outputs nothing explains, as its seed and step, or None."""
    start = initial(program)
    for seed in seeds:
        trace = random_trace(start, random.Random(seed), rules=rules, failures=failures, failure_chance=failure_chance)
        outputs = [rules.out(c) for c in application(trace, start, rules)]
        if explanation_of(program, outputs) is None:
            return seed, next(n for n in range(len(outputs)) if explanation_of(program, outputs[: n + 1]) is None)
    return None


class _Explained:
    """The histories of failure-free executions, by the rules of the thesis, and what is part of them."""

    def __init__(self, program: Program) -> None:
        rules = ABS.without_failures()
        root = _root(program, rules)
        seen, waiting = {root}, [root]
        while waiting:
            for _, following in _following(waiting.pop(), 0, rules):
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
        self._histories = {node[2] for node in seen}
        self._known: dict[History, bool] = {}

    def has(self, history: History) -> bool:
        if history not in self._known:
            self._known[history] = history in self._histories or any(
                _is_part(history, whole) for whole in self._histories
            )
        return self._known[history]


def _is_part(history: History, whole: History) -> bool:
    rest = iter(whole)
    return all(output in rest for output in history)


def _root(program: Program, rules: Rules) -> Node:
    c = initial(program)
    return c, 0, (rules.out(c),)


def _following(node: Node, failures: int, rules: Rules) -> Iterator[tuple[Step, Node]]:
    c, failed, history = node
    for step, _, after in steps(c, rules):
        count = failed + (step.rule == F_FAIL.name)
        if count <= failures:
            output = rules.out(after)
            yield step, (after, count, history if output == history[-1] else (*history, output))


def _path(came: dict[Node, tuple[Node, Step] | None], node: Node) -> Trace:
    path: list[Step] = []
    step = came[node]
    while step is not None:
        node, taken = step
        path.append(taken)
        step = came[node]
    return tuple(path[::-1])


def _executions(root: Node, follow: dict[Node, list[Node]]) -> int:
    """How many ways lead from the root to an end; there are no cycles, since each recovery needs a further failure."""
    entries = Counter(following for found in follow.values() for following in found)
    ways = Counter({root: 1})
    waiting, total = [root], 0
    while waiting:
        node = waiting.pop()
        total += 0 if follow[node] else ways[node]
        for following in follow[node]:
            ways[following] += ways[node]
            entries[following] -= 1
            if entries[following] == 0:
                waiting.append(following)
    return total
