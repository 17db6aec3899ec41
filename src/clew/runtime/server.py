"""A server: listens, lets in who proves to belong to the run, counts whom it turned away."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable

from clew.errors import ClewError
from clew.runtime import control, handshake
from clew.runtime.loop import Loop

_AT_ONCE = 64
"""How many handshakes may be under way; more connections wait in the system's queue."""


class Server:
    """Accepts connections on one address; each one's first frame is given to `on_entered` with its socket."""

    def __init__(
        self, loop: Loop, bind: str, secret: bytes, on_entered: Callable[[socket.socket, int, bytes], None]
    ) -> None:
        self._loop = loop
        self._secret = secret
        self._on_entered = on_entered
        self._slots = threading.Semaphore(_AT_ONCE)
        self.refused = 0
        """How many connections were turned away."""
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        self._sock = socket.create_server((bind, 0), family=family, backlog=128)
        self._sock.setblocking(False)
        self.port: int = self._sock.getsockname()[1]

    def start(self) -> None:
        """Begins to listen; may be called from any thread."""
        self._loop.soon(lambda: self._loop.watch(self._sock, selectors.EVENT_READ, self._ready))

    def close(self) -> None:
        """No more connections; on the loop's thread."""
        self._loop.unwatch(self._sock)
        self._sock.close()

    def _ready(self, events: int) -> None:
        try:
            connection, _ = self._sock.accept()
        except OSError:
            return
        if not self._slots.acquire(blocking=False):
            self.refused += 1
            connection.close()
            return
        threading.Thread(target=self._enter, args=(connection,), name="clew-handshake", daemon=True).start()

    def _enter(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(True)
            handshake.accept(connection, self._secret)
            kind, payload = control.receive(connection)
            self._loop.soon(lambda: self._entered(connection, kind, payload))
        except (ClewError, OSError):
            self._refuse(connection)
        finally:
            self._slots.release()

    def _entered(self, connection: socket.socket, kind: int, payload: bytes) -> None:
        try:
            self._on_entered(connection, kind, payload)
        except (ClewError, OSError):
            self._refuse(connection)

    def _refuse(self, connection: socket.socket) -> None:
        self.refused += 1
        with contextlib.suppress(OSError):
            connection.close()


def call(
    address: tuple[str, int], secret: bytes, first: bytes, timeout_s: float = handshake.PATIENCE_S
) -> socket.socket:
    """A connection to a server of the run, after the handshake and with the first frame sent."""
    connection = socket.create_connection(address, timeout=timeout_s)
    try:
        handshake.call(connection, secret)
        connection.sendall(first)
    except BaseException:
        connection.close()
        raise
    return connection
