"""The kernel of an operator with inputs: LOG.io's state update, triggering, generation and recovery of processing.

Invariants: an event joins the history once, in the order of its ids; a generation is one piece of one transaction;
until the last undone pair is folded, no event, timer or end of input is delivered and `ready` is not asked
(seed 002, Algorithms 2 to 5 and 7 to 9, with the corrections of the errata).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any

from clew.model.event import Event
from clew.model.graph import Node
from clew.model.history import END_SERIAL, Lineage, Pair, ReadAction, Stored, Transaction, UndonePair, Use
from clew.model.names import Channel, Replica
from clew.model.values import decode
from clew.protocol import decisions as did
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.caution import FINISH, FIRE, FOLD, GENERATE, RECOVER, REFOLD, Attempt, timer_number
from clew.protocol.effects import Effect, Session
from clew.protocol.giving_up import GivingUp
from clew.protocol.inbound import InChannel, InputSet
from clew.protocol.settings import DEFAULT, Settings
from clew.times.antichain import Antichain

_NO_FRONTIERS: dict[str, Antichain] = {}


class OperatorKernel(GivingUp):
    """One replica of a middle or sink operator."""

    def __init__(
        self,
        node: Node,
        replica: Replica,
        inbound: Iterable[Channel],
        outbound: Iterable[Channel],
        settings: Settings = DEFAULT,
    ) -> None:
        channels = tuple(inbound)
        super().__init__(node, replica, outbound, settings, channels)
        self.inputs = {channel: InChannel(channel, channel.input in node.capture.inputs) for channel in channels}
        self.inbox: deque[tuple[InChannel, Event]] = deque()
        self.sets: dict[bytes, InputSet] = {}
        """By key, in the order of opening."""
        self.opened_pending: set[int] = set()
        self.dropped_pending: set[int] = set()
        self.order = 0
        self.serial = 0
        self.reads = 0
        self.timers: dict[bytes, float] = {}
        self.undone: deque[UndonePair] = deque()
        self.pulled: deque[Event] = deque()
        self.is_pulling = False
        self.touched: dict[InChannel, None] = {}
        """Channels whose cursor the next commit stores, in a fixed order."""
        self.move: does.Move | None = None
        self.is_immediate = bool(getattr(node.definition, "is_immediate", False))
        self.is_timely = bool(getattr(node.definition, "is_timely", False))
        self.is_feedback = bool(getattr(node.definition, "is_feedback", False))
        self.is_drained = False
        """Of a feedback operator: whether its output port has ended, since nothing can come round any more."""
        self.has_moved = False
        """Whether frontiers wait to be shown to the operator."""
        self.must_ask = False
        self.group: tuple[bytes, ...] | None = None
        self._handlers |= {
            was.Greeted: self.on_greeted,
            was.Broken: self.on_broken,
            was.Received: self.on_received,
            was.Pulled: self.on_pulled,
            was.Folded: self.on_folded,
            was.Refolded: self.on_refolded,
            was.Answered: self.on_answered,
            was.Generated: self.on_generated,
            was.Moved: self.on_moved,
            was.Fired: self.on_fired,
        }

    # Recovery

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        """Restores cursors, counters, open Input Sets and timers; then folds the undone pairs."""
        recovered = given.recovered
        for channel, inbound in self.inputs.items():
            inbound.restore(recovered.incarnation, recovered.cursors.get(channel))
        self.order = recovered.counters.get("order", 0)
        self.serial = recovered.counters.get("serial", 0)
        self.reads = recovered.counters.get("read", 0)
        self.is_drained = bool(recovered.counters.get("drained"))
        by_serial = {}
        for serial, key in recovered.open_sets:
            by_serial[serial] = self.sets[key] = InputSet(serial, key)
        for pair in recovered.undone:
            inbound = self.inputs[pair.channel]
            by_serial[pair.serial].events.append((inbound, pair.event))
            inbound.needed[pair.event] = inbound.needed.get(pair.event, 0) + 1
        self.undone.extend(recovered.undone)
        self.timers = dict(recovered.timers)
        super().on_started(given, effects)
        self.must_ask = self.position > 0 or bool(recovered.progress)  # A frontier may be all that was shown yet.
        self.has_moved = self.times is not None and (self.is_timely or self.is_feedback)
        for inbound in self.inputs.values():
            inbound.pressure = self._pressure()
            inbound.connect(effects)
        self._ring(effects)
        self._judge(given, effects)
        if self.failure is None:
            self._proceed(effects)

    def on_pulled(self, given: was.Pulled, effects: list[Effect]) -> None:
        """Bodies of undone events, or of events to be given up, came from their senders' logs."""
        self.is_pulling = False
        if self.verdict is not None:
            self.pulled.extend(given.events)
            if len(self.pulled) == len(self.verdict.events):
                self._give_up(self.verdict)
                self._flush(effects)
            self._proceed(effects)
            return
        wanted = ((pair.channel.sender, pair.channel.output, pair.event) for pair in self.undone)
        for event, place in zip(given.events, wanted, strict=False):
            assert (event.sender, event.port, event.id) == place, f"pulled {event} instead of {place}"
        self.pulled.extend(given.events)
        self._proceed(effects)

    def on_refolded(self, given: was.Refolded, effects: list[Effect]) -> None:
        """An undone pair was folded again; nothing durable changes."""
        self.move = None
        if self.caution is not None and not self.undone:
            self._mark(self.caution.end(RECOVER))
        self._proceed(effects)

    # State update

    def on_greeted(self, given: was.Greeted, effects: list[Effect]) -> None:
        """A sender has restarted and asks where to go on."""
        self.inputs[given.channel].greeted(given.incarnation, effects)

    def on_broken(self, given: was.Broken, effects: list[Effect]) -> None:
        """A channel lost what was under way: as its receiver, asks for it again."""
        super().on_broken(given, effects)
        inbound = self.inputs.get(given.channel)
        if inbound is not None and given.session in (None, inbound.session):
            inbound.connect(effects)

    def session(self, channel: Channel) -> Session | None:
        """The present session of a channel, as this end sees it."""
        return self.inputs[channel].session if channel in self.inputs else super().session(channel)

    def on_acked(self, given: was.Acked, effects: list[Effect]) -> None:
        """A receiver is further on: whoever is held back by the pressure from here must hear of it."""
        super().on_acked(given, effects)
        self._press(effects)

    def on_connected(self, given: was.Connected, effects: list[Effect]) -> None:
        """A receiver says where it is, which may lower the pressure."""
        super().on_connected(given, effects)
        self._press(effects)

    def on_written(self, given: was.Written, effects: list[Effect]) -> None:
        """An outside system is further on, which may lower the pressure."""
        super().on_written(given, effects)
        self._press(effects)

    def on_checked(self, given: was.Checked, effects: list[Effect]) -> None:
        """An outside system turned out to be further on, which may lower the pressure."""
        super().on_checked(given, effects)
        self._press(effects)

    def _pressure(self) -> int:
        """A feedback operator passes no pressure on: round a cycle it would only grow."""
        return 0 if self.is_feedback else super()._pressure()

    def _press(self, effects: list[Effect]) -> None:
        """Tells the senders when the pressure has fallen far enough to matter to them."""
        pressure = self._pressure()
        step = max(1, self.settings.backlog_max // 4)
        for inbound in self.inputs.values():
            told, inbound.pressure = inbound.pressure, pressure
            if told // step > pressure // step:
                inbound.acknowledge(effects)

    def on_received(self, given: was.Received, effects: list[Effect]) -> None:
        """Filters obsolete events and queues the rest."""
        inbound = self.inputs[given.channel]
        if inbound.accepts(given.session, given.event.id, effects):
            self.inbox.append((inbound, given.event))
            self._proceed(effects)

    def on_folded(self, given: was.Folded, effects: list[Effect]) -> None:
        """The event joins the history: its pairs, its cursor and the state it changed, together."""
        assert isinstance(self.move, does.Fold)
        event = self.move.event
        inbound, number, time = self.inputs[self.move.channel], event.id, event.time
        self.move = None
        if given.pairs:
            self._needs(inbound.channel, event)
        for key, note in given.pairs:
            self._pair(inbound, number, key, note)
        inbound.assign(number, len(given.pairs))
        self.touched[inbound] = None
        if self.times is not None and not self._take_time(inbound.channel.input, time, given, effects):
            return
        self._change(given.changes)
        self._time(given.changes, effects)
        self._decided(did.Took(inbound.channel, number, given.choices))
        if self.is_immediate and len(given.pairs) <= 1:
            self._is_ready(tuple(key for key, _ in given.pairs) or None, given.choices)
        else:
            self.must_ask = True
        self._proceed(effects)

    def _needs(self, channel: Channel, event: Event) -> None:
        """An event has joined with at least one pair; its sender keeps it until the last of them is done."""

    def _is_ready(self, group: tuple[bytes, ...] | None, choices: was.Choices) -> None:
        """What `ready` of an immediate operator would answer now."""
        self.group = group
        self._decided(did.Asked(group, was.Choices(choices.now, 0)), weight=0)

    def _pair(self, inbound: InChannel, number: int, key: bytes, note: bytes | None) -> None:
        opened = self.sets.get(key)
        if opened is None:
            self.serial += 1
            opened = self.sets[key] = InputSet(self.serial, key)
            self.pending.opened.append((self.serial, key))
            self.pending.counters["serial"] = self.serial
            self.opened_pending.add(self.serial)
        opened.events.append((inbound, number))
        self.order += 1
        self.pending.pairs.append(Pair(self.order, inbound.channel, number, opened.serial, note))
        self.pending.counters["order"] = self.order

    def _take_end(self, inbound: InChannel, number: int) -> None:
        inbound.ended = True
        inbound.assign(number, 1)
        self.touched[inbound] = None
        self.order += 1
        self.pending.pairs.append(Pair(self.order, inbound.channel, number, END_SERIAL, None))
        self.pending.counters["order"] = self.order
        self._decided(did.Ended(inbound.channel, number))
        self.must_ask = True

    # Triggering

    def _next_move(self, effects: list[Effect]) -> bool:
        if self.move is not None or self.is_finished:
            return self.move is not None
        if self.undone or self.verdict is not None:
            return self._refold(effects)
        while True:
            if self.must_ask:
                shown = self.times.shown if self.times is not None and self.is_timely else _NO_FRONTIERS
                return self._begin(does.Ask(self._ended(), shown), effects)
            if self.group is not None:
                return self._begin(does.Generate(self.group), effects)
            if self.timers and (name := self._due()) is not None:
                at = self.timers.pop(name)
                return self._begin(does.Fire(name), effects, at)
            if self.has_moved and self._advance(effects):
                return True
            received = self._next_event(effects)
            if received is None:
                break
            inbound, event = received
            if not event.is_end:
                return self._begin(does.Fold(inbound.channel, event), effects)
            self._take_end(inbound, event.id)
        if all(inbound.ended for inbound in self.inputs.values()) and (self.is_drained or not self.is_feedback):
            return self._begin(does.Finish(tuple(self.sets)), effects)
        return False

    def _next_event(self, effects: list[Effect]) -> tuple[InChannel, Event] | None:
        """The next event to be taken, if there is one."""
        return self.inbox.popleft() if self.inbox else None

    def _refold(self, effects: list[Effect]) -> bool:
        if self.pulled and self.verdict is None:
            pair, event = self.undone.popleft(), self.pulled.popleft()
            return self._begin(does.Refold(pair.channel, event, pair.key, pair.note), effects, pair.order)
        if not self.is_pulling:
            self.is_pulling = True
            if self.verdict is None:
                wanted = islice(((pair.channel, pair.event) for pair in self.undone), self.settings.pull_max)
            else:
                wanted = islice(self.verdict.events, len(self.pulled), len(self.pulled) + self.settings.pull_max)
            effects.append(does.Pull(tuple(wanted)))
        return True

    def _begin(self, move: does.Move, effects: list[Effect], about: float = 0) -> bool:
        self.move = move
        if self.caution is None:
            effects.append(move)
        else:
            self._begin_cautiously(move, about, effects)
        return True

    def _ended(self) -> frozenset[str]:
        return frozenset(inbound.channel.input for inbound in self.inputs.values() if inbound.ended)

    def on_answered(self, given: was.Answered, effects: list[Effect]) -> None:
        """`ready` has answered: its first group is generated, then it is asked again."""
        self.move = None
        self.must_ask = False
        for key in given.group or ():
            if key not in self.sets:
                self._fail(
                    f"operator {self.replica}: ready() named the Input Set {decode(key)!r}, which is not open; "
                    f"open are {', '.join(repr(decode(each)) for each in self.sets) or 'none'}. "
                    f"Name only Input Sets that have events and were not generated yet.",
                    effects,
                )
                return
        self.group = given.group
        self._decided(did.Asked(given.group, given.choices), weight=0)
        self._proceed(effects)

    # Generation

    def on_generated(self, given: was.Generated, effects: list[Effect]) -> None:
        """Outputs, write actions, done marks, state and lineage join one transaction."""
        is_finish = isinstance(self.move, does.Finish)
        assert isinstance(self.move, does.Generate | does.Finish)
        keys = self.move.keys
        self.move = None
        self.group = None
        self._time(given.changes, effects)  # First, since finishing ends every timer.
        stamps = self._stamps(keys, given, effects)
        if self.failure is not None:
            return
        self._generation(keys, given, stamps, is_finish)
        self._decided(did.Closed(given.choices) if is_finish else did.Made(keys, given.choices))
        self.must_ask = not is_finish and bool(self.sets or not self.is_immediate)
        if not is_finish and not self.must_ask:
            self._is_ready(None, given.choices)
        if self.closed_since_survey >= self.settings.survey_every:
            self._survey(effects)
        self._proceed(effects)

    def _generation(self, keys: tuple[bytes, ...], given: was.Generated, stamps: list[Any], is_finish: bool) -> None:
        serials = tuple(self.sets[key].serial for key in keys)
        used_version = self.state_version
        self._change(given.changes)
        sources: set[int] = set()
        created = given.choices.now
        for emission in given.emissions:
            if emission.destination in self.writers:
                writer = self.writers[emission.destination]
                number = self._write(writer, emission.batch, created, emission.attributes)
                self._lineage(emission, number, serials, sources)
        for emission, time in zip(given.emissions, stamps, strict=True):
            if emission.destination in self.ports:
                port = self.ports[emission.destination]
                number = self._emit(port, emission.batch, created, emission.attributes, time)
                self._lineage(emission, number, serials, sources)
        if sources:
            self._uses(given.reads, serials, used_version)
        if is_finish:
            self._finish(created)
        for key in keys:
            self._close(key, sources)

    def _lineage(self, emission: was.Emission, number: int, serials: tuple[int, ...], sources: set[int]) -> None:
        if emission.destination in self.node.capture.outputs:
            if emission.keys is not None:
                serials = tuple(self.sets[key].serial for key in emission.keys)
            self.pending.lineage.extend(Lineage(emission.destination, number, serial) for serial in serials)
            sources.update(serials)

    def _uses(self, reads: tuple[was.SideRead, ...], serials: tuple[int, ...], version: int) -> None:
        for read in reads:
            self.reads += 1
            row = ReadAction(self.reads, read.connection, read.description, True, True, None, True)
            self.pending.reads.append(row)
            event = Event(self.replica, read.connection, self.reads, read.effect)
            self.pending.stored.append(Stored(self.reads, 0, event))
            self.pending.uses.extend(Use(serial, "read", self.reads) for serial in serials)
            self.pending.counters["read"] = self.reads
        if version:
            self.pending.uses.extend(Use(serial, "state", version) for serial in serials)

    def _close(self, key: bytes, sources: set[int]) -> None:
        """The Input Set's pairs are done; without captured lineage nothing needs their rows any more."""
        closed = self.sets.pop(key)
        if self.times is not None:
            self.times.drop(closed.serial)
        for inbound, number in closed.events:
            inbound.let_go(number)
            self.touched[inbound] = None
        if self.node.capture.is_on:
            self.pending.closed.append(closed.serial)
            self.closed_since_survey += 1
        elif closed.serial in self.opened_pending:
            self.dropped_pending.add(closed.serial)
        else:
            self.pending.forget_sets.append(closed.serial)

    def _finish(self, created: float) -> None:
        self.is_finished = True
        self.pending.counters["finished"] = 1
        if not self.is_drained:
            for port in self.ports.values():
                self._emit(port, None, created)
        if self.times is not None:
            for owner in self.times.names():
                self.times.drop(owner)
        for name in self.timers:
            self.pending.timers[name] = None
        self.timers.clear()
        self.pending.forget_sets.append(END_SERIAL)
        for inbound in self.inputs.values():
            inbound.needed.pop(inbound.assigned, None)
            inbound.released.add(inbound.assigned)
            self.touched[inbound] = None

    def _freed(self, freed: Iterable[tuple[Channel, int]]) -> None:
        for channel, number in freed:
            inbound = self.inputs[channel]
            if number <= inbound.assigned and number not in inbound.needed:  # Later ones are a successor's.
                inbound.released.add(number)
                self.touched[inbound] = None

    # Frontiers

    def on_advanced(self, given: was.Advanced, effects: list[Effect]) -> None:
        """Frontiers of its own ports are shown to an operator that works by time, before its next event."""
        if self.times is not None and self.times.told(given.frontiers) and (self.is_timely or self.is_feedback):
            self.has_moved = True
            self._proceed(effects)

    def _advance(self, effects: list[Effect]) -> bool:
        """Shows the operator the frontiers; a feedback operator ends its cycle when nothing can come round."""
        assert self.times is not None
        self.has_moved = False
        if self.is_feedback and not self.is_drained and self.times.is_over():
            self._drain()
        moved = self.times.moved() if self.is_timely else {}
        return bool(moved) and self._begin(does.Advance(moved), effects)

    def _drain(self) -> None:
        self.is_drained = True
        self.pending.counters["drained"] = 1
        for port in self.ports.values():
            self._emit(port, None, self.now)
        self._decided(did.Drained())

    def on_moved(self, given: was.Moved, effects: list[Effect]) -> None:
        """The operator was shown frontiers: they join the history with the changes that it made."""
        assert isinstance(self.move, does.Advance)
        assert self.times is not None
        frontiers = self.move.frontiers
        self.move = None
        self.times.show(frontiers)
        if not self._hold(given.changes, effects):
            return
        self._change(given.changes)
        self._time(given.changes, effects)
        is_change = given.changes is not was.NO_CHANGES
        self._decided(did.Moved(frontiers, given.choices), weight=int(is_change))  # Otherwise any commit will do.
        self.must_ask = True
        self._proceed(effects)

    # Timers

    def on_ticked(self, given: was.Ticked, effects: list[Effect]) -> None:
        """Timers whose moment has come are delivered in the order of their moments."""
        super().on_ticked(given, effects)
        self._ring(effects)

    def on_fired(self, given: was.Fired, effects: list[Effect]) -> None:
        """A timer's move is over: the timer ends with the changes that the move made."""
        assert isinstance(self.move, does.Fire)
        name = self.move.name
        self.move = None
        self.pending.timers[name] = None
        if not self._hold(given.changes, effects):
            return
        self._change(given.changes)
        self._time(given.changes, effects)
        self._decided(did.Rang(name, given.choices))
        self.must_ask = True
        self._proceed(effects)

    def _time(self, changes: was.Changes, effects: list[Effect]) -> None:
        for name, at in changes.timers.items():
            self.pending.timers[name] = at
            if at is None:
                self.timers.pop(name, None)
            else:
                self.timers[name] = at
        if changes.timers:
            self._ring(effects)

    def _due(self) -> bytes | None:
        """The timer whose moment came first, if any has come."""
        at, name = min((at, name) for name, at in self.timers.items())
        return name if at <= self.now else None

    def _ring(self, effects: list[Effect]) -> None:
        waiting = [at for at in self.timers.values() if at > self.now]
        if waiting:
            self._set_alarm(min(waiting), effects)

    # Caution

    def _begin_cautiously(self, move: does.Move, about: float, effects: list[Effect]) -> None:
        """Marks what the move is given. What `ready` dies of is no input, so it waits, but has no mark."""
        assert self.caution is not None
        attempt: Attempt | None = None
        match move:
            case does.Fold():
                attempt = Attempt(f"{FOLD}/{list(self.inputs).index(move.channel)}", (move.event.id,))
            case does.Refold() if RECOVER not in self.caution.marks:
                attempt = Attempt(RECOVER)
            case does.Refold() if self.caution.is_pairwise and about >= self.caution.suspect:
                attempt = Attempt(REFOLD, (int(about),))
            case does.Refold():
                effects.append(move)
                return
            case does.Generate():
                attempt = Attempt(GENERATE, tuple(self.sets[key].serial for key in move.keys))
            case does.Finish():
                attempt = Attempt(FINISH)
            case does.Fire():
                attempt = Attempt(FIRE, (timer_number(move.name, about),))
        self._attempt(move, attempt, effects)

    # Commits

    def _seal(self) -> Transaction:
        transaction = self.pending
        for inbound in self.touched:
            transaction.cursors[inbound.channel] = inbound.cursor()
        self.touched.clear()
        if self.dropped_pending:
            dropped = self.dropped_pending
            transaction.opened = [row for row in transaction.opened if row[0] not in dropped]
            transaction.pairs = [row for row in transaction.pairs if row.serial not in dropped]
            self.dropped_pending = set()
        self.opened_pending.clear()
        return transaction

    def _durable(self, transaction: Transaction, effects: list[Effect]) -> None:
        pressure = self._pressure()
        for channel, cursor in transaction.cursors.items():
            inbound = self.inputs[channel]
            inbound.became_durable(cursor)
            inbound.pressure = pressure
            inbound.acknowledge(effects)
        super()._durable(transaction, effects)

    def check(self) -> None:
        """Raises when an invariant is broken."""
        super().check()
        for inbound in self.inputs.values():
            inbound.check()
        assert not (self.undone and isinstance(self.move, does.Fold | does.Fire | does.Ask | does.Finish))
