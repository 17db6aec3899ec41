"""The archive: everything that was ever committed, kept by the simulator so that retention cannot hide it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa

from clew.model.history import Cursor, Output, Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet


class Shelf:
    """What one replica has committed."""

    __slots__ = (
        "before",
        "counters",
        "cursors",
        "effects",
        "forgotten",
        "journal",
        "lineage",
        "outputs",
        "pairs",
        "reads",
        "state",
        "targets",
        "versions",
        "versions_used",
    )

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}
        self.cursors: dict[Channel, Cursor] = {}
        self.journal: list[Any] = []
        self.outputs: dict[str, list[Output]] = defaultdict(list)
        self.pairs: dict[int, set[tuple[Channel, int]]] = defaultdict(set)
        self.lineage: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.reads: dict[int, list[int]] = defaultdict(list)
        """Numbers of the read actions that the generation of an Input Set used."""
        self.effects: dict[int, pa.RecordBatch] = {}
        """What each of those read actions gave."""
        self.state: dict[bytes, bytes] = {}
        self.versions: list[tuple[int, dict[bytes, bytes | None]]] = []
        self.versions_used: dict[int, int] = {}
        """The version of the state that the generation of an Input Set used."""
        self.before: dict[tuple[str, int], dict[str, int]] = {}
        """For each output, how many outputs each destination had when it was committed, itself included."""
        self.forgotten: dict[str, IdSet] = defaultdict(IdSet)
        self.targets: dict[int, list[tuple[str, int]]] = defaultdict(list)
        """The outputs that came from an Input Set."""

    def add(self, transaction: Transaction) -> None:
        """Takes a transaction that became durable."""
        self.counters.update(transaction.counters)
        self.cursors.update(transaction.cursors)
        self.journal.extend(transaction.journal)
        for output in transaction.outputs:
            self.outputs[output.event.port].append(output)
            self.before[output.event.port, output.event.id] = {port: len(made) for port, made in self.outputs.items()}
        for pair in transaction.pairs:
            self.pairs[pair.serial].add((pair.channel, pair.event))
        for port, number, serial in transaction.lineage:
            self.lineage[port, number].append(serial)
            self.targets[serial].append((port, number))
        for serial, kind, number in transaction.uses:
            if kind == "read":
                self.reads[serial].append(number)
            else:
                self.versions_used[serial] = number
        for action, _, event in transaction.stored:
            self.effects[action] = event.batch
        self.versions.extend(transaction.state_versions)
        for key, value in transaction.state.items():
            if value is None:
                self.state.pop(key, None)
            else:
                self.state[key] = value
        for port, first, last in transaction.forget_outputs:
            self.forgotten[port].add_range(first, last)


Archive = dict[Replica, Shelf]
