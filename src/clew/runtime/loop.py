"""The loop: one thread that waits for all sockets and all moments of a process, and calls who is concerned."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

Job = Callable[[], None]


class Loop:
    """Runs callbacks: when a socket is ready, at a moment, or as soon as possible. All of them on one thread."""

    def __init__(self, name: str, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        self._selector.register(self._wake_in, selectors.EVENT_READ, self._woken)
        self._soon: deque[Job] = deque()
        self._later: list[tuple[float, int, Job]] = []
        self._count = itertools.count()
        self._lock = threading.Lock()
        self._is_waiting = False
        self._is_ended = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begins to run callbacks."""
        self._thread.start()

    def end(self) -> None:
        """Ends after the callbacks that wait now; returns when it has."""
        self.soon(self._end)
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            self._thread.join(10)

    def _end(self) -> None:
        self._is_ended = True

    @property
    def is_own_thread(self) -> bool:
        """Whether this is called on the loop's thread."""
        return threading.current_thread() is self._thread

    def soon(self, job: Job) -> None:
        """Runs a callback as soon as possible; may be called from any thread."""
        self._soon.append(job)
        self.wake()

    def wake(self) -> None:
        """Makes the loop look at what is new."""
        if self._is_waiting:
            with self._lock, contextlib.suppress(OSError):  # The pipe is full, so it will wake anyway.
                if not self._is_closed:  # Its number may be another file's by now.
                    os.write(self._wake_out, b"\0")

    def at(self, moment: float, job: Job) -> None:
        """Runs a callback at a moment of `time.monotonic`; may be called from any thread."""
        with self._lock:
            heapq.heappush(self._later, (moment, next(self._count), job))
            is_first = self._later[0][2] is job
        if is_first:
            self.wake()

    def after(self, seconds: float, job: Job) -> None:
        """Runs a callback when so much time has passed."""
        self.at(time.monotonic() + seconds, job)

    def watch(self, sock: socket.socket, events: int, job: Callable[[int], None]) -> None:
        """Calls back whenever a socket is ready; on the loop's thread only."""
        try:
            self._selector.modify(sock, events, job)
        except KeyError:
            self._selector.register(sock, events, job)

    def unwatch(self, sock: socket.socket) -> None:
        """No more calls for a socket; on the loop's thread only."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(sock)

    def _woken(self, events: int) -> None:
        try:
            while os.read(self._wake_in, 4096):
                pass
        except BlockingIOError:
            pass

    def _run(self) -> None:
        try:
            while not self._is_ended:
                self._turn()
        except BaseException as error:
            self._on_error(error)
        finally:
            self._selector.close()
            with self._lock:
                self._is_closed = True
                os.close(self._wake_in)
                os.close(self._wake_out)

    def _turn(self) -> None:
        self._is_waiting = True  # From here on every `soon` wakes; what came before is seen below.
        ready = self._selector.select(self._pause())
        self._is_waiting = False
        for key, events in ready:
            callback: Any = key.data
            callback(events)
        for _ in range(len(self._soon)):
            self._soon.popleft()()
        self._run_due()

    def _pause(self) -> float | None:
        if self._soon or self._is_ended:
            return 0.0
        with self._lock:
            if not self._later:
                return None
            return max(0.0, self._later[0][0] - time.monotonic())

    def _run_due(self) -> None:
        now = time.monotonic()  # What becomes due meanwhile waits until the sockets have been looked at.
        while True:
            with self._lock:
                if not self._later or self._later[0][0] > now:
                    return
                job = heapq.heappop(self._later)[2]
            job()
