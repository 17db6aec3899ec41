"""Whether a stream is monotone and productive, with the first event that shows it is not (section 4.1 of the seed).

Monotone: after a watermark `w` no data at or before `w` follows. Productive: a stream that does not end brings, after
each data item, a watermark at or after its time; a stream that ends is always productive, its end completes all.

Streams that end and `Cyclic` ones are decided exactly. Of other infinite streams only a part can ever be seen:
`guarded` watches one while it is used.

Why no unrolling is needed for a `Cyclic` stream with the prefix P, the cycle C and the shift s. Both properties speak
of pairs, a watermark and a data item, and of their places. Whether `t + j·s <= w + i·s`, for a data item t in
repetition j and a watermark w in repetition i, depends on j - i alone: taking i·s from both sides changes nothing,
neither in the integers nor component by component, and where times stand still s is 0. So for each of the finitely many
pairs of places in P and C there is one question, for which n >= 0 `t + n·s <= w` (or `t <= w + n·s`) holds, and
`when_at_most` answers it exactly. Where one of the two can only come in a later repetition, n starts at 1. Unrolling
would have to go as far as the first n of a span, which is as large as the times in the stream are far apart: no fixed
number of repetitions is enough. With s = 0 every span starts at 0 or is empty, so two repetitions would be. Of several
marks only maximal ones are asked about: the span of a smaller mark lies within that of a greater one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from clew.errors import MoveError
from clew.times.algebra.steps import backwards, when_at_most
from clew.times.algebra.stream import DT, WM, Cyclic, TimedEvent, no_event, shifted
from clew.times.order import Order

Stream: TypeAlias = Iterable[TimedEvent] | Cyclic


@dataclass(frozen=True, slots=True)
class Late:
    """A data item that a watermark before it had ruled out; places count from 0, -1 is before the stream."""

    at: int
    data: DT
    watermark_at: int
    watermark: WM

    def __str__(self) -> str:
        where = "was there before the stream" if self.watermark_at < 0 else f"is event {self.watermark_at}"
        return (
            f"event {self.at} is {self.data!r}, but {self.watermark!r} {where}: after it no data at or before "
            f"{self.watermark.time!r} may follow"
        )


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A data item of a stream that never ends, which no later watermark completes; places count from 0."""

    at: int
    data: DT

    def __str__(self) -> str:
        return (
            f"event {self.at} is {self.data!r}, and no watermark at or after {self.data.time!r} follows, though the "
            f"stream never ends"
        )


def is_monotone(order: Order, stream: Stream, seen: Iterable[Any] = ()) -> bool:
    """Whether no data follows a watermark at or after its time; `seen` are times of watermarks before the stream."""
    return first_late(order, stream, seen) is None


def is_productive(order: Order, stream: Stream) -> bool:
    """Whether each data item of a stream that does not end is followed by a watermark at or after its time."""
    return first_unfinished(order, stream) is None


def first_late(order: Order, stream: Stream, seen: Iterable[Any] = ()) -> Late | None:
    """The first data item that makes a stream not monotone, with the watermark that it comes too late for.

    >>> from clew.times.order import Integers
    >>> print(first_late(Integers(), [WM(2), DT(3, "a"), DT(1, "b")]))
    event 2 is DT(1, 'b'), but WM(2) is event 0: after it no data at or before 2 may follow
    >>> print(first_late(Integers(), Cyclic([], [DT(9, "a"), WM(4)], shift=-1)))
    event 10 is DT(4, 'a'), but WM(4) is event 1: after it no data at or before 4 may follow
    """
    past = _Past(order, seen)
    if not isinstance(stream, Cyclic):
        return _first_late_of(past, stream)
    found = _first_late_of(past, stream.prefix)
    if found is not None or stream.is_finite:
        return found
    return _first_late_in_cycle(order, stream, past)


