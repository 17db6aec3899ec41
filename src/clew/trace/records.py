"""Records: what a trace holds of one replica, as values.

A commit is one record, since it is atomic: nothing leaves a replica before the whole commit is applied. What a commit
took and made is told in ranges of ids, in the order in which it happened, and divided into parts where an epoch ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from clew.model.names import Channel, Replica

LOG = "log"
SNAPSHOT = "snapshot"
Numbers = tuple[int, ...]
"""Numbers in groups of two or three, one group after the other."""


class Names(NamedTuple):
    """The connections of a replica, which records name by their places here: inbound, output ports, write ones."""

    replica: Replica
    channels: tuple[Channel, ...]
    ports: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def outs(self) -> tuple[str, ...]:
        """All destinations: output ports, then write connections.

        >>> Names(Replica("sums"), (), ("out",), ("archive",)).outs
        ('out', 'archive')
        """
        return self.ports + self.writes


class Head(NamedTuple):
    """Where a replica is when an incarnation of it begins, or a segment of its trace."""

    names: Names
    mode: str
    """`log` or `snapshot`."""
    incarnation: int
    """In the mode `snapshot` the generation of the run."""
    recovered: int
    """The epoch that the generation has gone back to; 0 in the mode `log`, which has none."""
    epoch: int
    """The epoch that is under way; 0 in the mode `log`."""
    position: int
    taken: Numbers
    """By inbound connection: the last event taken."""
    ended: Numbers
    """By inbound connection: 1 if its end mark was taken."""
    made: Numbers
    """By destination: the last event or write action made."""
    closed: Numbers
    """By output port: 1 if its end mark was made."""
    written: Numbers
    """By write connection: the last action that is durably known to be done."""
    undone: int
    """How many pairs must be folded again."""
    is_finished: bool
    """Whether it had finished before."""
    process: int
    time: float
    is_start: bool
    """False: only a segment begins here."""


class Part(NamedTuple):
    """What a commit did in one epoch. Whoever takes nothing and makes nothing may still have decided something."""

    epoch: int
    took: Numbers = ()
    """Runs of events: the inbound connection, the first and the last id, in the order of taking."""
    made: Numbers = ()
    """Runs of events and write actions: the destination, the first and the last id."""
    counts: Mapping[str, int] = {}
    """How many decisions of each other kind were taken."""
    ended: Numbers = ()
    """End marks taken: the inbound connection and the id."""
    held: Numbers = ()
    """Borders taken: the inbound connection and the id."""
    closed: Numbers = ()
    """End marks made: the output port and the id."""
    is_border: bool = False
    """Whether the epoch ends here."""
    borders: Numbers = ()
    """The borders made then: the output port and the id."""

    @property
    def steps(self) -> int:
        """How many decisions there are in it.

        >>> Part(0, took=(0, 5, 7), counts={"Made": 3}).steps
        6
        """
        taken = sum(self.took[2::3]) - sum(self.took[1::3]) + len(self.took) // 3
        return taken + sum(self.counts.values()) + (len(self.ended) + len(self.held)) // 2 + self.is_border


class Steps(NamedTuple):
    """A commit, written before it was applied: its number in the incarnation, and the position after it."""

    time: float
    number: int
    position: int
    wrote: Numbers
    """Write actions that were seen to be done outside before the commit: the write connection and the number."""
    parts: tuple[Part, ...]

    @property
    def steps(self) -> int:
        """How many decisions there are in it."""
        return sum(part.steps for part in self.parts)


class Wrote(NamedTuple):
    """Write actions that were seen to be done outside, told apart from a commit."""

    time: float
    wrote: Numbers


class Stored(NamedTuple):
    """The replica's snapshot of an epoch is durable."""

    time: float
    epoch: int
    is_final: bool
    """Whether it holds for all later epochs too, since the replica has finished."""


class Completed(NamedTuple):
    """The replica was told that an epoch is complete everywhere."""

    time: float
    epoch: int


class End(NamedTuple):
    """The incarnation ended in order."""

    time: float
    is_complete: bool
    """Whether the replica had nothing left to do."""
    why: str = ""
    """What it died of, as far as it could still tell."""


Record = Head | Steps | Wrote | Stored | Completed | End


def twos(numbers: Numbers) -> Iterator[tuple[int, int]]:
    """Numbers as pairs.

    >>> list(twos((1, 2, 3, 4)))
    [(1, 2), (3, 4)]
    """
    return zip(numbers[::2], numbers[1::2], strict=True)


def threes(numbers: Numbers) -> Iterator[tuple[int, int, int]]:
    """Numbers as triples.

    >>> list(threes((0, 2, 3)))
    [(0, 2, 3)]
    """
    return zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
