"""Sinks that write their events to an outside system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from clew.model.connection import WriteConnection
from clew.model.event import Event
from clew.model.operator import Context, Operator
from clew.operators.counted import Counted
from clew.operators.shape import together
from clew.operators.stateless import Stateless

CONNECTION = "to"
"""The name of a sink's write connection."""


class Writer(Stateless):
    """Writes each event in a write action of its own: all columns, or some of them."""

    outputs = ()

    def __init__(self, connection: WriteConnection, columns: Sequence[str] | None = None) -> None:
        self.writes = {CONNECTION: connection}
        self.columns = _listed(columns)

    def apply(self, event: Event, ctx: Context) -> Iterable[tuple[str, Any]]:
        """The records of one event."""
        batch = event.batch
        return ((CONNECTION, batch if self.columns is None or batch is None else batch.select(self.columns)),)


class CountedWriter(Counted):
    """Writes the records of so many events in one write action."""

    outputs = ()

    def __init__(self, connection: WriteConnection, every: int, columns: Sequence[str] | None = None) -> None:
        super().__init__(every)
        self.writes = {CONNECTION: connection}
        self.columns = _listed(columns)

    def apply(self, batches: list[pa.RecordBatch], ctx: Context) -> Iterable[tuple[str, Any]]:
        """The records of so many events."""
        table = together(batches)
        return ((CONNECTION, table if self.columns is None else table.select(self.columns)),)


def writer(connection: WriteConnection, every: int = 1, columns: Sequence[str] | None = None) -> Operator:
    """The sink that writes every so many events to a connection."""
    if type(every) is int and every == 1:
        return Writer(connection, columns)
    return CountedWriter(connection, every, columns)


def _listed(columns: Sequence[str] | None) -> list[str] | None:
    if isinstance(columns, str):
        return [columns]
    return None if columns is None else list(columns)
