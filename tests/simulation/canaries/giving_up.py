"""Canaries of giving up: the culprit alone is given up, after so many tries, and is found among the dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import poison

from clew.model.graph import DEAD
from clew.protocol import effects as does
from clew.protocol.caution import Attempt
from clew.protocol.effects import Effect
from clew.protocol.logio import OperatorKernel
from clew.protocol.verdict import Verdict


@canary("tries that do not advance", poison, r"^operator 'eat': generate\(\) for \[0\] raised|^no end after")
class ForgetsTries(OperatorKernel):
    """Every mark says that it is the first, so that what always fails is tried for ever."""

    def _attempt(self, move: does.Move, attempt: Attempt | None, effects: list[Effect]) -> None:
        if self.caution is not None:
            self.caution.marks.clear()
        super()._attempt(move, attempt, effects)


@canary("an innocent neighbour given up", poison, r"gave up \[0, .*\], but ready\(\) had answered \[0\]")
class GivesUpNeighbour(OperatorKernel):
    """With the Input Set that always fails, the next open one is given up as well."""

    def _give_up(self, verdict: Verdict) -> None:
        others = [key for key in self.sets if key not in verdict.keys]
        super()._give_up(replace(verdict, keys=(*verdict.keys, *others[:1])))


@canary("a mark that outlives its move", poison, r"was decided, but that move never failed")
class LeavesMark(OperatorKernel):
    """When caution is over, moves run without a mark before the last mark has ended, and are blamed on its input."""

    def _attempted(self) -> None:
        super()._attempted()
        if self.caution is not None and self.caution.is_over:
            self.caution = None


@canary("a lost dead letter", poison, r"eat\.dead: event 1 is (missing|the end mark)")
class LosesLetter(OperatorKernel):
    """What is given up is done with, but its dead letter is never sent."""

    def _letter(self, batch: Any, attributes: Mapping[str, Any], time: Any = None) -> int:
        return self.ports[DEAD].last


@canary("dead letters forgotten", poison, r"dead letters are gone, although nobody has received them")
class ForgetsLetters(OperatorKernel):
    """What nobody is connected to is forgotten, dead letters as well."""

    def _is_kept(self, port: Any) -> bool:
        return False
