"""The ABS thesis as a program: configurations, rules, snapshots, traces and their mapping, exploration.

Nothing here knows the engine. The words are those of the thesis: a *task* consumes and produces *messages* on
*streams*, each message is an *event* or the *border* of an *epoch*.
"""

from __future__ import annotations

from clew.verify.semantics.configuration import Configuration, initial
from clew.verify.semantics.program import BadProgram, Data, Message, Program, Task, program_of
from clew.verify.semantics.rules import ABS, Rules, Step, steps
from clew.verify.semantics.snapshots import gce, lcs, out

__all__ = [
    "ABS",
    "BadProgram",
    "Configuration",
    "Data",
    "Message",
    "Program",
    "Rules",
    "Step",
    "Task",
    "gce",
    "initial",
    "lcs",
    "out",
    "program_of",
    "steps",
]
