"""Events in the rows of a snapshot: their schemas are rows of their own, so that each is stored once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from clew.log.encoding import event_of
from clew.model.event import Event
from clew.model.names import Replica
from clew.model.values import encode

SCHEMA = b"h"
"""The first byte of the key of a schema's row."""


def of_int(number: int) -> bytes:
    """A number as part of a key; keys are in the order of their numbers.

    >>> of_int(2) < of_int(10) < of_int(300), to_int(of_int(300))
    (True, 300)
    """
    return number.to_bytes(8, "big")


def to_int(data: bytes) -> int:
    """The number that is part of a key."""
    return int.from_bytes(data, "big")


class Schemas:
    """Numbers for the schemas of events, so that each is stored once in a snapshot."""

    def __init__(self, rows: Mapping[bytes, bytes]) -> None:
        self._numbers = {value: to_int(row[1:]) for row, value in rows.items() if row[:1] == SCHEMA}
        self._schemas: dict[int, pa.Schema] = {}
        self._latest: tuple[pa.Buffer | None, int] = (None, 0)
        self._unsaved: dict[bytes, bytes | None] = {}

    def number(self, schema: pa.Schema) -> int:
        """The number of a schema, a new one if it has none."""
        buffer = schema.serialize()
        latest, number = self._latest
        if latest is not None and buffer.equals(latest):
            return number
        body = buffer.to_pybytes()
        known = self._numbers.get(body)
        if known is None:
            known = self._numbers[body] = len(self._numbers) + 1
            self._unsaved[SCHEMA + of_int(known)] = body
        self._latest = (buffer, known)
        return known

    def schema(self, number: int) -> pa.Schema:
        """The schema with this number."""
        if not self._schemas:
            self._schemas = {n: pa.ipc.read_schema(pa.py_buffer(body)) for body, n in self._numbers.items()}
        return self._schemas[number]

    def unsaved(self) -> dict[bytes, bytes | None]:
        """The rows of schemas that are not durable yet."""
        return dict(self._unsaved)

    def saved(self) -> None:
        """They are durable."""
        self._unsaved.clear()


def event_content(event: Event, schemas: Schemas) -> list[Any]:
    """Schema, time, attributes and body; the event does not keep its body as bytes, since it may wait for long."""
    time = None if event.time is None else encode(event.time)
    attributes = encode(dict(event.attributes)) if event.attributes else None
    batch = event.batch
    if batch is None:
        return [None, time, attributes, b""]
    return [schemas.number(batch.schema), time, attributes, batch.serialize().to_pybytes()]


def event_of_content(sender: Replica, port: str, id: int, content: list[Any], schemas: Schemas) -> Event:
    """The event with this content."""
    number, time, attributes, body = content
    return event_of(sender, port, id, None if number is None else schemas.schema(number), time, attributes, body)
