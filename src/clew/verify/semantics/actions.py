"""Actions on streams and their application, which may be undefined (Definition 4.1 of the ABS thesis)."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from clew.verify.semantics.configuration import Messages, Numbers
from clew.verify.semantics.program import Data, Message, Program, Task


class Action(NamedTuple):
    """+s d, the production of data on a stream, or -s d, the consumption of it."""

    is_production: bool
    stream: str
    data: Data

    def __str__(self) -> str:
        said = "BD" if self.data.kind == "BD" else f"EV {self.data.value!r}"
        return f"{'+' if self.is_production else '-'}{self.stream} {self.data.epoch}:{said}"


Actions: TypeAlias = tuple[Action, ...]


def produce(stream: str, data: Data) -> Action:
    """+s d

    >>> print(produce("s", Data(1, "EV", 7)))
    +s 1:EV 7
    """
    return Action(True, stream, data)


def consume(stream: str, data: Data) -> Action:
    """-s d

    >>> print(consume("s", Data(2, "BD")))
    -s 2:BD
    """
    return Action(False, stream, data)


def applied(
    actions: Actions, program: Program, task: Task, numbers: Numbers, messages: Messages
) -> tuple[Numbers, Messages] | None:
    """X(N_p, M): the numbers and messages afterwards, or None where the application is undefined."""
    counts = list(numbers)
    now = list(messages)
    streams = task.streams
    for is_production, stream, data in actions:
        at = streams.index(stream)
        place = program.place[stream]
        number = counts[at]
        counts[at] = number + 1
        message = Message(number, stream, data)
        slots = now[place]
        if is_production:
            if number == len(slots):
                now[place] = (*slots, (message,))
            elif number > len(slots):
                return None  # No protocol here leaves a gap.
            elif message not in slots[number]:  # M is a set.
                slot = tuple(sorted((*slots[number], message), key=repr))
                now[place] = (*slots[:number], slot, *slots[number + 1 :])
        elif number >= len(slots) or message not in slots[number]:
            return None
    return tuple(counts), tuple(now)
