"""Turns: the replicas of one host that work with caution attempt one thing at a time.

A process that dies takes all its replicas with it, and each successor looks at its own attempting mark. If two marks
were durable at once, an innocent neighbour would be charged with a try. So a replica takes the turn before it commits
a mark and gives it back when the mark has ended, durably.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from clew.protocol.caution import changed_marks


class Turn:
    """One replica's part in a turn that it shares with its neighbours."""

    def __init__(self, shared: threading.Lock) -> None:
        self._shared = shared
        self._live: set[str] = set()
        """The marks that are durable now, or become so with the commit under way."""
        self._has = False

    def before(self, counters: Mapping[str, int], is_ended: Callable[[], bool]) -> None:
        """A commit of these counters is about to begin; waits for the turn if it marks an attempt."""
        begun, ended = changed_marks(counters)
        if begun and not self._has:
            while not self._shared.acquire(timeout=0.2):
                if is_ended():
                    return
            self._has = True
        self._live = (self._live - ended) | begun

    def after(self) -> None:
        """The commit is durable; without a mark nobody needs the turn."""
        if self._has and not self._live:
            self._has = False
            self._shared.release()
