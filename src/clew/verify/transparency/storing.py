"""Barrier snapshots closer to a real run: states are captured, stored later, and a coordinator completes epochs.

The thesis takes capture, storing and completion for one step. Here they are three, and a failure may fall between
them: what was captured and not stored is lost, what was stored and not completed is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

from clew.verify.semantics import Data, Message, Program
from clew.verify.transparency.observation import Observation
from clew.verify.transparency.system import System

Snapshots = tuple[tuple[int, Any], ...]
Stream = tuple[Data, ...]
Step = tuple[Hashable, bool, "Run"]


class Working(NamedTuple):
    """The memory of a task that is up."""

    epoch: int
    value: Any
    captured: Snapshots
    """Captured at borders and not stored yet, oldest first."""


class Place(NamedTuple):
    """A task: what it has stored, its memory while it is up, and how far it has read each input."""

    stored: Snapshots
    working: Working | None
    read: tuple[int, ...]


class Run(NamedTuple):
    """A configuration."""

    places: tuple[Place, ...]
    streams: tuple[Stream, ...]
    complete: int
    """The latest epoch that the coordinator has completed, durably."""


def is_stored(place: Place, epoch: int) -> bool:
    """Whether a task's snapshot of an epoch is durable: what the coordinator waits for."""
    return any(known == epoch for known, _ in place.stored)


def storing(name: str, program: Program, is_ready: Callable[[Place, int], bool] = is_stored) -> System[Run]:
    """The transition system of a program; `is_ready` says when a task lets an epoch be completed."""
    given = [tuple(m.data for m in program.initial_messages if m.stream == stream) for stream in program.streams]

    def steps(run: Run) -> Iterator[Step]:
        for number, place in enumerate(run.places):
            if place.working is not None:
                yield from _events(program, run, number, place, place.working)
                yield from _borders(program, run, number, place, place.working)
                yield from _stores(program, run, number, place, place.working)
                failed = place._replace(working=None)
                yield f"FAIL {program.tasks[number].output}", True, _with_place(run, number, failed)
        if all(is_ready(place, run.complete + 1) for place in run.places):
            yield f"COMPLETE {run.complete + 1}", False, run._replace(complete=run.complete + 1)
        is_possible = all(is_stored(place, run.complete) for place in run.places)
        if is_possible and any(place.working is None for place in run.places):
            yield "RECOVER", True, recovered(program, run, given)

    places = tuple(
        Place(((0, task.initial),), Working(1, task.initial, ()), (0,) * len(task.inputs)) for task in program.tasks
    )
    return System(
        f"storing {name}", (Run(places, tuple(given), 0),), steps, lambda label: str(label).startswith("FAIL")
    )


def completed(program: Program) -> Observation[Run]:
    """The messages of epochs that are complete, as `out` has them."""

    def seen(run: Run) -> frozenset[Message]:
        return frozenset(
            Message(number, stream, data)
            for stream, sequence in zip(program.streams, run.streams, strict=True)
            for number, data in enumerate(sequence)
            if data.epoch <= run.complete
        )

    return Observation("completed", seen)


def recovered(program: Program, run: Run, given: list[Stream]) -> Run:
    """All tasks as they were at the end of the latest complete epoch; inputs are read again after it."""
    kept = [tuple(data for data in stream if data.epoch <= run.complete) for stream in run.streams]
    places = []
    for task, place in zip(program.tasks, run.places, strict=True):
        stored = tuple(snapshot for snapshot in place.stored if snapshot[0] <= run.complete)
        read = tuple(len(kept[program.place[stream]]) for stream in task.inputs)
        places.append(Place(stored, Working(run.complete + 1, dict(stored)[run.complete], ()), read))
    streams = tuple(first or later for first, later in zip(given, kept, strict=True))
    return Run(tuple(places), streams, run.complete)


def _next(program: Program, run: Run, number: int, port: int) -> Data | None:
    stream = run.streams[program.place[program.tasks[number].inputs[port]]]
    at = run.places[number].read[port]
    return stream[at] if at < len(stream) else None


def _events(program: Program, run: Run, number: int, place: Place, working: Working) -> Iterator[Step]:
    task = program.tasks[number]
    for port in range(len(task.inputs)):
        data = _next(program, run, number, port)
        if data is not None and data.kind == "EV" and data.epoch == working.epoch:
            value, sent = task.f(working.value, data.value)
            read = (*place.read[:port], place.read[port] + 1, *place.read[port + 1 :])
            after = Place(place.stored, working._replace(value=value), read)
            out = tuple(Data(working.epoch, "EV", one) for one in sent)
            yield (
                f"EVENT {task.output} {data.value}",
                False,
                _sent(program, _with_place(run, number, after), number, out),
            )


def _borders(program: Program, run: Run, number: int, place: Place, working: Working) -> Iterator[Step]:
    task, border = program.tasks[number], Data(working.epoch, "BD")
    if all(_next(program, run, number, port) == border for port in range(len(task.inputs))):
        captured = (*working.captured, (working.epoch, working.value))
        after = Place(
            place.stored, Working(working.epoch + 1, working.value, captured), tuple(n + 1 for n in place.read)
        )
        yield (
            f"BORDER {task.output} {working.epoch}",
            False,
            _sent(program, _with_place(run, number, after), number, (border,)),
        )


def _stores(program: Program, run: Run, number: int, place: Place, working: Working) -> Iterator[Step]:
    if working.captured:
        snapshot, *rest = working.captured
        after = place._replace(stored=(*place.stored, snapshot), working=working._replace(captured=tuple(rest)))
        yield f"STORE {program.tasks[number].output} {snapshot[0]}", False, _with_place(run, number, after)


def _with_place(run: Run, number: int, place: Place) -> Run:
    return run._replace(places=(*run.places[:number], place, *run.places[number + 1 :]))


def _sent(program: Program, run: Run, number: int, data: Stream) -> Run:
    at = program.place[program.tasks[number].output]
    return run._replace(streams=(*run.streams[:at], run.streams[at] + data, *run.streams[at + 1 :]))
