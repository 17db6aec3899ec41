"""Configurations of the model of LOG.io: what is durable, in memory, under way and outside."""

from __future__ import annotations

from typing import NamedTuple

from clew.verify.logging_semantics.program import Contents, InputSet, Program, State, Value


class Pair(NamedTuple):
    """An event that was assigned to an Input Set and is not done. The body stays in the sender's log."""

    port: int
    event: int
    input_set: InputSet


class Log(NamedTuple):
    """What an operator has decided, as its log keeps it. Pairs that are done are removed at once."""

    state: State
    offset: int
    """How many records a source has read."""
    outputs: tuple[Value, ...]
    """Output events; the id of each is its place, from 1 on."""
    assigned: tuple[int, ...]
    """For each port the last event that was assigned."""
    undone: tuple[Pair, ...]
    """In the order of assignment."""
    writes: tuple[Value, ...]
    """Write actions; the id of each is its place, from 1 on."""
    written: int
    """How many of them are done."""


class Event(NamedTuple):
    """An event under way: its id travels with its value."""

    number: int
    value: Value


class Taken(NamedTuple):
    """An event that was taken in and is not assigned yet."""

    port: int
    number: int
    value: Value


class Memory(NamedTuple):
    """What an operator that is up has in memory: its log so far, committed or not, and what is never logged."""

    log: Log
    taken: Taken | None
    folded: tuple[tuple[InputSet, Contents], ...]
    """The event state of each open Input Set, oldest first."""


class Process(NamedTuple):
    """An operator: its durable log, and its memory while it is up."""

    durable: Log
    memory: Memory | None


class Channel(NamedTuple):
    """A connection: the events under way, and up to where its sender has sent and knows to be acknowledged."""

    events: tuple[Event, ...]
    sent: int
    acknowledged: int


class Executed(NamedTuple):
    """A write action that an outside system has executed."""

    number: int
    value: Value


class Configuration(NamedTuple):
    """Everything at one moment."""

    processes: tuple[Process, ...]
    channels: tuple[Channel, ...]
    outside: tuple[tuple[Executed, ...], ...]
    """For each operator, what its outside system has executed, in order."""


def initial(program: Program) -> Configuration:
    """All operators up, nothing read, nothing under way, nothing outside."""
    processes = []
    for operator in program.operators:
        log = Log(operator.state, 0, (), (0,) * len(operator.inputs), (), (), 0)
        processes.append(Process(log, Memory(log, None, ())))
    return Configuration(tuple(processes), (Channel((), 0, 0),) * len(program.links), ((),) * len(program.operators))


def outside(configuration: Configuration) -> tuple[tuple[Value, ...], ...]:
    """What can be seen: for each operator, the values that its outside system holds, in order."""
    return tuple(tuple(execution.value for execution in executions) for executions in configuration.outside)
