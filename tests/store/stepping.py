"""A driver that steps real kernels over a real store by hand: who may act is said, and nobody else does.

It uses the simulator's processes, but no chance: of the actors that may act, the one that became able first does.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from clew.log.contract import Store
from clew.log.tables import Tables
from clew.model.graph import Graph
from clew.model.names import Replica
from clew.protocol import inputs as was
from clew.protocol.settings import Settings
from clew.verify.parts import Parts
from clew.verify.process import Actor, Process
from clew.verify.schedule import Schedule
from clew.verify.world import World

STEPS_MAX = 100_000


class Stage:
    """One pipeline over one store; operators act only when they are told to."""

    def __init__(self, graph: Graph, store: Store, settings: Settings | None = None) -> None:
        parts = Parts(store=lambda _: store, settings=settings or Settings())
        self.world = World(graph, Schedule(), parts, is_tracing=True)

    def go(self, *operators: str) -> None:
        """Lets these operators act until none of them can do anything more."""
        for _ in range(STEPS_MAX):
            actor = next((each for each in self.world.ready if _owner(each).operator in operators), None)
            if actor is None:
                return
            self.world.now += 0.001
            actor.act(self.world)
        raise AssertionError(f"{operators} do not come to rest")

    def tick(self, operator: str, seconds: float = 1.0) -> None:
        """Time passes, and one operator hears of it."""
        self.world.now += seconds
        self.process(operator).take(was.Ticked(self.world.now))

    def crash(self, operator: str) -> None:
        """A process dies; nothing of it was under way."""
        self.world.crash(self.process(operator))

    def process(self, operator: str) -> Process:
        return self.world.current[Replica(operator)]

    def trace(self, operator: str, incarnation: int = 1) -> list[str]:
        """What an incarnation was asked to do, in order."""
        mark = f" {operator}#{incarnation} -> "
        return [line.split(mark)[1] for line in self.world.trace or () if mark in line]


def _owner(actor: Actor) -> Replica:
    """Whose act it is; a message acts on whoever gets it."""
    for name in ("replica", "target"):
        found = getattr(actor, name, None)
        if isinstance(found, Replica):
            return found
    process = actor.process  # type: ignore[attr-defined]
    assert isinstance(process, Process)
    return process.replica


def rows(table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table, in the order in which the text prints them: by event and Input Set."""
    chosen = table.select(list(columns) or table.column_names).to_pylist()
    return sorted((tuple(row.values()) for row in chosen), key=lambda row: tuple(map(str, row)))


def body(tables: Tables, operator: str, port: str, event: int) -> list[dict[str, Any]]:
    """The records of an event, as EVENT_DATA holds them."""
    (data,) = (
        row["Body"]
        for row in tables.event_data.to_pylist()
        if (row["Send_Op"], row["Send_p"], row["Event_ID"]) == (operator, port, event)
    )
    records: list[dict[str, Any]] = pa.ipc.open_stream(data).read_all().to_pylist()
    return records
