"""The four properties of a time-aware operator, judged on streams: the first that is broken, with a witness in words.

Soundness: what comes out is right. Completeness: what should come out does. Preservation of monotonicity: if no data
follows its watermark in the input, none does in the output. Preservation of productivity: if watermarks follow all data
in a stream that never ends, they do in the output. The first two are what a `Specification` says; all four are judged
from the stream and what came out alone, so that a mistake in an operator cannot hide in its judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from random import Random
from typing import Any

from clew.errors import BuildError, Violation
from clew.testing.time_specifications import Specification
from clew.times import Order
from clew.times.algebra import DT, WM, Cyclic, Logic, TimedEvent, first_late, is_monotone, is_productive, produce

SOUNDNESS = "soundness"
COMPLETENESS = "completeness"
MONOTONICITY = "preservation of monotonicity"
PRODUCTIVITY = "preservation of productivity"

Stream = Sequence[TimedEvent] | Cyclic


@dataclass(frozen=True)
class Broken:
    """A property that an operator does not have: which, what shows it, and the stream to see it with."""

    property: str
    witness: str
    stream: Stream
    came: Sequence[Any]

    def __str__(self) -> str:
        return f"{self.property} is broken: {self.witness}.\n  stream:   {self.stream!r}\n  came out: {self.came!r}"


def check_time_properties(
    operator: Logic,
    specification: Specification,
    streams: Any,
    *,
    patience: int = 3,
    examples: int = 200,
    seed: int | None = None,
) -> int:
    """Raises `Violation` with the first broken property; otherwise the number of streams that counted.

    `streams` is an iterable of streams, each a finite sequence of events or a `Cyclic`, or a Hypothesis strategy for
    them; then `examples` are tried, the same ones for the same `seed`, and a failing one is made small. Streams that
    are not monotone, or that the specification does not speak about, do not count; that none counts is an error. For
    `patience` see `first_broken`.

    >>> from clew.testing.time_specifications import MapSpecification
    >>> from clew.times import Integers
    >>> from clew.times.algebra import Map
    >>> double = MapSpecification(Integers(), lambda time, data: 2 * data)
    >>> check_time_properties(Map(lambda time, data: data + data), double, [[DT(1, 4), WM(1)], []])
    2
    >>> check_time_properties(Map(lambda time, data: data + 4), double, [[DT(1, 4), WM(1)], [DT(1, 5)]])
    Traceback (most recent call last):
    clew.errors.Violation: soundness is broken: DT(1, 9) came out, and nothing in the stream accounts for it; at 1 there
    should be [10].
      stream:   [DT(1, 5)]
      came out: [DT(1, 9)]
    """
    counted = 0

    def judged(stream: Stream) -> Broken | None:
        nonlocal counted
        if not _counts(specification, stream):
            return None
        counted += 1
        return first_broken(operator, specification, stream, patience=patience)

    broken = _search(judged, streams, examples, seed)
    if broken is not None:
        raise Violation(str(broken))
    if not counted:
        raise BuildError(
            "no stream was judged: none was monotone and one that the specification assumes. Give streams in which no "
            "data follows a watermark at or after its time, for instance from clew.testing.random_streams."
        )
    return counted


def first_broken(operator: Logic, specification: Specification, stream: Stream, *, patience: int = 3) -> Broken | None:
    """The first of the four properties that this stream shows to be broken; None if it shows none.

    A finite stream is given to the operator with its end for the first three. For productivity it is made infinite:
    after it watermarks that complete everything come again and again. Of a `Cyclic` stream `2 * patience` repetitions
    are looked at, as a finite stream for the first three. "Eventually" cannot be refuted in finite time: a data item
    that comes out is held to be never completed if no watermark comes for it within `patience` more repetitions.
    """
    if not _counts(specification, stream):
        return None
    finite = stream.unrolled(2 * patience) if isinstance(stream, Cyclic) else list(stream)
    came = list(produce(operator, finite))
    for name, complaints in (
        (SOUNDNESS, specification.unsound(finite, came)),
        (COMPLETENESS, specification.missing(finite, came)),
    ):
        for complaint in complaints:
            return Broken(name, complaint, stream, came)
    late = first_late(specification.out_order, came)
    if late is not None:
        return Broken(MONOTONICITY, f"of what came out, {late}", stream, came)
    return _unproductive(operator, specification, stream, patience)


def _counts(specification: Specification, stream: Stream) -> bool:
    if not is_monotone(specification.order, stream):
        return False
    return specification.assumes(stream.unrolled(2) if isinstance(stream, Cyclic) else stream)


def _unproductive(operator: Logic, specification: Specification, stream: Stream, patience: int) -> Broken | None:
    endless = stream if isinstance(stream, Cyclic) else Cyclic(stream, specification.closing(stream))
    if endless.is_finite or not is_productive(specification.order, endless):
        return None
    if not specification.assumes_endless(endless, patience):
        return None
    machine = operator.begin()
    came: list[TimedEvent] = []
    for event in endless.unrolled(patience):
        came.extend(machine.step(event))
    early = len(came)
    for event in endless.unrolled(2 * patience)[len(endless.prefix) + patience * len(endless.cycle) :]:
        came.extend(machine.step(event))
    at = _first_waiting(specification.out_order, came, early)
    if at is None:
        return None
    witness = (
        f"{came[at]!r} came out, and no watermark at or after {came[at].time!r} came after it within {patience} more "
        f"repetitions of {list(endless.cycle)!r}"
    )
    return Broken(PRODUCTIVITY, witness, endless, came)


def _first_waiting(order: Order, came: Sequence[TimedEvent], early: int) -> int | None:
    """The place of the first of the early data items that no later watermark completes."""
    for at, event in enumerate(came[:early]):
        if isinstance(event, DT) and not any(
            isinstance(later, WM) and order.leq(event.time, later.time) for later in came[at + 1 :]
        ):
            return at
    return None


def check_equivalent(
    one: Logic, other: Logic, order: Order, streams: Any, *, examples: int = 200, seed: int | None = None
) -> None:
    """Raises `Violation` if two operators differ on a monotone stream (24 of the seed); data between two watermarks may
    come in any order. `streams` is as for `check_time_properties`; a `Cyclic` one is compared over six repetitions.
    """

    def judged(stream: Stream) -> Broken | None:
        if not is_monotone(order, stream):
            return None
        finite = stream.unrolled(6) if isinstance(stream, Cyclic) else list(stream)
        left, right = (list(produce(operator, finite)) for operator in (one, other))
        for (mark, data), (other_mark, other_data) in zip_longest(
            _sections(left), _sections(right), fillvalue=("", [])
        ):
            if mark != other_mark or not _same(data, other_data):
                witness = f"up to {mark!r} one gives {data!r}, and up to {other_mark!r} the other gives {other_data!r}"
                return Broken("equivalence", witness, stream, left)
        return None

    broken = _search(judged, streams, examples, seed)
    if broken is not None:
        raise Violation(str(broken))


def _sections(came: Iterable[TimedEvent]) -> list[tuple[Any, list[DT]]]:
    """The data before each watermark with the watermark, and the rest before the end."""
    sections: list[tuple[Any, list[DT]]] = []
    data: list[DT] = []
    for event in came:
        if isinstance(event, DT):
            data.append(event)
        else:
            sections.append((event, data))
            data = []
    return [*sections, ("the end", data)]


def _same(some: list[DT], others: list[DT]) -> bool:
    left = list(others)
    for item in some:
        if item not in left:
            return False
        left.remove(item)
    return not left


def _search(judged: Any, streams: Any, examples: int, seed: int | None) -> Broken | None:
    """The first broken property; of a strategy, that of a small stream."""
    if isinstance(streams, Iterable):
        return next((broken for broken in map(judged, streams) if broken is not None), None)
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis.errors import NoSuchExample

    phases = (Phase.generate, Phase.shrink)
    rules = settings(
        max_examples=examples, database=None, deadline=None, phases=phases, suppress_health_check=list(HealthCheck)
    )
    try:
        smallest = find(
            streams,
            lambda stream: judged(stream) is not None,
            settings=rules,
            random=None if seed is None else Random(seed),
        )
    except NoSuchExample:
        return None
    found: Broken | None = judged(smallest)
    return found
