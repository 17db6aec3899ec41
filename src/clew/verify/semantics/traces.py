"""Traces: sequences of steps, their application to a configuration and their validity (Definitions 6.1 to 6.3)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from clew.errors import ClewError
from clew.verify.semantics.configuration import Configuration
from clew.verify.semantics.rules import ABS, F_RECOVER, Rules, Step, steps

Trace: TypeAlias = tuple[Step, ...]


class NotDerivable(ClewError):
    """A step of a trace that the rules do not allow where it stands."""

    def __init__(self, number: int, step: Step, rules: Rules, c: Configuration) -> None:
        self.number = number
        enabled = ", ".join(sorted({str(one) for one, _, _ in steps(c, rules)})) or "nothing"
        super().__init__(
            f"step {number} of the trace, {step}, cannot be derived by the rules of {rules.name} in {c!r}; "
            f"these can: {enabled}"
        )


def configurations(trace: Iterable[Step], c: Configuration, rules: Rules = ABS) -> Iterator[Configuration]:
    """Z(c), one configuration after the other, `c` first; raises `NotDerivable` at the first step that is not."""
    yield c
    for number, step in enumerate(trace):
        after = taken(step, c, rules)
        if after is None:
            raise NotDerivable(number, step, rules, c)
        c = after
        yield c


def taken(step: Step, c: Configuration, rules: Rules = ABS) -> Configuration | None:
    """The configuration after a step, or None if the rules do not allow it in `c`."""
    if step == F_RECOVER:
        return rules.lcs(c) if rules.can_recover(c) else None
    if step.task is None or not 0 <= step.task < len(c.program.tasks):
        return None
    for rule in rules.local:
        if rule.name == step.rule:
            for one, after in rule.steps(c, step.task):
                if one == step:
                    return after
    return None


def application(trace: Iterable[Step], c: Configuration, rules: Rules = ABS) -> list[Configuration]:
    """Z(c) as a list (Definition 6.2): one configuration more than the trace has steps."""
    return list(configurations(trace, c, rules))


def is_valid(trace: Iterable[Step], c: Configuration, rules: Rules = ABS) -> bool:
    """Can the whole trace be applied to `c` (Definition 6.3)?"""
    try:
        for _ in configurations(trace, c, rules):
            pass
    except NotDerivable:
        return False
    return True


def random_trace(
    c: Configuration,
    rng: random.Random,
    *,
    rules: Rules = ABS,
    failures: int = 2,
    failure_chance: float = 0.1,
    length: int = 1000,
) -> Trace:
    """A trace valid from `c`, drawn step by step, with at most so many failures; it ends where only a failure is left.

    A recovery is drawn like any other step, so that tasks that have not failed may go on for a while before it.
    """
    found: list[Step] = []
    while len(found) < length:
        usual: list[tuple[Step, Configuration]] = []
        crashes: list[tuple[Step, Configuration]] = []
        for step, is_failure, after in steps(c, rules):
            (crashes if is_failure and step != F_RECOVER else usual).append((step, after))
        is_crash = failures > 0 and bool(crashes) and rng.random() < failure_chance
        choices: Sequence[tuple[Step, Configuration]] = crashes if is_crash else usual
        if not choices:
            break
        failures -= is_crash
        step, c = rng.choice(choices)
        found.append(step)
    return tuple(found)


def told(trace: Sequence[Step]) -> str:
    """A trace in words, one numbered line for each step."""
    return "\n".join(f"{number:4}  {step}" for number, step in enumerate(trace))
