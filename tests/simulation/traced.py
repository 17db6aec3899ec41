"""Simulated runs of real kernels under faults, whose processes write traces as hosts do."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

from clew.model.graph import Graph
from clew.model.names import Replica
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.trace.reader import Trace, read_trace
from clew.trace.records import LOG, SNAPSHOT, Names
from clew.trace.writer import Tracer
from clew.verify.coordination import Storing
from clew.verify.explain.explanation import Facts
from clew.verify.oracle import judge
from clew.verify.parts import Parts
from clew.verify.process import Process
from clew.verify.schedule import Schedule
from clew.verify.snapshot_world import SnapshotWorld
from clew.verify.world import World


def traced_run(graph: Graph, schedule: Schedule, parts: Parts, directory: Path) -> tuple[Trace, dict[Replica, Facts]]:
    """Runs a pipeline under a schedule; gives its trace, and what the logs say at the end."""
    mode = LOG if parts.epochs is None else SNAPSHOT
    tracers: dict[Process, Tracer] = {}
    take, do_commit, store = Process.take, Process.do_commit, Storing.store

    def traced_take(self: Process, given: was.Input) -> None:
        if isinstance(given, was.Started):
            node = graph.nodes[self.replica.operator]
            names = Names(self.replica, graph.inbound(self.replica), node.outputs, tuple(node.writes))
            tracer = tracers[self] = Tracer(directory, names, mode, clock=self.now)
            tracer.start(given.recovered, getattr(self.world, "epoch", 0))
        elif isinstance(given, was.Written) or (isinstance(given, was.Checked) and given.is_in):
            tracers[self].wrote(given.connection, given.number)
        elif isinstance(given, was.Completed):
            tracers[self].completed(given.epoch)
        take(self, given)

    def traced_commit(self: Process, effect: does.Commit) -> None:
        tracers[self].steps(effect.number, effect.transaction)
        do_commit(self, effect)

    def traced_store(self: Storing, world: Any) -> bool:
        capture, is_alive = self.captures[0], self.process.is_alive
        if not store(self, world):
            return False
        if is_alive:  # Otherwise it died between storing and saying so.
            tracers[self.process].stored(capture.epoch, capture.is_final)
        return True

    world = (World if parts.epochs is None else SnapshotWorld)(graph, schedule, parts, True, False)
    performing = patch.dict("clew.verify.process._PERFORM", {does.Commit: traced_commit})
    with patch.object(Process, "take", traced_take), patch.object(Storing, "store", traced_store), performing:
        try:
            world.run(2_000_000)
            judge(graph, world.archive, world.outside, world.store.log_id)
            for process in world.current.values():
                tracers[process].close(process.is_complete)
            facts = {replica: _facts(world, replica) for replica in graph.replicas} if mode == LOG else {}
        finally:
            for tracer in tracers.values():
                tracer._close()
            world.store.close()
    assert not any(tracer.error for tracer in tracers.values())
    return read_trace(directory), facts


def _facts(world: World, replica: Replica) -> Facts:
    rows = world.reader.rows(replica)
    counters = rows.counters
    return Facts(
        counters.get("position", 0),
        {name[4:]: number for name, number in counters.items() if name.startswith("out:")},
        {name[8:]: number for name, number in counters.items() if name.startswith("written:")},
        {channel: assigned for channel, (assigned, _, _) in rows.cursors.items()},
    )
