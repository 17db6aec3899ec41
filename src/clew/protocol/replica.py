"""What every replica's kernel does: gather moves into commits, send what is durable, execute writes, forget.

Invariant (prefix rule): one commit is under way at a time, and it holds everything decided before it was begun; so
nothing leaves the replica before its whole past is durable (seed 002, Algorithm 3 steps 4 to 6, Algorithms 7 and 8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from clew.model.connection import Kind
from clew.model.event import NO_ATTRIBUTES, Event
from clew.model.graph import Node
from clew.model.history import Output, Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.capabilities import Capabilities
from clew.protocol.caution import Attempt, Caution, has_marks
from clew.protocol.effects import Effect, Session
from clew.protocol.outbound import OutChannel, OutPort
from clew.protocol.settings import DEFAULT, Settings
from clew.protocol.writes import Writer


class ReplicaKernel:
    """The part that sources and operators share. `step` is the only way in."""

    def __init__(
        self,
        node: Node,
        replica: Replica,
        outbound: Iterable[Channel],
        settings: Settings = DEFAULT,
        inbound: Iterable[Channel] = (),
    ) -> None:
        self.node = node
        self.replica = replica
        self.settings = settings
        self.now = 0.0
        self.incarnation = 0
        channels = tuple(outbound)
        self.ports = {
            name: OutPort(name, [OutChannel(each) for each in channels if each.output == name], settings)
            for name in node.outputs
        }
        self.writers = {
            name: Writer(name, Kind(connection.kind or ""), settings) for name, connection in node.writes.items()
        }
        self.times = Capabilities(node, replica, inbound, channels) if node.is_timed else None
        """None: no event that it receives or sends has a time."""
        self.tallies: dict[str, int] = {}
        """What the operator has counted, by name."""
        self.is_idle = False
        """Of a source with times: whether it has had nothing for longer than it is waited for."""
        self.pending = Transaction()
        self.is_dirty = False
        """Whether the pending transaction holds anything that others may wait for."""
        self.moves_pending = 0
        self.bytes_pending = 0
        """About how many bytes of records the pending transaction holds."""
        self.committing: Transaction | None = None
        self.commits = 0
        self.position = 0
        self.state_version = 0
        self.is_finished = False
        self.is_finish_durable = False
        self.is_complete = False
        self.is_surveying = False
        self.is_survey_due = False
        """Whether something may have become removable since the last survey."""
        self.closed_since_survey = 0
        self.alarm: float | None = None
        self.failure: str | None = None
        self.caution: Caution | None = None
        """None: moves begin at once and are committed in groups."""
        self.held: does.Move | None = None
        self.held_until = 0
        """The commit that must be durable before the held move begins."""
        self._handlers: dict[type, Callable[[Any, list[Effect]], None]] = {
            was.Started: self.on_started,
            was.Buried: self.on_buried,
            was.Ticked: self.on_ticked,
            was.Broken: self.on_broken,
            was.Connected: self.on_connected,
            was.Acked: self.on_acked,
            was.Committed: self.on_committed,
            was.Fetched: self.on_fetched,
            was.Written: self.on_written,
            was.WriteUnknown: self.on_write_unknown,
            was.Checked: self.on_checked,
            was.Surveyed: self.on_surveyed,
            was.Advanced: self.on_advanced,
        }

    def step(self, given: was.Input) -> list[Effect]:
        """Takes one input; returns the effects to begin, in this order."""
        effects: list[Effect] = []
        if self.failure is None:
            if self.caution is not None and type(given) in was.MOVE_RESULTS:
                self._attempted()
            self._handlers[type(given)](given, effects)
        return effects

    # Starting

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        """Restores what the log holds, greets receivers, settles pending writes."""
        recovered = given.recovered
        counters = recovered.counters
        self.now = given.now
        self.incarnation = recovered.incarnation
        self.position = counters.get("position", 0)
        self.is_survey_due = self.position > 0
        self.state_version = counters.get("state", 0)
        self.is_finished = self.is_finish_durable = bool(counters.get("finished"))
        self.tallies = {name[6:]: number for name, number in counters.items() if name.startswith("count:")}
        if self.times is not None:
            self.times.restore(recovered.progress)
        if given.is_cautious or has_marks(counters):
            self.caution = Caution(counters, self.settings)
            if not given.is_cautious:
                self._mark(self.caution.clear())  # Another run: what failed may have been mended.
        for port in self.ports.values():
            port.restore(counters.get(f"out:{port.name}", 0))
            effects.extend(does.Hello(receiver.channel, self.incarnation) for receiver in port.channels)
            if not port.channels and not self._is_kept(port):
                self._forget(port)  # Nobody will say so.
        for writer in self.writers.values():
            last, done = counters.get(f"out:{writer.name}", 0), counters.get(f"written:{writer.name}", 0)
            writer.restore(last, done, given.is_predecessor_dead)
        self._join(effects)
        self._pump(effects)

    def on_buried(self, given: was.Buried, effects: list[Effect]) -> None:
        """Every predecessor is dead: writes that waited for it may go on."""
        for writer in self.writers.values():
            writer.buried()
        self._pump(effects)

    def on_ticked(self, given: was.Ticked, effects: list[Effect]) -> None:
        """Time went by: whatever is pending is committed, also beside a slow move."""
        self.now = max(self.now, given.now)
        if self.alarm is not None and self.now >= self.alarm:
            self.alarm = None
        if self.pending.forget_outputs or (self.times is not None and self.times.is_prunable):
            self.is_dirty = True  # Nothing else may come that would take it along.
        self._proceed(effects)
        self._flush(effects)
        self._survey(effects)

    # Receivers

    def on_connected(self, given: was.Connected, effects: list[Effect]) -> None:
        """A receiver asks for what comes after its assigned cursor."""
        self.ports[given.channel.output].connected(given.channel, given.session, given.assigned)
        self._pump(effects)
        self._proceed(effects)

    def on_broken(self, given: was.Broken, effects: list[Effect]) -> None:
        """A channel lost what was under way: its receiver begins a new session."""
        if given.channel.sender == self.replica and given.channel.output in self.ports:
            self.ports[given.channel.output].broken(given.channel, given.session)

    def session(self, channel: Channel) -> Session | None:
        """The present session of a channel, as this end sees it."""
        return self.ports[channel.output].session(channel)

    def on_acked(self, given: was.Acked, effects: list[Effect]) -> None:
        """A receiver is durably further on; what all have released can be forgotten."""
        port = self.ports[given.channel.output]
        port.acked(given.channel, given.session, given.assigned, given.released, given.pressure)
        self._forget(port)
        self._pump(effects)
        self._proceed(effects)

    def on_fetched(self, given: was.Fetched, effects: list[Effect]) -> None:
        """Outputs came from the log."""
        if given.port in self.ports:
            self.ports[given.port].fetched(given.outputs, given.first)
        else:
            self.writers[given.port].fetched(given.outputs)
        self._pump(effects)

    # Time

    def _join(self, effects: list[Effect]) -> None:
        """Tells the tracker everything that is durable, before anything changes."""
        if self.times is not None:
            effects.append(self.times.whole((self.incarnation, 0)))

    def _announce(self, announcement: does.Announce, effects: list[Effect]) -> None:
        """Tells the tracker what is new."""
        effects.append(announcement)

    def _durable_commits(self) -> int:
        """The number of the last commit that is durable."""
        return self.commits - (self.committing is not None)

    def on_advanced(self, given: was.Advanced, effects: list[Effect]) -> None:
        """The tracker says how far locations are."""
        if self.times is not None:
            self.times.told(given.frontiers)

    def _sent(self, port: str, time: Any) -> None:
        if self.times is not None and time is not None:
            self.times.sent(port, time)

    def _tally(self, counts: Mapping[str, int]) -> None:
        for name, number in counts.items():
            self.tallies[name] = self.tallies.get(name, 0) + number
            self.pending.counters[f"count:{name}"] = self.tallies[name]

    # Outside systems

    def on_written(self, given: was.Written, effects: list[Effect]) -> None:
        """An outside system has acknowledged a write action."""
        if self.writers[given.connection].written(given.number):
            self._mark_written(given.connection, given.number)
        self._pump(effects)
        self._proceed(effects)

    def on_checked(self, given: was.Checked, effects: list[Effect]) -> None:
        """An outside system has said whether a write action is in."""
        if self.writers[given.connection].checked(given.number, given.is_in, effects):
            self._mark_written(given.connection, given.number)
        self._pump(effects)
        self._proceed(effects)

    def on_write_unknown(self, given: was.WriteUnknown, effects: list[Effect]) -> None:
        """An outside system's answer was lost."""
        self.writers[given.connection].unknown(given.number, effects)

    def _mark_written(self, connection: str, number: int) -> None:
        self.pending.counters[f"written:{connection}"] = number
        if connection not in self.node.capture.outputs:
            self.pending.forget_outputs.append((connection, number, number))
        self.is_dirty = True

    # Commits

    def on_committed(self, given: was.Committed, effects: list[Effect]) -> None:
        """A commit is durable: what depends on it may happen."""
        transaction = self.committing
        if transaction is None or given.number != self.commits:
            return
        self.committing = None
        self._durable(transaction, effects)
        self._pump(effects)
        self._proceed(effects)
        if self.held is not None:
            self._let_go(effects)

    def _durable(self, transaction: Transaction, effects: list[Effect]) -> None:
        for output in transaction.outputs:
            port = self.ports.get(output.event.port)
            if port is not None:
                port.became_durable(output)
            else:
                self._writable(output)
        if self.times is not None:
            announcement = self.times.durable((self.incarnation, self.commits), self.is_idle)
            if announcement is not None:
                self._announce(announcement, effects)
        for writer in self.writers.values():
            writer.done_durable = transaction.counters.get(f"written:{writer.name}", writer.done_durable)
        if transaction.counters.get("finished"):
            self.is_finish_durable = True
        for port in self.ports.values():
            if not port.channels and not self._is_kept(port):
                self._forget(port)

    def _writable(self, output: Output) -> None:
        """A write action is durable."""
        self.writers[output.event.port].became_durable(output)

    def _decided(self, decision: object, weight: int = 1) -> None:
        """A move's result has joined the history; the clock is at least where the move saw it."""
        choices = getattr(decision, "choices", None)
        if choices is not None and choices.now > self.now:
            self.now = choices.now
        self.position += weight
        self.pending.journal.append(decision)
        if weight:
            self.pending.counters["position"] = self.position
            self.is_dirty = True
            self.moves_pending += 1

    def _flush(self, effects: list[Effect]) -> None:
        """Begins a commit of everything decided so far, unless one is under way."""
        if self.committing is None and self.is_dirty:
            transaction = self._seal()
            if self.times is not None:
                self.times.seal(transaction)
            self.pending = Transaction()
            self.is_dirty = False
            self.moves_pending = 0
            self.bytes_pending = 0
            self.commits += 1
            self.committing = transaction
            effects.append(does.Commit(self.commits, transaction))

    def _seal(self) -> Transaction:
        return self.pending

    # Doing

    def _proceed(self, effects: list[Effect]) -> None:
        """Begins the next move if there is one; commits when there is none, or enough is pending.

        When enough is pending while a commit is under way, moves wait for it: memory is bounded.
        """
        settings = self.settings
        is_full = self.moves_pending >= settings.commit_max or self.bytes_pending >= settings.commit_bytes
        if is_full:
            self._flush(effects)
            is_full = self.moves_pending > 0  # A commit was under way already.
        if not is_full and not self._next_move(effects):
            self._flush(effects)
        if self.is_finish_durable:
            self._complete(effects)

    def _next_move(self, effects: list[Effect]) -> bool:
        """Begins a move; True when one is under way."""
        raise NotImplementedError

    # Caution

    def _attempt(self, move: does.Move, attempt: Attempt | None, effects: list[Effect]) -> None:
        """Begins a move of a cautious replica once all that was decided before it is durable, and its mark, if any."""
        assert self.caution is not None
        if self.caution.is_over:
            self._mark(self.caution.clear())
            self.caution = None  # Its last mark ends before anything runs without one.
        elif attempt is not None:
            self._mark(self.caution.begin(attempt))
        self.held = move
        self.held_until = self.commits + 1 if self.is_dirty else self.commits
        self._let_go(effects)

    def _let_go(self, effects: list[Effect]) -> None:
        self._flush(effects)
        if self.held is not None and self.commits - (self.committing is not None) >= self.held_until:
            effects.append(self.held)
            self.held = None

    def _attempted(self) -> None:
        """A move has ended well; so does its mark, in the transaction that holds its result."""
        assert self.caution is not None
        self._mark(self.caution.end())

    def _mark(self, rows: Mapping[str, int]) -> None:
        if rows:
            self.pending.counters.update(rows)
            self.is_dirty = True

    def _complete(self, effects: list[Effect]) -> None:
        if self.is_finish_durable and not self.is_complete:
            self.is_complete = all(writer.is_settled for writer in self.writers.values())
            if self.is_complete:
                effects.append(does.Complete())

    def _fail(self, message: str, effects: list[Effect]) -> None:
        self.failure = message
        effects.append(does.Fail(message))

    def _pump(self, effects: list[Effect]) -> None:
        for port in self.ports.values():
            port.pump(self._is_allowed, effects)
        for writer in self.writers.values():
            writer.pump(effects)

    def _is_allowed(self, requires: tuple[tuple[str, int], ...]) -> bool:
        return all(self.writers[connection].done >= number for connection, number in requires)

    def _emit(
        self,
        port: OutPort,
        batch: pa.RecordBatch | None,
        created: float,
        attributes: Mapping[str, Any] = NO_ATTRIBUTES,
        time: Any = None,
    ) -> int:
        port.last += 1
        event = Event(self.replica, port.name, port.last, batch, time=time, attributes=attributes)
        self._sent(port.name, time)
        self.pending.outputs.append(Output(event, created, self._requires()))
        self.bytes_pending += event.size
        self.pending.counters[f"out:{port.name}"] = port.last
        return port.last

    def _write(
        self, writer: Writer, batch: pa.RecordBatch, created: float, attributes: Mapping[str, Any] = NO_ATTRIBUTES
    ) -> int:
        writer.last += 1
        event = Event(self.replica, writer.name, writer.last, batch, attributes=attributes)
        self.pending.outputs.append(Output(event, created))
        self.bytes_pending += event.size
        self.pending.counters[f"out:{writer.name}"] = writer.last
        return writer.last

    def _requires(self) -> tuple[tuple[str, int], ...]:
        if not self.node.writes_first:
            return ()
        return tuple((writer.name, writer.last) for writer in self.writers.values() if writer.last)

    def _change(self, changes: was.Changes) -> None:
        """Takes a move's changes to the state into the pending transaction."""
        if changes.counts:
            self._tally(changes.counts)
        if changes.state:
            self.pending.state.update(changes.state)
            self.state_version += 1
            self.pending.counters["state"] = self.state_version
            if self.node.capture.is_on:
                self.pending.state_versions.append((self.state_version, changes.state))

    def _pressure(self) -> int:
        """How many events and write actions wait on the fullest way from here to the end of the pipeline."""
        waiting = max((writer.last - writer.done for writer in self.writers.values()), default=0)
        return max((port.pressure() for port in self.ports.values()), default=0) + waiting

    def _set_alarm(self, at: float, effects: list[Effect]) -> None:
        if self.alarm is None or at < self.alarm:
            self.alarm = at
            effects.append(does.Alarm(at))

    # Retention

    def _is_kept(self, port: OutPort) -> bool:
        """Whether its events stay although nobody receives them: dead letters wait for someone to look at them."""
        return port.name in self.node.keeps and self.node.capture.targets.get(port.name) is None

    def _forget(self, port: OutPort) -> None:
        """Removes what every receiver has released, with the next commit that happens anyway."""
        if self.node.capture.is_on:
            self.is_survey_due = True
        else:
            self.pending.forget_outputs.extend(port.forgettable())

    def _survey(self, effects: list[Effect]) -> None:
        """With captured lineage, asks the log what can go."""
        capture = self.node.capture
        if not capture.is_on or self.is_surveying:
            return
        ages = any(keep is not None for keep in capture.targets.values())
        if not (self.closed_since_survey or self.is_survey_due or ages):
            return  # Nothing can have become removable.
        self.is_surveying = True
        self.is_survey_due = False
        self.closed_since_survey = 0
        released = {
            port.name: port.released() for port in self.ports.values() if port.channels or not self._is_kept(port)
        }
        for writer in self.writers.values():
            if writer.name in capture.outputs:
                released[writer.name] = IdSet(writer.done_durable)
        targets = {name: None if keep is None else self.now - keep for name, keep in capture.targets.items()}
        effects.append(does.Survey(released, targets))

    def on_surveyed(self, given: was.Surveyed, effects: list[Effect]) -> None:
        """Removes what the log says can go."""
        self.is_surveying = False
        expired = given.expired
        if expired.outputs or expired.sets or expired.reads:
            self.pending.forget_outputs.extend(expired.outputs)
            self.pending.forget_sets.extend(expired.sets)
            self.pending.forget_reads.extend(expired.reads)
            self._freed(expired.freed)
            self.is_dirty = True
            self._proceed(effects)

    def _freed(self, freed: Iterable[tuple[Channel, int]]) -> None:
        """Input events that no pair needs any more."""

    def check(self) -> None:
        """Raises when an invariant is broken."""
        for port in self.ports.values():
            port.check()
        for writer in self.writers.values():
            writer.check()
