"""A replica's connections to outside systems: opened when first used, asked again when no answer came."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from clew.errors import ClewError, MoveError
from clew.model.connection import ReadConnection, WriteAction, WriteConnection
from clew.model.graph import Node
from clew.model.history import Output
from clew.model.names import Replica
from clew.protocol import effects as does
from clew.protocol import inputs as was

TRIES = 5
"""How often an outside system is asked before its operator fails."""
_PAUSE_S = 0.1


class OutsideWorld:
    """Executes read and write actions for one replica."""

    def __init__(self, node: Node, replica: Replica, log_id: str, pause: Callable[[float], None] = time.sleep) -> None:
        self._node = node
        self._replica = replica
        self._log_id = log_id
        self._pause = pause
        self._opened: dict[int, WriteConnection | ReadConnection] = {}
        self._failures: dict[str, int] = {}

    def read(self, connection: str, query: Any) -> Any:
        """A read action."""
        reader = self._node.reads[connection]
        self._open(reader)
        return reader.read(query)

    def write(self, effect: does.Write) -> was.Written | was.WriteUnknown:
        """A write action; when it raises nobody knows whether it took effect, and the kernel settles it."""
        name = effect.connection
        try:
            self._open(self._node.writes[name])
            self._node.writes[name].execute(self._action(name, effect.output))
        except Exception as error:
            self._failed(name, effect.number, error)
            return was.WriteUnknown(name, effect.number)
        self._failures.pop(name, None)
        return was.Written(name, effect.number)

    def check(self, effect: does.Check) -> was.Checked | was.WriteUnknown:
        """Asks whether a write action is in."""
        name = effect.connection
        try:
            self._open(self._node.writes[name])
            is_in = self._node.writes[name].is_in(self._action(name, effect.output))
        except Exception as error:
            self._failed(name, effect.number, error)
            return was.WriteUnknown(name, effect.number)
        self._failures.pop(name, None)
        return was.Checked(name, effect.number, bool(is_in))

    def close(self) -> None:
        """Closes what was opened."""
        for connection in self._opened.values():
            with contextlib.suppress(Exception):
                connection.close()
        self._opened.clear()

    def _open(self, connection: WriteConnection | ReadConnection) -> None:
        if id(connection) not in self._opened:
            connection.open()
            self._opened[id(connection)] = connection

    def _action(self, connection: str, output: Output) -> WriteAction:
        writer = f"{self._log_id}/{self._replica.operator}/{self._replica.index}/{connection}"
        assert output.event.batch is not None
        return WriteAction(writer, output.event.id, output.event.batch)

    def _failed(self, connection: str, number: int, error: Exception) -> None:
        """Waits longer each time; after some times it is the operator that fails."""
        count = self._failures[connection] = self._failures.get(connection, 0) + 1
        if count >= TRIES:
            words = str(error) if isinstance(error, ClewError) else f"{type(error).__name__}: {error}"
            raise MoveError(
                f"operator {self._replica}: write action {number} on connection {connection!r} failed {count} times, "
                f"the last time with: {words}. Look at the outside system; the action stays in the log and is "
                f"executed when the pipeline runs again."
            ) from error
        opened = self._opened.pop(id(self._node.writes[connection]), None)
        if opened is not None:
            with contextlib.suppress(Exception):
                opened.close()
        self._pause(_PAUSE_S * 2 ** (count - 1))
