"""What a check has found: that every execution is explained, and what was checked, or an execution that is not."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from clew.verify.transparency.observation import Observation
from clew.verify.transparency.system import Execution, System

C = TypeVar("C", bound=Hashable)
D = TypeVar("D", bound=Hashable)


@dataclass(frozen=True)
class Claim(Generic[C, D]):
    """That each execution of one system looks like one of another: R explained by R' (Definition 5.5)."""

    low: System[C]
    high: System[D]
    low_observation: Observation[C]
    high_observation: Observation[D]
    translation: tuple[tuple[D, C], ...]
    """The translation relation T: pairs of an initial configuration of `high` and one of `low`."""
    failures_max: int | None
    """Executions of `low` with at most so many counted failures; None: with any number."""
    ends: bool
    """Also that an execution that has come to rest is explained by one that has come to rest. Without this, a system
    that loses its last output is explained by an execution that has not got so far yet."""

    def __str__(self) -> str:
        bound = "any number of failures" if self.failures_max is None else f"at most {self.failures_max} failures"
        seen = self.low_observation.name
        if self.high_observation.name != seen:
            seen = f"{seen} / {self.high_observation.name}"
        return f"{self.low.name} by {self.high.name}, seen through {seen}, {bound}"


@dataclass(frozen=True)
class Counts:
    """How much was explored."""

    configurations: int = 0
    """Configurations of the low system."""
    transitions: int = 0
    """Steps between them."""
    failures: int = 0
    """Those of them that are counted failures."""
    recoveries: int = 0
    """Those of them that belong to failures and are not counted."""
    left_out: int = 0
    """Steps that were not taken because they would be one failure too many."""
    histories: int = 0
    """Classes of histories of observations; two are in one class if the same configurations explain both."""
    pairs: int = 0
    """Configurations of the low system, each with a class of histories that leads to it."""
    rests: int = 0
    """Pairs from which nothing but failures can happen."""
    high_configurations: int = 0
    high_transitions: int = 0


@dataclass(frozen=True)
class Explained(Generic[C, D]):
    """Every execution within the claim's bound has an explanation."""

    claim: Claim[C, D]
    counts: Counts
    changes: frozenset[tuple[Hashable, Hashable]]
    """Every change of observation that a step of either system made."""
    because: str = "checked"
    """Checked by exploration, or by which lemma from what."""
    is_explained = True

    def __str__(self) -> str:
        return f"{self.claim}: explained ({self.because})"


class Why(Enum):
    """Why a claim does not hold."""

    NOT_MONOTONE = "its last step is not monotone: what was seen before is not seen any more"
    NO_EXPLANATION = "no execution of {high} shows these observations in this order"
    ENDED_EARLY = "nothing more can happen here, and no execution of {high} comes to rest with these observations"


@dataclass(frozen=True)
class Refuted(Generic[C, D]):
    """An execution that breaks the claim: of those with the fewest failures, a shortest."""

    claim: Claim[C, D]
    why: Why
    execution: Execution[Any]
    is_in_high: bool = False
    """Whether the execution is one of the high system: only for a step that is not monotone."""
    is_explained = False

    def __str__(self) -> str:
        """The story of the execution, a line for each step, with what is seen wherever that changes."""
        of: System[Any] = self.claim.high if self.is_in_high else self.claim.low
        observation: Observation[Any] = self.claim.high_observation if self.is_in_high else self.claim.low_observation
        seen = observation.of(self.execution.configurations[0])
        lines = [f"{self.claim}: not explained", f"an execution of {of.name}:", f"  begins{'':<29} seen: {show(seen)}"]
        for number, (label, after) in enumerate(
            zip(self.execution.labels, self.execution.configurations[1:], strict=True), start=1
        ):
            before, seen = seen, observation.of(after)
            now = f" seen: {show(seen)}" if seen != before else ""
            lines.append(f"  {number:>3}  {label!s:<30}{now}".rstrip())
        lines.append(self.why.value.format(high=self.claim.high.name) + ".")
        return "\n".join(lines)


Verdict = Explained[C, D] | Refuted[C, D]


def show(observation: Hashable) -> str:
    """An observation in words: sets sorted, so that the same one always reads the same.

    >>> show(frozenset({2, 1})), show(("a", ()))
    ('{1, 2}', "('a', ())")
    """
    if isinstance(observation, frozenset):
        return "{" + ", ".join(sorted(map(repr, observation))) + "}"
    return repr(observation)
