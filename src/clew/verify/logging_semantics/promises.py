"""What the rules of LOG.io rely on, a method for each promise; whoever breaks one is not failure-transparent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from clew.verify.logging_semantics.configuration import Event, Executed, Log, Memory, Pair, Process
from clew.verify.logging_semantics.program import Contents, InputSet, Value

Folded = tuple[tuple[InputSet, Contents], ...]
T = TypeVar("T")


class Promises:
    """The promises as LOG.io keeps them."""

    def sendable(self, process: Process) -> tuple[Value, ...]:
        """The output events that may be sent: those that are durable."""
        return process.durable.outputs

    def executable(self, process: Process) -> int:
        """How many write actions may be executed: those that are durable."""
        return len(process.durable.writes)

    def acknowledgeable(self, process: Process, port: int) -> int:
        """The last event of a port that may be acknowledged: the last one whose assignment is durable."""
        return process.durable.assigned[port]

    def is_obsolete(self, event: Event, seen: int) -> bool:
        """Whether an event was taken before. Algorithm 2, step 1, with smaller or equal."""
        return event.number <= seen

    def commits(self, process: Process, memory: Memory) -> Iterable[Log]:
        """What one commit can make durable: everything decided so far."""
        if memory.log != process.durable:
            yield memory.log

    def executed(self, before: tuple[Executed, ...], execution: Executed) -> tuple[Executed, ...]:
        """What an outside system holds after an execution: it refuses an id that it has executed."""
        return before if any(known.number == execution.number for known in before) else (*before, execution)

    def folded(self, number: int, undone: tuple[Pair, ...], bodies: tuple[Value, ...]) -> Folded:
        """The event state of an operator that starts again: its undone pairs in the order of their assignment."""
        folded: Folded = ()
        for pair, body in zip(undone, bodies, strict=True):
            folded = fold(folded, pair.input_set, pair.port, body)
        return folded


def fold(folded: Folded, input_set: InputSet, port: int, value: Value) -> Folded:
    """The event states after one more event.

    >>> fold((("a", ((0, 1),)),), "b", 0, 2)
    (('a', ((0, 1),)), ('b', ((0, 2),)))
    >>> fold((("a", ((0, 1),)),), "a", 1, 2)
    (('a', ((0, 1), (1, 2))),)
    """
    for place, (known, contents) in enumerate(folded):
        if known == input_set:
            return with_item(folded, place, (known, (*contents, (port, value))))
    return (*folded, (input_set, ((port, value),)))


def with_item(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    """The items with one of them replaced.

    >>> with_item((1, 2, 3), 1, 5)
    (1, 5, 3)
    """
    return (*items[:place], item, *items[place + 1 :])
