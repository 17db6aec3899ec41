"""Channel messages as frames: events with cached schemas, acknowledgements, sessions.

A link carries one channel, so frames do not name it. An event travels as its record batch without the schema; each
schema is sent once per link, before the first event that has it, and named by a number from then on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from clew.errors import BadFrame, ClewError
from clew.model.event import NO_ATTRIBUTES, Event
from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.model.values import decode, encode
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Session
from clew.runtime.frames import HEADER, frame

CONNECT, ACK, HELLO, SCHEMA, EVENT, RICH_EVENT, END = range(16, 23)

_SESSION = struct.Struct(">QQQ")
"""Two numbers of a session and a cursor or id."""
_EVENT = struct.Struct(">QQQQ")
"""Session, id, schema: 32 bytes, so that the records behind them stay aligned."""
_ALIGNED = 16
"""Records begin at multiples of this, as Arrow's computations want it."""
_ACK = struct.Struct(">QQQIQ")
"""Session, assigned, pressure, floor of released; the ranges above it follow as msgpack."""
_HELLO = struct.Struct(">Q")
_NUMBER = struct.Struct(">I")


class Outgoing:
    """Turns what a sender or a receiver says on one link into frames."""

    __slots__ = ("_latest", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._latest: tuple[pa.Buffer | None, int] = (None, 0)

    def event(self, effect: does.Send) -> bytes:
        """The frame of an event, with that of its schema before it if the other end does not have it."""
        session, event = effect.session, effect.event
        batch = event.batch
        if batch is None:
            return frame(END, _SESSION.pack(session.incarnation, session.number, event.id) + _extra(event))
        before, number = self._schema(batch.schema)
        head = _EVENT.pack(session.incarnation, session.number, event.id, number)
        body = event.body
        if event.time is None and not event.attributes:
            return b"".join((before, HEADER.pack(len(head) + len(body), EVENT), head, body))
        extra = _extra(event)
        begin = _body_begin(len(extra))
        rich = b"".join((head, _NUMBER.pack(len(extra)), extra)).ljust(begin, b"\0")
        return b"".join((before, HEADER.pack(begin + len(body), RICH_EVENT), rich, body))

    def _schema(self, schema: pa.Schema) -> tuple[bytes, int]:
        buffer = schema.serialize()
        latest, number = self._latest
        if latest is not None and buffer.equals(latest):
            return b"", number
        body = buffer.to_pybytes()
        known = self._numbers.get(body)
        before = b""
        if known is None:
            known = self._numbers[body] = len(self._numbers) + 1
            before = frame(SCHEMA, body)
        self._latest = (buffer, known)
        return before, known


def ack(effect: does.Ack) -> bytes:
    """The frame of an acknowledgement."""
    session, released = effect.session, effect.released
    ranges = released.ranges()
    head = _ACK.pack(session.incarnation, session.number, effect.assigned, effect.pressure, released.floor)
    return frame(ACK, head + (encode([end for span in ranges for end in span]) if ranges else b""))


def connect(effect: does.Connect) -> bytes:
    """The frame that asks for events."""
    session = effect.session
    return frame(CONNECT, _SESSION.pack(session.incarnation, session.number, effect.assigned))


def hello(effect: does.Hello) -> bytes:
    """The frame that greets a receiver."""
    return frame(HELLO, _HELLO.pack(effect.incarnation))


class Incoming:
    """Turns the frames of one link into what they tell the kernel at this end."""

    __slots__ = ("_readers", "_schemas", "channel")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._schemas: list[pa.Schema] = []
        self._readers: dict[int, Callable[[bytes], was.Input]] = {
            EVENT: self._event,
            RICH_EVENT: self._rich_event,
            END: self._end,
            CONNECT: self._connect,
            ACK: self._ack,
            HELLO: self._hello,
        }

    def input(self, kind: int, payload: bytes) -> was.Input | None:
        """The kernel's input in a frame; None for one that only prepares others."""
        try:
            if kind == SCHEMA:
                self._schemas.append(pa.ipc.read_schema(pa.py_buffer(payload)))
                return None
            reader = self._readers.get(kind)
            if reader is None:
                raise BadFrame(f"a frame of kind {kind} came on channel {self.channel}; expected one of its messages")
            return reader(payload)
        except (struct.error, pa.ArrowException, IndexError, ValueError, TypeError, OSError) as error:
            raise BadFrame(f"a frame of kind {kind} on channel {self.channel} cannot be read: {error}") from error

    def _event(self, payload: bytes) -> was.Received:
        return self._received(payload, _EVENT.size, None, NO_ATTRIBUTES)

    def _rich_event(self, payload: bytes) -> was.Received:
        begin = _EVENT.size + _NUMBER.size
        (length,) = _NUMBER.unpack_from(payload, _EVENT.size)
        time, attributes = _read_extra(payload[begin : begin + length])
        return self._received(payload, _body_begin(length), time, attributes)

    def _received(self, payload: bytes, begin: int, time: Any, attributes: Mapping[str, Any]) -> was.Received:
        incarnation, number, id, schema = _EVENT.unpack_from(payload)
        body = pa.py_buffer(payload).slice(begin)
        batch = pa.ipc.read_record_batch(body, self._schemas[schema - 1])
        channel = self.channel
        event = Event(channel.sender, channel.output, id, batch, time=time, attributes=attributes)
        return was.Received(channel, Session(incarnation, number), event)

    def _end(self, payload: bytes) -> was.Received:
        incarnation, number, id = _SESSION.unpack_from(payload)
        time, attributes = _read_extra(payload[_SESSION.size :])
        channel = self.channel
        event = Event(channel.sender, channel.output, id, None, time=time, attributes=attributes)
        return was.Received(channel, Session(incarnation, number), event)

    def _connect(self, payload: bytes) -> was.Connected:
        incarnation, number, assigned = _SESSION.unpack(payload)
        return was.Connected(self.channel, Session(incarnation, number), assigned)

    def _ack(self, payload: bytes) -> was.Acked:
        incarnation, number, assigned, pressure, floor = _ACK.unpack_from(payload)
        rest = payload[_ACK.size :]
        ends = _decoded(rest) if rest else []
        released = IdSet.of_ranges(floor, zip(ends[::2], ends[1::2], strict=True)) if ends else IdSet(floor)
        return was.Acked(self.channel, Session(incarnation, number), assigned, released, pressure)

    def _hello(self, payload: bytes) -> was.Greeted:
        return was.Greeted(self.channel, *_HELLO.unpack(payload))


def _body_begin(extra: int) -> int:
    """Where the records of an event begin, behind its head and so many bytes of time and attributes."""
    return -(-(_EVENT.size + _NUMBER.size + extra) // _ALIGNED) * _ALIGNED


def _extra(event: Event) -> bytes:
    return encode([event.time, dict(event.attributes)])


def _read_extra(data: bytes) -> tuple[Any, Mapping[str, Any]]:
    time, attributes = _decoded(data)
    return time, attributes


def _decoded(data: bytes) -> Any:
    try:
        return decode(data)
    except ClewError as error:
        raise BadFrame(str(error)) from error
