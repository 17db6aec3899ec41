"""The clock of a host: the time of day, except that it never goes back, and never stands still, when that is set back.

Timers are set by this clock and rung by it. If it went back with the wall clock, a replica, whose history cannot,
would take every new timer for overdue; if it stood still, no timer would ring until the wall clock has caught up.
"""

from __future__ import annotations

import time


class Clock:
    """Seconds since the epoch.

    >>> clock = Clock()
    >>> clock.now() <= clock.now()
    True
    """

    __slots__ = ("_ahead",)

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()
        """How far the time of day is ahead of the monotonic clock: the most that was seen."""

    def now(self) -> float:
        """What it shows; may be asked by any thread."""
        monotonic = time.monotonic()
        self._ahead = max(self._ahead, time.time() - monotonic)
        return monotonic + self._ahead