def first_unfinished(order: Order, stream: Stream) -> Unfinished | None:
    """The first data item that makes a stream not productive. A stream that is not `Cyclic` is taken to end.

    >>> from clew.times.order import Integers
    >>> print(first_unfinished(Integers(), Cyclic([], [DT(1, "a"), DT(3, "b"), WM(2)])))
    event 1 is DT(3, 'b'), and no watermark at or after 3 follows, though the stream never ends
    >>> is_productive(Integers(), Cyclic([], [DT(1, "a"), DT(3, "b"), WM(2)], shift=1))
    True
    >>> is_productive(Integers(), [DT(1, "a")])
    True
    """
    if not isinstance(stream, Cyclic) or stream.is_finite:
        return None
    back = backwards(stream.shift)
    every = _Past(order, [event.time for event in stream.cycle if isinstance(event, WM)])

    def is_completed(time: Any, later: _Past, least: int) -> bool:
        """Whether `time <= mark` for a later mark, or `time <= mark + n·shift` for one of the cycle and n >= least."""
        if any(order.leq(time, mark) for mark in later.marks):
            return True
        spans = (when_at_most(order, time, back, mark) for mark in every.marks)
        return any(span is not None and span.first_from(least) is not None for span in spans)

    found: Unfinished | None = None
    for events, start, least in ((stream.cycle, len(stream.prefix), 1), (stream.prefix, 0, 0)):
        later = _Past(order, ())
        for at in range(len(events) - 1, -1, -1):
            event = events[at]
            if isinstance(event, WM):
                later.add(event.time, at)
            elif not is_completed(event.time, later, least):
                found = Unfinished(start + at, event)
    return found


def guarded(order: Order, stream: Iterable[TimedEvent], seen: Iterable[Any] = ()) -> Iterator[TimedEvent]:
    """The stream as it is, up to an event that is not monotone: that one raises MoveError. For streams without an end.

    >>> from clew.times.order import Integers
    >>> list(guarded(Integers(), [DT(1, "a"), WM(1), DT(2, "b")]))
    [DT(1, 'a'), WM(1), DT(2, 'b')]
    """
    past = _Past(order, seen)
    for at, event in enumerate(stream):
        late = past.step(at, event)
        if late is not None:
            raise MoveError(f"the stream is not monotone: {late}. Hold the watermark back until its data has come.")
        yield event


class _Past:
    """The watermarks so far: only maximal ones, each with its place, since they rule out all that the others do."""

    def __init__(self, order: Order, seen: Iterable[Any]) -> None:
        self.order = order
        self.marks: dict[Any, int] = {}
        for time in seen:
            self.add(time, -1)

    def step(self, at: int, event: TimedEvent) -> Late | None:
        match event:
            case WM(time):
                self.add(time, at)
            case DT(time, _):
                for mark, mark_at in self.marks.items():
                    if self.order.leq(time, mark):
                        return Late(at, event, mark_at, WM(mark))
            case _:
                raise no_event(event, f"a stream, at its place {at},")
        return None

    def add(self, time: Any, at: int) -> None:
        leq = self.order.leq
        if any(leq(time, mark) for mark in self.marks):
            return
        self.marks = {mark: mark_at for mark, mark_at in self.marks.items() if not leq(mark, time)}
        self.marks[time] = at


def _first_late_of(past: _Past, events: Iterable[TimedEvent]) -> Late | None:
    for at, event in enumerate(events):
        late = past.step(at, event)
        if late is not None:
            return late
    return None


def _first_late_in_cycle(order: Order, stream: Cyclic, past: _Past) -> Late | None:
    start, length = len(stream.prefix), len(stream.cycle)
    every = _Past(order, ())
    for index, event in enumerate(stream.cycle):
        if isinstance(event, WM):
            every.add(event.time, start + index)
    first: Late | None = None
    for index, event in enumerate(stream.cycle):
        if isinstance(event, WM):
            past.add(event.time, start + index)
            continue
        # In which repetition is this item late for a mark before it, or, in a later one, for any mark of the cycle?
        for marks, least in ((past.marks, 0), (every.marks, 1)):
            for mark, mark_at in marks.items():
                span = when_at_most(order, event.time, stream.shift, mark)
                repetition = None if span is None else span.first_from(least)
                if repetition is None:
                    continue
                at = start + repetition * length + index
                if first is None or at < first.at:
                    first = Late(at, DT(shifted(event.time, stream.shift, repetition), event.data), mark_at, WM(mark))
    return first
