"""Places for logs, as values that a test can hand to another process; and small events and transactions."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from clew.log.contract import Store
from clew.log.memory import MemoryStore
from clew.log.postgres import PostgresStore
from clew.log.sqlite import SqliteStore
from clew.model.event import Event, as_batch
from clew.model.history import Cursor, Output, Pair, Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet

OP1, OP3, OP4 = Replica("OP1"), Replica("OP3"), Replica("OP4")
A = Channel(OP1, "out", OP3, "in")
B = Channel(OP3, "out", OP4, "in")

DESCRIPTION: dict[str, Any] = {
    "pipeline": "sales",
    "operators": {
        "OP1": {"replicas": 1, "inputs": [], "outputs": ["out"], "reads": {"Cx": "not replayable"}, "writes": {}},
        "OP3": {"replicas": 1, "inputs": ["in"], "outputs": ["out"], "reads": {}, "writes": {"report": "conditional"}},
        "OP4": {"replicas": 1, "inputs": ["in"], "outputs": [], "reads": {}, "writes": {}},
    },
    "connections": [["OP1", "out", "OP3", "in"], ["OP3", "out", "OP4", "in"]],
    "scopes": [["OP1.out", "OP3.out"]],
    "capture": {"OP3": {"inputs": ["in"], "outputs": ["out"]}},
}


@dataclass(frozen=True)
class Place:
    """Where a log is."""

    kind: str
    where: str
    schema: str = ""
    bodies: str | None = None
    threshold: int = 1 << 20

    def create(self, description: dict[str, Any] | None = None) -> Store:
        description = DESCRIPTION if description is None else description
        if self.kind == "memory":
            return MemoryStore(description)
        if self.kind == "sqlite":
            return SqliteStore.create(self.where, description, threshold=self.threshold)
        return PostgresStore.create(
            self.where, description, schema=self.schema, bodies=self.bodies, threshold=self.threshold
        )

    def open(self, description: dict[str, Any] | None = None) -> Store:
        if self.kind == "sqlite":
            return SqliteStore.open_existing(self.where, description, threshold=self.threshold)
        return PostgresStore.open_existing(
            self.where, description, schema=self.schema, bodies=self.bodies, threshold=self.threshold
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def of_json(text: str) -> Place:
        return Place(**json.loads(text))


def event(number: int, *, sender: Replica = OP3, port: str = "out", rows: int = 1, **header: Any) -> Event:
    """An event whose records tell its number."""
    batch = as_batch({"id": [number] * rows, "text": [f"row {row}" for row in range(rows)]})
    return Event(sender, port, number, batch, **header)


def end_mark(number: int, sender: Replica = OP3, port: str = "out") -> Event:
    """An event without records."""
    return Event(sender, port, number, None)


def step(number: int) -> Transaction:
    """The n-th of a long row of commits, each of which says n in every table it touches."""
    serial = (number - 1) // 3 + 1
    return Transaction(
        outputs=[Output(event(number), float(number))],
        opened=[(serial, b"key %d" % serial)] if number % 3 == 1 else [],
        pairs=[Pair(number, A, number, serial, b"note %d" % number)],
        closed=[serial] if number % 3 == 0 else [],
        cursors={A: Cursor(number, IdSet(number // 2), False)},
        counters={"order": number, "out:out": number, "position": number},
        state={b"latest": b"%d" % number},
        progress={
            ("hold", b"out"): b"%d" % number,
            ("sum", b"%d" % number): b"one",
            ("sum", b"%d" % (number - 2)): None,
        },
    )
