"""Broken protocols: each leaves out one thing that barrier snapshots need, so that a checker can be seen to fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clew.verify.semantics.actions import Actions, consume, produce
from clew.verify.semantics.configuration import Configuration, Normal, State, arranged
from clew.verify.semantics.program import BORDER, EVENT, Data, Message, Task
from clew.verify.semantics.rules import ABS, F_FAIL, I_BORDER, I_EVENT, LocalRule, Offer, Rules
from clew.verify.semantics.snapshots import lcs, messages_up_to

# No alignment: the first border to come ends the epoch; late events are taken into the next one.


def _late_event_steps(task: Task, state: State, offer: Offer) -> Iterator[tuple[Actions, State]]:
    if state.volatile is None:
        return
    epoch, value = state.volatile
    for stream in task.inputs:
        for message in offer(stream):
            if message.data.kind == EVENT and message.data.epoch <= epoch:
                after, sent = task.f(value, message.data.value)
                sends = (produce(task.output, Data(epoch, EVENT, one)) for one in sent)
                yield (consume(stream, message.data), *sends), State(state.archive, Normal(epoch, after))


def _first_border_steps(task: Task, state: State, offer: Offer) -> Iterator[tuple[Actions, State]]:
    if state.volatile is None:
        return
    epoch, value = state.volatile
    for stream in task.inputs:
        for message in offer(stream):
            if message.data == Data(epoch, BORDER):
                actions = (consume(stream, message.data), produce(task.output, message.data))
                yield actions, State(state.stored(epoch, value), Normal(epoch + 1, value))
            elif message.data.kind == BORDER and message.data.epoch < epoch:
                yield (consume(stream, message.data),), state  # The border that had come first passed it on.


UNALIGNED = replace(
    ABS,
    name="no alignment",
    local=(LocalRule("I-EVENT", _late_event_steps), LocalRule("I-BORDER", _first_border_steps), F_FAIL),
)

# The border is passed on first, and the state is captured some time later, when it may have changed.


def _hasty_border_steps(task: Task, state: State, offer: Offer) -> Iterator[tuple[Actions, State]]:
    if state.volatile is not None and state.latest == state.volatile.epoch - 1:
        for actions, after in I_BORDER.local_steps(task, state, offer):
            yield actions, State(state.archive, after.volatile)


def _capture_steps(task: Task, state: State, offer: Offer) -> Iterator[tuple[Actions, State]]:
    if state.volatile is not None and state.latest < state.volatile.epoch - 1:
        yield (), State(state.stored(state.volatile.epoch - 1, state.volatile.value), state.volatile)


CAPTURED_LATE = replace(
    ABS,
    name="border passed on before the state is captured",
    local=(I_EVENT, LocalRule("I-BORDER", _hasty_border_steps), LocalRule("I-CAPTURE", _capture_steps), F_FAIL),
)

# Recoveries that forget something.


def _with_all_messages(c: Configuration) -> Configuration:
    after = lcs(c)
    return Configuration(c.program, after.states, after.numbers, c.messages)


KEPT_OUTPUT = replace(ABS, name="recovery keeps uncommitted output", lcs=_with_all_messages)


def _with_sources_where_they_were(c: Configuration) -> Configuration:
    after = lcs(c)
    given = set(c.program.given)
    numbers = tuple(
        tuple(old if stream in given else new for stream, old, new in zip(task.streams, was, now, strict=True))
        for task, was, now in zip(c.program.tasks, c.numbers, after.numbers, strict=True)
    )
    return Configuration(c.program, after.states, numbers, after.messages)


NOT_REWOUND = replace(ABS, name="sources are not rewound", lcs=_with_sources_where_they_were)


def _with_second_sending(c: Configuration) -> Configuration:
    """Messages stay, and a task's output goes on after them: what is processed again is sent a second time."""
    after = lcs(c)
    numbers = tuple((*now[:-1], was[-1]) for was, now in zip(c.numbers, after.numbers, strict=True))
    return Configuration(c.program, after.states, numbers, c.messages)


DUPLICATED = replace(ABS, name="events are duplicated after a recovery", lcs=_with_second_sending)

# The greatest common epoch is the epoch of the fastest task.


def _greatest(c: Configuration) -> int:
    return max(state.latest for state in c.states)


def _to_greatest(c: Configuration) -> Configuration:
    epoch = _greatest(c)
    kept = messages_up_to(c, epoch)
    states = []
    for state in c.states:
        archive = tuple(snapshot for snapshot in state.archive if snapshot[0] <= epoch)
        states.append(State(archive, Normal(epoch + 1, archive[-1][1])))
    numbers = tuple(tuple(_counted(kept, stream) for stream in task.streams) for task in c.program.tasks)
    messages = arranged(c.program, kept.union(c.program.initial_messages))
    return Configuration(c.program, tuple(states), numbers, messages)


def _counted(messages: frozenset[Message], stream: str) -> int:
    return sum(message.stream == stream for message in messages)


MAXIMUM = replace(ABS, name="gce is the maximum", gce=_greatest, lcs=_to_greatest)

VARIANTS: tuple[Rules, ...] = (
    UNALIGNED,
    CAPTURED_LATE,
    KEPT_OUTPUT,
    MAXIMUM,
    NOT_REWOUND,
    DUPLICATED,
)
"""All of them."""
