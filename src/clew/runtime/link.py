"""A link: one authenticated connection between two processes, carrying frames in both directions, in order."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial

from clew.errors import ClewError
from clew.runtime.frames import FrameReader
from clew.runtime.loop import Loop

_AT_ONCE = 1 << 18
_BUFFERS = 64


class Link:
    """Frames over a socket. Sending works from any thread; `on_frame` and `on_closed` are called on the loop's."""

    def __init__(self, loop: Loop, sock: socket.socket) -> None:
        self.loop = loop
        self.sock = sock
        self.on_frame: Callable[[int, bytes], None] = lambda kind, payload: None
        self.on_read: Callable[[], None] = lambda: None
        """Called after all frames that had arrived were delivered."""
        self.on_closed: Callable[[str], None] = lambda reason: None
        self.bytes_in = 0
        self.bytes_out = 0
        self._reader = FrameReader()
        self._waiting: deque[bytes | memoryview] = deque()
        self._lock = threading.Lock()
        self._is_stalled = False
        """Whether the socket took no more, so that the loop goes on when it does."""
        self.is_closed = False
        _LINKS.add(self)
        sock.settimeout(None)
        sock.setblocking(False)
        if sock.family != getattr(socket, "AF_UNIX", None):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        """Begins to read; on the loop's thread."""
        if not self.is_closed:
            self.loop.watch(self.sock, selectors.EVENT_READ, self._ready)

    @property
    def is_full(self) -> bool:
        """Whether the socket takes no more for now."""
        return self._is_stalled

    def put(self, data: bytes) -> None:
        """Queues bytes of whole frames; `flush` sends them."""
        if not self.is_closed:
            self._waiting.append(data)

    def send(self, data: bytes) -> None:
        """Sends whole frames now, or as soon as the socket takes them."""
        self.put(data)
        self.flush()

    def flush(self) -> None:
        """Sends what is queued, as far as the socket takes it; the loop does the rest."""
        if not self._waiting or self._is_stalled:
            return
        with self._lock:
            is_empty = self._push()
        if not is_empty:
            self.loop.soon(self._watch_both)

    def _push(self) -> bool:
        """Writes until all is written or the socket is full; True when nothing is left for the loop to do."""
        waiting = self._waiting
        while waiting and not self.is_closed:
            part = self._next_part()
            try:
                sent = self.sock.send(part)
            except BlockingIOError:
                waiting.appendleft(part)
                self._is_stalled = True
                return False
            except OSError as error:
                self.loop.soon(partial(self.close, str(error)))
                waiting.clear()
                return True
            self.bytes_out += sent
            if sent < len(part):
                waiting.appendleft(memoryview(part)[sent:])
        return True

    def _next_part(self) -> bytes | memoryview:
        """The next bytes to send: small frames together, so that they need one call."""
        waiting = self._waiting
        first = waiting.popleft()
        if not waiting or len(first) >= _AT_ONCE:
            return first
        parts, size = [first], len(first)
        while waiting and len(parts) < _BUFFERS and size + len(waiting[0]) <= _AT_ONCE:
            parts.append(waiting.popleft())
            size += len(parts[-1])
        return b"".join(parts) if len(parts) > 1 else first

    def _watch_both(self) -> None:
        if not self.is_closed:
            self.loop.watch(self.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, self._ready)

    def _ready(self, events: int) -> None:
        if events & selectors.EVENT_WRITE and not self.is_closed:
            with self._lock:
                self._is_stalled = False
                is_empty = self._push()
            if is_empty and not self.is_closed:
                self.loop.watch(self.sock, selectors.EVENT_READ, self._ready)
        if events & selectors.EVENT_READ and not self.is_closed:
            self._read()

    def _read(self) -> None:
        room = self._reader.room()
        try:
            count = self.sock.recv_into(room)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(str(error))
            return
        finally:
            room.release()
        if not count:
            self.close("the other end closed it")
            return
        self.bytes_in += count
        self._reader.filled(count)
        try:
            for kind, payload in self._reader.frames():
                self.on_frame(kind, payload)
                if self.is_closed:
                    return
            self.on_read()
        except ClewError as error:
            self.close(f"refused: {error}")

    def close(self, reason: str = "closed here") -> None:
        """Ends the link; on the loop's thread."""
        if self.is_closed:
            return
        self.is_closed = True
        self.loop.unwatch(self.sock)
        with self._lock, contextlib.suppress(OSError):  # A thread that sends must not reach who gets its number next.
            self.sock.close()
        self._waiting.clear()
        _LINKS.discard(self)
        self.on_closed(reason)


_LINKS: weakref.WeakSet[Link] = weakref.WeakSet()


def _let_go() -> None:
    """In a process that user code has forked: a copy of a socket would hide from the other end that this end died."""
    for link in list(_LINKS):
        with contextlib.suppress(OSError):
            link.sock.close()


os.register_at_fork(after_in_child=_let_go)
