"""Connections to outside systems: how an operator reads from them and writes to them."""

from __future__ import annotations

from collections.abc import Hashable
from enum import StrEnum
from typing import Any, NamedTuple

import pyarrow as pa


class Kind(StrEnum):
    """What makes a write connection safe after a crash."""

    CONDITIONAL = "conditional"
    """The action id is recorded atomically with the effect; a second execution is refused."""
    CHECKABLE = "checkable"
    """It can say whether an action is already in."""
    IDEMPOTENT = "idempotent"
    """Doing an action twice in a row is like doing it once."""


class WriteAction(NamedTuple):
    """One write on an outside system."""

    writer: str
    """Log id, operator, replica and connection: whose action it is."""
    number: int
    """Counts from 1 for this writer; actions are executed one at a time in this order."""
    batch: pa.RecordBatch

    @property
    def id(self) -> str:
        """Unique for operator, connection and action, in all runs of all pipelines."""
        return f"{self.writer}/{self.number}"


class WriteConnection:
    """Where an operator writes; subclasses say how, and of which kind they are."""

    kind: Kind | str | None = None
    system: Hashable = None
    """What outside system this is; connections that name the same one share it. None: one of its own."""

    def open(self) -> None:
        """Called once in the process that will execute actions, before the first."""

    def execute(self, action: WriteAction) -> None:
        """Performs the action and returns when it is durable outside.

        A conditional connection records `action.id` atomically with the effect, and does nothing when that id,
        or a later number of the same writer, is recorded already.
        """
        raise NotImplementedError

    def is_in(self, action: WriteAction) -> bool:
        """Whether the action has taken effect; asked of checkable connections only."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when no further action will be executed."""


class ReadConnection:
    """Where an operator reads while it generates."""

    system: Hashable = None
    is_replayable: bool = False

    def open(self) -> None:
        """Called once in the process that will read, before the first read."""

    def read(self, query: Any) -> Any:
        """The records that answer a query, in any shape that an event's records may have."""
        raise NotImplementedError

    def read_simulated(self, query: Any, applied: list[WriteAction]) -> Any:
        """The same inside the simulator, given what has been written to the same outside system so far."""
        return self.read(query)

    def close(self) -> None:
        """Called when nothing will be read any more."""
