"""Tracking: what hosts announce goes to the frontiers of the run, and what these say goes back to the hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from clew.errors import ClewError
from clew.protocol.frontiers import Frontiers
from clew.runtime import control
from clew.runtime.groups import Group
from clew.runtime.loop import Loop
from clew.runtime.pacing import Pacing

ADVANCE_EVERY_S = 0.01
"""When much is announced, frontiers are computed 100 times in a second at most."""


class Tracking:
    """The coordinator's part in the progress of a run; all of it on the loop's thread."""

    def __init__(
        self, frontiers: Frontiers, loop: Loop, groups: Mapping[str, Group], fail: Callable[[str], None]
    ) -> None:
        self.frontiers = frontiers
        self._loop = loop
        self._groups = groups
        self._fail = fail
        self._generation: int | None = None
        """Where replicas recover together: the generation that counts."""
        self._pacing = Pacing(ADVANCE_EVERY_S)
        self._is_called_back = False

    def begin_anew(self, frontiers: Frontiers, generation: int) -> None:
        """All replicas go back: what they announced before is forgotten, and not heard any more."""
        self.frontiers = frontiers
        self._generation = generation

    def heard(self, group: Group, said: dict[str, Any]) -> None:
        """A host says what its replicas announce; raises if that cannot be so."""
        members = list(map(str, group.replicas))
        for member, announcement in list(control.read_progress(said)):
            if member not in members:
                raise ValueError(f"{member!r} is not one of its replicas")
            if self._generation is not None and announcement.number[0] != self._generation:
                continue
            try:
                self.frontiers.announced(member, announcement)
            except ClewError:
                raise  # It cannot be so; whoever said it has to begin anew.
            except Exception as error:
                self._failed(error)
        if self.frontiers.is_new and not self._is_called_back:
            self._is_called_back = True
            pause_s = self._pacing.wait_s(time.monotonic())
            if pause_s:
                self._loop.after(pause_s, self._advance)
            else:
                self._loop.soon(self._advance)  # After all that has arrived by now.

    def finish(self) -> None:
        """Nobody will say anything any more: the frontiers are as they will be shown."""
        if self._is_called_back:
            self._advance()

    def _advance(self) -> None:
        self._is_called_back = False
        self._pacing.done(time.monotonic())
        try:
            told = self.frontiers.advance()
        except Exception as error:
            self._failed(error)
            return
        for group in self._groups.values() if told else ():
            mine = {name: told[name] for name in map(str, group.replicas) if name in told}
            if mine and group.link is not None:  # Who has no host will be told all when it has joined again.
                group.link.send(control.advanced(mine))

    def _failed(self, error: Exception) -> None:
        """An order of times may be the user's own, so anything can happen in it."""
        self._fail(f"the frontiers cannot be computed: {type(error).__name__}: {error}")
