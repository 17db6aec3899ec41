"""A segment: one file of a trace, written through memory that it shares with the machine.

What is written there outlives the process, whatever kills it, and costs no system call; a call for each commit would
let other threads in between, at a time when everyone waits for the commit. The file grows in steps that are allocated
beforehand, so that a full disk is an error here and not a fault in the middle of a copy. What is behind the last
record is zero, until the segment is closed in order and cut off there.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from pathlib import Path

STEP_BYTES = 256 << 10


class Segment:
    """A file that is written from its beginning to its end."""

    __slots__ = ("_file", "_map", "size")

    def __init__(self, path: Path) -> None:
        """Makes the file; raises `FileExistsError` if it is there."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        self._map: mmap.mmap | None = None
        self.size = 0
        """How many bytes were written."""

    def write(self, data: bytes) -> None:
        """Appends bytes; raises `OSError` if there is no room for them."""
        end = self.size + len(data)
        if self._map is None or end > len(self._map):
            self._grow(end)
        assert self._map is not None
        self._map[self.size : end] = data
        self.size = end

    def close(self) -> None:
        """Cuts off what is not written."""
        if self._map is not None:
            self._map.close()
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self.size)
        os.close(self._file)

    def _grow(self, least: int) -> None:
        before = 0 if self._map is None else len(self._map)
        after = -(-least // STEP_BYTES) * STEP_BYTES
        place = before
        while place < after:
            place += os.pwrite(self._file, bytes(min(STEP_BYTES, after - place)), place)
        if self._map is not None:
            self._map.close()
        self._map = mmap.mmap(self._file, after)
