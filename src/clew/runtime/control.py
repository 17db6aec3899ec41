"""Control messages between hosts and the coordinator: small dictionaries as msgpack in frames."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from clew.errors import BadFrame
from clew.model.names import Channel, Replica
from clew.model.values import decode, encode
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.runtime.frames import HEADER, FrameReader, frame
from clew.runtime.handshake import PATIENCE_S, exactly

CONTROL = 1
DIAL = 2
"""The first frame of a channel's link: which channel it is for."""
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
"""What is raised where a message does not hold what is expected."""
_LIMIT = 1 << 24


class Address(NamedTuple):
    """Where a host listens; the token tells two hosts on the same port apart."""

    host: str
    port: int
    token: str


def message(kind: str, **fields: Any) -> bytes:
    """The frame of a control message."""
    return frame(CONTROL, encode({"type": kind, **fields}))


def read_message(kind: int, payload: bytes) -> dict[str, Any]:
    """The control message in a frame."""
    found = _decoded(payload) if kind == CONTROL else None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise BadFrame(f"a frame of kind {kind} came where a control message was expected")
    return found


def progress(announcements: Mapping[str, does.Announce]) -> bytes:
    """The message of a host that tells what its replicas announce."""
    return message("progress", replicas={member: _announced(each) for member, each in announcements.items()})


def _announced(announcement: does.Announce) -> list[Any]:
    counts: dict[str, dict[Any, int]] = {}
    for (location, time_), count in announcement.counts.items():
        counts.setdefault(location, {})[time_] = count
    return [*announcement.number, counts, announcement.is_whole, announcement.passed, announcement.is_idle]


def read_progress(said: dict[str, Any]) -> Iterator[tuple[str, does.Announce]]:
    """What replicas announce, by replica."""
    for member, (incarnation, commit, by_location, is_whole, passed, is_idle) in said["replicas"].items():
        counts = {
            (location, time_): int(count) for location, times in by_location.items() for time_, count in times.items()
        }
        seen = {str(location): tuple(times) for location, times in passed.items()}
        yield str(member), does.Announce((int(incarnation), int(commit)), counts, bool(is_whole), seen, bool(is_idle))


def advanced(told: Mapping[str, was.Advanced]) -> bytes:
    """The message of the coordinator that tells replicas of frontiers."""
    return message("advanced", replicas={member: [each.frontiers, each.others] for member, each in told.items()})


def read_advanced(said: dict[str, Any]) -> Iterator[tuple[str, was.Advanced]]:
    """What replicas are told of frontiers, by replica."""
    for member, (frontiers, others) in said["replicas"].items():
        yield str(member), was.Advanced({location: tuple(times) for location, times in frontiers.items()}, others)


def dial_frame(channel: Channel) -> bytes:
    """The frame that says which channel a link is for."""
    return frame(DIAL, encode([*channel.sender, channel.output, *channel.receiver, channel.input]))


def read_dial(kind: int, payload: bytes) -> Channel:
    """The channel that a link is for."""
    found = _decoded(payload) if kind == DIAL else None
    if not isinstance(found, list) or [type(each) for each in found] != [str, int, str, str, int, str]:
        raise BadFrame(f"a frame of kind {kind} came where the name of a channel was expected")
    return Channel(Replica(found[0], found[1]), found[2], Replica(found[3], found[4]), found[5])


def receive(connection: socket.socket) -> tuple[int, bytes]:
    """The next frame of a blocking connection that has not been handed to a loop yet, byte by byte exact."""
    deadline = time.monotonic() + PATIENCE_S
    head = exactly(connection, HEADER.size, deadline)
    reader = FrameReader(_LIMIT)
    length = int.from_bytes(head[:4], "big")
    if length > _LIMIT:
        raise BadFrame(f"a first frame of {length} bytes was announced; expected at most {_LIMIT}")
    reader.fed(head + exactly(connection, length, deadline))
    return next(reader.frames())


def _decoded(payload: bytes) -> Any:
    try:
        return decode(payload)
    except Exception as error:
        raise BadFrame(f"a control message cannot be read: {error}") from error
