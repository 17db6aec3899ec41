"""Tampering: a run in which nothing went wrong is altered behind everybody's back, and the oracle must see it.

Kernels and stores stay healthy here: what is tried is the judge itself, one of its sentences after another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from tests.simulation.canaries.habitats import Habitat, pairs, quiet, traced, unrepeatable
from tests.simulation.canaries.hunt import STEPS_MAX

from clew.model.event import Event
from clew.model.history import Output
from clew.model.names import Replica
from clew.protocol import decisions as did
from clew.verify.archive import Shelf
from clew.verify.oracle import judge
from clew.verify.schedule import Schedule
from clew.verify.world import World


@dataclass(frozen=True)
class Tampering:
    """One change to what a run left behind, and what the oracle must say."""

    name: str
    habitat: Habitat
    change: Callable[[World], None]
    expected: re.Pattern[str]

    def finished(self) -> World:
        """A run of the habitat without faults."""
        world = World(self.habitat.graph, Schedule(0), self.habitat.parts)
        world.run(STEPS_MAX)
        return world


TAMPERINGS: dict[str, Tampering] = {}
"""All of them by name."""


def judged(world: World) -> None:
    """Lets the oracle judge a run."""
    judge(world.graph, world.archive, world.outside, world.store.log_id)


def tampering(name: str, habitat: Habitat, expected: str) -> Callable[[Callable[[World], None]], Callable[..., None]]:
    """Makes a tampering of a function that changes a finished run."""

    def register(change: Callable[[World], None]) -> Callable[[World], None]:
        TAMPERINGS[name] = Tampering(name, habitat, change, re.compile(expected))
        return change

    return register


def _applied(world: World) -> list[Any]:
    return world.outside.writes["report", "to"].applied


def _shelf(world: World, operator: str) -> Shelf:
    return world.archive[Replica(operator)]


def _altered(output: Output, **changes: Any) -> Output:
    event = output.event
    batch = changes.pop("batch", event.batch)
    return output._replace(event=Event(event.sender, event.port, event.id, batch, **changes))


ONCE = r"outside, connection 'to' has the actions \[.*\]; expected 1 to 2, each once and in order"
OTHER = pa.RecordBatch.from_pylist([{"xs": [0], "total": 0}])


@tampering("outside write doubled", pairs, ONCE)
def _doubled(world: World) -> None:
    _applied(world).append(_applied(world)[-1])


@tampering("outside write lost", pairs, ONCE)
def _lost(world: World) -> None:
    _applied(world).pop()


@tampering("outside writes swapped", pairs, ONCE)
def _swapped(world: World) -> None:
    _applied(world).reverse()


@tampering("outside write altered", pairs, r"write to/1 has other contents outside than in the log")
def _altered_outside(world: World) -> None:
    _applied(world)[0] = _applied(world)[0]._replace(batch=OTHER)


@tampering("output altered", pairs, r"pairs\.out: event 1 is .*; a run without failures produces")
def _altered_output(world: World) -> None:
    outputs = _shelf(world, "pairs").outputs["out"]
    outputs[0] = _altered(outputs[0], batch=OTHER)


@tampering("attributes altered", pairs, r"pairs\.out: event 1 has other attributes")
def _altered_attributes(world: World) -> None:
    outputs = _shelf(world, "pairs").outputs["out"]
    outputs[0] = _altered(outputs[0], attributes={"colour": "yellow"})


@tampering("end mark lost", pairs, r"report: took event 3 of pairs\.out->report\.in, which its sender never|is missing")
def _lost_output(world: World) -> None:
    _shelf(world, "pairs").outputs["out"].pop()


@tampering("output from nowhere", quiet, r"quiet\.to: 3 events were committed; a run without failures produces 2")
def _added_output(world: World) -> None:
    outputs = _shelf(world, "quiet").outputs["to"]
    outputs.append(outputs[-1])


@tampering("assignment lost", pairs, r"pairs: took event 2 of numbers\.out->pairs\.in; expected 1")
def _lost_decision(world: World) -> None:
    journal = _shelf(world, "pairs").journal
    journal.remove(next(each for each in journal if isinstance(each, did.Took)))


@tampering("end mark taken for an event", pairs, r"took event 5 of .*, which its sender never committed so")
def _end_as_event(world: World) -> None:
    journal = _shelf(world, "pairs").journal
    place, ended = next((place, each) for place, each in enumerate(journal) if isinstance(each, did.Ended))
    closed = next(each for each in journal if isinstance(each, did.Closed))
    journal[place] = did.Took(ended.channel, ended.event, closed.choices)


@tampering("decision after the end", pairs, r"was decided after the operator had finished")
def _decided_late(world: World) -> None:
    journal = _shelf(world, "pairs").journal
    journal.append(journal[0])


@tampering("no finish", pairs, r"pairs: the operator never finished")
def _unfinished(world: World) -> None:
    journal = _shelf(world, "pairs").journal
    journal.remove(next(each for each in journal if isinstance(each, did.Closed)))


@tampering("source without end", pairs, r"numbers: the source never finished")
def _endless(world: World) -> None:
    journal = _shelf(world, "numbers").journal
    journal.remove(next(each for each in journal if isinstance(each, did.Began) and each.description is None))


@tampering("decision of a source in an operator", pairs, r"is no decision of an operator")
def _foreign_decision(world: World) -> None:
    _shelf(world, "pairs").journal.insert(0, did.Read(1))


@tampering("two readings mixed", unrepeatable, r"numbers: action 1 mixes two executions of one read")
def _mixed(world: World) -> None:
    journal = _shelf(world, "numbers").journal
    place, kept = next((place, each) for place, each in enumerate(journal) if isinstance(each, did.Kept))
    journal[place] = replace(kept, execution=kept.execution + 1)


@tampering("lineage row lost", traced, r"sorted\.out/1: captured lineage is \[\]; the inputs truly used are")
def _lost_lineage(world: World) -> None:
    _shelf(world, "sorted").lineage["out", 1].clear()


@tampering("timer rings early", quiet, r"timer 'silence' rang at [\d.]+; it was set for [\d.]+")
def _early_timer(world: World) -> None:
    journal = _shelf(world, "quiet").journal
    place, rang = next((place, each) for place, each in enumerate(journal) if isinstance(each, did.Rang))
    journal[place] = replace(rang, choices=rang.choices._replace(now=rang.choices.now - 1))
