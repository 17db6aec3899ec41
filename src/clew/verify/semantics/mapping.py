"""The trace mapping: from any execution to a failure-free one that explains it (sections 6.2 and 7.2 of the thesis).

Split at recoveries into generations, reorder each so that what is discarded comes last, strip what is discarded, merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clew.verify.semantics.configuration import Configuration
from clew.verify.semantics.rules import ABS, F_RECOVER, Rules, Step
from clew.verify.semantics.traces import Trace, application


@dataclass(frozen=True, slots=True)
class Generation:
    """The steps of a trace from one recovery up to the next; `epoch` is what the recovery goes back to.

    The last generation has no recovery at its end: its epoch is the greatest common epoch of its last configuration.
    """

    begin: int
    steps: Trace
    epoch: int
    is_recovered: bool

    def is_kept(self, step: Step) -> bool:
        """Does the step survive? Not if its epoch is larger than the one recovered to, nor if it is a failure."""
        return step.epoch is not None and step.epoch <= self.epoch

    @property
    def reordered(self) -> Trace:
        """The generation with what is kept first, then what is discarded, each part in its order; no recovery."""
        return (*self.stripped, *(step for step in self.steps if not self.is_kept(step)))

    @property
    def stripped(self) -> Trace:
        """What is kept of the generation."""
        return tuple(step for step in self.steps if self.is_kept(step))


@dataclass(frozen=True, slots=True)
class Explanation:
    """A failure-free trace, and for each configuration of the execution the number of the one that explains it."""

    trace: Trace
    mapping: tuple[int, ...]
    generations: tuple[Generation, ...]


def generations_of(trace: Sequence[Step], epochs: Sequence[int]) -> tuple[Generation, ...]:
    """Splits a trace at its recoveries; `epochs` has the greatest common epoch of each configuration."""
    found: list[Generation] = []
    begin = 0
    for number, step in enumerate(trace):
        if step == F_RECOVER:
            found.append(Generation(begin, tuple(trace[begin:number]), epochs[number], True))
            begin = number + 1
    found.append(Generation(begin, tuple(trace[begin:]), epochs[len(trace)], False))
    return tuple(found)


def explain(trace: Sequence[Step], c: Configuration, rules: Rules = ABS) -> Explanation:
    """The failure-free explanation of a trace that is valid from `c`.

    Each configuration is explained by the one after the most recent border step that committed an epoch: only such
    a step changes the output (Lemma 7.1).
    """
    epochs = [rules.gce(one) for one in application(trace, c, rules)]
    generations = generations_of(trace, epochs)
    merged: list[Step] = []
    mapping = [0]
    for generation in generations:
        for number, step in enumerate(generation.steps, generation.begin):
            if generation.is_kept(step):
                merged.append(step)
            is_commit = epochs[number + 1] != epochs[number]
            mapping.append(len(merged) if is_commit else mapping[-1])
        if generation.is_recovered:
            mapping.append(mapping[-1])
    return Explanation(tuple(merged), tuple(mapping), generations)


def first_unexplained(
    trace: Sequence[Step], c: Configuration, explanation: Explanation, rules: Rules = ABS
) -> int | None:
    """The first configuration of the execution that the explanation does not show with the same output, if any.

    Judges any explanation, ours or another's: raises `NotDerivable` if its trace is not one of the failure-free rules.
    """
    seen = [rules.out(one) for one in application(trace, c, rules)]
    shown = [ABS.out(one) for one in application(explanation.trace, c, ABS.without_failures())]
    last = 0
    for number, output in enumerate(seen):
        by = explanation.mapping[number] if number < len(explanation.mapping) else -1
        if not last <= by < len(shown) or shown[by] != output:
            return number
        last = by
    return None
