"""Pacing: something is done at once unless it was done just now; then it waits a little and does more at a time."""

from __future__ import annotations

import math


class Pacing:
    """When something may be done again that is worth doing at most once in so many seconds.

    >>> pacing = Pacing(0.25)
    >>> pacing.wait_s(10.0)
    0.0
    >>> pacing.done(10.0)
    >>> pacing.wait_s(10.125), pacing.wait_s(99.0)
    (0.125, 0.0)
    """

    __slots__ = ("_again_at", "every_s")

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self._again_at = -math.inf

    def wait_s(self, now: float) -> float:
        """How long to wait from now on; 0: not at all."""
        return max(0.0, self._again_at - now)

    def done(self, now: float) -> None:
        """It was done now."""
        self._again_at = now + self.every_s
