"""The context of an operator alone: everything that its moves may use is there to be looked at and changed."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping
from typing import Any

import pyarrow as pa

from clew.errors import MoveError
from clew.model.event import as_batch
from clew.model.operator import Operator
from clew.model.values import decode, encode
from clew.times.antichain import Antichain, minimal
from clew.times.everything import Everything
from clew.times.order import Order


class AloneContext:
    """State, clock, timers, frontiers, holds and counters, in memory."""

    def __init__(self, operator: Operator, chance: random.Random, now: float, order: Order) -> None:
        self.state: dict[Any, Any] = {}
        self.now = now
        self.random = chance
        self.ended: frozenset[str] = frozenset()
        self.timers: dict[Hashable, float] = {}
        self.order = order
        self.frontiers: dict[str, Antichain] = dict.fromkeys(operator.inputs, Everything(order))
        self.holds: dict[Hashable, Any] = {}
        self.counts: dict[str, int] = {}
        self.arriving: Any = None
        """The time that the event which is being assigned may lead to."""
        self._reads = operator.reads
        self._held: Mapping[Hashable, tuple[Any, ...]] = {}
        """By Input Set that is being generated: the times that it holds."""
        self._used: tuple[Hashable, ...] | None = None
        self._at: Any = None

    def backlog(self, port: str) -> int:
        """Nobody is behind."""
        return 0

    def timer(self, name: Hashable, at: float) -> None:
        """Sets a timer, which `Alone.at` fires."""
        self.timers[name] = at

    def cancel(self, name: Hashable) -> None:
        """Takes a timer back."""
        self.timers.pop(name, None)

    def read(self, connection: str, query: Any = None) -> pa.RecordBatch:
        """Reads from an outside system to which nothing has been written."""
        return as_batch(self._reads[connection].read_simulated(query, []))

    def uses(self, *input_sets: Hashable) -> None:
        """What is yielded from here on has the times of these Input Sets; lineage is not captured here."""
        self._used = input_sets

    def frontier(self, port: str | None = None) -> Antichain:
        """What `Alone.advance` said last; before that, everything may arrive."""
        if port is not None:
            return self.frontiers[port]
        first, *others = self.frontiers.values()
        for other in others:
            first = first.meet(other) if not isinstance(other, Everything) else other
        return first

    def at(self, time: Any) -> None:
        """Says the time of what is yielded from here on."""
        self._check(time, "ctx.at", [*self._of_sets(None), *self.holds.values()])
        self._at = time

    def hold(self, name: Hashable, time: Any) -> None:
        """Holds a time under a name."""
        arriving = () if self.arriving is None else (self.arriving,)
        self._check(time, "ctx.hold", [*arriving, *self._of_sets(None), *self.holds.values()])
        self.holds[name] = time

    def drop(self, name: Hashable) -> None:
        """Holds it no longer."""
        self.holds.pop(name, None)

    def count(self, name: str, number: int = 1) -> None:
        """Adds to a counter."""
        self.counts[name] = self.counts.get(name, 0) + number

    def begin(self, held: Mapping[Hashable, tuple[Any, ...]]) -> None:
        """A generation begins, of Input Sets that hold these times."""
        self._held, self._used, self._at = held, None, None

    def time(self) -> Any:
        """The time of what was just yielded: what the operator said, or the least that its Input Sets hold."""
        if self._at is not None:
            return self._at
        least = minimal(self.order, self._of_sets(self._used)) or minimal(self.order, self.holds.values())
        if len(least) > 1:
            raise MoveError(
                f"records were yielded for which there is no one time: their Input Sets hold {least!r}. Say their time "
                f"with ctx.at(time)."
            )
        return least[0] if least else None

    def restart(self) -> None:
        """What the log has is read from there."""
        self.state = decode(encode(self.state))
        self.holds = decode(encode(self.holds))

    def _of_sets(self, keys: tuple[Hashable, ...] | None) -> list[Any]:
        return [time for key in (self._held if keys is None else keys) for time in self._held.get(key, ())]

    def _check(self, time: Any, where: str, held: list[Any]) -> None:
        if not any(self.order.leq(each, time) for each in held):
            raise MoveError(
                f"{where} was given the time {self.order.show(time)}, which is not at or after one that the operator "
                f"holds: {', '.join(map(self.order.show, held)) or 'none'}. Pass a later one."
            )
