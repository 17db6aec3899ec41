"""Whatever one end of a channel says, the other end hears: any event, any cursor, in any pieces."""

from __future__ import annotations

import string
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import BadFrame
from clew.model.event import Event
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Session
from clew.runtime import wire
from clew.runtime.control import dial_frame, message, read_dial, read_message
from clew.runtime.frames import FrameReader

CHANNEL = Channel(Replica("orders"), "out", Replica("hourly", 2), "in")

NUMBERS = st.integers(0, 2**63)
SESSIONS = st.builds(Session, NUMBERS, NUMBERS)
VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5) | st.binary(max_size=5)
ATTRIBUTES = st.dictionaries(st.text(string.ascii_lowercase, min_size=1, max_size=5), VALUES, max_size=3)
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "text": (pa.string(), st.text(max_size=8)),
    "bytes": (pa.binary(), st.binary(max_size=8)),
    "real": (pa.float64(), st.floats(allow_nan=False)),
    "list": (pa.list_(pa.int32()), st.lists(st.integers(-5, 5), max_size=3)),
    "truth": (pa.bool_(), st.booleans()),
}


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True))
    rows = draw(st.integers(0, 4))
    arrays = [
        pa.array(draw(st.lists(st.none() | COLUMNS[name][1], min_size=rows, max_size=rows)), COLUMNS[name][0])
        for name in names
    ]
    return pa.RecordBatch.from_arrays(arrays, names=names)


@st.composite
def said(draw: st.DrawFn) -> does.Send | does.Ack | does.Connect | does.Hello:
    session = draw(SESSIONS)
    match draw(st.sampled_from(["send", "send", "end", "ack", "connect", "hello"])):
        case "send" | "end" as kind:
            batch = draw(batches()) if kind == "send" else None
            event = Event(
                CHANNEL.sender, CHANNEL.output, draw(NUMBERS), batch, time=draw(VALUES), attributes=draw(ATTRIBUTES)
            )
            return does.Send(CHANNEL, session, event)
        case "ack":
            released = IdSet(draw(st.integers(0, 100)), draw(st.lists(st.integers(1, 300), max_size=10)))
            return does.Ack(CHANNEL, session, draw(NUMBERS), released, draw(st.integers(0, 2**32 - 1)))
        case "connect":
            return does.Connect(CHANNEL, session, draw(NUMBERS))
        case _:
            return does.Hello(CHANNEL, draw(NUMBERS))


def framed(outgoing: wire.Outgoing, effect: Any) -> bytes:
    match effect:
        case does.Send():
            return outgoing.event(effect)
        case does.Ack():
            return wire.ack(effect)
        case does.Connect():
            return wire.connect(effect)
        case _:
            return wire.hello(effect)


def agree(effect: Any, given: Any) -> bool:
    match effect:
        case does.Send():
            return (
                type(given) is was.Received
                and (given.channel, given.session) == (effect.channel, effect.session)
                and given.event.same(effect.event)
                and (effect.event.batch is None or given.event.batch.schema.equals(effect.event.batch.schema))
            )
        case does.Ack():
            fields = (effect.channel, effect.session, effect.assigned, effect.released, effect.pressure)
            return given == was.Acked(*fields)
        case does.Connect():
            return given == was.Connected(effect.channel, effect.session, effect.assigned)
        case _:
            return given == was.Greeted(effect.channel, effect.incarnation)


@given(st.lists(said(), max_size=8), st.lists(st.integers(1, 90), min_size=1))
def test_all_that_is_said_is_heard_in_any_pieces(effects: list[Any], sizes: list[int]) -> None:
    outgoing, incoming, reader = wire.Outgoing(), wire.Incoming(CHANNEL), FrameReader()
    data = b"".join(framed(outgoing, effect) for effect in effects)
    heard = []
    while data:
        sizes = [*sizes[1:], sizes[0]]
        reader.fed(data[: sizes[0]])
        data = data[sizes[0] :]
        heard += [given for frame in reader.frames() if (given := incoming.input(*frame)) is not None]
    assert len(heard) == len(effects)
    for effect, given in zip(effects, heard, strict=True):
        assert agree(effect, given), f"{effect} was heard as {given}"


@given(batches(), VALUES, ATTRIBUTES)
def test_the_records_of_an_event_with_a_time_are_aligned(batch: pa.RecordBatch, time: Any, attributes: Any) -> None:
    event = Event(CHANNEL.sender, CHANNEL.output, 1, batch, time=time, attributes=attributes)
    incoming, reader = wire.Incoming(CHANNEL), FrameReader()
    reader.fed(framed(wire.Outgoing(), does.Send(CHANNEL, Session(1, 1), event)))
    heard = [given for frame in reader.frames() if (given := incoming.input(*frame)) is not None]
    assert isinstance(heard[0], was.Received)
    buffers = [each for column in heard[0].event.batch.columns for each in column.buffers() if each is not None]
    assert all(buffer.address % 8 == 0 for buffer in buffers if buffer.size)


def test_a_schema_travels_once() -> None:
    outgoing = wire.Outgoing()
    one, other = pa.record_batch({"x": [1]}), pa.record_batch({"y": ["a"]})
    sizes = [
        len(outgoing.event(does.Send(CHANNEL, Session(1, 1), Event(CHANNEL.sender, "out", id, batch))))
        for id, batch in enumerate((one, one, other, one, other), 1)
    ]
    assert sizes[0] > sizes[1] == sizes[3]
    assert sizes[2] > sizes[4]


@given(st.sampled_from(range(12, 26)), st.binary(max_size=80))
def test_garbage_is_refused_or_means_something_and_nothing_else(kind: int, payload: bytes) -> None:
    incoming = wire.Incoming(CHANNEL)
    try:
        given = incoming.input(kind, payload)
    except BadFrame:
        return
    assert given is None or isinstance(given, was.Received | was.Acked | was.Connected | was.Greeted)


def test_an_unknown_kind_names_its_channel() -> None:
    with pytest.raises(BadFrame, match=r"kind 99 came on channel orders\.out->hourly/2\.in"):
        wire.Incoming(CHANNEL).input(99, b"")


def test_control_messages_and_channel_names() -> None:
    (frame,) = frames_in(message("beat", replicas={"a": {"position": 3}}))
    assert read_message(*frame) == {"type": "beat", "replicas": {"a": {"position": 3}}}
    (frame,) = frames_in(dial_frame(CHANNEL))
    assert read_dial(*frame) == CHANNEL


@given(st.integers(0, 5), st.binary(max_size=60))
def test_garbage_is_no_control_message(kind: int, payload: bytes) -> None:
    for read in (read_message, read_dial):
        try:
            read(kind, payload)
        except BadFrame:
            continue
        raise AssertionError(f"{payload!r} was taken for a message")


def frames_in(data: bytes) -> list[tuple[int, bytes]]:
    reader = FrameReader()
    reader.fed(data)
    return list(reader.frames())
