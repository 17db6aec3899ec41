"""Announcing: a host gathers what its replicas announce of their times, and tells the coordinator not too often.

What a replica announced and the coordinator was not told yet is one announcement: counts are added up, so that what
came and went meanwhile costs nothing, and the newest number is kept. The first goes out at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from clew.protocol import effects as does
from clew.protocol.announcements import joined
from clew.runtime.pacing import Pacing

ANNOUNCE_EVERY_S = 0.01
"""A host that has much to announce tells the coordinator about 100 times in a second."""

Tell = Callable[[Mapping[str, does.Announce]], bool]
"""Tells the coordinator; False when the way to it is full, so that it is better to wait."""
Later = Callable[[float, Callable[[], None]], None]


class Announcing:
    """The announcements of one host's replicas, from any thread, in order for each replica."""

    def __init__(self, tell: Tell, later: Later, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._later = later
        self._clock = clock
        self._pacing = Pacing(ANNOUNCE_EVERY_S)
        self._lock = threading.Lock()
        self._waiting: dict[str, does.Announce] = {}
        self._is_called_back = False

    def announce(self, member: str, announcement: does.Announce) -> None:
        """Tells it now, or soon, together with what comes until then."""
        with self._lock:
            self._waiting[member] = joined(self._waiting.get(member), announcement)
            if not self._is_called_back:
                self._go_on()

    def finish(self) -> None:
        """Tells what still waits, for the last time."""
        with self._lock:
            if self._waiting:
                self._tell(self._waiting)
                self._waiting = {}

    def _go_on(self) -> None:
        """Tells all that waits, or asks to be called back; under the lock, so that what is told is in order."""
        now = self._clock()
        pause_s = self._pacing.wait_s(now)
        if not pause_s:
            self._pacing.done(now)
            if self._tell(self._waiting):
                self._waiting = {}
                return
            pause_s = self._pacing.every_s
        self._is_called_back = True
        self._later(pause_s, self._called_back)

    def _called_back(self) -> None:
        with self._lock:
            self._is_called_back = False
            if self._waiting:
                self._go_on()
