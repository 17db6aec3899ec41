"""A configuration ⟨Π, Σ, N, M, M0⟩: one point of an execution (Figures 4.1 and 4.3 of the ABS thesis).

A configuration never changes and can be a member of a set; what a step leaves as it was is shared with the one before.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from clew.verify.semantics.program import Message, Program

Numbers: TypeAlias = tuple[int, ...]
"""N_p: for each stream of `Task.streams`, the number of the message that is consumed or produced next."""

Slot: TypeAlias = tuple[Message, ...]
"""The messages of one number on one stream. A second one can only be made by a protocol that is broken."""

Messages: TypeAlias = tuple[tuple[Slot, ...], ...]
"""M: for each stream of `Program.streams`, the messages in the order of their numbers."""


class Normal(NamedTuple):
    """The volatile state of a task that works: its epoch and its value."""

    epoch: int
    value: Any


class State(NamedTuple):
    """Σ_p: the snapshot archive, which is durable, and the volatile state; None is the failed state."""

    archive: tuple[tuple[int, Any], ...]
    volatile: Normal | None

    @property
    def latest(self) -> int:
        """The greatest epoch of which there is a snapshot."""
        return self.archive[-1][0]

    def stored(self, epoch: int, value: Any) -> tuple[tuple[int, Any], ...]:
        """The archive with one more snapshot, in the order of epochs.

        >>> State(((0, "a"), (2, "c")), None).stored(1, "b")
        ((0, 'a'), (1, 'b'), (2, 'c'))
        """
        kept = [snapshot for snapshot in self.archive if snapshot[0] != epoch]
        return tuple(sorted([*kept, (epoch, value)], key=lambda snapshot: snapshot[0]))


class Configuration:
    """⟨Π, Σ, N, M, M0⟩; Π and M0 are those of `program`."""

    __slots__ = ("_hash", "messages", "numbers", "program", "states")

    def __init__(
        self, program: Program, states: tuple[State, ...], numbers: tuple[Numbers, ...], messages: Messages
    ) -> None:
        self.program = program
        self.states = states
        self.numbers = numbers
        self.messages = messages
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Configuration):
            return NotImplemented
        return (
            self.program is other.program
            and hash(self) == hash(other)
            and self.numbers == other.numbers
            and self.states == other.states
            and self.messages == other.messages
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.numbers, self.states, self.messages))
        return self._hash

    def __repr__(self) -> str:
        tasks = []
        for state, numbers in zip(self.states, self.numbers, strict=True):
            now = "failed" if state.volatile is None else f"{state.volatile.value!r} in epoch {state.volatile.epoch}"
            tasks.append(f"{now}, at {list(numbers)}, snapshots {dict(state.archive)!r}")
        return f"<Configuration {'; '.join(tasks)}>"

    @property
    def has_failed(self) -> bool:
        """Is a task in the failed state?"""
        return any(state.volatile is None for state in self.states)

    def offered(self, task: int, stream: str) -> Slot:
        """The messages of a stream that the task could consume next: one, or none yet."""
        numbers = self.numbers[task]
        number = numbers[self.program.tasks[task].streams.index(stream)]
        slots = self.messages[self.program.place[stream]]
        return slots[number] if number < len(slots) else ()

    def stream(self, name: str) -> tuple[Message, ...]:
        """M↓s: the messages on a stream (Definition 4.4)."""
        return tuple(message for slot in self.messages[self.program.place[name]] for message in slot)


def initial(program: Program) -> Configuration:
    """The configuration in which a program starts: archives {0: initial state}, epoch 1, all numbers 0, M = M0."""
    states = tuple(State(((0, task.initial),), Normal(1, task.initial)) for task in program.tasks)
    numbers = tuple((0,) * len(task.streams) for task in program.tasks)
    return Configuration(program, states, numbers, arranged(program, program.initial_messages))


def arranged(program: Program, messages: tuple[Message, ...] | frozenset[Message]) -> Messages:
    """A set of messages as a configuration holds them: by stream, then by number, each one once."""
    slots: list[list[Slot]] = [[] for _ in program.streams]
    for message in sorted(set(messages), key=lambda message: (message.number, repr(message.data))):
        of_stream = slots[program.place[message.stream]]
        while len(of_stream) <= message.number:
            of_stream.append(())
        of_stream[message.number] += (message,)
    return tuple(tuple(of_stream) for of_stream in slots)
