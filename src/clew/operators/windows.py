"""Time windows: the spans of time by which records are gathered, in the units of the column that they are cut from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import BuildError, MoveError

Length = int | float | timedelta
"""Seconds or a `timedelta` where times are moments; whole units where they are whole numbers."""

_SECOND = 1_000_000
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Windows:
    """Time windows of one size, one of which begins every so often; made by `tumbling` and `sliding`."""

    size: Length
    every: Length
    offset: Length = 0

    def __post_init__(self) -> None:
        _check_length("size", self.size)
        _check_length("every", self.every)
        _check_length("offset", self.offset, is_span=False)
        if isinstance(self.size, timedelta) is not isinstance(self.every, timedelta):
            raise BuildError(
                f"time windows of size {self.size!r}, one every {self.every!r}; expected both as a timedelta, or both "
                f"as a number. Write them alike."
            )
        if self.every > self.size:  # type: ignore[operator]
            raise BuildError(
                f"time windows of size {self.size!r}, one every {self.every!r}, leave gaps; expected one at least "
                f"every {self.size!r}. Filter out what lies in the gaps instead."
            )

    @property
    def is_tumbling(self) -> bool:
        """Whether every moment lies in exactly one of them."""
        return self.size == self.every

    def spans(self, is_moments: bool) -> Spans:
        """Their lengths in the units of a column's integers."""
        return Spans(
            ticks("size", self.size, is_moments),
            ticks("every", self.every, is_moments),
            ticks("offset", self.offset, is_moments),
        )


@dataclass(frozen=True, slots=True)
class Session:
    """Time windows that records make by themselves, with less than `gap` between one and the next."""

    gap: Length

    def __post_init__(self) -> None:
        _check_length("gap", self.gap)

    def ticks(self, is_moments: bool) -> int:
        """The gap in the units of a column's integers."""
        return ticks("gap", self.gap, is_moments)


def tumbling(size: Length, offset: Length = 0) -> Windows:
    """Time windows side by side: each moment lies in one of them.

    They begin at multiples of the size since 1970 in Greenwich, or since 0, and `offset` later.

    >>> tumbling(10).spans(is_moments=False).starts(pa.array([-1, 0, 9, 10])).to_pylist()
    [-10, 0, 0, 10]
    """
    return Windows(size, size, offset)


def sliding(size: Length, every: Length, offset: Length = 0) -> Windows:
    """Time windows of a size, a new one every so often: each moment lies in several of them.

    >>> sliding(size=60, every=15).is_tumbling
    False
    """
    return Windows(size, every, offset)


def session(gap: Length) -> Session:
    """Time windows that end when nothing has come for so long; for each key by itself, if there are keys."""
    return Session(gap)


class Spans(NamedTuple):
    """Time windows in the units of a column's integers: `[start, start + size)` for a start every so often."""

    size: int
    every: int
    offset: int

    @property
    def overlaps(self) -> int:
        """In how many of them a moment lies at most.

        >>> Spans(10, 10, 0).overlaps, Spans(10, 4, 0).overlaps
        (1, 3)
        """
        return -(-self.size // self.every)

    def starts(self, times: pa.Int64Array) -> pa.Int64Array:
        """For each time, the start of the last time window in which it lies."""
        since = pc.subtract_checked(times, self.offset % self.every)
        rest = pc.subtract(since, pc.multiply(pc.divide(since, self.every), self.every))
        rest = pc.if_else(pc.less(rest, 0), pc.add(rest, self.every), rest)  # Arrow divides towards 0.
        return pc.subtract_checked(times, rest)


def ticks(what: str, length: Length, is_moments: bool) -> int:
    """A length in the units of a column's integers: microseconds for moments.

    >>> ticks("size", 1.5, is_moments=True), ticks("size", timedelta(minutes=1), is_moments=True)
    (1500000, 60000000)
    >>> ticks("size", 60, is_moments=False)
    60
    """
    if is_moments:
        number = length // _MICROSECOND if isinstance(length, timedelta) else round(length * _SECOND)
        if number or not length:
            return number
        raise MoveError(f"the {what} {length!r} of time windows is less than a microsecond. Pass seconds.")
    if isinstance(length, int):
        return length
    raise MoveError(
        f"the {what} of time windows is {length!r}, but the times in their column are whole numbers; expected a whole "
        f"number of the same unit. Pass one, or convert the column to timestamps."
    )


def _check_length(what: str, length: object, *, is_span: bool = True) -> None:
    is_length = isinstance(length, int | float | timedelta) and not isinstance(length, bool)
    if is_length and isinstance(length, float):
        is_length = math.isfinite(length)
    if is_length and is_span:
        is_length = length > (timedelta() if isinstance(length, timedelta) else 0)  # type: ignore[operator]
    if not is_length:
        raise BuildError(
            f"the {what} of time windows is {length!r}; expected {'more than 0' if is_span else 'a length'}: seconds, "
            f"a timedelta, or units of a column of whole numbers."
        )
