"""Frames survive any way in which a stream is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import BadFrame
from clew.runtime.frames import FrameReader, frame

FRAMES = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=200)), max_size=20)


@given(FRAMES, st.lists(st.integers(1, 60), min_size=1))
def test_any_frames_in_any_pieces(frames: list[tuple[int, bytes]], sizes: list[int]) -> None:
    data = b"".join(frame(*each) for each in frames)
    reader = FrameReader()
    found = []
    while data:
        sizes = [*sizes[1:], sizes[0]]
        reader.fed(data[: sizes[0]])
        data = data[sizes[0] :]
        found += list(reader.frames())
    assert found == frames


def test_large_frames_between_small_ones_and_what_they_leave() -> None:
    reader = FrameReader()
    frames = [(1, b"small"), (2, bytes(9_000_000)), (3, b"small"), (4, bytes(700_000)), (5, b"")]
    data = b"".join(frame(*each) for each in frames)
    found = []
    for begin in range(0, len(data), 65_536):
        piece = memoryview(data)[begin : begin + 65_536]
        while piece:
            room = reader.room()
            taken = min(len(room), len(piece))
            room[:taken] = piece[:taken]
            room.release()
            reader.filled(taken)
            piece = piece[taken:]
            found += list(reader.frames())
    assert found == frames
    for _ in range(3):
        reader.fed(frame(6, bytes(100_000)))
        assert len(list(reader.frames())) == 1
    assert len(reader._buffer) <= 1 << 22, "the room for a large frame is given back"


def test_a_frame_that_is_too_long_is_refused_at_its_head() -> None:
    reader = FrameReader(limit=100)
    reader.fed(frame(1, bytes(101))[:5])
    with pytest.raises(BadFrame, match="a frame of 101 bytes was announced; expected at most 100"):
        list(reader.frames())
