"""The model of LOG.io as a transition system, with what an observer sees of it: the outside systems."""

from __future__ import annotations

from collections.abc import Hashable

from clew.verify.logging_semantics.configuration import Configuration, outside
from clew.verify.logging_semantics.program import Program
from clew.verify.logging_semantics.rules import FAIL, Label, Rules
from clew.verify.transparency.observation import Observation, prefixes
from clew.verify.transparency.system import System

OUTSIDE: Observation[Configuration] = Observation("outside", outside, prefixes)
"""The write actions that outside systems have executed, in order for each; they only grow at their end."""


def system(program: Program, rules: type[Rules] = Rules) -> System[Configuration]:
    """The transition system of a program; other rules give a variant of the protocol."""
    made = rules(program)
    return System(f"LOG.io {program.name}", (made.initial(),), made.steps, is_failing)


def is_failing(label: Hashable) -> bool:
    """Whether a step is a failure and not a recovery: what a bound on failures counts."""
    return isinstance(label, Label) and label.rule == FAIL
