"""The simulator: one schedule in, one report out."""

from __future__ import annotations

from dataclasses import dataclass, field

from clew.errors import LogError, Violation
from clew.model.graph import Graph
from clew.verify.oracle import judge
from clew.verify.parts import HEALTHY, Parts
from clew.verify.rest import judge_empty, judge_rest
from clew.verify.schedule import Schedule
from clew.verify.snapshot_world import SnapshotWorld
from clew.verify.world import World

CALM = Schedule()


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one schedule."""

    schedule: Schedule
    violation: str | None
    points: int
    steps: int
    restarts: int
    struck: tuple[tuple[int, str, str], ...] = ()
    """Each fault that struck: the point, what it was, whom it hit."""
    trace: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_good(self) -> bool:
        """Whether every guarantee held."""
        return self.violation is None


def world_with(parts: Parts) -> type[World]:
    """The world that these parts are for."""
    return World if parts.epochs is None else SnapshotWorld


def simulate(
    graph: Graph,
    schedule: Schedule = CALM,
    *,
    parts: Parts = HEALTHY,
    is_checking: bool = True,
    is_tracing: bool = False,
    steps_max: int = 2_000_000,
) -> Report:
    """Runs a pipeline under a schedule and judges the result."""
    world = world_with(parts)(graph, schedule, parts, is_checking, is_tracing)
    violation = None
    try:
        world.run(steps_max)
        judge(graph, world.archive, world.outside, world.store.log_id)
        world.failures.judge(world.archive)
        if isinstance(world, SnapshotWorld):
            world.judge_rest()
        else:
            judge_rest(graph, world.reader, world.archive)
        if parts.epochs is None and graph.scopes and all(scope.keep_s is not None for scope in graph.scopes):
            world.expire(steps_max)
            judge_empty(graph, world.reader)
    except (Violation, LogError) as error:  # A log that cannot be read, wherever that shows, is a broken guarantee.
        violation = str(error)
    finally:
        world.store.close()
    return Report(
        schedule,
        violation,
        world.points,
        world.steps,
        world.restarts,
        tuple((point, kind, str(replica)) for point, kind, replica in world.fault_log),
        tuple(world.trace or ()),
    )
