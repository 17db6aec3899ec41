"""The base of stateless operators: each event is an Input Set of its own and is generated from at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from clew.model.event import Event
from clew.model.operator import Context, Operator, Yielded


class Stateless(Operator):
    """One function from an event to outputs: subclasses write `apply`.

    An Input Set's key is the id of its event, together with the input port if there are several.
    """

    is_immediate = True
    _waiting: dict[Any, Event]

    def apply(self, event: Event, ctx: Context) -> Iterable[Yielded]:
        """Outputs from one event: pairs of an output port or write connection, and records."""
        raise NotImplementedError

    def open(self, ctx: Context) -> None:
        """Nothing is waiting."""
        self._waiting = {}

    def assign(self, event: Event, ctx: Context) -> Sequence[Hashable]:
        """To a set of its own."""
        return (event.id if len(self.inputs) == 1 else (event.input, event.id),)

    def update(self, input_set: Any, event: Event, note: Any = None) -> None:
        """Keeps the event until it is generated from."""
        self._waiting[input_set] = event

    def ready(self, ctx: Context) -> Sequence[Sequence[Any]]:
        """At once."""
        for key in self._waiting:
            return ([key],)
        return ()

    def generate(self, input_sets: Sequence[Any], ctx: Context) -> Iterator[Yielded]:
        """What `apply` makes of each event."""
        for key in input_sets:
            yield from self.apply(self._waiting.pop(key), ctx)
