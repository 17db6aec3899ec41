"""Failing moves: what user code failed at in a run, and that nothing else was given up.

The simulator sees both sides, the move that raised and the decision to give up; the kernel sees only its marks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from clew.errors import Violation
from clew.model.names import Replica
from clew.model.values import decode
from clew.protocol import decisions as did
from clew.protocol import effects as does
from clew.verify.archive import Archive
from clew.verify.brief import brief

_SPARE = 100
"""How often a move may fail beyond its tries: the first times, nobody knows which move it is."""


class Failures:
    """All moves that failed in a run, by what they were given."""

    def __init__(self, tries: int) -> None:
        self.tries = tries
        self.counts: Counter[tuple[Replica, Any]] = Counter()
        self.last: dict[Replica, str] = {}

    def add(self, replica: Replica, move: does.Move, error: str) -> None:
        """A move has failed; raises when that leads nowhere, as when no input can be blamed for it."""
        self.last[replica] = error
        self.counts[replica, _given(move)] += 1
        spare = 0 if isinstance(move, does.Ask) else _SPARE
        if self.counts[replica, _given(move)] > self.tries + spare:
            raise Violation(error)

    def judge(self, archive: Archive) -> None:
        """Raises unless every operator that failed gave something up, and what it gave up had failed."""
        for replica, shelf in archive.items():
            given_up = [each for each in shelf.journal if isinstance(each, did.GaveUp)]
            for decision in given_up:
                if not self.counts[replica, _given_up(decision)]:
                    raise Violation(f"{replica}: {brief(decision)} was decided, but that move never failed")
            if replica in self.last and not given_up:
                raise Violation(f"{self.last[replica]}; when it was tried again, it did not fail")


def _given(move: does.Move) -> Any:
    match move:
        case does.Fold():
            return "fold", move.channel, move.event.id
        case does.Refold():
            return "refold", move.channel, move.event.id, move.key
        case does.Generate():
            return "generate", frozenset(move.keys)
        case does.Fire():
            return "fire", decode(move.name)
    return type(move).__name__.lower()


def _given_up(decision: did.GaveUp) -> Any:
    match decision.move:
        case "fold":
            return "fold", decision.channel, decision.event
        case "refold":
            return "refold", decision.channel, decision.event, decision.keys[0]
        case "generate":
            return "generate", frozenset(decision.keys)
        case "fire":
            return "fire", decode(decision.timer or b"")
    return decision.move
