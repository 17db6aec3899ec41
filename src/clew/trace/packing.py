"""Packing: a transaction as the parts of a record, in one walk over its decisions and one over its outputs.

It runs for every commit, so it makes no object per decision: events that follow each other on a connection are one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.model.history import Output, Transaction
from clew.protocol import decisions as did
from clew.trace.records import Names

_TOOK, _ASKED, _ENDED, _GAVE_UP = did.Took, did.Asked, did.Ended, did.GaveUp
_HELD, _BORDERED = did.Held, did.Bordered


class Packer:
    """Packs the transactions of one replica; knows the places of its connections."""

    def __init__(self, names: Names) -> None:
        self._channels = {channel: place for place, channel in enumerate(names.channels)}
        self._seen: dict[int, tuple[Any, int]] = {}
        """By identity, since a connection's own hash takes long; the connection is kept, so that no other gets it."""
        self._outs = {name: place for place, name in enumerate(names.outs)}

    def pack(self, transaction: Transaction, epoch: int) -> list[list[Any]]:
        """The parts of a transaction that begins in an epoch, each the fields of a `Part`; perhaps none."""
        parts = self._decided(transaction.journal, epoch)
        if transaction.outputs:
            self._made(transaction.outputs, parts)
        last = parts[-1]
        if not (last[1] or last[2] or last[3] or any(last[4:])):
            parts.pop()  # Nothing came after the last border, or nothing at all.
        return parts

    def _decided(self, journal: Sequence[Any], epoch: int) -> list[list[Any]]:
        part = _part(epoch)
        parts, took, counts = [part], part[1], part[3]
        channel: Any = None
        place = first = last = -1
        for decision in journal:
            kind = type(decision)
            if kind is _TOOK or (kind is _GAVE_UP and decision.move == "fold"):
                number = decision.event
                if number == last + 1 and decision.channel is channel:
                    last = number
                    continue
                if channel is not None:
                    took += (place, first, last)
                channel = decision.channel
                place = self._place(channel)
                first = last = number
            elif kind is _ASKED:
                continue
            elif kind is _ENDED:
                part[4] += (self._place(decision.channel), decision.event)
            elif kind is _HELD:
                part[5] += (self._place(decision.channel), decision.event)
            elif kind is _BORDERED:
                if channel is not None:
                    took += (place, first, last)
                    channel = None
                part[7] = True
                epoch += 1
                part = _part(epoch)
                parts.append(part)
                took, counts = part[1], part[3]
            else:
                counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
        if channel is not None:
            took += (place, first, last)
        return parts

    def _made(self, outputs: Sequence[Output], parts: list[list[Any]]) -> None:
        index = 0
        part = parts[0]
        made = part[2]
        port: Any = None
        place = first = last = -1
        for output in outputs:
            event = output[0]
            number = event.id
            if event.port == port and number == last + 1 and event.batch is not None and not part[8]:
                last = number
                continue
            if port is not None:
                made += (place, first, last)
                port = None
            if event.border:
                part[8] += (self._outs[event.port], number)
                continue
            if part[8] and index + 1 < len(parts):  # Its borders were made: this belongs to the next epoch.
                index += 1
                part = parts[index]
                made = part[2]
            if event.is_end:
                part[6] += (self._outs[event.port], number)
                continue
            port, first, last = event.port, number, number
            place = self._outs[port]
        if port is not None:
            made += (place, first, last)

    def _place(self, channel: Any) -> int:
        found = self._seen.get(id(channel))
        if found is None:
            found = self._seen[id(channel)] = (channel, self._channels[channel])
        return found[1]


def _part(epoch: int) -> list[Any]:
    return [epoch, [], [], {}, [], [], [], False, []]
