"""Caution: after an unexplained death a replica marks each move before it begins it, so that the culprit is found.

Invariant: a marked move runs only while its mark is durable, and the mark ends in the transaction that holds the move's
result. So a mark that a successor finds names what the replica was doing when it died.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import NamedTuple

from clew.protocol.settings import Settings

_PREFIX = "attempt:"
FOLD, REFOLD, GENERATE, FINISH, FIRE, PLAN, READ = "fold", "refold", "generate", "finish", "fire", "plan", "read"
RECOVER = "recover"
"""All of the refolding, attempted at once: only when that has failed is each pair marked."""


class Attempt(NamedTuple):
    """What a mark names: a place that holds one mark, and the numbers that tell its input from any other.

    Events of different channels may come in another order after a restart, so each channel has a place of its own.
    """

    place: str
    numbers: tuple[int, ...] = ()

    @property
    def move(self) -> str:
        """The move that is attempted.

        >>> Attempt("fold/1", (7,)).move
        'fold'
        """
        return self.place.partition("/")[0]


def timer_number(name: bytes, at: float) -> int:
    """A number for one setting of a timer, the same in every process.

    >>> timer_number(b"idle", 5.0) == timer_number(b"idle", 5.0) != timer_number(b"idle", 6.0)
    True
    """
    digest = hashlib.blake2b(name + struct.pack(">d", at), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # A database's integer has a sign.


class Caution:
    """The marks of one replica, as counters of its log, and how long it stays cautious."""

    __slots__ = ("current", "is_pairwise", "marks", "moves_left", "suspect", "tries_max")

    def __init__(self, counters: Mapping[str, int], settings: Settings) -> None:
        self.marks = _marks(counters)
        """By place: what is or was attempted there, and how often already; without those that have ended."""
        self.tries_max = settings.tries
        self.moves_left = settings.caution_moves
        self.current: str | None = None
        self.is_pairwise = RECOVER in self.marks
        """Whether a predecessor died while it refolded, so that now each pair is marked."""
        self.suspect = self.marks[REFOLD][0][0] if REFOLD in self.marks else 0
        """The pair at which it died; those before it went well, and their marks would only hide how often it failed."""

    def clear(self) -> dict[str, int]:
        """Ends all marks: tries are counted anew."""
        rows = {f"{_PREFIX}{place}": 0 for place in self.marks}
        self.marks.clear()
        self.is_pairwise = False
        return rows

    def exhausted(self) -> tuple[Attempt, int] | None:
        """What was attempted as often as it may be, and how often that was."""
        for place, (numbers, tries) in self.marks.items():
            if place != RECOVER and tries >= self.tries_max:
                return Attempt(place, numbers), tries
        return None

    def begin(self, attempt: Attempt) -> dict[str, int]:
        """The rows that mark an attempt: the next one, if the very same was attempted before."""
        place, numbers = attempt
        known, tries = self.marks.get(place, ((), 0))
        tries = tries + 1 if known == numbers else 1
        self.marks[place] = numbers, tries
        self.current = place
        rows = {f"{_PREFIX}{place}": tries, f"{_PREFIX}{place}:size": len(numbers)}
        rows.update((f"{_PREFIX}{place}:{index}", number) for index, number in enumerate(numbers))
        return rows

    def end(self, place: str | None = None) -> dict[str, int]:
        """The rows that end the present mark, or the one in a place; with the operator, all its marks end."""
        if place is None:
            place, self.current = self.current, None
            if place == FINISH:
                return self.clear()
            if place not in (None, REFOLD, RECOVER):
                self.moves_left -= 1
            if place == RECOVER:
                return {}  # It ends with the last pair.
        if place not in self.marks:
            return {}
        del self.marks[place]
        return {f"{_PREFIX}{place}": 0}

    @property
    def is_over(self) -> bool:
        """Whether all that was in the predecessor's hands is past, and with it every event that is under suspicion."""
        return self.moves_left <= 0 and not any(place.startswith(FOLD) for place in self.marks)


def changed_marks(counters: Mapping[str, int]) -> tuple[set[str], set[str]]:
    """The places whose marks begin, and those whose marks end, with these rows.

    >>> changed_marks({"attempt:fold/0": 0, "attempt:generate": 1, "attempt:generate:size": 1, "order": 7})
    ({'generate'}, {'fold/0'})
    """
    rows = {name.removeprefix(_PREFIX): tries for name, tries in counters.items() if name.startswith(_PREFIX)}
    begun = {place for place, tries in rows.items() if tries and ":" not in place}
    return begun, {place for place, tries in rows.items() if not tries and ":" not in place}


def has_marks(counters: Mapping[str, int]) -> bool:
    """Whether a log holds a mark that has not ended."""
    return any(name.startswith(_PREFIX) for name in counters) and bool(_marks(counters))


def _marks(counters: Mapping[str, int]) -> dict[str, tuple[tuple[int, ...], int]]:
    marks = {}
    for name, tries in counters.items():
        place = name.removeprefix(_PREFIX)
        if place != name and ":" not in place and tries:
            size = counters.get(f"{name}:size", 0)
            marks[place] = tuple(counters[f"{name}:{index}"] for index in range(size)), tries
    return marks
