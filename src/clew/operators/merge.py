"""Merging: the events of several streams on one port, in the order in which they arrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.model.event import Event
from clew.model.operator import Context, Yielded
from clew.operators.stateless import Stateless


class Merge(Stateless):
    """Passes every event on; each stream has an input port, `in1`, `in2` and so on.

    >>> Merge(3).inputs
    ('in1', 'in2', 'in3')
    """

    def __init__(self, streams: int) -> None:
        self.inputs = tuple(f"in{number}" for number in range(1, streams + 1))

    def apply(self, event: Event, ctx: Context) -> Iterator[Yielded]:
        """The same records and attributes."""
        yield self.output(event), event.batch, event.attributes

    def output(self, event: Event) -> str:
        """The port on which an event leaves."""
        return "out"


class Merger(Merge):
    """Brings together again what the replicas of an operator send, on output ports of the same names as theirs.

    Each output port of each replica has an input port.

    >>> Merger(2, ("out", "late")).inputs
    ('out-0', 'out-1', 'late-0', 'late-1')
    """

    def __init__(self, replicas: int, outputs: Sequence[str]) -> None:
        self.outputs = tuple(outputs)
        self.inputs = tuple(self.input(port, replica) for port in outputs for replica in range(replicas))

    @staticmethod
    def input(port: str, replica: int) -> str:
        """The input port for an output port of a replica.

        >>> Merger.input("late", 1)
        'late-1'
        """
        return f"{port}-{replica}"

    def output(self, event: Event) -> str:
        """The port of the same name as the one on which a replica sent it."""
        return event.port
