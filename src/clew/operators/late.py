"""Late records: those of which every time window has passed already, and what is done with them."""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa

from clew.errors import BuildError, MoveError
from clew.model.event import Event
from clew.operators.moments import Moments
from clew.times.order import EventTime

PORT = "late"
"""The output port on which late records leave."""


class Late(StrEnum):
    """What is done with late records."""

    DROP = "drop"
    """They are left out, and counted."""
    PORT = "port"
    """They leave at once on an output port of their own."""
    ERROR = "error"
    """They stop the run."""


def late_policy(where: str, given: str) -> Late:
    """What a word stands for.

    >>> late_policy("aggregate", "port")
    <Late.PORT: 'port'>
    """
    try:
        return Late(given)
    except ValueError:
        raise BuildError(
            f"{where} was given late={given!r}; expected 'drop' to leave late records out and count them, 'port' to "
            f"send them on the output port {PORT!r}, or 'error' to stop."
        ) from None


def late_error(event: Event, found: Moments, rows: pa.Array, by: str) -> MoveError:
    """The error that names the first of the late records."""
    row = rows[0].as_py()
    show = EventTime().show if found.is_moments else str
    return MoveError(
        f"event {event} has {len(rows)} late records of {found.batch.num_rows}; the first is "
        f"{found.batch.slice(row, 1).to_pylist()[0]!r}, at {show(found.times[row].as_py())} by column {by!r}, while "
        f"its event is at {show(event.time)}, where all its time windows have ended. Let the source wait longer "
        f"(late_by), or pass late='drop' or late='port'."
    )
