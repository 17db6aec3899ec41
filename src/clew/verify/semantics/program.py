"""A program of the stateful dataflow model: tasks, the streams between them and the messages that are given at first.

The syntax of the ABS thesis (Figures 4.1 and 4.3) and the conditions on initial configurations (Definition 6.11).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from clew.errors import ClewError

EVENT = "EV"
BORDER = "BD"
Function: TypeAlias = Callable[[Any, Any], tuple[Any, Sequence[Any]]]


class BadProgram(ClewError):
    """A program that has no valid initial configuration; the message says why."""


class Data(NamedTuple):
    """What a message says: its epoch, and an event with a value or an epoch border."""

    epoch: int
    kind: str
    value: Any = None


class Message(NamedTuple):
    """Data with its number on a stream, counted from 0."""

    number: int
    stream: str
    data: Data


@dataclass(frozen=True, slots=True)
class Task:
    """TK⟨f, S, o⟩ with its initial state: `f(state, value)` gives the next state and the values to send.

    States and values must be hashable and must not be changed by `f`, which may be called again after a recovery.
    """

    f: Function
    inputs: tuple[str, ...]
    output: str
    initial: Any

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the task counts, in the order of its sequence numbers: its inputs, then its output."""
        return (*self.inputs, self.output)


@dataclass(frozen=True, eq=False)
class Program:
    """Tasks Π, by their places, and the initial messages M0; checked when it is made.

    Two programs are equal only if they are the same object: a configuration compares quickly.
    """

    tasks: tuple[Task, ...]
    initial_messages: tuple[Message, ...]
    sources: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.tasks:
            raise BadProgram("the program has no task; give at least one")
        _check_producers(self.tasks, self.given)
        _check_order(self.tasks)
        for stream in self.given:
            check_well_formed(stream, [m for m in self.initial_messages if m.stream == stream])

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The input streams of the program: those with initial messages, and those named as sources."""
        return tuple(sorted({*self.sources, *(message.stream for message in self.initial_messages)}))

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """All streams: the input streams of the program, then the outputs of its tasks."""
        return (*self.given, *(task.output for task in self.tasks))

    @cached_property
    def place(self) -> dict[str, int]:
        """Where a stream stands in `streams`."""
        return {stream: place for place, stream in enumerate(self.streams)}

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """The output streams that no task consumes."""
        consumed = {stream for task in self.tasks for stream in task.inputs}
        return tuple(task.output for task in self.tasks if task.output not in consumed)

    def check_connected(self) -> None:
        """Raises unless the graph is weakly connected, as Definition 6.11 asks; nothing else here depends on it."""
        near: dict[str, set[str]] = {stream: set() for stream in self.streams}
        for task in self.tasks:
            for stream in task.streams:
                near[stream].update(task.streams)
        reached, waiting = set[str](), [self.tasks[0].output]
        while waiting:
            stream = waiting.pop()
            if stream not in reached:
                reached.add(stream)
                waiting.extend(near[stream])
        apart = sorted(set(self.streams) - reached)
        if apart:
            raise BadProgram(
                f"the program is not connected: no path joins {', '.join(apart)} with {self.tasks[0].output}. "
                "Make it two programs, or connect them."
            )


def program_of(
    tasks: Iterable[Task],
    inputs: Mapping[str, Sequence[Sequence[Any]]],
    tail: Mapping[str, Sequence[Any]] | None = None,
) -> Program:
    """A program whose input streams are given epoch by epoch; `tail` holds events after the last border.

    >>> both = program_of([Task(lambda v, w: (v, [w]), ("in",), "out", 0)], {"in": [["a"], []]}, {"in": ["b"]})
    >>> [(m.number, m.data.epoch, m.data.kind, m.data.value) for m in both.initial_messages]
    [(0, 1, 'EV', 'a'), (1, 1, 'BD', None), (2, 2, 'BD', None), (3, 3, 'EV', 'b')]
    """
    tail = tail or {}
    for stream in tail:
        if stream not in inputs:
            raise BadProgram(
                f"tail: {stream!r} is no input stream of the program; those are {', '.join(sorted(inputs)) or 'none'}"
            )
    messages: list[Message] = []
    for stream, epochs in inputs.items():
        data: list[Data] = []
        for epoch, values in enumerate(epochs, 1):
            data += [Data(epoch, EVENT, value) for value in values]
            data.append(Data(epoch, BORDER))
        data += [Data(len(epochs) + 1, EVENT, value) for value in tail.get(stream, ())]
        messages += [Message(number, stream, one) for number, one in enumerate(data)]
    return Program(tuple(tasks), tuple(messages), tuple(inputs))


def check_well_formed(stream: str, messages: Sequence[Message]) -> None:
    """Raises unless numbers count from 0 and epochs from 1, each ended by its border before the next begins."""
    epoch = 1
    for number, message in enumerate(messages):
        if message.number != number:
            raise BadProgram(f"stream {stream!r}: the message numbered {message.number} stands where {number} must be")
        if message.data.epoch != epoch:
            raise BadProgram(
                f"stream {stream!r}: message {number} is of epoch {message.data.epoch}, expected {epoch}. "
                "Epochs count from 1, and each ends with its border."
            )
        epoch += message.data.kind == BORDER


def _check_producers(tasks: Sequence[Task], given: Sequence[str]) -> None:
    producers = Counter([*given, *(task.output for task in tasks)])
    for number, task in enumerate(tasks):
        if producers[task.output] > 1:
            raise BadProgram(
                f"task {number}: the stream {task.output!r} has {producers[task.output]} producers, expected one. "
                "Rename the output, or remove it from the inputs of the program."
            )
        if not task.inputs:
            raise BadProgram(f"task {number} has no input stream, expected at least one")
        for stream, times in Counter(task.inputs).items():
            if stream not in producers:
                raise BadProgram(
                    f"task {number} reads the stream {stream!r}, which nobody produces; "
                    f"there are {', '.join(sorted(producers))}"
                )
            if times > 1:
                raise BadProgram(f"task {number} lists the input stream {stream!r} {times} times, expected once")


def _check_order(tasks: Sequence[Task]) -> None:
    """Takes away tasks whose inputs are there, until none is left or the rest is a cycle."""
    waiting = {task.output: set(task.inputs) for task in tasks}
    while waiting:
        free = [output for output, inputs in waiting.items() if not inputs & waiting.keys()]
        if not free:
            raise BadProgram(
                f"the tasks that produce {', '.join(sorted(waiting))} are in a cycle or behind one; "
                "barrier snapshots need a graph without cycles"
            )
        for output in free:
            del waiting[output]
