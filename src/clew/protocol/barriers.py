"""Barrier snapshots: the kernels of a run in which epochs, not single moves, become durable.

Commits go to memory, and what the kernels beneath call durable is in memory here. At a border the whole memory is
captured, stored beside the work, and counts once every replica has stored its own. Invariants: a border joins the
history alone, after everything of its epoch and before anything of the next, on every port; the state is captured
before the border is passed on; a write action is begun only when its epoch is complete; times of an epoch are
announced when every replica has reached it, so that no frontier that a snapshot holds rests on what the snapshot
lacks; nothing of another generation of the run is heard (seed 000, sections 2.2 and 4.3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from clew.model.event import BORDER, Event
from clew.model.graph import Node
from clew.model.history import Cursor, Output, Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet
from clew.protocol import decisions as did
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.announcements import joined
from clew.protocol.effects import Effect
from clew.protocol.inbound import InChannel
from clew.protocol.logio import OperatorKernel
from clew.protocol.replica import ReplicaKernel
from clew.protocol.settings import DEFAULT, Settings
from clew.protocol.source import SourceKernel

if TYPE_CHECKING:
    _Base = ReplicaKernel
else:
    _Base = object


class Epochs(_Base):
    """What sources and operators do alike: end epochs, hold back writes, refuse other generations."""

    epoch = 1
    """The epoch that the replica works on."""
    _committed_epoch = 1
    """The epoch of what was committed last."""
    is_final_complete = False
    """Whether the epoch in which the replica finished is complete."""

    def _begin_epochs(self) -> None:
        self.unwritten: deque[tuple[int, Output]] = deque()
        """Write actions whose epoch is not complete yet, each with its epoch."""
        self.complete_epoch = 0
        """The last epoch that is known to be complete."""
        self.unannounced: dict[int, does.Announce] = {}
        """By epoch: what the tracker must not hear before everyone has reached it."""
        self._handlers[was.Completed] = self.on_completed

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        """Goes on with the epoch after the one that was recovered; what is recovered is complete."""
        self.complete_epoch = given.recovered.counters.get("epoch", 0)
        self.epoch = self._committed_epoch = self.complete_epoch + 1
        self.is_final_complete = bool(given.recovered.counters.get("finished"))
        super().on_started(given, effects)

    # Other generations

    def on_connected(self, given: was.Connected, effects: list[Effect]) -> None:
        """A receiver of another generation wants what this one will never make; it will ask its own sender."""
        if given.session.incarnation == self.incarnation:
            super().on_connected(given, effects)

    def on_acked(self, given: was.Acked, effects: list[Effect]) -> None:
        """What another generation has taken says nothing about this one."""
        if given.session == self.session(given.channel):
            super().on_acked(given, effects)

    # Borders

    def _end_epoch(self, effects: list[Effect]) -> None:
        """Puts the border on every port, behind all of its epoch, and commits, so that nothing comes between."""
        assert self.committing is None
        for port in self.ports.values():
            self._emit(port, None, self.now, {BORDER: self.epoch})
        self.pending.counters["epoch"] = self.epoch
        self._decided(did.Bordered(self.epoch))
        self.epoch += 1
        self._flush(effects)

    def _durable(self, transaction: Transaction, effects: list[Effect]) -> None:
        """The border's commit is in memory, and nothing after it: what memory holds now is the snapshot."""
        ended = transaction.counters.get("epoch")
        self._committed_epoch = self.epoch if ended is None else ended
        super()._durable(transaction, effects)
        if ended is not None:
            self._committed_epoch = self.epoch
            effects.append(does.Snapshot(ended, is_final=False))
        elif transaction.counters.get("finished"):
            effects.append(does.Snapshot(self.epoch, is_final=True))

    def _announce(self, announcement: does.Announce, effects: list[Effect]) -> None:
        """What belongs to an epoch that another replica has not reached yet waits."""
        epoch = self._committed_epoch
        if epoch <= self.complete_epoch + 1:
            super()._announce(announcement, effects)
        else:
            self.unannounced[epoch] = joined(self.unannounced.get(epoch), announcement)

    # Outside writes

    def _writable(self, output: Output) -> None:
        self.unwritten.append((self._committed_epoch, output))

    def on_completed(self, given: was.Completed, effects: list[Effect]) -> None:
        """An epoch can be lost no more: what it writes is written."""
        self.complete_epoch = max(self.complete_epoch, given.epoch)
        for epoch in [each for each in self.unannounced if each <= self.complete_epoch + 1]:
            effects.append(self.unannounced.pop(epoch))
        while self.unwritten and self.unwritten[0][0] <= given.epoch:
            super()._writable(self.unwritten.popleft()[1])
        if self.is_finish_durable and self.epoch <= given.epoch:
            self.is_final_complete = True
        self._pump(effects)
        self._proceed(effects)

    def _pressure(self) -> int:
        """Writes that wait for their epoch hold nobody back."""
        waiting = max((each.durable - each.done for each in self.writers.values()), default=0)
        return max((port.pressure() for port in self.ports.values()), default=0) + waiting

    def _complete(self, effects: list[Effect]) -> None:
        if self.is_final_complete:
            super()._complete(effects)


