"""The log at rest: when every operator has finished, nothing is left in the logs that nobody will need."""

from __future__ import annotations

from clew.errors import Violation
from clew.log.contract import LogReader, ReplicaRows
from clew.model.graph import Graph, Node
from clew.model.names import Replica
from clew.verify.archive import Archive, Shelf


def judge_rest(graph: Graph, reader: LogReader, archive: Archive) -> None:
    """Raises a violation for work that was left, for rows that should be gone, and for rows that should have stayed."""
    logs = {replica: reader.rows(replica) for replica in graph.replicas}
    present = {(replica, row.port, row.id) for replica, rows in logs.items() for row in rows.outputs}
    for replica, rows in logs.items():
        node = graph.nodes[replica.operator]
        for what, left in (
            ("open Input Sets", [serial for serial, _, is_closed in rows.sets if not is_closed]),
            ("undone pairs", [pair for pair in rows.pairs if not pair.is_done]),
            ("timers", list(rows.timers)),
            ("unfinished read actions", [row for row in rows.reads if not row[4]]),
            ("rows of time", [row for row in rows.progress if row[0] in ("hold", "sum")]),
        ):
            if left:
                raise Violation(f"{replica}: its log still has {what} after it finished: {left[:3]}")
        kept = _kept(graph, replica)
        for port in kept:
            if len(archive[replica].outputs[port]) != sum(row.port == port for row in rows.outputs):
                raise Violation(f"{replica}.{port}: dead letters are gone, although nobody has received them")
        if node.capture.is_on:
            _judge_kept(replica, node, rows, archive[replica])
            _judge_origins(replica, node, rows, present)
        elif not _feeds_capture(graph, node):
            _judge_empty(replica, rows, kept)


def judge_empty(graph: Graph, reader: LogReader) -> None:
    """Raises a violation if anything is left after all retention times have passed."""
    for replica in graph.replicas:
        _judge_empty(replica, reader.rows(replica), _kept(graph, replica))


def _kept(graph: Graph, replica: Replica) -> set[str]:
    """The ports of which everything stays, for want of a receiver."""
    node = graph.nodes[replica.operator]
    ports = {port for port in node.keeps if node.capture.targets.get(port) is None}
    return ports - {channel.output for channel in graph.outbound(replica)}


def _feeds_capture(graph: Graph, node: Node) -> bool:
    """Whether some receiver keeps this operator's outputs for the sake of lineage."""
    return any(
        channel.input in graph.nodes[channel.receiver.operator].capture.inputs
        for channel in graph.channels
        if channel.sender.operator == node.name
    )


def _judge_empty(replica: Replica, rows: ReplicaRows, kept: set[str]) -> None:
    """Without lineage, everything that was done is gone."""
    outputs = [row for row in rows.outputs if row.port not in kept]
    for what, left in (("outputs", outputs), ("pairs", rows.pairs), ("read actions", rows.reads)):
        if left:
            raise Violation(f"{replica}: its log still has {len(left)} {what} that nobody needs, first {left[0]}")


def _judge_origins(replica: Replica, node: Node, rows: ReplicaRows, present: set[tuple[Replica, str, int]]) -> None:
    """An input event whose pair is kept for lineage is still with its sender, with its records."""
    for pair in rows.pairs:
        channel = pair.channel
        if channel.input in node.capture.inputs and (channel.sender, channel.output, pair.event) not in present:
            event = f"{channel.sender}.{channel.output}/{pair.event}"
            raise Violation(f"{replica}: its input {event} is gone, although a scope keeps it")


def _judge_kept(replica: Replica, node: Node, rows: ReplicaRows, shelf: Shelf) -> None:
    """What a scope keeps for ever is there, down to the pairs."""
    present = {(row.port, row.id) for row in rows.outputs}
    serials = {serial for serial, _, _ in rows.sets}
    for port, keep_s in node.capture.targets.items():
        if keep_s is None:
            for output in shelf.outputs[port]:
                number = output.event.id
                if (port, number) not in present or not serials.issuperset(shelf.lineage.get((port, number), ())):
                    raise Violation(f"{replica}: {output.event} or its lineage is gone, although a scope keeps it")
