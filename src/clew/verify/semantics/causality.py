"""Which steps of a trace happen before which, and the permutations that keep this order (Definitions 6.5 to 6.7)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from clew.verify.semantics.program import Message, Program
from clew.verify.semantics.rules import F_RECOVER, Step
from clew.verify.semantics.traces import Trace


def messages_of(step: Step, program: Program) -> tuple[set[Message], set[Message]]:
    """The messages that a step consumes, and those that it produces: its actions counted on from its numbers."""
    consumed: set[Message] = set()
    produced: set[Message] = set()
    if step.task is not None:
        number = dict(zip(program.tasks[step.task].streams, step.numbers, strict=False))
        for action in step.actions:
            place = produced if action.is_production else consumed
            place.add(Message(number[action.stream], action.stream, action.data))
            number[action.stream] += 1
    return consumed, produced


def direct_causes(trace: Sequence[Step], program: Program) -> list[set[int]]:
    """For each step the earlier ones that the first three clauses of Definition 6.5 put before it.

    Not all of them are listed: a step before the last recovery, or before the task's own last step, follows by the
    fourth clause, transitivity.
    """
    causes: list[set[int]] = []
    of_task: dict[int | None, int] = {}
    producers: dict[Message, int] = {}
    recovery: int | None = None
    since: list[int] = []
    for number, step in enumerate(trace):
        before: set[int] = set() if recovery is None else {recovery}
        if step == F_RECOVER:
            before.update(since)
            recovery, since, of_task, producers = number, [], {}, {}
        else:
            consumed, produced = messages_of(step, program)
            if step.task in of_task:
                before.add(of_task[step.task])
            before.update(producers[message] for message in consumed if message in producers)
            of_task[step.task] = number
            producers.update(dict.fromkeys(produced, number))
            since.append(number)
        causes.append(before)
    return causes


def happens_before(trace: Sequence[Step], program: Program) -> Callable[[int, int], bool]:
    """The causal order: a function that says whether the step numbered i happens before the one numbered j."""
    masks: list[int] = []  # Bit i of masks[j]: step i happens before step j.
    for causes in direct_causes(trace, program):
        mask = 0
        for cause in causes:
            mask |= masks[cause] | 1 << cause
        masks.append(mask)
    return lambda i, j: bool(masks[j] >> i & 1)


def permutations(trace: Trace, program: Program) -> Iterator[Trace]:
    """All permutations of a trace that preserve the causal order; there may be very many."""
    causes = direct_causes(trace, program)

    def extended(found: list[int], left: list[int]) -> Iterator[list[int]]:
        if not left:
            yield found
        done = set(found)
        for number in left:
            if causes[number] <= done:
                yield from extended([*found, number], [one for one in left if one != number])

    for order in extended([], list(range(len(trace)))):
        yield tuple(trace[number] for number in order)


def random_permutation(trace: Trace, program: Program, rng: random.Random) -> Trace:
    """One permutation that preserves the causal order, drawn by chance; each can be drawn."""
    causes = direct_causes(trace, program)
    effects: list[list[int]] = [[] for _ in trace]
    waiting = [len(before) for before in causes]
    for number, before in enumerate(causes):
        for cause in before:
            effects[cause].append(number)
    free = [number for number, count in enumerate(waiting) if count == 0]
    found: list[Step] = []
    while free:
        number = free.pop(rng.randrange(len(free)))
        found.append(trace[number])
        for effect in effects[number]:
            waiting[effect] -= 1
            if waiting[effect] == 0:
                free.append(effect)
    return tuple(found)
