"""The oracle: re-executes what was committed as one run without failures, and compares everything that left.

It shares no code with the kernels: it calls the user's moves by itself, in the order of the committed decisions,
with the same clock, chance and read effects, and keeps its own plain books. All destinations together must be what
this one run produces (seed 002, section 4.4.1, correct recovered execution).
"""

from __future__ import annotations

from clew.errors import Violation
from clew.model.event import same_batch
from clew.model.graph import Graph
from clew.model.names import Replica
from clew.verify.archive import Archive, Shelf
from clew.verify.outside import Outside
from clew.verify.retelling import short
from clew.verify.retold_operator import OperatorRun
from clew.verify.retold_source import SourceRun


def judge(graph: Graph, archive: Archive, outside: Outside, log_id: str) -> None:
    """Raises a violation unless one failure-free run explains everything."""
    for replica in graph.replicas:
        node = graph.nodes[replica.operator]
        if node.is_source:
            SourceRun(graph, replica, archive, outside).judge()
        else:
            OperatorRun(graph, replica, archive).judge()
        for connection in node.writes:
            _judge_writes(replica, connection, archive[replica], outside, log_id)


def _judge_writes(replica: Replica, connection: str, shelf: Shelf, outside: Outside, log_id: str) -> None:
    """What the outside system holds of this writer is each committed action, once, in order."""
    writer = f"{log_id}/{replica.operator}/{replica.index}/{connection}"
    applied = [each for each in outside.writes[replica.operator, connection].applied if each.writer == writer]
    logged = shelf.outputs.get(connection, [])
    numbers = [action.number for action in applied]
    if numbers != list(range(1, len(logged) + 1)):
        raise Violation(
            f"{replica}: outside, connection {connection!r} has the actions {short(numbers)}; "
            f"expected 1 to {len(logged)}, each once and in order"
        )
    for action, output in zip(applied, logged, strict=True):
        if not same_batch(action.batch, output.event.batch):
            raise Violation(f"{replica}: write {connection}/{action.number} has other contents outside than in the log")
