"""Decides whether a failure-free execution shows given outputs, one after the other, and builds one that does.

What is observed last says what stands on every stream up to its greatest epoch, since messages are never taken back
without failures. So the tasks can be looked at one by one: is there an order in which a task can take what stands on
its inputs, so that it sends what stands on its output? The search is complete: it tries all orders, each state once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from clew.verify.semantics.configuration import initial
from clew.verify.semantics.mapping import Explanation
from clew.verify.semantics.program import BORDER, EVENT, BadProgram, Data, Message, Program, Task, check_well_formed
from clew.verify.semantics.rules import I_BORDER, I_EVENT, Step

Contents: TypeAlias = dict[str, list[Data]]
Choice: TypeAlias = str | None
"""The input stream from which a task takes its next event, or None: it takes the border of its epoch from all."""


def explanation_of(program: Program, observations: Sequence[Collection[Message]]) -> Explanation | None:
    """A failure-free execution of the program that shows these outputs in this order, or None if there is none."""
    last = frozenset(observations[-1]) if observations else frozenset[Message]()
    epochs = [max((message.data.epoch for message in one), default=0) for one in observations]
    for epoch, one in zip(epochs, observations, strict=True):
        if frozenset(one) != {message for message in last if message.data.epoch <= epoch}:
            return None
    contents = _contents(program, last, epochs[-1] if epochs else 0)
    if contents is None:
        return None
    choices: dict[int, list[Choice]] = {}
    for number in _in_order(program):  # A task is asked only about values that the tasks before it can have sent.
        order = _order_of(program.tasks[number], contents)
        if order is None:
            return None
        choices[number] = order
    trace = _merged(program, choices, epochs[-1] if epochs else 0)
    commits = _commits(program, trace)
    return Explanation(trace, tuple(commits[epoch] for epoch in epochs), ())


def _contents(program: Program, last: frozenset[Message], epoch: int) -> Contents | None:
    """What stands on each stream up to the epoch, or None if that cannot be."""
    contents: Contents = {}
    for stream in program.streams:
        messages = sorted((one for one in last if one.stream == stream), key=lambda one: one.number)
        try:
            check_well_formed(stream, messages)
        except BadProgram:
            return None
        if epoch and (not messages or messages[-1].data != Data(epoch, BORDER)):
            return None  # Every task has passed the border on before the epoch is a common one.
        contents[stream] = [message.data for message in messages]
    given = {message for message in program.initial_messages if message.data.epoch <= epoch}
    seen = {message for message in last if message.stream in program.given}
    is_complete = given == seen and sum(map(len, contents.values())) == len(last)
    return contents if is_complete else None


def _order_of(task: Task, contents: Contents) -> list[Choice] | None:
    """An order of taking the inputs in which the task sends just what stands on its output."""
    inputs = [contents[stream] for stream in task.inputs]
    expected = contents[task.output]
    # A node: how much of each input was taken, how much of the output was sent, and the state.
    begin = ((0,) * len(inputs), 0, task.initial)
    end = tuple(map(len, inputs))
    came: dict[object, tuple[object, Choice] | None] = {begin: None}
    waiting = [begin]
    while waiting:
        node = waiting.pop()
        places, sent, state = node
        if places == end and sent == len(expected):
            return _path(came, node)
        follow: list[tuple[tuple[tuple[int, ...], int, object], Choice]] = []
        offered = [data[at] if at < len(data) else None for data, at in zip(inputs, places, strict=True)]
        border = expected[sent] if sent < len(expected) else None
        if border is not None and border.kind == BORDER and all(one == border for one in offered):
            follow.append(((tuple(at + 1 for at in places), sent + 1, state), None))
        for number, data in enumerate(offered):
            if data is None or data.kind != EVENT or _epoch_at(expected, sent) != data.epoch:
                continue
            after, values = task.f(state, data.value)
            made = [Data(data.epoch, EVENT, value) for value in values]
            if expected[sent : sent + len(made)] == made:
                moved = tuple(at + (one == number) for one, at in enumerate(places))
                follow.append(((moved, sent + len(made), after), task.inputs[number]))
        for following, choice in follow:
            if following not in came:
                came[following] = (node, choice)
                waiting.append(following)
    return None


def _epoch_at(data: Sequence[Data], number: int) -> int:
    """The epoch that the next message belongs to; a task that has sent all its borders is past them all."""
    return data[number].epoch if number < len(data) else 0


def _path(came: dict[object, tuple[object, Choice] | None], node: object) -> list[Choice]:
    path: list[Choice] = []
    step = came[node]
    while step is not None:
        node, choice = step
        path.append(choice)
        step = came[node]
    return path[::-1]


def _merged(program: Program, choices: dict[int, list[Choice]], epochs: int) -> tuple[Step, ...]:
    """One trace of all tasks: epoch by epoch, and in each epoch the tasks in the order of `choices`."""
    c = initial(program)
    trace: list[Step] = []
    waiting = {task: iter(order) for task, order in choices.items()}
    for _ in range(epochs):
        for task in choices:
            for choice in waiting[task]:
                rule = I_BORDER if choice is None else I_EVENT
                taken = [(s, after) for s, after in rule.steps(c, task) if choice in (None, s.actions[0].stream)]
                step, c = taken[0]
                trace.append(step)
                if choice is None:
                    break
    return tuple(trace)


def _in_order(program: Program) -> list[int]:
    """The tasks, each after those whose output it takes."""
    ready = set(program.given)
    order: list[int] = []
    while len(order) < len(program.tasks):
        for number, task in enumerate(program.tasks):
            if number not in order and ready.issuperset(task.inputs):
                order.append(number)
                ready.add(task.output)
    return order


def _commits(program: Program, trace: Sequence[Step]) -> list[int]:
    """After how many steps each epoch, from 0 on, has been committed by all tasks."""
    borders = [0] * len(program.tasks)
    found = [0]
    for number, step in enumerate(trace, 1):
        if step.rule == I_BORDER.name and step.task is not None:
            borders[step.task] += 1
            if min(borders) == len(found):
                found.append(number)
    return found
