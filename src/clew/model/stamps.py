"""Stamps: how a source's records get their times, and which times the source may still send.

Invariant: a source holds the times that it may still send; what it sends is at or after one of them, and what it holds
only moves on. So a record that comes after its time has passed is sent at what is held then, marked as late.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import BuildError, MoveError
from clew.times.columns import BEGINNING, integers_of
from clew.times.order import EventTime, Integers, Order

LATE = "late"
"""The attribute of an event whose records came after their time had passed."""


class Stamped(NamedTuple):
    """Records that become one event, with its time."""

    batch: pa.RecordBatch
    time: Any
    is_late: bool = False


class Stamps:
    """Gives times to what a source reads; subclasses write `stamp`, which depends on nothing but its arguments."""

    order: Order
    start: tuple[Any, ...] = ()
    """The times that are held before anything was read: none of what the source will send is before all of them."""
    idle_after_s: float | None = None
    """After so long without anything to read, the source holds back no longer what other sources have left behind."""
    waits_for_others: bool = False
    """Whether the source is told what the others hold, and reads nothing while it `is_ahead` of them."""

    def stamp(self, batch: pa.RecordBatch, held: tuple[Any, ...]) -> tuple[Sequence[Stamped], tuple[Any, ...]]:
        """The events that the records become, each at or after a time that is held, and the times held from then on."""
        raise NotImplementedError

    def is_ahead(self, held: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
        """Whether a source that holds these times is too far ahead of others, which hold those."""
        return False

    def __str__(self) -> str:
        return f"times of {self.order}, by {type(self).__name__}"


class EventTimes(Stamps):
    """Times from a column: an event is at its earliest record, and the source waits for records that come late.

    The source holds the latest time it has seen less `late_by`: its watermark. Times are rounded down to multiples of
    the resolution, so that events close to each other share one.
    """

    def __init__(
        self,
        column: str,
        late_by: int,
        resolution: int,
        order: Order,
        idle_after_s: float | None = None,
        ahead_by: int | None = None,
    ) -> None:
        self.column = column
        self.late_by = late_by
        self.resolution = resolution
        self.order = order
        self.start = (BEGINNING,)
        self.idle_after_s = idle_after_s
        self.ahead_by = ahead_by
        self.waits_for_others = ahead_by is not None

    def stamp(self, batch: pa.RecordBatch, held: tuple[Any, ...]) -> tuple[Sequence[Stamped], tuple[Any, ...]]:
        """Late records apart from the others."""
        (watermark,) = held
        if not batch.num_rows:
            return (Stamped(batch, watermark),), held
        times = self._times(batch)
        if len(times) == 1:  # As quick as one record should be.
            first = last = times[0].as_py()
        else:
            bounds = pc.min_max(times)
            first, last = bounds["min"].as_py(), bounds["max"].as_py()
        stamped = []
        if first < watermark:
            is_late = pc.less(times, watermark)
            stamped.append(Stamped(batch.filter(is_late), watermark, True))
            batch = batch.filter(pc.invert(is_late))
            first = last if last < watermark else pc.min(times.filter(pc.invert(is_late))).as_py()
        if batch.num_rows:
            stamped.append(Stamped(batch, max(watermark, self._down(first))))
        return stamped, (max(watermark, self._down(last - self.late_by)),)

    def is_ahead(self, held: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
        """By more than the source may be."""
        return bool(held and others) and self.ahead_by is not None and held[0] > min(others) + self.ahead_by

    def __str__(self) -> str:
        late_by = self.late_by if not isinstance(self.order, EventTime) else f"{self.late_by / 1e6:g} s"
        return f"times from column {self.column!r}, records up to {late_by} late"

    def _down(self, time: int) -> int:
        return time - time % self.resolution

    def _times(self, batch: pa.RecordBatch) -> pa.Array:
        column = self._of(batch)
        if pa.types.is_integer(column.type) == isinstance(self.order, EventTime):
            found, say = ("whole numbers", "pass") if pa.types.is_integer(column.type) else ("moments", "leave out")
            raise MoveError(
                f"column {self.column!r}, from which the source's times come, holds {found} ({column.type}); expected "
                f"the other kind. In event_time(), {say} whole_numbers=True, or name another column."
            )
        return integers_of(column, f"column {self.column!r}, from which the source's times come,")

    def _of(self, batch: pa.RecordBatch) -> pa.Array:
        place = batch.schema.get_field_index(self.column)
        if place < 0:
            raise MoveError(
                f"a source's records have no column {self.column!r}, from which its times come; their columns are "
                f"{', '.join(batch.schema.names) or 'none'}. Name one of these in event_time()."
            )
        return batch.column(place)


class Numbered(Stamps):
    """Each event that is read is at the next whole number, beginning with 0: what came in together is one time."""

    order = Integers()
    start = (0,)

    def stamp(self, batch: pa.RecordBatch, held: tuple[Any, ...]) -> tuple[Sequence[Stamped], tuple[Any, ...]]:
        """At the number that is held; from then on the next."""
        (number,) = held
        return (Stamped(batch, number),), (number + 1,)

    def __str__(self) -> str:
        return "times 0, 1, 2 ..., one for each event"


def event_time(
    column: str,
    late_by: float | timedelta = 0,
    *,
    whole_numbers: bool = False,
    resolution: float | timedelta | None = None,
    idle_after_s: float | None = None,
    ahead_by: float | timedelta | None = None,
) -> Stamps:
    """Times from a column of moments, or of whole numbers, of which some may come late.

    A record may come up to `late_by` (seconds, or units of a column of whole numbers) after a later one. After
    `idle_after_s` without records the source follows the others. It waits while it is more than `ahead_by` ahead of
    another source that is not idle, so that who joins them need not keep much. Times closer together than `resolution`
    count as one; by default a hundredth of `late_by`, and a millisecond at least.

    >>> event_time("ts", late_by=5).resolution
    50000
    """
    if not column:
        raise BuildError(f"event_time() was given the column {column!r}; expected the name of a column of times.")
    unit = 1 if whole_numbers else 1_000_000
    lateness = _units("late_by", late_by, unit)
    least = 1 if whole_numbers else 1_000
    fineness = max(least, lateness // 100) if resolution is None else _units("resolution", resolution, unit)
    if fineness < 1:
        raise BuildError(f"event_time() was given resolution={resolution!r}; expected more than 0.")
    if idle_after_s is not None and not idle_after_s > 0:
        raise BuildError(f"event_time() was given idle_after_s={idle_after_s!r}; expected more than 0, or None.")
    order: Order = Integers() if whole_numbers else EventTime()
    lead = None if ahead_by is None else _units("ahead_by", ahead_by, unit)
    return EventTimes(column, lateness, fineness, order, idle_after_s, lead)


def numbered() -> Stamps:
    """Each event of the source is at the next whole number, beginning with 0."""
    return Numbered()


def _units(name: str, given: float | timedelta, unit: int) -> int:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if not 0 <= seconds <= 1e12:
        raise BuildError(
            f"event_time() was given {name}={given!r}; expected a number from 0 up, or a timedelta. "
            f"Pass seconds, or units of the column if it holds whole numbers."
        )
    return round(seconds * unit)
