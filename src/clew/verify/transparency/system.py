"""A transition system with marked failure rules: what the checks of failure transparency are about.

Definitions 5.1 and 5.2 of the ABS thesis: a step leads from one configuration to the next by a rule, an execution is
a sequence of steps. Some rules belong to failures (a crash, a recovery); the system without them is its failure-free
part.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
C = TypeVar("C", bound=Hashable)
"""A configuration: a value that can be compared and hashed."""

Steps = Callable[[C], Iterable[tuple[Hashable, bool, C]]]
"""All steps from a configuration: a label, whether the rule belongs to failures, and the configuration after it."""


def every_failure(label: Hashable) -> bool:
    """Counts every step of a failure rule."""
    return True


@dataclass(frozen=True, eq=False)
class System(Generic[C]):
    """A transition system: where it begins and which steps each configuration has.

    >>> def steps(n: int):
    ...     if n < 2:
    ...         yield "count", False, n + 1
    ...     yield "forget", True, 0
    >>> counter = System("counter", (0,), steps)
    >>> [label for label, _, _ in counter.steps(1)], [label for label, _, _ in failure_free(counter).steps(1)]
    (['count', 'forget'], ['count'])
    """

    name: str
    initial: tuple[C, ...]
    steps: Steps[C]
    is_counted: Callable[[Hashable], bool] = every_failure
    """Which steps of failure rules count as failures: where crash and recovery are two steps, only the crash."""


def failure_free(system: System[C]) -> System[C]:
    """The system without its failure rules: R \\ F."""

    def steps(configuration: C) -> Iterable[tuple[Hashable, bool, C]]:
        return (step for step in system.steps(configuration) if not step[1])

    return replace(system, name=f"{system.name} without failures", steps=steps)


class Execution(NamedTuple, Generic[C]):
    """Configurations and the labels of the steps between them; one label fewer than configurations."""

    configurations: tuple[C, ...]
    labels: tuple[Hashable, ...]


def traced(came: Mapping[K, tuple[K, Hashable] | None], end: K) -> tuple[list[K], list[Hashable]]:
    """The way to a node of a search, and its labels, from where each node was reached from.

    >>> traced({"a": None, "b": ("a", "step"), "c": ("b", "leap")}, "c")
    (['a', 'b', 'c'], ['step', 'leap'])
    """
    nodes, labels = [end], list[Hashable]()
    at = came[end]
    while at is not None:
        nodes.append(at[0])
        labels.append(at[1])
        at = came[at[0]]
    return nodes[::-1], labels[::-1]


def run(system: System[C], labels: Iterable[Hashable], start: C | None = None) -> Execution[C]:
    """The execution that takes the steps with these labels, one after the other.

    >>> from clew.verify.transparency.system import System, run
    >>> run(System("counter", (0,), lambda n: [("count", False, n + 1)]), ["count", "count"]).configurations
    (0, 1, 2)
    """
    at = system.initial[0] if start is None else start
    configurations = [at]
    taken: list[Hashable] = []
    for label in labels:
        found = [after for name, _, after in system.steps(at) if name == label]
        if not found:
            possible = ", ".join(sorted(str(name) for name, _, _ in system.steps(at))) or "none"
            raise ValueError(
                f"{system.name}, step {len(taken) + 1}: no step {str(label)!r} from here; the steps are: {possible}. "
                f"Correct the list of labels."
            )
        at = found[0]
        configurations.append(at)
        taken.append(label)
    return Execution(tuple(configurations), tuple(taken))
