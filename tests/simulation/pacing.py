"""A source that reads once in an epoch, so that a simulated run has as many epochs as reads.

A small pipeline would otherwise have read everything before its first epoch is complete, and going back to one while
there is more to read would hardly ever be tried.
"""

from __future__ import annotations

from clew.protocol import inputs as was
from clew.protocol.barriers import SnapshotSource
from clew.protocol.effects import Effect


class Paced(SnapshotSource):
    """Reads once, then waits for the end of the epoch."""

    got = 0

    def on_got(self, given: was.Got, effects: list[Effect]) -> None:
        self.got += bool(given.items)
        super().on_got(given, effects)

    def _end_epoch(self, effects: list[Effect]) -> None:
        self.got = 0
        super()._end_epoch(effects)

    def _is_throttled(self) -> bool:
        return self.got > 0 or super()._is_throttled()
