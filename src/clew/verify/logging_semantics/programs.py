"""Small programs on which the model of LOG.io is checked exhaustively."""

from __future__ import annotations

from clew.verify.logging_semantics.program import Contents, InputSet, Made, Operator, Program, State, Value


def each(state: State, port: int, value: Value) -> tuple[State, tuple[InputSet, ...]]:
    """Every event is an Input Set of its own, numbered by the state."""
    assert isinstance(state, int)
    return state + 1, (state,)


def oldest(state: State, folded: tuple[tuple[InputSet, Contents], ...]) -> InputSet | None:
    """The oldest open Input Set is ready at once."""
    return folded[0][0] if folded else None


def by_twos(state: State, port: int, value: Value) -> tuple[State, tuple[InputSet, ...]]:
    """Two events in the order of arrival make an Input Set; the state counts them."""
    assert isinstance(state, int)
    return state + 1, (state // 2,)


def full(state: State, folded: tuple[tuple[InputSet, Contents], ...]) -> InputSet | None:
    """An Input Set of two events is ready."""
    return next((input_set for input_set, contents in folded if len(contents) == 2), None)


def joined(state: State, input_set: InputSet, contents: Contents) -> tuple[Made, ...]:
    """One output event: the values in order, and what the state says."""
    return (Made(state, outputs=("".join(str(value) for _, value in contents) + f"@{state}",)),)


def written(state: State, input_set: InputSet, contents: Contents) -> tuple[Made, ...]:
    """A write action for each value."""
    return (Made(state, writes=tuple(value for _, value in contents)),)


def chosen(state: State, input_set: InputSet, contents: Contents) -> tuple[Made, ...]:
    """One of two output events, as chance decides."""
    value = contents[0][1]
    return tuple(Made(state, outputs=(f"{value}{chance}",)) for chance in "xy")


def drawn(state: State, input_set: InputSet, contents: Contents) -> tuple[Made, ...]:
    """Two output events that both tell the same choice."""
    value = contents[0][1]
    return tuple(Made(state, outputs=(f"{value}{chance}1", f"{value}{chance}2")) for chance in "xy")


def thrown(state: State, input_set: InputSet, contents: Contents) -> tuple[Made, ...]:
    """Two write actions that both tell the same choice."""
    return tuple(Made(state, writes=made.outputs) for made in drawn(state, input_set, contents))


def by_hour(state: State, port: int, value: Value) -> tuple[State, tuple[InputSet, ...]]:
    """The hour of an event is its Input Set; the state is the latest hour."""
    assert isinstance(state, int)
    hour = int(str(value)[0])
    return max(state, hour), (hour,)


def past(state: State, folded: tuple[tuple[InputSet, Contents], ...]) -> InputSet | None:
    """An hour is ready once a later one has begun."""
    assert isinstance(state, int)
    return next((hour for hour, _ in folded if isinstance(hour, int) and hour < state), None)


def source(name: str, *records: Value) -> Operator:
    """Reads the records, one event each."""
    return Operator(name, records=records)


def window(name: str, *inputs: str) -> Operator:
    """Joins events by twos."""
    return Operator(name, inputs, assign=by_twos, ready=full, generate=joined)


def sink(name: str, sender: str) -> Operator:
    """Writes each event outside."""
    return Operator(name, (sender,), assign=each, ready=oldest, generate=written)


def chance(name: str, sender: str) -> Operator:
    """Passes each event on with a choice."""
    return Operator(name, (sender,), assign=each, ready=oldest, generate=chosen)


def chain(records: int = 4) -> Program:
    """A source, an operator with windows of two, a sink."""
    return Program("chain", (source("source", *"abcd"[:records]), window("twos", "source"), sink("sink", "twos")))


def two_sources(records: int = 2) -> Program:
    """Two sources whose events meet in windows of two, in the order of arrival, and a sink."""
    left, right = source("left", *"abcd"[:records]), source("right", *"pqrs"[:records])
    return Program("two sources", (left, right, window("twos", "left", "right"), sink("sink", "twos")))


def fan_out(records: int = 2) -> Program:
    """An operator whose events go to two sinks."""
    first = (source("source", *"abcd"[:records]), window("twos", "source"))
    return Program("fan-out", (*first, sink("one", "twos"), sink("two", "twos")))


def choice(records: int = 1) -> Program:
    """An operator that chooses by chance, and two sinks that must see the same choices."""
    first = (source("source", *"abcd"[:records]), chance("chance", "source"))
    return Program("choice", (*first, sink("one", "chance"), sink("two", "chance")))


def draw(records: int = 1) -> Program:
    """An operator that makes two events of one choice, and a sink."""
    middle = Operator("draw", ("source",), assign=each, ready=oldest, generate=drawn)
    return Program("draw", (source("source", *"abcd"[:records]), middle, sink("sink", "draw")))


def dice(records: int = 1) -> Program:
    """A sink that makes two write actions of one choice."""
    last = Operator("dice", ("source",), assign=each, ready=oldest, generate=thrown)
    return Program("dice", (source("source", *"abcd"[:records]), last))


def hours(records: int = 3) -> Program:
    """Windows by the hour that each event names, which the beginning of a later hour makes ready."""
    windows = Operator("hours", ("source",), assign=by_hour, ready=past, generate=joined)
    return Program("hours", (source("source", *("1a", "1b", "2c", "3d")[:records]), windows, sink("sink", "hours")))


PROGRAMS = (chain, hours, two_sources, fan_out, choice, draw, dice)
"""The programs of the checks; each takes how many records a source has."""
