"""Programs, schedules and messages as files of the format `abs/1` write them.

JSON lists are tuples at every depth, so that all states and values can be members of sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from clew.verify.semantics.configuration import Configuration
from clew.verify.semantics.program import BORDER, EVENT, Data, Function, Message, Program, Task, program_of
from clew.verify.semantics.rules import ABS, F_RECOVER, Rules, Step
from clew.verify.vectors.report import BadVectors, reading


def _incremental_average(state: Any, value: Any) -> tuple[Any, list[Any]]:
    total, size = (0, 0) if value == "RESET" else (state[0] + value, state[1] + 1)
    return (total, size), [total / size] if size else []


FUNCTIONS: dict[str, Function] = {
    "absorb": lambda v, w: (v + 1, []),
    "concat": lambda v, w: (v + str(w), [v + str(w)]),
    "count": lambda v, w: (v + 1, [v + 1]),
    "drop_odd": lambda v, w: (v + 1, [w] if v % 2 else []),
    "dup": lambda v, w: (v, [w, w]),
    "id": lambda v, w: (v, [w]),
    "incr_avg": _incremental_average,
    "sum": lambda v, w: (v + w, [v + w]),
}
"""What each `f` does: the next state, and what it emits."""


class Move(NamedTuple):
    """A step as a schedule names it: the rule, the task, and for an event the stream it is taken from."""

    rule: str
    task: int | None = None
    stream: str | None = None

    def taken(self, c: Configuration, rules: Rules = ABS) -> tuple[Step, Configuration] | None:
        """The step that is meant and the configuration after it, or None if the rules do not allow it."""
        if self.task is None:
            return (F_RECOVER, rules.lcs(c)) if rules.can_recover(c) else None
        for rule in rules.local:
            if rule.name == self.rule:
                for step, after in rule.steps(c, self.task):
                    if self.stream is None or step.actions[0].stream == self.stream:
                        return step, after
        return None


def program_in(given: Mapping[str, Any]) -> Program:
    """The program of a case."""
    tasks = []
    for number, task in enumerate(_list(given["tasks"])):
        with reading(f"tasks[{number}]"):
            name = task["f"]
            if name not in FUNCTIONS:
                raise BadVectors(f"{name!r} is no function of this format; it has {', '.join(sorted(FUNCTIONS))}")
            inputs = tuple(_text(stream) for stream in _list(task["S"]))
            tasks.append(Task(FUNCTIONS[name], inputs, _text(task["o"]), frozen(task["init"])))
    with reading("inputs"):
        inputs_given = {
            stream: [[frozen(value) for value in _list(values)] for values in _list(epochs)]
            for stream, epochs in given["inputs"].items()
        }
    with reading("tail"):
        tail = {stream: [frozen(value) for value in _list(values)] for stream, values in given.get("tail", {}).items()}
    return program_of(tasks, inputs_given, tail)


def move_in(given: Any, program: Program) -> Move:
    """A step of a schedule."""
    match given:
        case ["event", task, str(stream)] if _is_task(task, program) and stream in program.tasks[task].inputs:
            return Move("I-EVENT", task, stream)
        case ["border", task] if _is_task(task, program):
            return Move("I-BORDER", task)
        case ["fail", task] if _is_task(task, program):
            return Move("F-FAIL", task)
        case ["recover"]:
            return Move("F-RECOVER")
    raise BadVectors(
        f'{given!r} is no step of this program; expected ["event", task, input stream of it], ["border", task], '
        f'["fail", task] or ["recover"], with tasks from 0 to {len(program.tasks) - 1}'
    )


def output_in(given: Any) -> frozenset[Message]:
    """A set of messages."""
    found = set()
    for number, message in enumerate(_list(given)):
        match message:
            case [str(stream), int(place), int(epoch), "EV" | "BD" as kind, value] if (
                type(place) is int and type(epoch) is int
            ):
                found.add(Message(place, stream, Data(epoch, kind, frozen(value))))
            case _:
                raise BadVectors(
                    f"message {number}, {message!r}, does not have the form "
                    f'[stream, number, epoch, "{EVENT}" or "{BORDER}", value]'
                )
    return frozenset(found)


def plain(output: frozenset[Message]) -> list[Any]:
    """A set of messages as the files write it.

    >>> plain(frozenset({Message(1, "s", Data(1, "BD")), Message(0, "s", Data(1, "EV", (2, 3)))}))
    [['s', 0, 1, 'EV', [2, 3]], ['s', 1, 1, 'BD', None]]
    """
    listed = [[m.stream, m.number, m.data.epoch, m.data.kind, _thawed(m.data.value)] for m in output]
    return sorted(listed, key=lambda one: (one[0], one[1], repr(one)))


def frozen(value: Any) -> Any:
    """A JSON value with tuples for lists and for objects.

    >>> frozen([1, [2, {"b": [3]}]])
    (1, (2, (('b', (3,)),)))
    """
    match value:
        case list():
            return tuple(map(frozen, value))
        case dict():
            return tuple(sorted((key, frozen(part)) for key, part in value.items()))
    return value


def _thawed(value: Any) -> Any:
    return list(map(_thawed, value)) if isinstance(value, tuple) else value


def _list(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise BadVectors(f"expected a list, found {given!r}")
    return given


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise BadVectors(f"expected the name of a stream, found {given!r}")
    return given


def _is_task(given: Any, program: Program) -> bool:
    return type(given) is int and 0 <= given < len(program.tasks)
