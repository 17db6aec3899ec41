"""The rules that every step of an explanation must keep: numbers without gaps, nothing taken that was not made.

They are the rules of the thesis for a step and for a border, lifted to several output ports and to functions that are
not known: a stream is what one replica sends on one port, numbered from 1 on; a border is taken from every inbound
connection that has not ended and made on every port that has not (seed 000, Definition 4.1, I-EVENT and I-BORDER).
"""

from __future__ import annotations

from collections.abc import Mapping

from clew.model.names import Replica
from clew.trace.records import LOG, Head, Names, Part, Steps, threes, twos
from clew.verify.explain.explanation import NoExplanation, Step


class Stream:
    """What a replica has sent on a port so far."""

    __slots__ = ("borders", "end", "first", "made", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.made = 0
        self.first = 0
        """What was made up to here was made before the trace begins, and nothing else is known of it."""
        self.end = 0
        """The number of its end mark."""
        self.borders: dict[int, int] = {}
        """By epoch: the number of its border."""


class Place:
    """Where a replica is in the explanation."""

    __slots__ = (
        "closed",
        "ended",
        "epoch",
        "held",
        "inbound",
        "made",
        "names",
        "outbound",
        "position",
        "taken",
        "uncounted",
        "unsure",
    )

    def __init__(self, head: Head, streams: dict[tuple[Replica, str], Stream]) -> None:
        self.names: Names = head.names
        self.inbound = [streams[each.sender, each.output] for each in head.names.channels]
        self.outbound = [streams[head.names.replica, port] for port in head.names.ports]
        self.taken, self.ended = list(head.taken), list(head.ended)
        self.held = [0] * len(self.taken)
        self.made, self.closed = list(head.made), list(head.closed)
        self.epoch, self.position = head.epoch, head.position
        self.uncounted = self.unsure = 0
        """Steps since that position, and how many of them may not count: being told frontiers counts if it matters."""
        for stream, made, closed in zip(self.outbound, head.made, head.closed, strict=False):
            stream.made = stream.first = made
            stream.end = made if closed else 0

    def waits_for(self, part: Part) -> tuple[Stream, int] | None:
        """What a step takes and nobody has made yet."""
        for place, _, last in threes(part.took):
            if last > self.inbound[place].made:
                return self.inbound[place], last
        for place, number in twos(part.ended + part.held):
            if number > self.inbound[place].made:
                return self.inbound[place], number
        return None

    def apply(self, step: Step, part: Part) -> None:
        """Takes a step; raises if it is not allowed here."""
        if part.epoch != self.epoch:
            raise NoExplanation(step, f"it works in epoch {part.epoch}; expected {self.epoch}")
        taken = self.taken
        for place, first, last in threes(part.took):
            if first != taken[place] + 1 or last < first:
                raise NoExplanation(step, self._out_of_order(place, first))
            stream = self.inbound[place]
            if self.ended[place] or self.held[place]:
                what = "end mark" if self.ended[place] else f"border of epoch {self.epoch}"
                raise NoExplanation(step, f"it takes {stream.name}/{first} although it has taken the {what} there")
            if last >= stream.end > stream.first:
                raise NoExplanation(step, f"it takes {stream.name}/{stream.end} as an event, which is the end mark")
            if part.epoch and first <= stream.borders.get(part.epoch, 0) <= last:
                number = stream.borders[part.epoch]
                raise NoExplanation(step, f"it takes {stream.name}/{number} as an event, which is a border")
            taken[place] = last
        if part.ended or part.held:
            self._take_marks(step, part)
        made = self.made
        for place, first, last in threes(part.made):
            if first != made[place] + 1 or last < first:
                name = self._out(place)
                raise NoExplanation(step, f"it makes {name}/{first}; expected {name}/{made[place] + 1} next")
            made[place] = last
            if place < len(self.outbound):
                if self.closed[place]:
                    raise NoExplanation(step, f"it makes {self._out(place)}/{first} after the end mark of that port")
                self.outbound[place].made = last
        if part.closed or part.is_border:
            self._make_marks(step, part)
        self.uncounted += part.steps
        self.unsure += part.counts.get("Moved", 0)
        record = step.record
        if isinstance(record, Steps) and record.parts[-1] is part:
            self._settle(step, record.position - self.position)
            self.position = record.position

    def _settle(self, step: Step, grown: int) -> None:
        """A commit is over: its position says how many steps it had."""
        if not self.uncounted - self.unsure <= grown <= self.uncounted:
            raise NoExplanation(
                step, f"its position grows by {grown:,}; expected {self.uncounted:,}, the number of steps in its commit"
            )
        self.uncounted = self.unsure = 0

    def _take_marks(self, step: Step, part: Part) -> None:
        for place, number in twos(part.ended + part.held):
            if number != self.taken[place] + 1 or self.ended[place] or self.held[place]:
                raise NoExplanation(step, self._out_of_order(place, number))
            self.taken[place] = number
        for place, number in twos(part.ended):
            stream = self.inbound[place]
            if stream.end != number and number > stream.first:
                raise NoExplanation(step, f"it takes {stream.name}/{number} as an end mark, which it is not")
            self.ended[place] = 1
        for place, number in twos(part.held):
            stream = self.inbound[place]
            if stream.borders.get(part.epoch) != number and number > stream.first:
                raise NoExplanation(
                    step, f"it takes {stream.name}/{number} as the border of epoch {part.epoch}, which it is not"
                )
            self.held[place] = 1

    def _make_marks(self, step: Step, part: Part) -> None:
        for place, number in twos(part.closed):
            self._next_mark(step, place, number)
            self.closed[place] = 1
            self.outbound[place].end = number
        if not part.is_border:
            return
        for stream, ended, held in zip(self.inbound, self.ended, self.held, strict=True):
            if not (ended or held):
                raise NoExplanation(
                    step, f"it ends epoch {part.epoch} without having taken the border of that epoch from {stream.name}"
                )
        for place, number in twos(part.borders):
            self._next_mark(step, place, number)
            self.outbound[place].borders[part.epoch] = number
        missing = [
            place for place in range(len(self.outbound)) if not self.closed[place] and place not in part.borders[::2]
        ]
        if missing:
            raise NoExplanation(step, f"it ends epoch {part.epoch} without a border on {self._out(missing[0])}")
        self.held = [0] * len(self.held)
        self.epoch += 1

    def _next_mark(self, step: Step, place: int, number: int) -> None:
        if number != self.made[place] + 1 or self.closed[place]:
            name = self._out(place)
            raise NoExplanation(step, f"it makes the mark {name}/{number}; expected {name}/{self.made[place] + 1} next")
        self.made[place] = self.outbound[place].made = number

    def begin(self, step: Step, head: Head) -> None:
        """An incarnation begins; raises if it does not begin where the explanation is."""
        names = self.names
        self._same(step, "position", head.position, self.position)
        for place, channel in enumerate(names.channels):
            self._same(step, f"last event taken on {channel}", head.taken[place], self.taken[place])
            self._same(step, f"number of end marks taken on {channel}", head.ended[place], self.ended[place])
        for place in range(len(names.outs)):
            self._same(step, f"last number of {self._out(place)}", head.made[place], self.made[place])
        for place in range(len(names.ports)):
            self._same(step, f"number of end marks of {self._out(place)}", head.closed[place], self.closed[place])
        if head.mode != LOG and not head.is_finished:
            self._same(step, "epoch", head.epoch, self.epoch)
        self.held = [0] * len(self.held)
        self.uncounted = self.unsure = 0

    def _same(self, step: Step, what: str, its: int, expected: int) -> None:
        if its != expected:
            raise NoExplanation(
                step,
                f"it goes on from another place than the explanation has come to: its {what} is {its:,}; expected "
                f"{expected:,}",
            )

    def _out(self, place: int) -> str:
        return f"{self.names.replica}.{self.names.outs[place]}"

    def _out_of_order(self, place: int, number: int) -> str:
        name = self.inbound[place].name
        word = "again" if number <= self.taken[place] else "too early"
        return f"it takes {name}/{number} {word}; expected {name}/{self.taken[place] + 1} next"


def streams_of(heads: Mapping[Replica, Head]) -> dict[tuple[Replica, str], Stream]:
    """All streams of a pipeline; of a sender without a trace nothing is known to be made."""
    keys: dict[tuple[Replica, str], None] = {}
    for replica, head in heads.items():
        keys.update(((replica, port), None) for port in head.names.ports)
        keys.update(((each.sender, each.output), None) for each in head.names.channels)
    return {(replica, port): Stream(f"{replica}.{port}") for replica, port in keys}


def moment_of(step: Step) -> float:
    """When a step was taken."""
    return step.record.time
