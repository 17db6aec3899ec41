"""Moves: runs the user's code that a kernel asked for, and returns the input that carries its result.

A move is atomic: what it changes is gathered here and handed over with its result; a move that raises hands over
nothing, and its replica ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from clew.errors import MoveError
from clew.model.event import NO_ATTRIBUTES, Event, as_batch, check_size
from clew.model.graph import Node
from clew.model.operator import Assigned, Operator
from clew.model.source import Source
from clew.model.stamps import Stamped
from clew.model.values import decode, encode, encode_key
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.state import StateView
from clew.times.antichain import Antichain, minimal
from clew.times.everything import Everything


class Surroundings(Protocol):
    """What lies around a replica, as far as its moves may look: a driver gives the real or the simulated one."""

    def now(self) -> float:
        """The clock."""

    def seed(self) -> int:
        """A fresh random number, to begin a move's chance with or to tell executions apart."""

    def read(self, connection: str, query: Any) -> Any:
        """Executes a read action on an outside system."""

    def backlog(self, port: str) -> int:
        """How far the slowest receiver of an output port is behind."""

    def state(self, key: bytes) -> bytes | None:
        """One committed state value."""

    def state_items(self) -> list[tuple[bytes, bytes]]:
        """All committed state."""


class MoveContext:
    """The context that moves get; see `clew.model.operator.Context`."""

    __slots__ = (
        "_around",
        "_backlogs",
        "_counts",
        "_node",
        "_now",
        "_random",
        "_seed",
        "ended",
        "frontiers",
        "holds",
        "is_reading",
        "keys",
        "reads",
        "state",
        "time",
        "timers",
    )

    def __init__(self, node: Node, around: Surroundings) -> None:
        self._node = node
        self._around = around
        self.state = StateView(around.state, around.state_items)
        self.ended: frozenset[str] = frozenset()
        self.timers: dict[bytes, float | None] = {}
        self.reads: list[was.SideRead] = []
        self.keys: tuple[bytes, ...] | None = None
        self.time: Any = None
        is_timely = getattr(node.definition, "is_timely", False)
        self.frontiers: Mapping[str, Antichain] = {
            port: Everything(order) for port, order in (node.input_orders.items() if is_timely else ())
        }
        self.holds: dict[bytes, Any] = {}
        self._counts: dict[str, int] = {}
        self.is_reading = False
        self._now: float | None = None
        self._random: random.Random | None = None
        self._seed = 0
        self._backlogs: list[int] = []

    @property
    def now(self) -> float:
        if self._now is None:
            self._now = self._around.now()
        return self._now

    @property
    def random(self) -> random.Random:
        if self._random is None:
            self._seed = self._around.seed()
            self._random = random.Random(self._seed)
        return self._random

    def backlog(self, port: str) -> int:
        self._backlogs.append(self._around.backlog(port))
        return self._backlogs[-1]

    def timer(self, name: Hashable, at: float) -> None:
        self.timers[encode_key(name)] = float(at)

    def cancel(self, name: Hashable) -> None:
        self.timers[encode_key(name)] = None

    def read(self, connection: str, query: Any = None) -> pa.RecordBatch:
        if not self.is_reading:
            raise MoveError(f"operator {self._node.name!r} reads from {connection!r} outside generate() and finish()")
        if connection not in self._node.reads:
            raise MoveError(
                f"operator {self._node.name!r} has no read connection {connection!r}; it has "
                f"{', '.join(sorted(self._node.reads)) or 'none'}. Declare it in `reads`."
            )
        effect = as_batch(self._around.read(connection, query))
        self.reads.append(was.SideRead(connection, encode(query), effect))
        return effect

    def uses(self, *input_sets: Hashable) -> None:
        self.keys = tuple(dict.fromkeys(encode_key(each) for each in input_sets))

    def frontier(self, port: str | None = None) -> Antichain:
        if not self.frontiers:
            raise MoveError(
                f"operator {self._node.name!r} asks for a frontier, but it is told none. Set is_timely = True in its "
                f"class, and give its sources times."
            )
        if port is not None:
            if port not in self.frontiers:
                raise MoveError(
                    f"operator {self._node.name!r} asks for the frontier of {port!r}; its input ports are "
                    f"{', '.join(self._node.inputs)}. Name one of these."
                )
            return self.frontiers[port]
        first, *others = self.frontiers.values()
        for other in others:
            first = first.meet(other)
        return first

    def at(self, time: Any) -> None:
        self.time = self._checked(time)

    def hold(self, name: Hashable, time: Any) -> None:
        self.holds[encode_key(name)] = self._checked(time)

    def drop(self, name: Hashable) -> None:
        self.holds[encode_key(name)] = None

    def count(self, name: str, number: int = 1) -> None:
        self._counts[name] = self._counts.get(name, 0) + number

    def _checked(self, time: Any) -> Any:
        order = self._node.order
        if order is None:
            raise MoveError(
                f"operator {self._node.name!r} names the time {time!r}, but its events have no times. Give its sources "
                f"times: pipeline.source(name, source, times=...)."
            )
        return order.check(time)

    def changes(self) -> was.Changes:
        """What the move changed; the next move begins with nothing."""
        state, timers, holds, counts = self.state.changes(), self.timers, self.holds, self._counts
        if not (state or timers or holds or counts):
            return was.NO_CHANGES
        self.timers, self.holds, self._counts = {}, {}, {}
        return was.Changes(state, timers, holds, counts)

    def choices(self) -> was.Choices:
        """What the move was given by chance, clock and outside; the next move is given anew."""
        choices = was.Choices(self.now, self._seed)
        if self.reads or self._backlogs:
            choices = choices._replace(reads=tuple(read.effect for read in self.reads), backlogs=tuple(self._backlogs))
            self._backlogs = []
        self._now = self._random = None
        self._seed = 0
        return choices


