"""Runs a whole pipeline in the simulator: with crash points where a test wants them, or under many schedules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from clew.errors import UnknownOperator, UnknownPort, Violation
from clew.model.graph import DEAD, Graph
from clew.model.names import Replica
from clew.pipeline import Pipeline
from clew.verify.oracle import judge
from clew.verify.parts import parts_for
from clew.verify.schedule import Schedule
from clew.verify.simulator import world_with
from clew.verify.sweep import one_crash, random_schedules, try_all
from clew.verify.world import World


class Crash(NamedTuple):
    """A crash point: the operator's process dies when it is about to take the event of this id, for the first time.

    Of a parallel operator, that is the replica that gets there first; `slow/1` names one replica. With snapshots,
    borders have ids too.
    """

    operator: str
    event: int


class Result:
    """What a run produced, as lists."""

    def __init__(self, graph: Graph, world: World) -> None:
        self._graph = graph
        self._world = world
        self.restarts = world.restarts
        """How often a process had to be started again."""

    def events(self, port: str) -> list[list[dict[str, Any]]]:
        """The rows of each event that an output port gave, such as "hourly.out".

        Those of a parallel operator come replica by replica; "slow/1.out" are those of one replica, and
        "slow-merge.out" has all of them in the order in which they arrived.
        """
        replicas, name = self._place(port, outputs=True)
        return [
            output.event.rows
            for replica in replicas
            for output in self._world.archive[replica].outputs[name]
            if output.event.batch is not None
        ]

    def rows(self, port: str) -> list[dict[str, Any]]:
        """All rows that an output port gave, or that were written through a write connection such as "report.to"."""
        replicas, name = self._place(port, outputs=False)
        if name in self._graph.nodes[replicas[0].operator].outputs:
            return [row for event in self.events(port) for row in event]
        indexes = {str(replica.index) for replica in replicas}
        written = self._world.outside.written(replicas[0].operator, name)
        return [row for each in written if each.writer.split("/")[2] in indexes for row in each.batch.to_pylist()]

    def dead_letters(self, operator: str) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
        """What an operator has given up: the rows of each dead letter, and its attributes."""
        replicas, name = self._place(f"{operator}.{DEAD}", outputs=True)
        found = (output.event for replica in replicas for output in self._world.archive[replica].outputs[name])
        return [(event.rows, dict(event.attributes)) for event in found if not event.is_end]

    def counts(self, operator: str) -> dict[str, int]:
        """What an operator or source has counted with `ctx.count`, and late records of a source."""
        found: Counter[str] = Counter()
        for replica in self._graph.replicas_named(operator):
            for name, number in self._world.archive[replica].counters.items():
                if name.startswith("count:"):
                    found[name.removeprefix("count:")] += number
        return dict(found)

    def _place(self, port: str, outputs: bool) -> tuple[tuple[Replica, ...], str]:
        operator, _, name = port.partition(".")
        replicas = self._graph.replicas_named(operator)
        node = self._graph.nodes[replicas[0].operator] if replicas else None
        known = [] if node is None else [*node.outputs, *(() if outputs else node.writes)]
        if name not in known:
            places = ", ".join(f"{operator}.{each}" for each in known) or ", ".join(self._graph.nodes)
            raise UnknownPort(f"the run has nothing of {port!r}; there is {places}. Name one of these.")
        return replicas, name


def run(
    pipeline: Pipeline, *, crashes: Iterable[Crash | tuple[str, int]] = (), seed: int = 0, recovery: str = "log"
) -> Result:
    """Runs a pipeline once in the simulator, crashing where asked; raises a violation if a guarantee does not hold.

    With `recovery="snapshot"` a crash sends everyone back to the last complete epoch.

    >>> from clew.testing import Outside, scripted
    >>> pipeline = Pipeline("small")
    >>> rows = pipeline.source("numbers", scripted([[{"x": 1}], [{"x": 2}], [{"x": 3}]]))
    >>> _ = rows.batch(2, name="twos").write("save", Outside("store").writer())
    >>> result = run(pipeline, crashes=[Crash("twos", 2)])
    >>> result.rows("save.to"), result.restarts
    ([{'x': 1}, {'x': 2}, {'x': 3}], 1)
    """
    graph = pipeline.build()
    points = [Crash(*crash) for crash in crashes]
    for point in points:
        replicas = graph.replicas_named(point.operator)
        if not replicas or graph.nodes[replicas[0].operator].is_source:
            takers = ", ".join(node.name for node in graph.nodes.values() if not node.is_source)
            raise UnknownOperator(
                f"the crash point {tuple(point)!r} names no operator that takes events; those are {takers}. Name one."
            )
    parts = parts_for(graph, recovery)
    world = world_with(parts)(graph, Schedule(seed), parts, crash_points=points)
    world.run(10_000_000)
    judge(graph, world.archive, world.outside, world.store.log_id)
    world.failures.judge(world.archive)
    return Result(graph, world)


def verify(pipeline: Pipeline, *, schedules: int = 100, faults: int = 3, seed: int = 0, recovery: str = "log") -> int:
    """Crashes a pipeline once at every point, then under random schedules; returns the number of runs.

    Raises a violation with the shortest failing schedule that was found.
    """
    graph = pipeline.build()
    runs = 0
    for name, plan in (
        ("one crash", lambda points, _: one_crash(points, seed)),
        ("random", lambda points, _: random_schedules(schedules, points, faults, seed)),
    ):
        tally = try_all(name, graph, plan, parts=parts_for(graph, recovery), seed=seed)
        runs += tally.runs
        if tally.failed is not None:
            raise Violation(f"{tally.failed.violation}; schedule {tally.failed.schedule}")
    return runs
