"""The tree of errors Clew raises.

ClewError
├── BuildError                 a pipeline that cannot be built: where, what, what to do
│   ├── UnknownPort, DoublyUsedPort, MissingConnection, DuplicateName, UnreachableOperator
│   ├── CycleWithoutFeedback, UnsafeWriteConnection, ScopeWithoutPath, UnknownOperator
│   └── BadName
├── ValueNotStorable           a state value, key or note that the log cannot hold
├── MoveError                  a move of a user's operator raised, or broke the rules of its move
├── LogError                   the log cannot be used
│   ├── LogNotFound, LogExists, LogDamaged, LogTooNew, LogOfAnotherPipeline
│   ├── Fenced                 a successor has taken over; this incarnation must exit
│   └── CommitUnknown          the outcome of a commit is not known; this incarnation must exit
├── RunError                   a run cannot start, or cannot go on
│   ├── NotEnoughSlots, UnsuitableSpark, NotPicklable
│   └── RunFailed              an operator failed for good, or a host could not be kept alive
├── WireError                  what came over a connection cannot be taken
│   └── NotAuthentic, BadFrame
├── OutsideError               an outside system cannot be used, or what it holds is not as expected
└── Violation                  the simulator found a broken guarantee
"""

from __future__ import annotations


class ClewError(Exception):
    """Everything Clew raises on purpose."""


class BuildError(ClewError):
    """A pipeline that cannot be built."""


class UnknownPort(BuildError):
    """A port that its operator does not have."""


class UnknownOperator(BuildError):
    """A name that no operator of the pipeline has."""


class DoublyUsedPort(BuildError):
    """An input port with two connections."""


class MissingConnection(BuildError):
    """An input port with no connection."""


class DuplicateName(BuildError):
    """Two operators, ports or connections of one name."""


class BadName(BuildError):
    """A name that cannot be part of an id."""


class UnreachableOperator(BuildError):
    """An operator that no source leads to."""


class CycleWithoutFeedback(BuildError):
    """A cycle in which no operator is a feedback operator."""


class UnsafeWriteConnection(BuildError):
    """A write connection that is neither conditional, checkable nor idempotent."""


class ScopeWithoutPath(BuildError):
    """A lineage scope whose target cannot be reached from its start."""


class ValueNotStorable(ClewError):
    """A value that the log cannot hold."""


class MoveError(ClewError):
    """A move of a user's operator raised, or broke the rules of its move."""


class LogError(ClewError):
    """The log cannot be used."""


class LogNotFound(LogError):
    """There is no log at this place."""


class LogExists(LogError):
    """There is something at this place already."""


class LogDamaged(LogError):
    """The log does not have the form it should have."""


class LogTooNew(LogError):
    """The log was written by a newer version of Clew."""


class LogOfAnotherPipeline(LogError):
    """The log belongs to a pipeline with other operators, ports or connections."""


class Fenced(LogError):
    """A successor has taken over this replica's log; this incarnation must exit."""


class CommitUnknown(LogError):
    """Whether a commit became durable is not known; this incarnation must exit."""


class RunError(ClewError):
    """A run cannot start, or cannot go on."""


class NotEnoughSlots(RunError):
    """Spark has fewer task slots than the pipeline needs."""


class UnsuitableSpark(RunError):
    """A Spark session or setting that a pipeline cannot run on."""


class NotPicklable(RunError):
    """An operator that cannot be sent to another process."""


class RunFailed(RunError):
    """A run ended because of an error."""


class WireError(ClewError):
    """What came over a connection cannot be taken."""


class NotAuthentic(WireError):
    """A connection that did not prove to belong to the run."""


class BadFrame(WireError):
    """Bytes that are not what the other end of a connection should send."""


class OutsideError(ClewError):
    """An outside system cannot be used, or what it holds is not as expected."""


class Violation(ClewError):
    """The simulator found a broken guarantee."""
