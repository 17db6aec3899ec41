"""Canaries of parallel replicas: equal keys meet in one replica, and all that the replicas send comes together."""

from __future__ import annotations

from typing import Any

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import replicas

from clew.operators.dispatch import KeyDispatch
from clew.operators.hashing import hash_of
from clew.operators.merge import Merger
from clew.operators.shape import Shape
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.moves import Moves

DISPATCHED = r"counts-dispatch\.out-\d: .* a run without failures produces"
MERGED = r"counts-merge\.out: event \d+ is .* a run without failures produces"


@canary("keys dispatched by a hash of the process", replicas, DISPATCHED)
class HashesAnew(Moves):
    """Each process of the dispatcher has a hash of its own, as Python's is, so that a key moves when it restarts."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        salt = given[-1].log.incarnation - 1
        if isinstance(self.definition, KeyDispatch) and salt:
            columns = self.definition.columns or ()
            self.definition.f = lambda row: hash_of(tuple(row[name] for name in columns)) + salt
            self.definition.columns = None
            self.definition.shape = Shape.ROWS


@canary("merger deaf after the first end", replicas, MERGED)
class MergesUntilFirstEnd(Moves):
    """The merger passes nothing on once a replica has ended, so that what the slower replicas send is lost."""

    def _generate(self, move: does.Generate | does.Finish) -> was.Generated:
        made = super()._generate(move)
        if isinstance(self.definition, Merger) and self.ctx.ended:
            return was.Generated((), made.reads, made.changes, made.choices)
        return made
