"""The rules of the stateful dataflow model and the steps they allow (sections 4.2 and 4.3 of the ABS thesis).

| rule | may be taken | does |
| --- | --- | --- |
| I-EVENT | a task that works is offered an event of its epoch | applies f, sends what it gives |
| I-BORDER | a task that works is offered the border of its epoch on every input | stores its state, passes it on |
| F-FAIL | always | the volatile state of a task is lost |
| F-RECOVER | a task has failed | all tasks go back to the latest common snapshot |
| S-STEP | a local rule's actions can be applied | one step of the whole system by one task |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from clew.verify.semantics.actions import Actions, applied, consume, produce
from clew.verify.semantics.configuration import Configuration, Normal, Numbers, Slot, State
from clew.verify.semantics.program import BORDER, EVENT, Data, Message, Task
from clew.verify.semantics.snapshots import gce, lcs, messages_up_to

Offer: TypeAlias = Callable[[str], Slot]
LocalSteps: TypeAlias = Callable[[Task, State, Offer], Iterator[tuple[Actions, State]]]


class Step(NamedTuple):
    """A trace step (Definition 6.1): the rule, the task, its sequence numbers before, and its actions."""

    rule: str
    task: int | None = None
    numbers: Numbers = ()
    actions: Actions = ()

    @property
    def epoch(self) -> int | None:
        """The epoch that the step belongs to; failures and recoveries belong to none."""
        return self.actions[0].data.epoch if self.actions else None

    def __str__(self) -> str:
        who = "" if self.task is None else f" {self.task}"
        return f"{self.rule}{who}" + (f" [{', '.join(map(str, self.actions))}]" if self.actions else "")


@dataclass(frozen=True, slots=True)
class LocalRule:
    """A rule about one task: given the task, its state and what its inputs offer, the local steps it may take.

    The thesis lets a local rule consume any message and leaves it to the application of the actions to rule out those
    that are not there. Here the rule is told what is offered, so that the choices are finite; the actions are applied
    and may be refused all the same.
    """

    name: str
    local_steps: LocalSteps
    is_failure: bool = False

    def is_enabled(self, c: Configuration, task: int) -> bool:
        """Can the task take a step by this rule?"""
        return next(self.steps(c, task), None) is not None

    def steps(self, c: Configuration, task: int) -> Iterator[tuple[Step, Configuration]]:
        """S-STEP with this rule: each step of the whole system that the task can take, with the configuration after."""
        definition = c.program.tasks[task]
        numbers = c.numbers[task]
        said = () if self.is_failure else numbers  # ⟨F-FAIL, p⟩ is all that a trace says of a failure.
        for actions, state in self.local_steps(definition, c.states[task], lambda stream: c.offered(task, stream)):
            result = applied(actions, c.program, definition, numbers, c.messages)
            if result is None:
                continue
            states = (*c.states[:task], state, *c.states[task + 1 :])
            counted = (*c.numbers[:task], result[0], *c.numbers[task + 1 :])
            yield Step(self.name, task, said, actions), Configuration(c.program, states, counted, result[1])


def event_steps(task: Task, state: State, offer: Offer) -> Iterator[tuple[Actions, State]]:
    """I-EVENT"""
    if state.volatile is None:
        return
    epoch, value = state.volatile
    for stream in task.inputs:
        for message in offer(stream):
            if message.data.kind == EVENT and message.data.epoch == epoch:
                after, sent = task.f(value, message.data.value)
                actions = (
                    consume(stream, message.data),
                    *(produce(task.output, Data(epoch, EVENT, one)) for one in sent),
                )
                yield actions, State(state.archive, Normal(epoch, after))


def border_steps(task: Task, state: State, offer: Offer) -> Iterator[tuple[Actions, State]]:
    """I-BORDER"""
    if state.volatile is None:
        return
    epoch, value = state.volatile
    border = Data(epoch, BORDER)
    if all(any(message.data == border for message in offer(stream)) for stream in task.inputs):
        actions = (*(consume(stream, border) for stream in task.inputs), produce(task.output, border))
        yield actions, State(state.stored(epoch, value), Normal(epoch + 1, value))


def fail_steps(task: Task, state: State, offer: Offer) -> Iterator[tuple[Actions, State]]:
    """F-FAIL"""
    yield (), State(state.archive, None)


I_EVENT = LocalRule("I-EVENT", event_steps)
I_BORDER = LocalRule("I-BORDER", border_steps)
F_FAIL = LocalRule("F-FAIL", fail_steps, is_failure=True)
F_RECOVER = Step("F-RECOVER")


@dataclass(frozen=True, slots=True)
class Rules:
    """A protocol: its local rules, what it takes for the greatest common epoch, and what a recovery goes back to."""

    name: str
    local: tuple[LocalRule, ...]
    gce: Callable[[Configuration], int]
    lcs: Callable[[Configuration], Configuration]

    def out(self, c: Configuration) -> frozenset[Message]:
        """What this protocol lets an observer see."""
        return messages_up_to(c, self.gce(c))

    def can_recover(self, c: Configuration) -> bool:
        """Is F-RECOVER enabled?"""
        return c.has_failed

    def without_failures(self) -> Rules:
        """The rules I \\ F: no task fails, and so none recovers."""
        return replace(
            self,
            name=f"{self.name} without failures",
            local=tuple(rule for rule in self.local if not rule.is_failure),
        )


ABS = Rules("ABS", (I_EVENT, I_BORDER, F_FAIL), gce, lcs)
"""The rules of the thesis."""


def steps(c: Configuration, rules: Rules = ABS) -> Iterator[tuple[Step, bool, Configuration]]:
    """Each step that the rules allow: what it is, whether a failure rule made it, the configuration after it."""
    for task in range(len(c.program.tasks)):
        for rule in rules.local:
            for step, after in rule.steps(c, task):
                yield step, rule.is_failure, after
    if rules.can_recover(c):
        yield F_RECOVER, True, rules.lcs(c)
