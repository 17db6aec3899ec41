"""Programs of the model of LOG.io: sources with records, and operators given by three pure functions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from clew.errors import BuildError

Value = Hashable
State = Hashable
InputSet = Hashable
Contents = tuple[tuple[int, Value], ...]
"""What was folded into an Input Set, in order: port and value of each event."""


class Made(NamedTuple):
    """What a generation gives: the state after it, output events, write actions."""

    state: State
    outputs: tuple[Value, ...] = ()
    writes: tuple[Value, ...] = ()


def _nothing_assigned(state: State, port: int, value: Value) -> tuple[State, tuple[InputSet, ...]]:
    return state, ()


def _nothing_ready(state: State, folded: tuple[tuple[InputSet, Contents], ...]) -> InputSet | None:
    return None


def _nothing_made(state: State, input_set: InputSet, contents: Contents) -> tuple[Made, ...]:
    return (Made(state),)


@dataclass(frozen=True, eq=False)
class Operator:
    """A step of a program. A source has records and no inputs; any other operator has three moves."""

    name: str
    inputs: tuple[str, ...] = ()
    """Whose output events each port takes."""
    records: tuple[Value, ...] = ()
    """What a source reads."""
    state: State = 0
    assign: Callable[[State, int, Value], tuple[State, tuple[InputSet, ...]]] = _nothing_assigned
    """The state after an event on a port, and the Input Sets it belongs to."""
    ready: Callable[[State, tuple[tuple[InputSet, Contents], ...]], InputSet | None] = _nothing_ready
    """An Input Set whose trigger holds, if any; asked until there is none before the next event is taken."""
    generate: Callable[[State, InputSet, Contents], tuple[Made, ...]] = _nothing_made
    """What may be made of an Input Set: one possibility, or several if the operator is not deterministic."""


class Link(NamedTuple):
    """A connection between numbered operators."""

    sender: int
    receiver: int
    port: int


@dataclass(frozen=True, eq=False)
class Program:
    """Operators in an order in which senders come first.

    >>> Program("chain", (Operator("s", records=(1, 2)), Operator("t", inputs=("s",)))).links
    (Link(sender=0, receiver=1, port=0),)
    """

    name: str
    operators: tuple[Operator, ...]
    window: int = 2
    """How many unacknowledged events a connection may have under way."""
    links: tuple[Link, ...] = field(init=False)

    def __post_init__(self) -> None:
        places: dict[str, int] = {}
        links = []
        for place, operator in enumerate(self.operators):
            if operator.name in places:
                raise BuildError(
                    f"program {self.name!r}: two operators are named {operator.name!r}; one of each name was expected. "
                    f"Rename one of them."
                )
            for port, sender in enumerate(operator.inputs):
                if sender not in places:
                    raise BuildError(
                        f"program {self.name!r}, operator {operator.name!r}, port {port}: no operator {sender!r} is "
                        f"before it; those that are: {', '.join(places) or 'none'}. List senders before receivers."
                    )
                links.append(Link(places[sender], place, port))
            places[operator.name] = place
        object.__setattr__(self, "links", tuple(links))
