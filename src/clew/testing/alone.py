"""One operator alone: its moves, event by event, without a log; and a restart, to see what it forgets."""

from __future__ import annotations

import copy
import random
from collections.abc import Hashable, Iterable
from typing import Any

import pyarrow as pa

from clew.errors import MoveError
from clew.model.event import Event, as_batch
from clew.model.names import Replica
from clew.model.operator import Assigned, Operator, Yielded
from clew.model.values import decode, encode

Outputs = list[tuple[str, list[dict[str, Any]]]]


class Alone:
    """Runs the moves of one operator as a pipeline would, and gives back what they yield, as rows.

    >>> from clew.operators.batch import Batch
    >>> alone = Alone(Batch(2))
    >>> alone.send([{"x": 1}])
    []
    >>> alone.restart()
    >>> alone.send([{"x": 2}])
    [('out', [{'x': 1}, {'x': 2}])]
    """

    def __init__(self, operator: Operator, *, seed: int = 0, now: float = 0.0) -> None:
        self._definition = operator
        self._operator = copy.deepcopy(operator)
        self._pairs: list[tuple[Hashable, Event, tuple[Any, ...]]] = []
        self._ids = dict.fromkeys(operator.inputs, 0)
        self.context = AloneContext(operator, random.Random(seed), now)
        self._operator.open(self.context)

    @property
    def open_sets(self) -> list[Hashable]:
        """The Input Sets that were not generated yet, in the order in which they began."""
        return list(dict.fromkeys(key for key, _, _ in self._pairs))

    def send(self, records: Any, port: str | None = None) -> Outputs:
        """Gives the operator an event on an input port, the first unless another is named."""
        port = self._definition.inputs[0] if port is None else port
        self._ids[port] += 1
        event = Event(Replica("sender"), port, self._ids[port], as_batch(records)).received(port)
        for assigned in list(self._operator.assign(event, self.context)):
            key, note = assigned if isinstance(assigned, Assigned) else (assigned, None)
            noted = () if note is None else (note,)
            self._operator.update(key, event, *noted)
            self._pairs.append((key, event, noted))
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
        self.context.state = decode(encode(self.context.state))
        self._operator = copy.deepcopy(self._definition)
        self._operator.open(self.context)
        self._pairs = [(decode(encode(key)), event, decode(encode(note))) for key, event, note in self._pairs]
        for key, event, note in self._pairs:
            self._operator.update(key, event, *note)

    def end(self) -> Outputs:
        """All inputs have ended: what is ready, then what `finish` yields."""
        self.context.ended = frozenset(self._definition.inputs)
        outputs = self._ready()
        outputs += self._rows(self._operator.finish(self.open_sets, self.context))
        self._pairs = []
        return outputs

    def _ready(self) -> Outputs:
        outputs: Outputs = []
        while (group := next(iter(self._operator.ready(self.context)), None)) is not None:
            keys = list(group)
            unknown = [key for key in keys if key not in self.open_sets]
            if unknown:
                raise MoveError(
                    f"ready() of {type(self._definition).__name__} named the Input Sets {unknown!r}, which are not "
                    f"open; open are {self.open_sets!r}. Name only sets that have events and were not generated yet."
                )
            outputs += self._rows(self._operator.generate(keys, self.context))
            self._pairs = [pair for pair in self._pairs if pair[0] not in keys]
        return outputs

    def _rows(self, yielded: Iterable[Yielded]) -> Outputs:
        return [(port, as_batch(records).to_pylist()) for port, records, *_ in yielded]


class AloneContext:
    """The context of an operator alone; `state`, `now` and `timers` are there to be looked at and changed."""

    def __init__(self, operator: Operator, chance: random.Random, now: float) -> None:
        self.state: dict[Any, Any] = {}
        self.now = now
        self.random = chance
        self.ended: frozenset[str] = frozenset()
        self.timers: dict[Hashable, float] = {}
        self._reads = operator.reads

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
        """Lineage is not captured here."""