class SnapshotSource(Epochs, SourceKernel):
    """One replica of a source; it begins the borders."""

    def __init__(self, node: Node, replica: Replica, outbound: Iterable[Channel], settings: Settings = DEFAULT) -> None:
        super().__init__(node, replica, outbound, settings)
        self._begin_epochs()
        self.is_border_due = False
        self._handlers[was.Marked] = self.on_marked

    def on_marked(self, given: was.Marked, effects: list[Effect]) -> None:
        """The epoch shall end; a read that is under way belongs to the next one."""
        if given.epoch == self.epoch and not self.is_finished:
            self.is_border_due = True
            self._proceed(effects)

    def _proceed(self, effects: list[Effect]) -> None:
        """A border waits for the commit that is under way, since it must be the last thing in its own."""
        if self.is_border_due and self.committing is None:
            self.is_border_due = False
            if not self.is_finished:
                self._end_epoch(effects)
        super()._proceed(effects)


class SnapshotOperator(Epochs, OperatorKernel):
    """One replica of an operator with inputs; it aligns them."""

    def __init__(
        self,
        node: Node,
        replica: Replica,
        inbound: Iterable[Channel],
        outbound: Iterable[Channel],
        settings: Settings = DEFAULT,
    ) -> None:
        super().__init__(node, replica, inbound, outbound, settings)
        self._begin_epochs()
        self.aligned: set[InChannel] = set()
        """Channels on which the border of this epoch was taken: what comes there belongs to the next."""
        self.early: deque[tuple[InChannel, Event]] = deque()
        """Events of the next epoch, in the order received."""

    def on_greeted(self, given: was.Greeted, effects: list[Effect]) -> None:
        """A sender of another generation is not listened to."""
        if given.incarnation == self.incarnation:
            super().on_greeted(given, effects)

    def _next_event(self, effects: list[Effect]) -> tuple[InChannel, Event] | None:
        """The next event of this epoch; when there is none left of it, the epoch ends."""
        while True:
            if self.aligned and all(each in self.aligned or each.ended for each in self.inputs.values()):
                if self.committing is not None:
                    return None  # The border must be the last thing in its commit.
                self._end_epoch(effects)
                self.aligned.clear()
                self.inbox.extendleft(reversed(self.early))
                self.early.clear()
            if not self.inbox:
                return None
            inbound, event = self.inbox.popleft()
            if inbound in self.aligned:
                self.early.append((inbound, event))
            elif event.border:
                self._hold_back(inbound, event)
            else:
                return inbound, event

    def _hold_back(self, inbound: InChannel, event: Event) -> None:
        assert event.border == self.epoch, f"{self.replica}: border {event.border} in epoch {self.epoch}"
        inbound.assign(event.id, 0)
        self.touched[inbound] = None
        self.aligned.add(inbound)
        self._decided(did.Held(inbound.channel, event.id, event.border))

    def _needs(self, channel: Channel, event: Event) -> None:
        self.pending.taken.append((channel, event))

    def _seal(self) -> Transaction:
        """Senders keep nothing for this replica: what an open Input Set needs is stored here."""
        transaction = super()._seal()
        for channel, cursor in transaction.cursors.items():
            transaction.cursors[channel] = Cursor(cursor.assigned, IdSet(cursor.assigned), cursor.ended)
        return transaction