class Moves:
    """One user's operator or source, opened for one incarnation."""

    def __init__(self, node: Node, definition: Operator | Source, around: Surroundings) -> None:
        self.node = node
        self.definition: Any = definition
        self.around = around
        self.destinations = frozenset((*node.made, *node.writes))
        self.ctx = MoveContext(node, around)
        self.reading: tuple[int, bytes | None, Iterator[Any]] | None = None
        self._times: dict[bytes, Any] = {}
        self.execution = 0
        self._run: dict[type, Callable[[Any], was.MoveResult]] = {
            does.Fold: self._fold,
            does.Refold: self._refold,
            does.Ask: self._ask,
            does.Advance: self._advance,
            does.Generate: self._generate,
            does.Finish: self._generate,
            does.Fire: self._fire,
            does.Plan: self._plan,
            does.Read: self._read,
        }

    def open(self) -> None:
        """Begins with empty event state."""
        self._guard("open", lambda: self.definition.open(self.ctx))
        if self.ctx.changes() is not was.NO_CHANGES:
            raise MoveError(
                f"operator {self.node.name!r}: open() changed state or timers; it is called again after every crash, "
                f"so it may only prepare event state. Change state in assign() or generate()."
            )
        self.ctx.choices()

    def saved(self, state: Mapping[bytes, bytes | None]) -> None:
        """A commit with these changes of the state is durable; to be called between two moves."""
        if state:
            self.ctx.state.saved(state)

    def perform(self, move: does.Move) -> was.MoveResult:
        """Runs a move."""
        try:
            return self._run[type(move)](move)
        except MoveError:
            raise
        except Exception as error:  # What it returned, or left in the state, cannot be taken over.
            raise MoveError(
                f"operator {self.node.name!r}: the result of {_WORDS[type(move)]} cannot be used: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _guard(self, move: str, run: Callable[[], Any], what: object = "") -> Any:
        try:
            return run()
        except MoveError:
            raise
        except Exception as error:
            place = f" for {what}" if what else ""
            raise MoveError(
                f"operator {self.node.name!r}: {move}(){place} raised {type(error).__name__}: {error}"
            ) from error

    def _fold(self, move: does.Fold) -> was.Folded:
        event = move.event.received(move.channel.input)
        pairs = self._guard("assign", lambda: self._assigned(event), event)
        for key, note, _, _ in pairs:
            self._update(key, event, note)
        encoded = tuple((data, noted) for _, _, data, noted in pairs)
        times, self._times = self._times, {}
        return was.Folded(encoded, self.ctx.changes(), self.ctx.choices(), times)

    def _assigned(self, event: Event) -> list[tuple[Any, Any, bytes, bytes | None]]:
        pairs: list[tuple[Any, Any, bytes, bytes | None]] = []
        self._times = {}
        keys = self.definition.assign(event, self.ctx)
        if isinstance(keys, str | bytes):
            raise MoveError(
                f"operator {self.node.name!r}: assign() returned {keys!r} for event {event}; expected a list of Input "
                f"Set keys. Return [{keys!r}] for one key."
            )
        for each in keys:
            if isinstance(each, Assigned):
                data = encode_key(each.key)
                pairs.append((each.key, each.note, data, None if each.note is None else encode(each.note)))
                if each.time is not None:
                    self._times[data] = self.ctx._checked(each.time)
            else:
                pairs.append((each, None, encode_key(each), None))
        if len(pairs) > 1 and len({data for _, _, data, _ in pairs}) < len(pairs):
            raise MoveError(
                f"operator {self.node.name!r}: assign() returned the same Input Set twice for event {event}; "
                f"expected each at most once."
            )
        return pairs

    def _update(self, key: Any, event: Event, note: Any) -> None:
        try:
            if note is None:
                self.definition.update(key, event)
            else:
                self.definition.update(key, event, note)
        except Exception as error:
            raise MoveError(
                f"operator {self.node.name!r}: update({key!r}) for event {event} raised {type(error).__name__}: {error}"
            ) from error

    def _refold(self, move: does.Refold) -> was.Refolded:
        note = None if move.note is None else decode(move.note)
        self._update(decode(move.key), move.event.received(move.channel.input), note)
        return was.Refolded()

    def _advance(self, move: does.Advance) -> was.Moved:
        self.ctx.frontiers = {**self.ctx.frontiers, **move.frontiers}
        for port, frontier in move.frontiers.items():
            self._guard(
                "on_frontier", partial(self.definition.on_frontier, port, frontier, self.ctx), f"{port} at {frontier}"
            )
        return was.Moved(self.ctx.changes(), self.ctx.choices())

    def _ask(self, move: does.Ask) -> was.Answered:
        self.ctx.ended = move.ended
        self.ctx.frontiers = move.frontiers
        group = self._guard("ready", lambda: next(iter(self.definition.ready(self.ctx)), None))
        if self.ctx.changes() is not was.NO_CHANGES:
            raise MoveError(
                f"operator {self.node.name!r}: ready() changed state, timers, holds or counts; it may only look. "
                f"Change them in assign(), on_frontier(), on_timer() or generate()."
            )
        choices = self.ctx.choices()
        if group is None:
            return was.Answered(None, choices)
        keys = tuple(encode_key(key) for key in group) if isinstance(group, list | tuple) else ()
        if not keys or len(set(keys)) < len(keys):
            raise MoveError(
                f"operator {self.node.name!r}: ready() answered with the group {group!r}; expected a list of one or "
                f"more different Input Set keys, such as [[key]]."
            )
        return was.Answered(keys, choices)

    def _generate(self, move: does.Generate | does.Finish) -> was.Generated:
        ctx = self.ctx
        keys = [decode(key) for key in move.keys]
        name = "generate" if isinstance(move, does.Generate) else "finish"
        run = getattr(self.definition, name)
        ctx.is_reading, ctx.keys, ctx.time = True, None, None
        emissions = self._guard(name, lambda: self._emissions(run(keys, ctx), set(move.keys)), keys)
        ctx.is_reading = False
        choices = ctx.choices()
        reads, ctx.reads, ctx.keys, ctx.time = tuple(ctx.reads), [], None, None
        return was.Generated(emissions, reads, ctx.changes(), choices)

    def _emissions(self, outputs: Any, group: set[bytes]) -> tuple[was.Emission, ...]:
        found: list[was.Emission] = []
        for output in outputs or ():
            if not isinstance(output, tuple) or len(output) not in (2, 3):
                raise MoveError(
                    f"operator {self.node.name!r} yielded {output!r}; expected a pair of an output port or write "
                    f"connection and records, such as ('out', table), and perhaps a dictionary of attributes."
                )
            destination, data = output[:2]
            attributes = output[2] if len(output) == 3 else NO_ATTRIBUTES
            if attributes:
                attributes = decode(encode(attributes))  # The operator may use its dictionary again.
            if destination not in self.destinations:
                raise MoveError(
                    f"operator {self.node.name!r} yielded records for {destination!r}; its output ports are "
                    f"{', '.join(self.node.made) or 'none'}, its write connections "
                    f"{', '.join(self.node.writes) or 'none'}. Yield to one of these."
                )
            keys = self.ctx.keys
            if keys is not None and not group.issuperset(keys):
                raise MoveError(
                    f"operator {self.node.name!r} said that records come from Input Sets that are not being generated; "
                    f"pass only keys of the group to ctx.uses()."
                )
            batch = as_batch(data)
            check_size(batch)
            found.append(was.Emission(destination, batch, keys, attributes, self.ctx.time))
        return tuple(found)

    def _fire(self, move: does.Fire) -> was.Fired:
        name = decode(move.name)
        self._guard("on_timer", lambda: self.definition.on_timer(name, self.ctx), repr(name))
        return was.Fired(self.ctx.changes(), self.ctx.choices())

    def _plan(self, move: does.Plan) -> was.Planned:
        self.reading = None
        action = self._guard("plan", lambda: self.definition.plan(self.ctx))
        if self.ctx.timers:
            raise MoveError(f"source {self.node.name!r}: plan() set a timer; sources have none. Use poll_s instead.")
        description = None if action is None else encode(action)
        return was.Planned(description, self.ctx.changes(), self.ctx.choices())

    def _read(self, move: does.Read) -> was.Got:
        is_replayable = self.definition.is_replayable
        if self.reading is None or self.reading[0] != move.action or (is_replayable and self.reading[1] != move.offset):
            offset = None if move.offset is None else decode(move.offset)
            self.execution = self.around.seed()
            reader = self._guard("read", lambda: iter(self.definition.read(decode(move.description), offset)))
            self.reading = (move.action, move.offset, reader)
        _, position, reader = self.reading
        items: list[was.Item] = []
        held = move.held
        is_complete = False
        size = 0
        patience = self.around.now() + _READ_S
        while len(items) < move.limit and size < _READ_BYTES:
            try:
                item = self._guard("read", lambda: next(reader, _END))
            except MoveError:
                self.reading = None
                raise
            if item is _END:
                is_complete = True
                break
            if item is None:
                break
            data, offset = item
            position = encode(offset)
            batch = as_batch(data)
            check_size(batch)
            stamped, held = self._stamp(batch, held)
            items.append(was.Item(batch, position, stamped, held))
            size += pa.ipc.get_record_batch_size(batch)
            if self.around.now() > patience:
                break  # A slow source: what has come should not wait for what has not.
        self.reading = (move.action, position, reader)
        got = was.Got(tuple(items), is_complete, self.execution, self.ctx.now)
        self.ctx.choices()
        return got

    def _stamp(
        self, batch: pa.RecordBatch, held: tuple[Any, ...]
    ) -> tuple[tuple[Stamped, ...] | None, tuple[Any, ...]]:
        """The events that records become, with their times, and what the source holds from then on."""
        stamps = self.node.stamps
        if stamps is None:
            return None, ()
        order = stamps.order
        stamped, after = self._guard("stamp", lambda: stamps.stamp(batch, held))
        stamped = tuple(
            each if (time := order.check(each.time)) is each.time else each._replace(time=time) for each in stamped
        )
        after = (order.check(after[0]),) if len(after) == 1 else minimal(order, map(order.check, after))
        for what, times, before in (
            ("stamps records with", [each.time for each in stamped], held),
            ("holds", list(after), held),
        ):
            for time in times:
                if not any(order.leq(each, time) for each in before):
                    raise MoveError(
                        f"source {self.node.name!r} {what} the time {order.show(time)}, which is not at or after one "
                        f"that it holds: {', '.join(map(order.show, before)) or 'none'}. Stamps may only move on."
                    )
        return stamped, after


_END = object()

_READ_S = 0.002
_READ_BYTES = 8 << 20
"""A source's read ends after about so many bytes, so that what is read of large events at once stays bounded."""

_WORDS = {
    does.Fold: "assign() and update()",
    does.Refold: "update()",
    does.Ask: "ready()",
    does.Advance: "on_frontier()",
    does.Generate: "generate()",
    does.Finish: "finish()",
    does.Fire: "on_timer()",
    does.Plan: "plan()",
    does.Read: "read()",
}
