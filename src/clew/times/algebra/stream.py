"""Time-aware streams: data with a time, watermarks, infinite streams that repeat (section 4 of the time-aware seed).

A watermark `WM(w)` says that no data at or before `w` follows; it completes the times at or before `w`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from clew.errors import BuildError, MoveError


@dataclass(frozen=True, slots=True)
class DT:
    """A data item that belongs to a time.

    >>> DT(3, "a")
    DT(3, 'a')
    """

    time: Any
    data: Any

    def __repr__(self) -> str:
        return f"DT({self.time!r}, {self.data!r})"


@dataclass(frozen=True, slots=True)
class WM:
    """The promise that no data at or before a time follows."""

    time: Any

    def __repr__(self) -> str:
        return f"WM({self.time!r})"


TimedEvent: TypeAlias = DT | WM
Shift: TypeAlias = "int | tuple[Shift, ...]"


@dataclass(frozen=True)
class Cyclic:
    """A prefix, then a cycle for ever, its i-th repetition (from 0) with i·shift added to every time.

    The shift is an integer, or for a product of orders a tuple with one shift per component. Without a cycle the
    stream is finite: it is its prefix.

    >>> from itertools import islice
    >>> list(islice(Cyclic([DT(0, "a")], [DT(1, "b"), WM(1)], shift=2), 5))
    [DT(0, 'a'), DT(1, 'b'), WM(1), DT(3, 'b'), WM(3)]
    """

    prefix: Sequence[TimedEvent]
    cycle: Sequence[TimedEvent]
    shift: Shift = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", tuple(self.prefix))
        object.__setattr__(self, "cycle", tuple(self.cycle))

    @property
    def is_finite(self) -> bool:
        """Whether the stream ends: only if there is nothing to repeat."""
        return not self.cycle

    def __iter__(self) -> Iterator[TimedEvent]:
        yield from self.prefix
        repetition = 0
        while self.cycle:
            for index in range(len(self.cycle)):
                yield self.repeated(index, repetition)
            repetition += 1

    def repeated(self, index: int, repetition: int) -> TimedEvent:
        """The event of the cycle at some index, as it is in some repetition."""
        event = self.cycle[index]
        time = shifted(event.time, self.shift, repetition)
        return DT(time, event.data) if isinstance(event, DT) else WM(time)

    def unrolled(self, repetitions: int) -> list[TimedEvent]:
        """The prefix and so many repetitions of the cycle."""
        return [
            *self.prefix,
            *(self.repeated(index, i) for i in range(repetitions) for index in range(len(self.cycle))),
        ]


def shifted(time: Any, shift: Shift, n: int) -> Any:
    """A time moved by n times the shift; a side of a disjoint sum stays what it is.

    >>> shifted((1, 5), (1, 0), 3), shifted(("L", 4), 2, 1), shifted("noon", 0, 7)
    ((4, 5), ('L', 6), 'noon')
    """
    if shift == 0 or n == 0:
        return time
    if isinstance(shift, tuple):
        if isinstance(time, tuple) and len(time) == len(shift):
            return tuple(shifted(part, one, n) for part, one in zip(time, shift, strict=True))
    elif isinstance(time, tuple):
        if len(time) == 2 and time[0] in ("L", "R"):
            return time[0], shifted(time[1], shift, n)
        return tuple(shifted(part, shift, n) for part in time)
    elif isinstance(time, int):
        return time + n * shift
    raise BuildError(
        f"the time {time!r} cannot be moved by the shift {shift!r}: a shift is an integer for integer times, one shift "
        f"per component for a product, and 0 for the elements of a poset. Change the shift of this stream."
    )


def no_event(found: Any, operator: str) -> MoveError:
    """The error for something in a stream that is neither data nor a watermark."""
    return MoveError(
        f"{operator} was given {found!r} of type {type(found).__name__}; it takes DT(time, data) and WM(time). Wrap "
        f"each item of the stream in one of them."
    )
