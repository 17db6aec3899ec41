"""The ideal dataflow: tasks and streams of values, with no epoch, border, snapshot or failure left in it.

Section 9.2 of the ABS thesis asks for such a model, by which the failure-free part of barrier snapshots is explained.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from clew.verify.semantics import Program
from clew.verify.transparency.observation import Observation
from clew.verify.transparency.system import System


class Flow(NamedTuple):
    """A configuration: the state of each task, how far it has read each input, and the values on each stream."""

    states: tuple[Any, ...]
    read: tuple[tuple[int, ...], ...]
    streams: tuple[tuple[Any, ...], ...]
    """In the order of `Program.streams`."""


def ideal(name: str, program: Program) -> System[Flow]:
    """The ideal dataflow of a program: a task may take the next value of any input at any time."""
    given = {stream: tuple(_values(program, stream)) for stream in program.given}
    start = Flow(
        tuple(task.initial for task in program.tasks),
        tuple((0,) * len(task.inputs) for task in program.tasks),
        tuple(given.get(stream, ()) for stream in program.streams),
    )

    def steps(flow: Flow) -> Iterator[tuple[Hashable, bool, Flow]]:
        for number, task in enumerate(program.tasks):
            for port, stream in enumerate(task.inputs):
                values, at = flow.streams[program.place[stream]], flow.read[number][port]
                if at < len(values):
                    state, sent = task.f(flow.states[number], values[at])
                    yield f"TAKE {task.output} {values[at]}", False, _after(program, flow, number, port, state, sent)

    return System(f"ideal {name}", (start,), steps)


def produced(program: Program) -> Observation[Flow]:
    """What tasks have produced: place, stream and value of each event."""
    outputs = [(task.output, program.place[task.output]) for task in program.tasks]

    def seen(flow: Flow) -> frozenset[tuple[int, str, Any]]:
        return frozenset(
            (place, stream, value) for stream, at in outputs for place, value in enumerate(flow.streams[at])
        )

    return Observation("values", seen)


def _values(program: Program, stream: str) -> Iterator[Any]:
    for message in program.initial_messages:
        if message.stream == stream and message.data.kind == "EV":
            yield message.data.value


def _after(program: Program, flow: Flow, number: int, port: int, state: Any, sent: Any) -> Flow:
    output = program.place[program.tasks[number].output]
    read = list(flow.read[number])
    read[port] += 1
    return Flow(
        (*flow.states[:number], state, *flow.states[number + 1 :]),
        (*flow.read[:number], tuple(read), *flow.read[number + 1 :]),
        (*flow.streams[:output], (*flow.streams[output], *sent), *flow.streams[output + 1 :]),
    )
