"""The kernel of a source: read actions turned into events, each once.

Invariants: an event and the offset after it are in one transaction; the effect of an action that is not replayable
is complete in the log before its first event is (seed 002, Algorithms 1 and 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from clew.model.event import NO_ATTRIBUTES, Event
from clew.model.graph import Node
from clew.model.history import ReadAction, Stored, Transaction
from clew.model.names import Channel, Replica
from clew.model.source import Source
from clew.model.stamps import LATE
from clew.model.values import decode, encode
from clew.protocol import decisions as did
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.capabilities import SOURCE
from clew.protocol.caution import PLAN, READ, Attempt
from clew.protocol.effects import Effect
from clew.protocol.replica import ReplicaKernel
from clew.protocol.settings import DEFAULT, Settings
from clew.protocol.verdict import source_message
from clew.times.antichain import Antichain
from clew.times.order import as_tuples

_HELD = "clew-held"
"""The attribute of a stored batch that says which times the source holds once it is sent."""


class SourceKernel(ReplicaKernel):
    """One replica of a source."""

    def __init__(self, node: Node, replica: Replica, outbound: Iterable[Channel], settings: Settings = DEFAULT) -> None:
        super().__init__(node, replica, outbound, settings)
        assert isinstance(node.definition, Source)
        self.source = node.definition
        self.action: ReadAction | None = None
        self.actions = 0
        self.kept = 0
        """How many batches of the current action's effect are stored."""
        self.is_complete_durable = False
        self.is_moving = False
        self.is_fetching = False
        self.poll_at: float | None = None
        self.stamps = node.stamps
        self.stamped: tuple[Any, ...] = ()
        """The times that will be held once all that was read has become events."""
        self.heard_at = 0.0
        """When the source had something for the last time, or began."""
        self.others: tuple[Any, ...] | None = None
        """What the sources that are not idle hold."""
        self._handlers |= {
            was.Planned: self.on_planned,
            was.Got: self.on_got,
            was.EffectFetched: self.on_effect_fetched,
        }

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        """Restores the last read action; a stored effect that was cut off is discarded and read anew."""
        recovered = given.recovered
        self.actions = recovered.counters.get("read", 0)
        self.action = recovered.reads[-1] if recovered.reads else None
        if self.action is not None and not self.source.is_replayable:
            self.is_complete_durable = self.action.is_complete
        self.heard_at = given.now
        super().on_started(given, effects)
        if self.action is not None and not self.source.is_replayable and not self.action.is_complete:
            self.pending.forget_effects.append(self.action.number)
            self._decided(did.Dropped(self.action.number))
        found = None if self.caution is None else self.caution.exhausted()
        if found is not None:
            action = None if self.action is None else decode(self.action.description)
            self._fail(source_message(self.replica, *found, given.last_error, action), effects)
            return
        self._proceed(effects)

    def _join(self, effects: list[Effect]) -> None:
        """At its very first start it holds what it begins with."""
        if self.times is not None and self.stamps is not None:
            if SOURCE not in self.times.held and self.position == 0:
                self.times.begin(self.stamps.start)
            self.stamped = self._held()
        super()._join(effects)

    def _held(self) -> tuple[Any, ...]:
        return () if self.times is None else self.times.held.get(SOURCE, ())

    def _next_move(self, effects: list[Effect]) -> bool:
        if self.is_moving or self.is_fetching:
            return True
        if self.is_finished or self._is_throttled():
            return False
        if self.action is None:
            return self._begin(does.Plan(), effects)
        if self.action.is_complete:
            if not self.is_complete_durable:
                return False
            self.is_fetching = True
            effects.append(does.FetchEffect(self.action.number, self._index(), self.settings.read_max + 1))
            return True
        if self.poll_at is not None and self.now < self.poll_at:
            return False
        self.poll_at = None
        offset = self.action.offset if self.source.is_replayable else None
        return self._begin(
            does.Read(self.action.number, self.action.description, offset, self.settings.read_max, self.stamped),
            effects,
        )

    def _begin(self, move: does.Move, effects: list[Effect]) -> bool:
        self.is_moving = True
        if self.caution is None:
            effects.append(move)
        else:
            attempt = Attempt(READ, (move.action,)) if isinstance(move, does.Read) else Attempt(PLAN, (self.actions,))
            self._attempt(move, attempt, effects)
        return True

    def _is_throttled(self) -> bool:
        if self._pressure() >= self.settings.backlog_max:
            return True
        return self.others is not None and self.stamps is not None and self.stamps.is_ahead(self._held(), self.others)

    def _index(self) -> int:
        assert self.action is not None
        return 0 if self.action.offset is None else int(decode(self.action.offset))

    def on_committed(self, given: was.Committed, effects: list[Effect]) -> None:
        """What was read while the commit was under way is committed at once; the next read may take long."""
        super().on_committed(given, effects)
        self._flush(effects)

    def on_planned(self, given: was.Planned, effects: list[Effect]) -> None:
        """The next read action begins, or the source has ended."""
        self.is_moving = False
        self._change(given.changes)
        if given.description is None:
            self.is_finished = True
            self.pending.counters["finished"] = 1
            for port in self.ports.values():
                self._emit(port, None, given.choices.now)
            if self.times is not None:
                self.times.drop(SOURCE)
        else:
            self.actions += 1
            self.kept = 0
            self.is_complete_durable = False
            is_stored = not self.source.is_replayable
            self.action = ReadAction(
                self.actions, self.source.connection, given.description, False, False, None, is_stored
            )
            self.pending.reads.append(self.action)
            self.pending.counters["read"] = self.actions
        self._decided(did.Began(self.actions, given.description, given.choices))
        self._flush(effects)
        self._proceed(effects)

    def on_got(self, given: was.Got, effects: list[Effect]) -> None:
        """Data came: it becomes events at once, or is stored first."""
        self.is_moving = False
        assert self.action is not None
        if self.source.is_replayable:
            self._got_replayable(self.action, given)
        else:
            self._got_once(self.action, given)
        self._hear(given, effects)
        if not given.items and not given.is_complete:
            self.now = max(self.now, given.now)
            self.poll_at = self.now + self.source.poll_s
            self._set_alarm(self.poll_at, effects)
        self._flush(effects)
        self._proceed(effects)

    def _got_replayable(self, action: ReadAction, given: was.Got) -> None:
        for item in given.items:
            if item.stamped is None:
                self._output(item.batch, given.now)
            else:
                for each in item.stamped:
                    self._output(each.batch, given.now, each.time, each.is_late)
                self._move_on(item.held)
            action = action._replace(offset=item.offset)
            self._decided(did.Emitted(action.number, item.offset, item.held))
        if given.is_complete:
            action = action._replace(is_complete=True, is_done=True)
            self._decided(did.Read(action.number))
            self._end_action(action)
        else:
            self.action = action
            if given.items:
                self.pending.reads.append(action)

    def _got_once(self, action: ReadAction, given: was.Got) -> None:
        for item in given.items:
            if item.stamped is None:
                self._keep(action, item.batch, None, {})
            else:
                for index, each in enumerate(item.stamped, 1):
                    late = {LATE: True} if each.is_late else {}
                    held = {_HELD: list(item.held)} if index == len(item.stamped) else {}
                    self._keep(action, each.batch, each.time, {**late, **held})
                self.stamped = item.held
            self._decided(did.Kept(action.number, given.execution, item.batch))
        if given.is_complete:
            self.action = action._replace(is_complete=True)
            self.pending.reads.append(self.action)
            self._decided(did.Read(action.number))

    def _keep(self, action: ReadAction, batch: pa.RecordBatch, time: Any, attributes: Mapping[str, Any]) -> None:
        event = Event(self.replica, action.connection, self.kept + 1, batch, time=time, attributes=attributes)
        self.pending.stored.append(Stored(action.number, self.kept, event))
        self.bytes_pending += event.size
        self.kept += 1

    def on_effect_fetched(self, given: was.EffectFetched, effects: list[Effect]) -> None:
        """Stored data came from the log: it becomes events, and the action is done with the last."""
        self.is_fetching = False
        action = self.action
        assert action is not None
        assert action.number == given.action
        for stored in given.stored[: self.settings.read_max]:
            event = stored.event
            self._output(event.batch, self.now, event.time, bool(event.attributes.get(LATE)))
            held = as_tuples(event.attributes.get(_HELD, ()))
            if held:
                self._move_on(held)
            action = action._replace(offset=encode(stored.index + 1))
            self._decided(did.Emitted(action.number, action.offset or b"", held))
        if len(given.stored) <= self.settings.read_max:
            self._end_action(action._replace(is_done=True))
            self.is_dirty = True
        else:
            self.action = action
            self.pending.reads.append(action)
        self._flush(effects)
        self._proceed(effects)

    def _output(self, batch: pa.RecordBatch, created: float, time: Any = None, is_late: bool = False) -> None:
        attributes = NO_ATTRIBUTES
        if is_late:
            attributes = {LATE: True}
            self._tally({LATE: batch.num_rows})
        self._emit(self.ports[self.node.outputs[0]], batch, created, attributes, time)

    # Time

    def _move_on(self, held: tuple[Any, ...]) -> None:
        """What was read is sent: from now on the source holds these times."""
        assert self.times is not None
        self.times.hold(SOURCE, held)
        if self.source.is_replayable:
            self.stamped = held  # Otherwise more was read by now.

    def _hear(self, given: was.Got, effects: list[Effect]) -> None:
        """Whether the source has anything; if not for long enough, it holds back what others have left no longer."""
        if self.stamps is None or self.stamps.idle_after_s is None:
            return
        if given.items or given.is_complete:
            self.heard_at = given.now
        self._look_idle(given.now, effects)

    def on_ticked(self, given: was.Ticked, effects: list[Effect]) -> None:
        """A source that waits for something to read may have waited long enough."""
        super().on_ticked(given, effects)
        if self.poll_at is not None and self.stamps is not None and self.stamps.idle_after_s is not None:
            self._look_idle(self.now, effects)
            if self.now < self.poll_at:
                self._set_alarm(self.poll_at, effects)

    def _look_idle(self, now: float, effects: list[Effect]) -> None:
        assert self.stamps is not None
        assert self.stamps.idle_after_s is not None
        if self._is_throttled():
            self.heard_at = max(self.heard_at, now)  # It does not ask, so it cannot know.
        idle_at = self.heard_at + self.stamps.idle_after_s
        if (now >= idle_at) != self.is_idle:
            self.is_idle = now >= idle_at
            self.others = None
            number = (self.incarnation, self._durable_commits())
            self._announce(does.Announce(number, {}, is_idle=self.is_idle), effects)
        if not self.is_idle:
            self._set_alarm(idle_at, effects)
        self._follow(effects)

    def on_advanced(self, given: was.Advanced, effects: list[Effect]) -> None:
        """A source that is idle, or waits for others, is told what these hold."""
        super().on_advanced(given, effects)
        if self.stamps is not None and (self.is_idle or self.stamps.waits_for_others):
            self.others = given.others  # An idle one moves on when it looks for something to read the next time.
            self._proceed(effects)

    def _follow(self, effects: list[Effect]) -> None:
        """Moves an idle source on to where the others are, unless something that was read waits to be sent."""
        times = self.times
        if not self.is_idle or self.others is None or times is None or times.order is None or self.is_moving:
            return
        held = self._held()
        is_waiting = self.kept > 0 or (self.action is not None and self.action.is_complete)
        if not held or is_waiting or not times.order.has_upper_bounds:
            return
        ahead = Antichain(times.order, held).join(Antichain(times.order, as_tuples(self.others))).elements
        if ahead and set(ahead) != set(held):
            times.hold(SOURCE, ahead)
            self.stamped = ahead
            self._decided(did.Followed(ahead))
            self._flush(effects)

    def _end_action(self, action: ReadAction) -> None:
        """The action is done: its row and its stored effect are no longer needed."""
        self.pending.reads.append(action)
        self.pending.forget_reads.append(action.number)
        self.action = None
        self.kept = 0
        self.stamped = self._held()

    def _durable(self, transaction: Transaction, effects: list[Effect]) -> None:
        super()._durable(transaction, effects)
        if self.action is not None and any(row == self.action and row.is_complete for row in transaction.reads):
            self.is_complete_durable = True
