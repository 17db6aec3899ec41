"""One operator alone: its moves, event by event, without a log; and a restart, to see what it forgets."""

from __future__ import annotations

import copy
import random
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from clew.errors import MoveError
from clew.model.event import NO_ATTRIBUTES, Event, as_batch
from clew.model.names import Replica
from clew.model.operator import Assigned, Operator, Yielded
from clew.model.values import decode, encode
from clew.testing.alone_context import AloneContext
from clew.times.antichain import Antichain, minimal
from clew.times.order import Integers, Order
from clew.times.summary import IDENTITY

Outputs = list[tuple[str, list[dict[str, Any]]]]

INTEGERS = Integers()


class Sent(NamedTuple):
    """Something that the operator yielded."""

    port: str
    rows: list[dict[str, Any]]
    time: Any
    attributes: Mapping[str, Any]


class Alone:
    """Runs the moves of one operator as a pipeline would, and gives back what they yield, as rows.

    >>> from clew.operators.batch import Batch
    >>> alone = Alone(Batch(2))
    >>> alone.send([{"x": 1}])
    []
    >>> alone.restart()
    >>> alone.send([{"x": 2}])
    [('out', [{'x': 1}, {'x': 2}])]

    Operators that work by time are sent events at times, and told how far their inputs are:

    >>> from clew.operators.timed import aggregate
    >>> from clew.operators.windows import tumbling
    >>> alone = Alone(aggregate(tumbling(10), {"n": "count"}))
    >>> alone.send([{"ts": 3}, {"ts": 12}], time=3)
    []
    >>> alone.advance(10)
    [('out', [{'window_start': 0, 'window_end': 10, 'n': 1}])]
    >>> alone.sent[-1].time
    9
    """

    def __init__(self, operator: Operator, *, seed: int = 0, now: float = 0.0, order: Order = INTEGERS) -> None:
        self._definition = operator
        self._operator = copy.deepcopy(operator)
        self._pairs: dict[int, tuple[Hashable, Event, tuple[Any, ...]]] = {}
        """By order number; with the note, if there is one."""
        self._sets: dict[Hashable, list[int]] = {}
        """The order numbers of the pairs of each open Input Set."""
        self._order_number = 0
        self._ids = dict.fromkeys(operator.inputs, 0)
        self._times: dict[Hashable, Any] = {}
        """By Input Set: the time that `assign` gave it."""
        self.sent: list[Sent] = []
        """All that was yielded so far."""
        self.context = AloneContext(operator, random.Random(seed), now, order)
        self._operator.open(self.context)

    @property
    def open_sets(self) -> list[Hashable]:
        """The Input Sets that were not generated yet, in the order in which they began."""
        return list(self._sets)

    def send(
        self, records: Any, port: str | None = None, *, time: Any = None, attributes: Mapping[str, Any] = NO_ATTRIBUTES
    ) -> Outputs:
        """Gives the operator an event on an input port, the first unless another is named; perhaps at a time."""
        port = self._definition.inputs[0] if port is None else port
        time = None if time is None else self.context.order.check(time)
        if time is not None and self.context.frontiers[port].passed(time):
            raise MoveError(
                f"an event at {self._show(time)} was sent on port {port!r}, which has moved on to "
                f"{self.context.frontiers[port]}; expected a time that it covers. Send the event before, or at a "
                f"later time."
            )
        self._ids[port] += 1
        batch = as_batch(records)
        event = Event(Replica("sender"), port, self._ids[port], batch, time=time, attributes=attributes).received(port)
        self.context.arriving = None if time is None else self._arriving(event)
        for assigned in list(self._operator.assign(event, self.context)):
            key, note, wanted = assigned if isinstance(assigned, Assigned) else (assigned, None, None)
            self._take_time(key, wanted)
            noted = () if note is None else (note,)
            self._operator.update(key, event, *noted)
            self._order_number += 1
            self._pairs[self._order_number] = key, event, noted
            self._sets.setdefault(key, []).append(self._order_number)
        self.context.arriving = None
        return self._ready()

    def advance(self, frontier: Any, port: str | None = None) -> Outputs:
        """Tells the operator how far an input port is, or all of them: a time, an antichain, or None for the end."""
        context = self.context
        if not isinstance(frontier, Antichain):
            elements = () if frontier is None else (context.order.check(frontier),)
            frontier = Antichain(context.order, elements)
        ports = tuple(self._definition.inputs) if port is None else (port,)
        for each in ports:
            if not context.frontiers[each].is_at_most(frontier):
                raise MoveError(
                    f"port {each!r} would go back from {context.frontiers[each]} to {frontier}; expected a frontier "
                    f"that is further on."
                )
        moved = [each for each in ports if context.frontiers[each] != frontier]
        context.frontiers.update(dict.fromkeys(moved, frontier))
        if not self._definition.is_timely or not moved:
            return []
        for each in moved:
            self._operator.on_frontier(each, frontier, context)
        return self._ready()

    def at(self, now: float) -> Outputs:
        """Lets time pass: the timers that are due by then, in their order."""
        outputs: Outputs = []
        self.context.now = now
        while due := sorted((at, number) for number, (_, at) in enumerate(self.context.timers.items()) if at <= now):
            name = list(self.context.timers)[due[0][1]]
            del self.context.timers[name]
            self._operator.on_timer(name, self.context)
            outputs += self._ready()
        return outputs

    def restart(self) -> None:
        """A new object takes over, as after a crash: with the state, and the pairs that were not generated yet."""
        self.context.restart()
        self._operator = copy.deepcopy(self._definition)
        self._operator.open(self.context)
        for number, (key, event, note) in self._pairs.items():
            self._pairs[number] = decode(encode(key)), event, decode(encode(note))
        for key, event, note in self._pairs.values():
            self._operator.update(key, event, *note)

    def end(self) -> Outputs:
        """All inputs have ended: what is ready, then what `finish` yields."""
        self.context.ended = frozenset(self._definition.inputs)
        outputs = self._ready()
        keys = self.open_sets
        self._begin(keys)
        outputs += self._rows(self._operator.finish(keys, self.context))
        self._close(keys)
        return outputs

    def _ready(self) -> Outputs:
        outputs: Outputs = []
        while (group := next(iter(self._operator.ready(self.context)), None)) is not None:
            keys = list(group)
            unknown = [key for key in keys if key not in self._sets]
            if unknown:
                raise MoveError(
                    f"ready() of {type(self._definition).__name__} named the Input Sets {unknown!r}, which are not "
                    f"open; open are {self.open_sets!r}. Name only sets that have events and were not generated yet."
                )
            self._begin(keys)
            outputs += self._rows(self._operator.generate(keys, self.context))
            self._close(keys)
        return outputs

    def _close(self, keys: list[Hashable]) -> None:
        for key in keys:
            self._times.pop(key, None)
            for number in self._sets.pop(key):
                del self._pairs[number]

    def _rows(self, yielded: Iterable[Yielded]) -> Outputs:
        outputs = Outputs()
        for port, records, *attributes in yielded:
            rows = as_batch(records).to_pylist()
            self.sent.append(Sent(port, rows, self.context.time(), attributes[0] if attributes else NO_ATTRIBUTES))
            outputs.append((port, rows))
        self.context.begin({})
        return outputs

    # Times

    def _arriving(self, event: Event) -> Any:
        """The earliest time of what an event may lead to."""
        return self._definition.summaries.get(event.input, IDENTITY).results_in(event.time)

    def _take_time(self, key: Hashable, wanted: Any) -> None:
        """Notes the time that `assign` gave an Input Set, if it may."""
        if wanted is None:
            return
        earlier, arriving = self._times.get(key, wanted), self.context.arriving
        is_after = arriving is not None and self.context.order.leq(arriving, wanted)
        if earlier != wanted or (key not in self._times and not is_after):
            raise MoveError(
                f"assign() of {type(self._definition).__name__} gave the Input Set {key!r} the time "
                f"{self._show(wanted)}, but its event is at {None if arriving is None else self._show(arriving)} and "
                f"earlier ones gave it {self._show(earlier)}. Give the same time with all of its events, at or after "
                f"that of the first."
            )
        self._times[key] = wanted

    def _begin(self, keys: list[Hashable]) -> None:
        """A generation of these Input Sets begins."""
        self.context.begin({key: self._held(key) for key in keys})

    def _held(self, key: Hashable) -> tuple[Any, ...]:
        """The times that an Input Set holds."""
        if key in self._times:
            return (self._times[key],)
        events = [self._pairs[number][1] for number in self._sets[key]]
        return minimal(self.context.order, [self._arriving(event) for event in events if event.time is not None])

    def _show(self, time: Any) -> str:
        return self.context.order.show(time)
