"""Retelling: what a re-executed replica is given, and how each of its outputs is compared with what was committed."""

from __future__ import annotations

import copy
import random
from collections import Counter, UserDict
from collections.abc import Hashable, Iterator
from typing import Any

import pyarrow as pa

from clew.errors import Violation
from clew.model.event import same_batch
from clew.model.graph import Graph, Node
from clew.model.names import Channel, Replica
from clew.model.values import decode, encode, encode_key
from clew.protocol.inputs import Choices
from clew.times.antichain import Antichain
from clew.verify.archive import Archive


class RetoldState(UserDict[Any, Any]):
    """The state: its keys come in the order of their bytes, and no two of its values share an object between moves."""

    def __init__(self) -> None:
        super().__init__()
        self._touched: dict[Any, None] = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self.data, key=encode_key))

    def __getitem__(self, key: Any) -> Any:
        self._touched[key] = None
        return self.data[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._touched[key] = None
        self.data[key] = value

    def encoded(self) -> dict[bytes, bytes]:
        """The state as the log would have it."""
        return {encode_key(key): encode(value) for key, value in self.data.items()}

    def settle(self) -> None:
        """A move is over: values are from now on what their bytes say."""
        for key in self._touched:
            if key in self.data and type(self.data[key]) in (list, dict, set, tuple):
                self.data[key] = decode(encode(self.data[key]))
        self._touched.clear()


class RetoldContext:
    """The context of a re-executed move: gives what was given then."""

    def __init__(self) -> None:
        self.state = RetoldState()
        self.ended: frozenset[str] = frozenset()
        self.timers: dict[Any, float] = {}
        self.used: tuple[Any, ...] | None = None
        self.time: Any = None
        self.frontiers: dict[str, Antichain] = {}
        self.holds: dict[Any, Any] = {}
        """What the present move holds or drops."""
        self.counts: Counter[str] = Counter()
        self._choices = Choices(0.0, 0)
        self._random: random.Random | None = None
        self._reads: Iterator[pa.RecordBatch] = iter(())
        self._backlogs: Iterator[int] = iter(())

    def given(self, choices: Choices) -> RetoldContext:
        self._choices = choices
        self._random = None
        self._reads = iter(choices.reads)
        self._backlogs = iter(choices.backlogs)
        self.used = None
        self.time = None
        return self

    @property
    def now(self) -> float:
        return self._choices.now

    @property
    def random(self) -> random.Random:
        if self._random is None:
            self._random = random.Random(self._choices.seed)
        return self._random

    def backlog(self, port: str) -> int:
        return next(self._backlogs)

    def timer(self, name: Hashable, at: float) -> None:
        self.timers[name] = float(at)

    def cancel(self, name: Hashable) -> None:
        self.timers.pop(name, None)

    def read(self, connection: str, query: Any = None) -> pa.RecordBatch:
        return next(self._reads)

    def uses(self, *input_sets: Hashable) -> None:
        self.used = input_sets

    def frontier(self, port: str | None = None) -> Antichain:
        if port is not None:
            return self.frontiers[port]
        first, *others = self.frontiers.values()
        for other in others:
            first = first.meet(other)
        return first

    def at(self, time: Any) -> None:
        self.time = time

    def hold(self, name: Hashable, time: Any) -> None:
        self.holds[name] = time

    def drop(self, name: Hashable) -> None:
        self.holds[name] = None

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] += number


class Run:
    """What both kinds of replicas have in common: outputs are compared one by one."""

    def __init__(self, graph: Graph, replica: Replica, archive: Archive) -> None:
        self.graph = graph
        self.replica = replica
        self.node: Node = graph.nodes[replica.operator]
        self.archive = archive
        self.shelf = archive[replica]
        self.made: dict[str, int] = dict.fromkeys((*self.node.outputs, *self.node.writes), 0)
        self.definition: Any = copy.deepcopy(self.node.definition)
        self.ctx = RetoldContext()
        self.clock = 0.0
        self.epoch = 1
        self.definition.open(self.ctx)

    def expect(self, port: str, batch: pa.RecordBatch | None, time: Any = None) -> int:
        """The next committed output on a port is this one."""
        number = self.made[port] = self.made[port] + 1
        logged = self.shelf.outputs[port]
        if number > len(logged):
            raise Violation(f"{self.replica}.{port}: event {number} is missing; a run without failures produces it")
        if logged[number - 1].event.border or not same_batch(logged[number - 1].event.batch, batch):
            raise Violation(
                f"{self.replica}.{port}: event {number} is {rows_words(logged[number - 1].event.batch)}; "
                f"a run without failures produces {rows_words(batch)}"
            )
        found = logged[number - 1].event.time
        if found != time:
            raise Violation(f"{self.replica}.{port}: event {number} has the time {found!r}; expected {time!r}")
        return number

    def expect_border(self, epoch: int) -> None:
        """The epoch ends: the next committed output on every port is its border."""
        if epoch != self.epoch:
            raise Violation(f"{self.replica}: ended epoch {epoch}; expected {self.epoch}")
        self.epoch += 1
        for port in self.node.outputs:
            number = self.made[port] = self.made[port] + 1
            logged = self.shelf.outputs[port]
            if number > len(logged) or logged[number - 1].event.border != epoch:
                raise Violation(f"{self.replica}.{port}: event {number} is not the border of epoch {epoch}")

    def expect_end(self) -> None:
        """Nothing was committed beyond what was produced."""
        counted = {name[6:]: count for name, count in self.shelf.counters.items() if name.startswith("count:")}
        if counted != {name: count for name, count in self.ctx.counts.items() if count}:
            raise Violation(f"{self.replica}: counted {counted}; a run without failures counts {dict(self.ctx.counts)}")
        for port, number in self.made.items():
            if len(self.shelf.outputs[port]) != number:
                raise Violation(
                    f"{self.replica}.{port}: {len(self.shelf.outputs[port])} events were committed; "
                    f"a run without failures produces {number}"
                )


def state_words(state: dict[bytes, bytes]) -> str:
    """The state in a few words."""
    return short({decode(key): decode(value) for key, value in state.items()})


def rows_words(batch: pa.RecordBatch | None) -> str:
    """The records of an output in a few words."""
    return "the end mark" if batch is None else short(batch.to_pylist())


def short(value: object) -> str:
    """A value in at most 200 characters."""
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


def events_words(events: set[tuple[Channel, int]]) -> str:
    """The names of events."""
    return short(sorted(f"{channel.sender}.{channel.output}/{number}" for channel, number in events))
