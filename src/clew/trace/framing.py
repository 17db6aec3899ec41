"""Framing: how the records of a trace are bytes, each with its length and a checksum, so that a torn one is seen.

A file begins with `MAGIC` and a head. A frame is the length of its payload, the same with every bit turned, the CRC-32
of the payload, four bytes each, the smaller end first, and the payload: a msgpack list that begins with the kind of the
record. So a length that was changed is not taken for a torn end, which would hide all that follows.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import msgpack

from clew.errors import LogDamaged
from clew.model.names import Channel, parse_replica
from clew.trace.records import Completed, End, Head, Names, Part, Record, Steps, Stored, Wrote

MAGIC = b"clewtr1\n"
FRAME = struct.Struct("<III")
_ALL_BITS = 0xFFFFFFFF
HEAD, STEPS, WROTE, STORED, COMPLETED, END = range(1, 7)
_OTHERS: dict[int, type[Any]] = {WROTE: Wrote, STORED: Stored, COMPLETED: Completed, END: End}
_KINDS = {each: kind for kind, each in _OTHERS.items()}


class TraceDamaged(LogDamaged):
    """A trace whose bytes are not what was written."""


def frame(payload: bytes) -> bytes:
    """A payload with its length and checksum before it."""
    return FRAME.pack(len(payload), len(payload) ^ _ALL_BITS, zlib.crc32(payload)) + payload


def encode(record: Record) -> bytes:
    """A record as a frame.

    >>> list(decode_all(encode(End(1.5, True))))
    [End(time=1.5, is_complete=True, why='')]
    """
    if isinstance(record, Head):
        return frame(msgpack.packb((HEAD, _named(record.names), *record[1:])))
    if isinstance(record, Steps):
        return frame(msgpack.packb((STEPS, *record)))
    return frame(msgpack.packb((_KINDS[type(record)], *record)))


def decode_all(data: bytes, start: int = 0, where: str = "trace") -> Iterator[Record]:
    """The records of a file from a place on; the last one may be cut off, and is left out then, as are zeros."""
    size, end = FRAME.size, len(data)
    while start + size <= end:
        length, turned, checksum = FRAME.unpack_from(data, start)
        payload = data[start + size : start + size + length]
        is_length = length ^ turned == _ALL_BITS
        behind = start + size + (length if is_length else 0)
        if not is_length or zlib.crc32(payload) != checksum:
            if behind >= end or not data[behind:].strip(b"\0"):
                return  # Torn: nothing was written behind it, or nothing but the end is here.
            raise TraceDamaged(
                f"{where}: the record at byte {start} has another checksum than was written with it. The trace is "
                f"damaged from there on; restore the file from a copy, or remove it and all that are older."
            )
        try:
            yield _record(msgpack.unpackb(payload, use_list=False))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise TraceDamaged(
                f"{where}: the record at byte {start} cannot be read: {error}. A later version of Clew may have "
                f"written it; read it with that version."
            ) from error
        start += size + length


def _record(fields: tuple[Any, ...]) -> Record:
    kind = fields[0]
    if kind == STEPS:
        _, time, number, position, wrote, parts = fields
        return Steps(time, number, position, wrote, tuple([Part._make(part) for part in parts]))
    if kind == HEAD:
        return Head(_names(fields[1]), *fields[2:])
    found: Record = _OTHERS[kind](*fields[1:])
    return found


def _named(names: Names) -> tuple[Any, ...]:
    channels = [[str(each.sender), each.output, str(each.receiver), each.input] for each in names.channels]
    return str(names.replica), channels, names.ports, names.writes


def _names(fields: tuple[Any, ...]) -> Names:
    replica, channels, ports, writes = fields
    found = tuple(Channel(parse_replica(a), b, parse_replica(c), d) for a, b, c, d in channels)
    return Names(parse_replica(replica), found, ports, writes)
