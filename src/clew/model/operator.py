"""Operators: the four moves a user writes, and what a move may use."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from clew.errors import BuildError
from clew.model.connection import ReadConnection, WriteConnection
from clew.model.event import Event
from clew.times.antichain import Antichain
from clew.times.order import Order
from clew.times.summary import Summary


class Assigned(NamedTuple):
    """An Input Set key together with a note that `update` will be given, also after a crash.

    With a time, what is generated from the Input Set will have that time, and holds it back until then; otherwise the
    least of its events' times. It is at or after the time of the first event, and the same with all events of the set.
    """

    key: Hashable
    note: Any = None
    time: Any = None


Yielded = tuple[str, Any] | tuple[str, Any, Mapping[str, Any]]
"""A destination, records, and perhaps attributes."""


class Context(Protocol):
    """What a move may use besides its arguments; all chance and all clock come from here."""

    @property
    def state(self) -> MutableMapping[Any, Any]:
        """The operator's state: a keyed map, durable with the move that changed it."""

    @property
    def now(self) -> float:
        """Seconds since the epoch; the same all through one move."""

    @property
    def random(self) -> random.Random:
        """A source of chance."""

    @property
    def ended(self) -> frozenset[str]:
        """The input ports on which nothing more will arrive."""

    def backlog(self, port: str) -> int:
        """How many events of an output port its slowest receiver has not acknowledged yet."""

    def timer(self, name: Hashable, at: float) -> None:
        """Asks for `on_timer(name)` at a time; a timer of the same name is replaced."""

    def cancel(self, name: Hashable) -> None:
        """Takes a timer back."""

    def read(self, connection: str, query: Any = None) -> pa.RecordBatch:
        """Reads from an outside system; allowed in `generate` and `finish`."""

    def uses(self, *input_sets: Hashable) -> None:
        """Says that what is yielded from here on comes from these Input Sets only, not from the whole group."""

    def frontier(self, port: str | None = None) -> Antichain:
        """Which times may still arrive on an input port, or on any of them; empty: none."""

    def at(self, time: Any) -> None:
        """Says that what is yielded from here on has this time: at or after one that the operator holds."""

    def hold(self, name: Hashable, time: Any) -> None:
        """Holds a time back under a name, until it is dropped or moved on: outputs at or after it may still come.

        The time is at or after that of the event, or one that is held already.
        """

    def drop(self, name: Hashable) -> None:
        """Holds a time back no longer."""

    def count(self, name: str, number: int = 1) -> None:
        """Adds to a durable counter, which the status of the run shows."""


class Operator:
    """Something with input ports, output ports and connections to outside systems; written as four moves.

    After a crash a new object is opened, `update` is called again for the pairs that were not generated yet, in
    their old order, and only then is `ready` asked. So keep in `self` only what `update` builds, and everything
    else in `ctx.state`.
    """

    inputs: Sequence[str] = ("in",)
    outputs: Sequence[str] = ("out",)
    writes: Mapping[str, WriteConnection] = {}
    reads: Mapping[str, ReadConnection] = {}
    writes_first: bool = False
    """Whether an output may leave only after all write actions generated before or with it are done."""
    is_immediate: bool = False
    """Whether `ready` always answers with the Input Sets of the last event, each by itself, and then with none; it is
    not asked then, except after a crash."""
    is_feedback: bool = False
    """Whether this operator closes a cycle."""
    is_timely: bool = False
    """Whether it is told frontiers: `on_frontier` is called, and `ready` asked, when one of its ports moves on."""
    summaries: Mapping[str, Summary] = {}
    """By input port: the time that an event's outputs have, from the event's; unless it is here, the same."""

    def order(self, inputs: Mapping[str, Order]) -> Order:
        """The order of its outputs' times, from those of its inputs, which must agree unless this is overridden."""
        first, *others = inputs.values()
        for other in others:
            if other != first:
                raise BuildError(f"its inputs have times of different orders, {first} and {other}")
        return first

    def open(self, ctx: Context) -> None:
        """Begins with empty event state; called once per incarnation, before any other move."""

    def assign(self, event: Event, ctx: Context) -> Iterable[Hashable | Assigned]:
        """The keys of the Input Sets that the event belongs to; none means that it is finished with at once.

        May change the state. A key that was generated before opens a new Input Set.
        """
        raise NotImplementedError

    def update(self, input_set: Any, event: Event, note: Any = None) -> None:
        """Folds the event into the event state of one Input Set. The note is passed only if `assign` gave one."""
        raise NotImplementedError

    def ready(self, ctx: Context) -> Iterable[Sequence[Any]]:
        """The groups of Input Sets whose trigger holds now; the first is generated, then it is asked again."""
        return ()

    def generate(self, input_sets: Sequence[Any], ctx: Context) -> Iterable[Yielded]:
        """Outputs from a group of Input Sets: pairs of an output port or write connection, and records.

        An output may carry attributes: then it is a triple, with a dictionary last.
        """
        raise NotImplementedError

    def on_timer(self, name: Any, ctx: Context) -> None:
        """A timer's moment has come; may change state and timers. `ready` is asked afterwards."""

    def on_frontier(self, port: str, frontier: Antichain, ctx: Context) -> None:
        """An input port has moved on; may change state, timers and holds. `ready` is asked afterwards."""

    def finish(self, input_sets: Sequence[Any], ctx: Context) -> Iterator[Yielded]:
        """All inputs have ended and `ready` is empty: the last outputs, given the Input Sets that are still open.

        Unless overridden, every open Input Set is generated by itself, so that nothing is lost.
        """
        for input_set in input_sets:
            ctx.uses(input_set)
            yield from self.generate([input_set], ctx)
