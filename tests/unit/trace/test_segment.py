"""A segment of a trace: it grows, outlives its process, is cut off when it is closed, and a full disk is an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.trace.framing import TraceDamaged, decode_all, encode
from clew.trace.records import Completed
from clew.trace.segment import STEP_BYTES, Segment


def test_it_grows_in_steps_and_is_cut_off_when_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    segment = Segment(path)
    pieces = [bytes([number]) * (STEP_BYTES // 3) for number in range(1, 6)]
    for piece in pieces:
        segment.write(piece)
    segment.write(b"x" * 3 * STEP_BYTES)
    written = b"".join(pieces) + b"x" * 3 * STEP_BYTES
    assert path.stat().st_size % STEP_BYTES == 0
    assert path.read_bytes().rstrip(b"\0") == written
    segment.close()
    assert path.read_bytes() == written


def test_there_is_one_writer(tmp_path: Path) -> None:
    Segment(tmp_path / "segment").write(b"x")
    with pytest.raises(FileExistsError):
        Segment(tmp_path / "segment")


def test_a_full_disk_is_an_error_and_what_was_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "segment"
    segment = Segment(path)
    segment.write(b"x" * 10)

    def full(*given: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    segment.write(b"y" * 10)
    with pytest.raises(OSError, match="No space"):
        segment.write(b"z" * STEP_BYTES)
    segment.close()
    assert path.read_bytes() == b"x" * 10 + b"y" * 10


@pytest.mark.parametrize("kept", range(len(encode(Completed(1.5, 7)))))
def test_a_record_that_was_cut_off_anywhere_is_left_out(kept: int) -> None:
    whole, torn = encode(Completed(1.0, 6)), encode(Completed(1.5, 7))
    for rest in (b"", bytes(len(torn) - kept), bytes(len(torn) + 100)):
        assert list(decode_all(whole + torn[:kept] + rest)) == [Completed(1.0, 6)]


def test_a_damaged_record_with_another_behind_it_is_an_error() -> None:
    first, second = encode(Completed(1.0, 6)), encode(Completed(1.5, 7))
    for place in (0, 4, 8, len(first) - 1):
        data = bytearray(first + second + bytes(1000))
        data[place] ^= 1
        with pytest.raises(TraceDamaged, match="the record at byte 0"):
            list(decode_all(bytes(data)))
