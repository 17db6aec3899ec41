"""A small-step semantics of LOG.io, apart from the engine: the protocol as rules over configurations.

`system(program)` is the transition system for `clew.verify.transparency`; `OUTSIDE` is what an observer sees.
"""

from clew.verify.logging_semantics.configuration import Configuration, initial, outside
from clew.verify.logging_semantics.model import OUTSIDE, system
from clew.verify.logging_semantics.program import Made, Operator, Program
from clew.verify.logging_semantics.programs import PROGRAMS
from clew.verify.logging_semantics.rules import Rules

__all__ = [
    "OUTSIDE",
    "PROGRAMS",
    "Configuration",
    "Made",
    "Operator",
    "Program",
    "Rules",
    "initial",
    "outside",
    "system",
]
