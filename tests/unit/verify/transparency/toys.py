"""Small systems with one flaw each, on which the checks are tried."""

from __future__ import annotations

from collections.abc import Iterator

from clew.verify.transparency import Observation, System
from clew.verify.transparency.observation import prefix

Outputs = tuple[str, ...]
Counter = tuple[int, Outputs, bool]
"""How many inputs were read, what was given out, and whether it is down."""

INPUTS = "abc"
GIVEN: Observation[Counter] = Observation("given", lambda c: c[1], prefix)


def is_crash(label: object) -> bool:
    return label == "crash"


def counter(back_to: str) -> System[Counter]:
    """Reads its inputs one by one and gives each out; a recovery goes back to where `back_to` says.

    `exact`: to where it was. `start`: to the beginning, so that inputs are given out again. `next`: behind the next
    input, so that one is lost. `stop`: it never comes back.
    """

    def steps(c: Counter) -> Iterator[tuple[str, bool, Counter]]:
        read, given, is_down = c
        if is_down:
            places = {"exact": read, "start": 0, "next": min(read + 1, len(INPUTS))}
            if back_to in places:
                yield "recover", True, (places[back_to], given, False)
            return
        if read < len(INPUTS):
            yield f"give {INPUTS[read]}", False, (read + 1, (*given, INPUTS[read]), False)
        yield "crash", True, (read, given, True)

    return System(f"counter to {back_to}", ((0, (), False),), steps, is_crash)
