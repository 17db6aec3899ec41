"""Checks failure transparency of any transition system: that failures cannot be seen, whatever happens, to a bound.

Chapter 5 of the ABS thesis as a program. `check_transparency` compares a system with its failure-free part,
`check_explainability` two different systems; `explain` finds the failure-free execution behind one faulty execution;
`composed` and `transitive` make results into further ones. `python -m clew.verify.transparency` checks the models
that come with Clew and prints what was explored.
"""

from clew.verify.transparency.combining import NotCombinable, composed, transitive
from clew.verify.transparency.explainability import check_explainability, check_transparency
from clew.verify.transparency.explanation import Explaining, explain, explanation, monotone_explanation
from clew.verify.transparency.graph import TooLarge
from clew.verify.transparency.monotony import NotMonotone, check_monotone
from clew.verify.transparency.observation import Observation, prefix, prefixes, subset
from clew.verify.transparency.system import Execution, System, failure_free, run
from clew.verify.transparency.verdict import Claim, Counts, Explained, Refuted, Verdict, Why

__all__ = [
    "Claim",
    "Counts",
    "Execution",
    "Explained",
    "Explaining",
    "NotCombinable",
    "NotMonotone",
    "Observation",
    "Refuted",
    "System",
    "TooLarge",
    "Verdict",
    "Why",
    "check_explainability",
    "check_monotone",
    "check_transparency",
    "composed",
    "explain",
    "explanation",
    "failure_free",
    "monotone_explanation",
    "prefix",
    "prefixes",
    "run",
    "subset",
    "transitive",
]
