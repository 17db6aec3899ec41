"""Invariants: what must hold whenever something leaves a process or becomes durable."""

from __future__ import annotations

from clew.errors import Violation
from clew.model.graph import Graph
from clew.model.history import Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet
from clew.protocol import effects as does
from clew.verify.archive import Archive
from clew.verify.outside import Outside

_NOTHING = IdSet()


class Invariants:
    """Judges one step at a time, from what is durable and what is outside; it sees no kernel."""

    def __init__(self, graph: Graph, archive: Archive, outside: Outside, log_id: str) -> None:
        self.graph = graph
        self.archive = archive
        self.outside = outside
        self.log_id = log_id
        self.begun: dict[Replica, int] = {}
        """The last incarnation of each replica."""
        self.sent: dict[tuple[Channel, does.Session, int], int] = {}
        """The last event that an incarnation sent in a session."""

    def on_start(self, replica: Replica, incarnation: int) -> None:
        """Incarnations only grow."""
        if incarnation <= self.begun.get(replica, 0):
            raise Violation(f"{replica}: begins as incarnation {incarnation} after {self.begun[replica]}")
        self.begun[replica] = incarnation

    def on_fence(self, replica: Replica, incarnation: int) -> None:
        """Only the last incarnation commits."""
        if incarnation < self.begun.get(replica, 0):
            raise Violation(
                f"{replica}: incarnation {incarnation} commits although incarnation {self.begun[replica]} has begun"
            )

    def on_complete(self, replica: Replica) -> None:
        """Who has nothing left to do has done all its writes."""
        for connection in self.graph.nodes[replica.operator].writes:
            for output in self.archive[replica].outputs[connection]:
                if not self.outside.has(self.log_id, replica, connection, output):
                    raise Violation(f"{replica}: is complete before write {connection}/{output.event.id} is done")

    def on_send(self, replica: Replica, incarnation: int, effect: does.Send) -> None:
        """What is sent is durable, and so are the writes it requires; within a session ids only grow."""
        event = effect.event
        stream = effect.channel, effect.session, incarnation
        if event.id <= self.sent.get(stream, 0):
            raise Violation(f"{replica}: event {event} is sent after {event.port}/{self.sent[stream]} in one session")
        self.sent[stream] = event.id
        shelf = self.archive[replica]
        logged = shelf.outputs[event.port]
        if event.id > len(logged) or not logged[event.id - 1].event.same(event):
            raise Violation(f"{replica}: event {event} is sent although it is not durable")
        node = self.graph.nodes[replica.operator]
        for connection in node.writes if node.writes_first else ():
            number = shelf.before[event.port, event.id].get(connection, 0)
            if number and not self.outside.has(self.log_id, replica, connection, shelf.outputs[connection][number - 1]):
                raise Violation(f"{replica}: event {event} is sent before write {connection}/{number} is done")

    def on_ack(self, replica: Replica, effect: does.Ack) -> None:
        """What is acknowledged and released is durable."""
        cursor = self.archive[replica].cursors.get(effect.channel)
        assigned, released = (0, _NOTHING) if cursor is None else (cursor.assigned, cursor.released)
        if effect.assigned > assigned or effect.released.minus(released):
            raise Violation(
                f"{replica}: acknowledges {effect.channel} up to {effect.assigned} and releases {effect.released}; "
                f"durable are {assigned} and {released}"
            )

    def on_write(self, replica: Replica, effect: does.Write) -> None:
        """A write action is durable before it is executed."""
        if effect.number > len(self.archive[replica].outputs[effect.connection]):
            raise Violation(f"{replica}: write {effect.connection}/{effect.number} is begun before it is durable")

    def on_commit(self, replica: Replica, transaction: Transaction, now: float) -> None:
        """Ids continue without gaps; cursors only grow; only what every receiver has released is forgotten."""
        shelf = self.archive[replica]
        position = transaction.counters.get("position")
        if position is not None and position <= shelf.counters.get("position", 0):
            raise Violation(f"{replica}: its position goes from {shelf.counters['position']} to {position}")
        counts: dict[str, int] = {}
        for output in transaction.outputs:
            port = output.event.port
            counts[port] = counts.get(port, len(shelf.outputs[port])) + 1
            if output.event.id != counts[port]:
                raise Violation(f"{replica}: {output.event} is logged, expected id {counts[port]}")
        for channel, cursor in transaction.cursors.items():
            before = shelf.cursors.get(channel)
            if before is not None and (cursor.assigned < before.assigned or before.released.minus(cursor.released)):
                raise Violation(f"{replica}: the cursor of {channel} goes back from {before} to {cursor}")
        for port, first, last in transaction.forget_outputs:
            for channel in self.graph.outbound(replica):
                if channel.output == port:
                    self._on_forget(replica, channel, first, last)
            self._on_forget_target(replica, port, first, last, now)
        gone = {(port, number) for port, first, last in transaction.forget_outputs for number in range(first, last + 1)}
        for serial in transaction.forget_sets:
            for port, number in shelf.targets.get(serial, ()):
                if (port, number) not in gone and number not in shelf.forgotten[port]:
                    raise Violation(f"{replica}: forgets Input Set {serial}, which {port}/{number} came from")

    def _on_forget_target(self, replica: Replica, port: str, first: int, last: int, now: float) -> None:
        """What a lineage scope promises to keep stays."""
        targets = self.graph.nodes[replica.operator].capture.targets
        if port in targets:
            keep_s = targets[port]
            for output in self.archive[replica].outputs[port][first - 1 : last]:
                if keep_s is None or output.created > now - keep_s:
                    raise Violation(f"{replica}: forgets {output.event}, which a lineage scope still keeps")

    def _on_forget(self, replica: Replica, channel: Channel, first: int, last: int) -> None:
        cursor = self.archive[channel.receiver].cursors.get(channel)
        wanted = IdSet.of_ranges(0, [(first, last)])
        if wanted.minus(_NOTHING if cursor is None else cursor.released):
            raise Violation(f"{replica}: forgets {channel.output}/{first}..{last}, not released by {channel.receiver}")
