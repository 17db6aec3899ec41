"""Merging: the events of several streams on one port, in the order in which they arrive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clew.model.event import Event
from clew.model.operator import Context
from clew.operators.stateless import Stateless


class Merge(Stateless):
    """Passes every event on; each stream has an input port, `in1`, `in2` and so on.

    >>> Merge(3).inputs
    ('in1', 'in2', 'in3')
    """

    def __init__(self, streams: int) -> None:
        self.inputs = tuple(f"in{number}" for number in range(1, streams + 1))

    def apply(self, event: Event, ctx: Context) -> Iterable[tuple[str, Any]]:
        """The same records."""
        return (("out", event.batch),)
