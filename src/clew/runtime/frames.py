"""Frames: how a stream of bytes is cut into messages, each with its length and a kind.

A frame is four bytes of length, one byte of kind, and that many bytes of payload. Nothing in it is ever unpickled:
payloads are msgpack, Arrow record batches, or fixed fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from clew.errors import BadFrame
from clew.model.event import EVENT_BYTES_MAX

HEADER = struct.Struct(">IB")
LIMIT = EVENT_BYTES_MAX
"""No frame is longer than this; larger events are refused when they are made."""
_ROOM = 1 << 18
_KEPT_MAX = 1 << 22
"""A buffer that a large frame has made larger than this is given back."""


def frame(kind: int, payload: bytes) -> bytes:
    """A whole frame.

    >>> frame(7, b"ab").hex()
    '00000002076162'
    """
    return HEADER.pack(len(payload), kind) + payload


class FrameReader:
    """Cuts what arrives into frames, however it was split on the way.

    >>> reader = FrameReader()
    >>> reader.fed(frame(1, b"one") + frame(2, b"two")[:4])
    >>> list(reader.frames())
    [(1, b'one')]
    >>> reader.fed(frame(2, b"two")[4:])
    >>> list(reader.frames())
    [(2, b'two')]
    """

    __slots__ = ("_begin", "_buffer", "_end", "limit")

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._buffer = bytearray(_ROOM)
        self._begin = 0
        self._end = 0

    def room(self) -> memoryview:
        """Where the next bytes may be put; `filled` says how many were."""
        if self._begin == self._end:
            self._begin = self._end = 0
            if len(self._buffer) > _KEPT_MAX:
                self._buffer = bytearray(_ROOM)
        if self._end == len(self._buffer) or (self._begin > _ROOM and self._begin > len(self._buffer) // 2):
            self._make_room()
        return memoryview(self._buffer)[self._end :]

    def filled(self, count: int) -> None:
        """So many bytes were put into the room."""
        self._end += count

    def fed(self, data: bytes) -> None:
        """Takes bytes that were read elsewhere."""
        while data:
            room = self.room()
            part = data[: len(room)]
            room[: len(part)] = part
            room.release()
            self.filled(len(part))
            data = data[len(part) :]

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """The frames that are complete: kind and payload."""
        buffer = self._buffer
        while self._end - self._begin >= HEADER.size:
            length, kind = HEADER.unpack_from(buffer, self._begin)
            if length > self.limit:
                raise BadFrame(f"a frame of {length} bytes was announced; expected at most {self.limit}")
            begin = self._begin + HEADER.size
            if self._end - begin < length:
                self._need(HEADER.size + length)
                return
            payload = bytes(memoryview(buffer)[begin : begin + length])
            self._begin = begin + length
            yield kind, payload

    def _need(self, length: int) -> None:
        """Makes the buffer large enough for a frame that has begun to arrive."""
        if length > len(self._buffer):
            grown = bytearray(length + _ROOM)
            grown[: self._end - self._begin] = memoryview(self._buffer)[self._begin : self._end]
            self._buffer, self._begin, self._end = grown, 0, self._end - self._begin

    def _make_room(self) -> None:
        held = self._end - self._begin
        size = len(self._buffer) if held < len(self._buffer) else 2 * len(self._buffer)
        if held <= _ROOM // 2:
            size = _ROOM  # A large frame has gone by.
        fresh = bytearray(size)
        fresh[:held] = memoryview(self._buffer)[self._begin : self._end]
        self._buffer, self._begin, self._end = fresh, 0, held
