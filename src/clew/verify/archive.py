"""The archive: everything that was ever committed, kept by the simulator so that retention cannot hide it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from clew.model.history import Cursor, Output, Transaction
from clew.model.names import Channel, Replica


class Shelf:
    """What one replica has committed."""

    __slots__ = ("cursors", "journal", "lineage", "outputs", "pairs", "reads")

    def __init__(self) -> None:
        self.cursors: dict[Channel, Cursor] = {}
        self.journal: list[Any] = []
        self.outputs: dict[str, list[Output]] = defaultdict(list)
        self.pairs: dict[int, set[tuple[Channel, int]]] = defaultdict(set)
        self.lineage: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.reads: dict[int, list[int]] = defaultdict(list)
        """Numbers of the read actions that the generation of an Input Set used."""

    def add(self, transaction: Transaction) -> None:
        """Takes a transaction that became durable."""
        self.cursors.update(transaction.cursors)
        self.journal.extend(transaction.journal)
        for output in transaction.outputs:
            self.outputs[output.event.port].append(output)
        for pair in transaction.pairs:
            self.pairs[pair.serial].add((pair.channel, pair.event))
        for port, number, serial in transaction.lineage:
            self.lineage[port, number].append(serial)
        for serial, kind, number in transaction.uses:
            if kind == "read":
                self.reads[serial].append(number)


Archive = dict[Replica, Shelf]
