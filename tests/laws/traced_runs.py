"""Small pipelines run by a simulation of a few lines, which shares nothing with the engine, as traces with failures.

It knows what really happened: which steps lasted, which were lost, what the outside systems hold.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from typing import Any

from clew.model.names import Channel, Replica
from clew.trace.life import Life
from clew.trace.reader import Trace
from clew.trace.records import LOG, SNAPSHOT, Completed, End, Head, Names, Part, Steps, Stored, Wrote

SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    "chain": {"a": (), "b": ("a",), "c": ("b",)},
    "fan-in": {"a": (), "b": (), "c": ("a", "b")},
    "fan-out": {"a": (), "b": ("a",), "c": ("a",)},
    "diamond": {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")},
}
"""Each operator with those that it receives from. Who sends to nobody writes to an outside system instead."""


@dataclass
class State:
    """What a replica knows; what it may lose."""

    position: int = 0
    epoch: int = 1
    taken: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    written: int = 0
    is_finished: bool = False
    action_epochs: list[int] = field(default_factory=list)
    steps: int = 0


class Node:
    """One replica: its state, what of it lasts, and its trace."""

    def __init__(self, name: str, senders: tuple[str, ...], is_sink: bool, budget: int) -> None:
        self.replica = Replica(name)
        channels = tuple(Channel(Replica(each), "out", self.replica, f"in{i}") for i, each in enumerate(senders))
        self.names = Names(self.replica, channels, () if is_sink else ("out",), ("w",) if is_sink else ())
        self.senders = senders
        self.is_sink = is_sink
        self.state = State(taken=[0] * len(senders), ended=[0] * len(senders), held=[0] * len(senders), made=[0])
        self.state.closed = [0] * len(self.names.ports)
        self.durable = copy.deepcopy(self.state)
        self.snapshots: dict[int, State] = {0: copy.deepcopy(self.state)}
        self.final: int | None = None
        self.to_store: list[tuple[int, bool]] = []
        self.stored = 0
        self.told = 0
        self.budget = budget
        """Of a source: how many events it has."""
        self.lives: list[Life] = []
        self.pending: list[int] = []
        """Write actions that were executed since the last record."""
        self.executed = 0
        """By this incarnation, or known to it as done."""
        self.commits = 0
        self.is_due = False
        self.flushed = 0

    @property
    def told_last(self) -> list[Any]:
        return self.lives[-1].told


class Run:
    """A run of a small pipeline with failures; `trace` when it is over."""

    def __init__(self, seed: int, mode: str, failures: int = 3, events: int = 12) -> None:
        self.random = random.Random(seed)
        self.mode = mode
        self.now = 1000.0
        shape = SHAPES[self.random.choice(sorted(SHAPES))]
        sending = {each for senders in shape.values() for each in senders}
        self.nodes = {
            name: Node(name, senders, name not in sending, self.random.randint(1, events))
            for name, senders in shape.items()
        }
        self.streams: dict[str, list[str]] = {name: [] for name in sending}
        """By sender: `event`, `border` and `end`, in the order of their numbers."""
        self.complete = 0
        self.generation = 1
        self.discarded = 0
        self.failures = failures
        self.failed = 0
        self.outside: dict[str, list[int]] = {name: [] for name, node in self.nodes.items() if node.is_sink}
        """What each outside system was given, in the order of its coming; doubles are its own to refuse."""
        for node in self.nodes.values():
            self._begin(node, 1)
        while not self._is_over():
            self._step()
        for node in self.nodes.values():
            if node.pending:
                self._tell(node, Wrote(self._tick(), wrote_of(node)))
            self._tell(node, End(self._tick(), True))

    @property
    def trace(self) -> Trace:
        return Trace(self.mode, {node.replica: node.lives for node in self.nodes.values()})

    @property
    def kept_steps(self) -> int:
        return sum(node.state.steps for node in self.nodes.values())

    def _is_over(self) -> bool:
        for node in self.nodes.values():
            if not node.state.is_finished or node.to_store or (self.mode == SNAPSHOT and node.told < node.state.epoch):
                return False
            if node.is_sink and node.executed < node.state.made[0]:
                return False
        return True

    def _tick(self) -> float:
        self.now += self.random.random()
        return self.now

    def _tell(self, node: Node, record: Any) -> None:
        node.told_last.append(record)

    def _begin(self, node: Node, incarnation: int) -> None:
        state = node.state
        node.lives.append(
            Life(
                Head(
                    node.names,
                    self.mode,
                    incarnation,
                    self.complete if self.mode == SNAPSHOT else 0,
                    state.epoch if self.mode == SNAPSHOT else 0,
                    state.position,
                    tuple(state.taken),
                    tuple(state.ended),
                    tuple(state.made),
                    tuple(state.closed),
                    (state.written,) if node.is_sink else (),
                    0,
                    state.is_finished,
                    1000 * incarnation,
                    self._tick(),
                    True,
                )
            )
        )
        node.pending = []
        node.executed = state.written
        node.commits = 0
        node.flushed = 0

    def _step(self) -> None:
        node = self.nodes[self.random.choice(sorted(self.nodes))]
        if self.failed < self.failures and self.random.random() < 0.03:
            self._fail(node)
        elif self.random.random() < 0.3:
            self._write(node)
        elif self.mode == SNAPSHOT and self.random.random() < 0.4:
            self._coordinate(node)
        else:
            self._commit(node)

    # A commit

    def _commit(self, node: Node) -> None:
        state = copy.deepcopy(node.state)
        part, sent = self._decide(node, state)
        if part is None and not node.pending:
            return
        wrote = wrote_of(node)
        if node.is_sink and node.pending:
            state.written = node.pending[-1]
        node.pending = []
        node.commits += 1
        if part is not None:
            state.steps += part.steps
            state.position += part.steps
        parts = () if part is None else (part,)
        self._tell(node, Steps(self._tick(), node.commits, state.position, wrote, parts))
        if wrote or (part is not None and part.is_border):
            node.flushed = len(node.told_last)
        if self.mode == LOG and self.failed < self.failures and self.random.random() < 0.04:
            self.discarded += 0 if part is None else part.steps
            self._fail(node)
            return
        node.state = state
        node.durable = copy.deepcopy(state)
        if sent:
            self.streams[node.replica.operator] += sent
        if part is not None and part.is_border:
            node.snapshots[part.epoch] = copy.deepcopy(state)
            node.to_store.append((part.epoch, False))
        if part is not None and state.is_finished and self.mode == SNAPSHOT:
            node.to_store.append((state.epoch, True))

    def _decide(self, node: Node, state: State) -> tuple[Part | None, list[str]]:
        """Takes and makes something, in a state that may yet be lost; and what goes out on the port."""
        if state.is_finished:
            return None, []
        epoch = state.epoch if self.mode == SNAPSHOT else 0
        took: list[int] = []
        ended: list[int] = []
        held: list[int] = []
        new = 0
        if not node.senders:
            new = min(self.random.randint(0, 4), node.budget - state.made[0] + self._marks(node))
            is_over = node.budget + self._marks(node) <= state.made[0] + new and self.random.random() < 0.5
        else:
            for _ in range(self.random.randint(1, 4)):
                place = self.random.randrange(len(node.senders))
                found = self.streams[node.senders[place]][state.taken[place] : state.taken[place] + 1]
                if not found or state.ended[place] or state.held[place]:
                    continue
                state.taken[place] += 1
                number = state.taken[place]
                if found == ["end"]:
                    state.ended[place] = 1
                    ended += (place, number)
                elif found == ["border"]:
                    state.held[place] = 1
                    held += (place, number)
                else:
                    if took and took[-3] == place and took[-1] == number - 1:
                        took[-1] = number
                    else:
                        took += (place, number, number)
                    new += self.random.choice((0, 1, 1, 2))
            is_over = all(state.ended)
        first = state.made[0] + 1
        made = (0, first, first + new - 1) if new else ()
        state.made[0] += new
        sent = [] if node.is_sink else ["event"] * new
        if node.is_sink:
            state.action_epochs += [epoch] * new
        counts = {"Made": new} if new else {}
        closed: tuple[int, ...] = ()
        borders: tuple[int, ...] = ()
        is_border = False
        if is_over:
            state.is_finished = True
            counts = {**counts, "Closed": 1}
            if not node.is_sink:
                state.made[0] += 1
                state.closed[0] = 1
                closed = (0, state.made[0])
                sent.append("end")
        elif self._is_aligned(node, state):
            is_border = True
            node.is_due = False
            if not node.is_sink:
                state.made[0] += 1
                borders = (0, state.made[0])
                sent.append("border")
            state.held = [0] * len(state.held)
            state.epoch += 1
        part = Part(epoch, tuple(took), made, counts, tuple(ended), tuple(held), closed, is_border, borders)
        return (part, sent) if part.steps else (None, [])

    def _marks(self, node: Node) -> int:
        return self.streams[node.replica.operator].count("border") if not node.is_sink else 0

    def _is_aligned(self, node: Node, state: State) -> bool:
        if self.mode != SNAPSHOT:
            return False
        if not node.senders:
            return node.is_due
        return any(state.held) and all(a or b for a, b in zip(state.held, state.ended, strict=True))

    # Outside writes

    def _write(self, node: Node) -> None:
        durable = node.durable if self.mode == LOG else node.state
        if not node.is_sink or node.executed >= durable.made[0]:
            return
        if self.mode == SNAPSHOT and node.state.action_epochs[node.executed] > node.told:
            return
        node.executed += 1
        node.pending.append(node.executed)
        self.outside[node.replica.operator].append(node.executed)

    # Epochs

    def _coordinate(self, node: Node) -> None:
        if node.to_store and self.random.random() < 0.7:
            epoch, is_final = node.to_store.pop(0)
            node.snapshots[epoch] = node.snapshots.get(epoch) or copy.deepcopy(node.state)
            node.final = epoch if is_final else node.final
            self._tell(node, Stored(self._tick(), epoch, is_final))
            node.flushed = len(node.told_last)
            node.stored = epoch
        self._complete()
        if node.told < self.complete:
            node.told = self.complete
            self._tell(node, Completed(self._tick(), self.complete))
            node.flushed = len(node.told_last)
        if not node.senders and node.state.epoch == self.complete + 1 and self.random.random() < 0.3:
            node.is_due = True

    def _complete(self) -> None:
        stored = [node.stored for node in self.nodes.values() if node.final is None]
        final = [node.final for node in self.nodes.values() if node.final is not None]
        common = min(stored) if stored else max(final)
        self.complete = max(self.complete, common)

    # Failures

    def _fail(self, node: Node) -> None:
        self.failed += 1
        if self.mode == LOG:
            node.state = copy.deepcopy(node.durable)
            self._begin(node, len(node.lives) + 1)
            return
        self.generation += 1
        for each in self.nodes.values():
            if each is node and self.random.random() < 0.5:
                del each.told_last[each.flushed :]  # What was not yet written to the file dies with the process.
            before = sum(record.steps for record in each.told_last if isinstance(record, Steps))
            lost = self._lost(each)
            assert lost <= before
            self.discarded += lost
            found = [epoch for epoch in each.snapshots if 0 <= epoch <= self.complete]
            each.state = copy.deepcopy(each.snapshots[max(found)])
            each.snapshots = {epoch: each.snapshots[epoch] for epoch in found}
            if each.is_sink:
                each.state.written = max(each.state.written, self.random.choice((0, each.state.written)))
            each.to_store = []
            each.final = self.complete if each.state.is_finished else None
            each.stored = self.complete
            each.told = self.complete
            each.is_due = False
            if not each.is_sink:
                del self.streams[each.replica.operator][each.state.made[0] :]
            self._begin(each, self.generation)

    def _lost(self, node: Node) -> int:
        return sum(
            part.steps
            for record in node.told_last
            if isinstance(record, Steps)
            for part in record.parts
            if part.epoch > self.complete
        )


def wrote_of(node: Node) -> tuple[int, ...]:
    return tuple(number for action in node.pending for number in (0, action))
