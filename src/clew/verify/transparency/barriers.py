"""Barrier snapshots as the thesis has them, as a transition system, with what observers see of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial

from clew.verify.semantics import ABS, Configuration, Message, Program, Rules, Step, initial, steps
from clew.verify.transparency.observation import Observation
from clew.verify.transparency.system import System

OUT: Observation[Configuration] = Observation("out", ABS.out)
"""The output messages of Definition 4.3: those of epochs that every task has completed."""


def barriers(name: str, program: Program, rules: Rules = ABS) -> System[Configuration]:
    """The transition system of a program under these rules."""
    return System(f"{rules.name} {name}", (initial(program),), partial(_steps, rules), is_failing)


def _steps(rules: Rules, configuration: Configuration) -> Iterable[tuple[Hashable, bool, Configuration]]:
    return steps(configuration, rules)


def is_failing(label: Hashable) -> bool:
    """Whether a step is a failure and not a recovery: what a bound on failures counts."""
    return isinstance(label, Step) and label.rule == "F-FAIL"


def observation(rules: Rules) -> Observation[Configuration]:
    """What these rules let an observer see; `OUT` for the rules of the thesis."""
    return OUT if rules is ABS else Observation("out", rules.out)


def all_messages(program: Program) -> Observation[Configuration]:
    """Every message there is, committed or not: an observer who sees too much, since a recovery takes messages back."""

    def seen(configuration: Configuration) -> frozenset[Message]:
        return frozenset(message for stream in program.streams for message in configuration.stream(stream))

    return Observation("all messages", seen)


def of_sinks(program: Program) -> Callable[[frozenset[Message]], frozenset[Message]]:
    """Leaves of an output only the messages on streams that no task consumes."""
    sinks = frozenset(program.sinks)
    return lambda messages: frozenset(message for message in messages if message.stream in sinks)


def of_values(program: Program) -> Callable[[frozenset[Message]], frozenset[tuple[int, str, Hashable]]]:
    """Leaves of an output the events of tasks, without epochs and borders: place, stream and value of each."""
    produced = [task.output for task in program.tasks]

    def values(messages: frozenset[Message]) -> frozenset[tuple[int, str, Hashable]]:
        found: list[tuple[int, str, Hashable]] = []
        for stream in produced:
            events = sorted(
                (message.number, message.data.value)
                for message in messages
                if message.stream == stream and message.data.kind == "EV"
            )
            found += ((place, stream, value) for place, (_, value) in enumerate(events))
        return frozenset(found)

    return values
