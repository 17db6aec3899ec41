"""The times of an event's records, as integers, and the type in which the bounds of time windows are shown."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import MoveError
from clew.model.event import Event
from clew.model.operator import Context
from clew.times.columns import integers_of
from clew.times.order import EventTime


class Moments(NamedTuple):
    """The records of an event that have a time, and their times."""

    batch: pa.RecordBatch
    times: pa.Int64Array
    type: pa.DataType
    """Of the bounds of time windows: microseconds in the column's time zone, or 64-bit integers."""
    without: int
    """How many records had no time, and are not here."""

    @property
    def is_moments(self) -> bool:
        """Whether the times are moments, not whole numbers of any unit."""
        return bool(pa.types.is_timestamp(self.type))


def column_of(event: Event, name: str, what: str) -> pa.Array:
    """A column of an event, or an error that says what it is needed for."""
    batch: pa.RecordBatch = event.batch
    place = batch.schema.get_field_index(name)
    if place < 0:
        raise MoveError(
            f"event {event} has no column {name!r}, {what}; its columns are {', '.join(batch.schema.names) or 'none'}. "
            f"Name one of these, or make the column in an operator before."
        )
    return batch.column(place)


def moments_of(event: Event, by: str, *, drops_nulls: bool) -> Moments:
    """The times in a column of the event."""
    column = column_of(event, by, "from which the times of its records come")
    batch: pa.RecordBatch = event.batch
    without = column.null_count
    if without:
        if not drops_nulls:
            raise MoveError(
                f"event {event} has {without} of {len(column)} records without a value in column {by!r}, from which "
                f"their times come. Fill them in or filter them out before, or pass nulls='drop' to leave them out."
            )
        batch = batch.filter(pc.is_valid(column))
        column = column.drop_null()
    times = integers_of(column, f"column {by!r} of event {event}, from which the times of its records come,")
    return Moments(batch, times, _shown(column.type), without)


def check_time(event: Event) -> None:
    """Raises unless the event has a time that records' times can be compared with."""
    if type(event.time) is not int:
        raise MoveError(
            f"event {event} has the time {event.time!r}; expected a whole number, since its records are gathered by "
            f"their times. Give its source times: pipeline.source(name, source, times=clew.event_time(column))."
        )


def check_kind(event: Event, found: Moments, by: str, ctx: Context) -> None:
    """Raises unless the event's own time and those of its records are of one kind."""
    is_moments = isinstance(ctx.frontier(event.input).order, EventTime)
    if is_moments is not found.is_moments:
        have, are = ("moments", "whole numbers") if is_moments else ("whole numbers", "moments")
        raise MoveError(
            f"event {event} has a time by {have}, but the times of its records, in column {by!r}, are {are}; expected "
            f"the same of both. Name a column of {have}, or give the source other times: "
            f"clew.event_time(column{', whole_numbers=True' if is_moments else ''})."
        )


def _shown(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.timestamp("us") if pa.types.is_date(kind) else pa.int64()
