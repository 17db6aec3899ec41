"""Small programs to explore: chain, two sources into one task, diamond, fan-out, average with a control stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.verify.semantics.program import Program, Task, program_of

RESET = "RESET"


def running_sum(total: Any, value: Any) -> tuple[Any, list[Any]]:
    """Adds up and sends the sum so far."""
    return total + value, [total + value]


def join_text(text: Any, value: Any) -> tuple[Any, list[Any]]:
    """Appends and sends the text so far, which tells in what order values came."""
    return f"{text}{value}", [f"{text}{value}"]


def count(number: Any, value: Any) -> tuple[Any, list[Any]]:
    """Counts and sends the number so far."""
    return number + 1, [number + 1]


def forward(state: Any, value: Any) -> tuple[Any, list[Any]]:
    """Sends what comes."""
    return state, [value]


def incremental_average(state: Any, value: Any) -> tuple[Any, list[Any]]:
    """Figure 2.3: keeps sum and count, sends the average; RESET clears both.

    >>> incremental_average((1, 1), 3), incremental_average((1, 1), RESET)
    (((4, 2), [2.0]), ((0, 0), []))
    """
    total, size = (0, 0) if value == RESET else (state[0] + value, state[1] + 1)
    return (total, size), [total / size] if size else []


def chain(events: int = 1) -> Program:
    """in -> sum -> sums -> count -> counts"""
    tasks = [Task(running_sum, ("in",), "sums", 0), Task(count, ("sums",), "counts", 0)]
    return program_of(tasks, {"in": _epochs(1, events)})


def two_sources(events: int = 1) -> Program:
    """left, right -> join -> joined"""
    task = Task(join_text, ("left", "right"), "joined", "")
    return program_of([task], {"left": _epochs("a", events), "right": _epochs("x", events)})


def diamond(events: int = 1) -> Program:
    """in -> sum and count -> join -> joined"""
    tasks = [
        Task(running_sum, ("in",), "sums", 0),
        Task(count, ("in",), "counts", 0),
        Task(join_text, ("sums", "counts"), "joined", ""),
    ]
    return program_of(tasks, {"in": _epochs(3, events)})


def fan_out(events: int = 1) -> Program:
    """in -> forward -> both; both -> sum -> sums; both -> count -> counts"""
    tasks = [
        Task(forward, ("in",), "both", None),
        Task(running_sum, ("both",), "sums", 0),
        Task(count, ("both",), "counts", 0),
    ]
    return program_of(tasks, {"in": _epochs(3, events)})


def average(events: int = 1) -> Program:
    """controls, measurements -> incremental average -> averages; the inputs are those of Figure 5.1, then as many."""
    task = Task(incremental_average, ("controls", "measurements"), "averages", (0, 0))
    return program_of([task], {"controls": [[], [RESET]] * events, "measurements": [[1], [3, 5]] * events})


def _epochs(first: int | str, events: int) -> list[list[int | str]]:
    """Two epochs of so many events: numbers or letters, counted on from the first."""
    values = [first + n if isinstance(first, int) else chr(ord(first) + n) for n in range(2 * events)]
    return [values[:events], values[events:]]


GRAPHS: dict[str, Callable[..., Program]] = {
    "chain": chain,
    "two sources": two_sources,
    "diamond": diamond,
    "fan-out": fan_out,
    "average": average,
}
"""The programs by their names; each takes the number of events in an epoch of a source, 1 if not given."""
