"""Writes: what was seen to be done outside must be write actions of the explanation, in their order, each once.

A later incarnation may settle what the one before left in doubt: it tries an action again, which its connection makes
sure is done once. With snapshots an action is executed only when its epoch is complete.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from clew.model.names import Replica
from clew.trace.life import Life
from clew.trace.records import LOG, Completed, Numbers, Part, Steps, Wrote, threes, twos
from clew.verify.explain.explanation import NoExplanation, Step


@dataclass(slots=True)
class Executed:
    """How far one write connection is."""

    name: str
    last: int
    """The last action that was executed by anybody."""
    made: int
    """The last action that is committed."""
    settled: int = 0
    """How many actions were tried again."""
    at: int = 0
    """The last action that the present incarnation has executed, or knew to be done."""


class Outside:
    """Follows the write actions of one replica through all its incarnations."""

    def __init__(self, replica: Replica, lives: list[Life], discarded: list[Step]) -> None:
        first = lives[0].head
        ports = len(first.names.ports)
        self.replica = replica
        self.lives = lives
        self.ports = ports
        self.is_log = first.mode == LOG
        self._discarded = {(step.life.incarnation, id(step.part)) for step in discarded}
        self.connections = [
            Executed(f"{replica}.{name}", written, made)
            for name, written, made in zip(first.names.writes, first.written, first.made[ports:], strict=True)
        ]
        self._ends: list[list[int]] = [[each.made] for each in self.connections]
        self._epochs: list[list[int]] = [[first.recovered] for _ in self.connections]
        """By connection: runs of actions by their last number, and the epochs they were made in."""
        self.settled: dict[int, int] = {}
        """By incarnation: how many actions were tried again."""

    def check(self) -> None:
        """Raises at the first action that cannot be explained."""
        for number, life in enumerate(self.lives):
            if number:
                self._begin(life)
            else:
                for each in self.connections:
                    each.at = each.last
            before = sum(each.settled for each in self.connections)
            completed = life.head.recovered
            for record in life.told:
                if isinstance(record, Completed):
                    completed = max(completed, record.epoch)
                elif isinstance(record, Steps | Wrote):
                    if record.wrote:
                        self._executed(life, record, record.wrote, completed)
                    if isinstance(record, Steps):
                        for part in record.parts:
                            self._made(life, part)
            self.settled[life.incarnation] = sum(each.settled for each in self.connections) - before

    def _begin(self, life: Life) -> None:
        head = life.head
        for place, each in enumerate(self.connections):
            each.at = head.written[place]
            each.made = head.made[self.ports + place]
            if each.at > each.last:
                raise NoExplanation(
                    Step(self.replica, life, head, None),
                    f"its log says that write action {each.name}/{each.at} is done, which nobody was seen to do; the "
                    f"last that was seen is {each.last}",
                )
            while self._ends[place] and self._ends[place][-1] > each.made:
                self._ends[place].pop()
                self._epochs[place].pop()
            if not self._ends[place] or self._ends[place][-1] < each.made:
                self._ends[place].append(each.made)
                self._epochs[place].append(head.recovered)

    def _made(self, life: Life, part: Part) -> None:
        if self.is_log and (life.incarnation, id(part)) in self._discarded:
            return  # It was never committed.
        for place, _, last in threes(part.made):
            if place >= self.ports:
                connection = place - self.ports
                self.connections[connection].made = last
                self._ends[connection].append(last)
                self._epochs[connection].append(part.epoch)

    def _executed(self, life: Life, record: Steps | Wrote, wrote: Numbers, completed: int) -> None:
        word = "incarnation" if self.is_log else "generation"
        step = f"{self.replica}, {word} {life.incarnation}, a write before {_when(record)}"
        for place, number in twos(wrote):
            each = self.connections[place]
            if number != each.at + 1:
                raise NoExplanation(
                    step, f"write action {each.name}/{number} is executed out of turn; expected {each.at + 1} next"
                )
            if number > each.made:
                raise NoExplanation(
                    step,
                    f"write action {each.name}/{number} is executed before it was committed; the last is {each.made}",
                )
            epoch = self._epochs[place][bisect_left(self._ends[place], number)]
            if not self.is_log and epoch > completed:
                raise NoExplanation(
                    step,
                    f"write action {each.name}/{number} of epoch {epoch} is executed before that epoch is complete; "
                    f"complete was epoch {completed}",
                )
            each.at = number
            each.settled += number <= each.last
            each.last = max(each.last, number)


def _when(record: Steps | Wrote) -> str:
    return f"commit {record.number}" if isinstance(record, Steps) else "its end"
