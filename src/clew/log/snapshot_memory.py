"""The memory of a replica in a run with snapshots: its log between two epochs, which knows what changed in it.

It holds what a log holds, except what only lineage needs. Every change is also noted by itself, so that capturing
means taking the notes away: it takes no longer for a large state than for a small one.
"""

from __future__ import annotations

from collections.abc import Iterable

from clew.log.snapshot_rows import Changes
from clew.model.event import Event
from clew.model.history import END_SERIAL, Cursor, Output, Pair, ReadAction, Recovered, Stored, Transaction, UndonePair
from clew.model.names import Channel


class _Inbound:
    """The events of one channel that undone pairs need."""

    __slots__ = ("changed", "events", "uses")

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self.uses: dict[int, int] = {}
        """How many undone pairs each event has."""
        self.changed: dict[int, Event | None] = {}


class SnapshotMemory:
    """What one replica holds now, and what of it has changed since the last capture."""

    def __init__(self, write_connections: Iterable[str]) -> None:
        self.state: dict[bytes, bytes] = {}
        self.counters: dict[str, int] = {}
        self.outputs: dict[str, dict[int, Output]] = {}
        self.effects: dict[int, list[Stored]] = {}
        self._cursors: dict[Channel, Cursor] = {}
        self._timers: dict[bytes, float] = {}
        self._progress: dict[tuple[str, bytes], bytes] = {}
        self._reads: dict[int, ReadAction] = {}
        self._sets: dict[int, bytes] = {}
        self._pairs: dict[int, list[Pair]] = {}
        """Undone pairs, by serial."""
        self._inbound: dict[Channel, _Inbound] = {}
        self._writes = frozenset(write_connections)
        self._marks = tuple((f"written:{connection}", connection) for connection in sorted(self._writes))
        self._changes = _no_changes()

    def capture(self) -> Changes:
        """What changed since the last capture. It is not touched again."""
        events = {}
        for channel, inbound in self._inbound.items():
            if inbound.changed:
                events[channel] = inbound.changed
                inbound.changed = {}
        captured, self._changes = self._changes, _no_changes()
        return captured._replace(events=events)

    def recover(self, incarnation: int) -> Recovered:
        """Everything that a kernel needs to go on from here."""
        undone = [
            UndonePair(order, channel, event, serial, key, note)
            for serial, key in self._sets.items()
            for order, channel, event, _, note in self._pairs.get(serial, ())
        ]
        return Recovered(
            incarnation=incarnation,
            cursors={channel: row._replace(released=row.released.copy()) for channel, row in self._cursors.items()},
            counters=dict(self.counters),
            undone=sorted(undone),
            open_sets=sorted(self._sets.items()),
            timers=dict(self._timers),
            reads=[row for _, row in sorted(self._reads.items())],
            progress=dict(sorted(self._progress.items())),
        )

    def events(self, wanted: Iterable[tuple[Channel, int]]) -> list[Event]:
        """These events of undone pairs, in the order asked for; what is not there is left out."""
        found = []
        for channel, number in wanted:
            inbound = self._inbound.get(channel)
            event = None if inbound is None else inbound.events.get(number)
            if event is not None:
                found.append(event)
        return found

    def commit(self, transaction: Transaction) -> None:
        """Applies a transaction."""
        t, changes = transaction, self._changes
        if t.outputs:
            self._add_outputs(t.outputs)
        if t.counters:
            for name, connection in self._marks:
                if name in t.counters:
                    self._forget(connection, self.counters.get(name, 0) + 1, t.counters[name])
            self.counters.update(t.counters)
            changes.counters.update(t.counters)
        if t.cursors:
            self._cursors.update(t.cursors)
            changes.cursors.update(t.cursors)
        if t.state:
            changes.state.update(t.state)
            state = self.state
            for key, value in t.state.items():
                if value is None:
                    state.pop(key, None)
                else:
                    state[key] = value
        if t.opened:
            self._sets.update(t.opened)
            changes.sets.update(t.opened)
        if t.pairs:
            self._add_pairs(t.pairs)
            self._add_events(t.taken)
        for serial in t.closed:
            self._end_set(serial)
        for serial in t.forget_sets:
            self._end_set(serial)
        if t.timers:
            changes.timers.update(t.timers)
            for timer, due in t.timers.items():
                if due is None:
                    self._timers.pop(timer, None)
                else:
                    self._timers[timer] = due
        if t.progress:
            changes.progress.update(t.progress)
            for row, content in t.progress.items():
                if content is None:
                    self._progress.pop(row, None)
                else:
                    self._progress[row] = content
        if t.reads or t.stored or t.forget_effects or t.forget_reads:
            self._apply_reads(t)
        for port, first, last in t.forget_outputs:
            self._forget(port, first, last)

    def _add_outputs(self, outputs: list[Output]) -> None:
        writes = self._writes
        for output in outputs:
            event = output.event
            port = self.outputs.get(event.port)
            if port is None:
                port = self.outputs[event.port] = {}
            port[event.id] = output
            if event.port in writes:
                self._changes.writes[event.port, event.id] = output

    def _forget(self, port: str, first: int, last: int) -> None:
        kept = self.outputs.get(port)
        if not kept:
            return
        ids: Iterable[int] = range(first, last + 1)
        if last - first > len(kept):
            ids = [number for number in kept if first <= number <= last]
        if port not in self._writes:
            for number in ids:
                kept.pop(number, None)
            return
        changed = self._changes.writes
        for number in ids:
            if kept.pop(number, None) is not None and changed.pop((port, number), None) is None:
                changed[port, number] = None

    def _add_pairs(self, pairs: list[Pair]) -> None:
        latest: Channel | None = None
        changed, by_serial = self._changes.pairs, self._pairs
        uses: dict[int, int] = {}
        for pair in pairs:
            order, channel, event, serial, _ = pair
            if serial == END_SERIAL:
                continue  # Its events are end marks: that a channel has ended is in its cursor.
            if channel is not latest:
                latest = channel
                uses = self._channel(channel).uses
            changed[order] = pair
            together = by_serial.get(serial)
            if together is None:
                by_serial[serial] = [pair]
            else:
                together.append(pair)
            uses[event] = uses.get(event, 0) + 1

    def _add_events(self, taken: list[tuple[Channel, Event]]) -> None:
        """Keeps the events that an undone pair needs; others came and went within one transaction."""
        latest: Channel | None = None
        inbound = _Inbound()
        for channel, event in taken:
            if channel is not latest:
                latest = channel
                inbound = self._channel(channel)
            if event.id in inbound.uses:
                inbound.events[event.id] = inbound.changed[event.id] = event

    def _channel(self, channel: Channel) -> _Inbound:
        inbound = self._inbound.get(channel)
        if inbound is None:
            inbound = self._inbound[channel] = _Inbound()
        return inbound

    def _end_set(self, serial: int) -> None:
        """Removes an Input Set with its pairs; what was never captured leaves no trace."""
        if self._sets.pop(serial, None) is None:
            return
        sets, pairs = self._changes.sets, self._changes.pairs
        if sets.pop(serial, None) is None:
            sets[serial] = None
        latest: Channel | None = None
        inbound = _Inbound()
        for order, channel, event, _, _ in self._pairs.pop(serial, ()):
            if pairs.pop(order, None) is None:
                pairs[order] = None
            if channel is not latest:
                latest = channel
                inbound = self._channel(channel)
            count = inbound.uses[event] - 1
            if count:
                inbound.uses[event] = count
                continue
            del inbound.uses[event]
            inbound.events.pop(event, None)
            if inbound.changed.pop(event, None) is None:
                inbound.changed[event] = None

    def _apply_reads(self, t: Transaction) -> None:
        """A read action that is done needs neither its row nor its effect any more."""
        changes = self._changes
        for action in t.forget_effects:
            self._forget_effect(action)
        for stored in t.stored:
            self.effects.setdefault(stored.action, []).append(stored)
            changes.effects[stored.action, stored.index] = stored.event
        for read in t.reads:
            if read.is_done:
                self._forget_read(read.number)
            else:
                self._reads[read.number] = changes.reads[read.number] = read
        for action in t.forget_reads:
            self._forget_read(action)

    def _forget_read(self, action: int) -> None:
        self._forget_effect(action)
        if self._reads.pop(action, None) is not None:
            self._changes.reads[action] = None

    def _forget_effect(self, action: int) -> None:
        for stored in self.effects.pop(action, ()):
            self._changes.effects[action, stored.index] = None


def _no_changes() -> Changes:
    return Changes({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
