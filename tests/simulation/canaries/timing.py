"""Canaries of time: what is held, counted, announced and shown, and when a loop is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import loops, moments, two_moments

from clew.model.history import Transaction
from clew.model.values import decode
from clew.protocol import inputs as was
from clew.protocol.capabilities import SOURCE, Capabilities, Owner
from clew.protocol.effects import Announce, Effect
from clew.protocol.logio import OperatorKernel
from clew.protocol.source import SourceKernel
from clew.times import Antichain

AHEAD = r"although .* can still arrive there|had passed"
STUCK = r"the frontier of .* stays at|stuck: nothing can happen|its log still has rows of time"


@canary("an Input Set that holds no time", moments, AHEAD)
class HoldsNothing(Capabilities):
    """What an open Input Set will make is counted by nobody, so frontiers run ahead of it."""

    def hold(self, owner: Owner, times: tuple[Any, ...]) -> None:
        changes = dict(self._changes)
        super().hold(owner, times)
        if isinstance(owner, int):
            self._changes = changes


@canary("counts announced before they are durable", moments, f"{AHEAD}|{STUCK}")
class AnnouncesEarly(OperatorKernel):
    """An event is counted as taken when it is, and not when that is durable; a crash takes it back, the count stays."""

    def _proceed(self, effects: list[Effect]) -> None:
        assert self.times is not None
        super()._proceed(effects)
        changes = self.times._changes
        if changes:
            effects.append(Announce((self.incarnation, self.commits), dict(changes)))
            self.times._changes = {}


@canary("a creation announced after the drop that it rests on", moments, AHEAD)
class DropsFirst(Capabilities):
    """What was taken or dropped is announced with its commit, what came of it only with the next one."""

    late: Mapping[tuple[str, Any], int] = {}

    def durable(self, number: tuple[int, int], is_idle: bool = False) -> Announce | None:
        announcement = super().durable(number, is_idle)
        counts = dict(self.late)
        made: dict[tuple[str, Any], int] = {}
        for place, count in (announcement.counts if announcement is not None else {}).items():
            if count > 0:
                made[place] = count
            else:
                counts[place] = counts.get(place, 0) + count
        self.late = made
        return Announce(number, counts, is_idle=is_idle) if counts else None


@canary("an end of counting that is lost", moments, STUCK)
class TakesWithoutCounting(Capabilities):
    """Events that were taken are never counted down, so nothing ever moves on."""

    def took(self, port: str, time: Any) -> None:
        pass


@canary("counts that a crash loses", moments, AHEAD + "|" + STUCK)
class ForgetsCounts(Capabilities):
    """What was counted before a crash is not in the log, so that the successor announces too little."""

    def seal(self, transaction: Transaction) -> None:
        super().seal(transaction)
        for row in [row for row in transaction.progress if row[0] == "sum"]:
            del transaction.progress[row]


@canary("holds that a crash loses", moments, r"has the time None; expected|assign\(\) for windows")
class ForgetsHolds(Capabilities):
    """What an Input Set holds is not in the log, so that the successor holds it no longer."""

    def seal(self, transaction: Transaction) -> None:
        super().seal(transaction)
        for row in [row for row in transaction.progress if row[0] == "hold" and isinstance(decode(row[1]), int)]:
            del transaction.progress[row]


@canary("a source that holds nothing before its first commit", moments, AHEAD)
class BeginsWithoutHolding(Capabilities):
    """Before anything of a source is durable nobody knows what it will send, so frontiers are empty at first."""

    def whole(self, number: tuple[int, int]) -> Announce:
        announcement = super().whole(number)
        if not self._stored:
            announcement.counts = {}
        return announcement


@canary("a frontier shown and not logged", moments, r"ready\(\) answered|frontier|stays at")
class ShowsWithoutLogging(Capabilities):
    """After a crash the operator is shown an older frontier than the one that its history rests on."""

    def seal(self, transaction: Transaction) -> None:
        super().seal(transaction)
        for row in [row for row in transaction.progress if row[0] == "shown"]:
            del transaction.progress[row]


@canary("counts removed without saying why", moments, STUCK)
class PrunesSilently(Capabilities):
    """A count is removed at a time that has passed, and the log does not say so: its opposite stays for ever."""

    def seal(self, transaction: Transaction) -> None:
        self._changed_frontiers.clear()
        super().seal(transaction)

    def whole(self, number: tuple[int, int]) -> Announce:
        announcement = super().whole(number)
        announcement.passed = {}
        return announcement


@canary("an idle source that lets go of everything", two_moments, AHEAD + r"|while it is idle|has the time")
class LetsGo(SourceKernel):
    """An idle source holds nothing any more, as if it had ended, and then sends something."""

    def _follow(self, effects: list[Effect]) -> None:
        if self.is_idle and self.times is not None and self._held():
            self.times.drop(SOURCE)
            self.is_dirty = True
            self._flush(effects)


@canary(
    "a loop that ends when nothing waits",
    loops,
    r"all have finished, although|finished after",
)
class EndsWhenQuiet(OperatorKernel):
    """A feedback operator takes an empty inbox for the end of its loop, while something is still on its way round."""

    def on_advanced(self, given: was.Advanced, effects: list[Effect]) -> None:
        super().on_advanced(given, effects)
        if self.is_feedback and not self.is_drained and not self.inbox and self.move is None:
            self._drain()
            self._flush(effects)


@canary("an operator that is never shown a frontier", two_moments, "was never shown to its operator")
class Deaf(OperatorKernel):
    """What the tracker says is used to remove rows, but the operator hears nothing of it."""

    def _advance(self, effects: list[Effect]) -> bool:
        self.has_moved = False
        return False


@canary("counts that are never removed", moments, "its log still has rows of time")
class NeverPrunes(Capabilities):
    """Rows at times that have passed stay in the log for ever."""

    def _prune(self, location: str, frontier: Antichain) -> None:
        pass
