"""Aligning: lives of one replica whose records name its connections by different places, brought to the same places.

A pipeline stays the same for its log when its ports are declared in another order, or dead letters are switched on.
"""

from __future__ import annotations

from typing import TypeVar

from clew.trace.life import Life, Told
from clew.trace.records import Head, Names, Numbers, Part, Steps, Wrote, threes, twos

_Name = TypeVar("_Name")


def aligned(lives: list[Life]) -> list[Life]:
    """The lives, all with the names of the last one and whatever earlier ones had besides."""
    if all(life.head.names == lives[-1].head.names for life in lives):
        return lives
    found = [life.head.names for life in reversed(lives)]
    names = Names(
        found[0].replica,
        tuple(dict.fromkeys(channel for each in found for channel in each.channels)),
        tuple(dict.fromkeys(port for each in found for port in each.ports)),
        tuple(dict.fromkeys(write for each in found for write in each.writes)),
    )
    return [_Move(life.head.names, names).life(life) for life in lives]


class _Move:
    """Moves the records of one life to the places of other names."""

    def __init__(self, old: Names, new: Names) -> None:
        self.names = new
        self.channels = _places(old.channels, new.channels)
        self.ports = _places(old.ports, new.ports)
        self.writes = _places(old.writes, new.writes)
        self.outs = self.ports + [len(new.ports) + place for place in self.writes]

    def life(self, life: Life) -> Life:
        return Life(self._head(life.head), [self._told(record) for record in life.told])

    def _head(self, head: Head) -> Head:
        names = self.names
        return head._replace(
            names=names,
            taken=_spread(head.taken, self.channels, len(names.channels)),
            ended=_spread(head.ended, self.channels, len(names.channels)),
            made=_spread(head.made, self.outs, len(names.outs)),
            closed=_spread(head.closed, self.ports, len(names.ports)),
            written=_spread(head.written, self.writes, len(names.writes)),
        )

    def _told(self, record: Told) -> Told:
        if isinstance(record, Steps):
            parts = tuple(map(self._part, record.parts))
            return record._replace(wrote=_pairs(record.wrote, self.writes), parts=parts)
        if isinstance(record, Wrote):
            return record._replace(wrote=_pairs(record.wrote, self.writes))
        return record

    def _part(self, part: Part) -> Part:
        return part._replace(
            took=_runs(part.took, self.channels),
            made=_runs(part.made, self.outs),
            ended=_pairs(part.ended, self.channels),
            held=_pairs(part.held, self.channels),
            closed=_pairs(part.closed, self.ports),
            borders=_pairs(part.borders, self.ports),
        )


def _places(old: tuple[_Name, ...], new: tuple[_Name, ...]) -> list[int]:
    return [new.index(name) for name in old]


def _spread(numbers: Numbers, places: list[int], length: int) -> Numbers:
    spread = [0] * length
    for place, number in zip(places, numbers, strict=True):
        spread[place] = number
    return tuple(spread)


def _pairs(numbers: Numbers, places: list[int]) -> Numbers:
    return tuple(each for place, number in twos(numbers) for each in (places[place], number))


def _runs(numbers: Numbers, places: list[int]) -> Numbers:
    return tuple(each for place, first, last in threes(numbers) for each in (places[place], first, last))
