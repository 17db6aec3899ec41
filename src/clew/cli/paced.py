"""A source at a steady pace, so that a small amount of data lasts long enough to be watched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from clew.model.operator import Context
from clew.model.source import Source


class Paced(Source):
    """Gives what another source gives, so many events per second at most."""

    def __init__(self, source: Source, per_second: float) -> None:
        self.source = source
        self.outputs = source.outputs
        self.connection = source.connection
        self.is_replayable = source.is_replayable
        self.pause_s = 1 / per_second
        self.poll_s = self.pause_s / 2
        self._due = 0.0

    def open(self, ctx: Context) -> None:
        """Begins now: what was due while nobody was there is not made up for."""
        self.source.open(ctx)
        self._due = time.monotonic()

    def plan(self, ctx: Context) -> Any:
        """The action of the other source."""
        return self.source.plan(ctx)

    def read(self, action: Any, offset: Any) -> Iterator[Any]:
        """The events of the other source, each when it is due."""
        for item in self.source.read(action, offset):
            while time.monotonic() < self._due:
                yield None
            self._due = max(self._due, time.monotonic() - self.pause_s) + self.pause_s
            yield item
