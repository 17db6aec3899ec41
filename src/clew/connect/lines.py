"""Lines: the complete lines of a file that may still grow, block by block from any byte."""

from __future__ import annotations

import os
from types import TracebackType
from typing import BinaryIO, NamedTuple

from clew.errors import OutsideError

RECORDS_MAX = 4096
BYTES_MAX = 1 << 20
"""A block ends with the event that makes it larger than either, and holds whole events unless the file ends."""


class Block(NamedTuple):
    """Lines that follow each other in a file, and where the first begins."""

    byte: int
    line: int
    """How many lines come before."""
    lines: list[bytes]

    @property
    def end(self) -> tuple[int, int]:
        """Where the next block begins: byte and line."""
        return self.byte + sum(map(len, self.lines)), self.line + len(self.lines)


class Lines:
    """A file, read from the begin of some record on.

    With `has_quotes` a record goes on behind the end of a line as long as a quotation mark is open.
    """

    def __init__(self, path: str, byte: int = 0, line: int = 0, *, has_quotes: bool = False) -> None:
        self.path = path
        self.byte = byte
        self.line = line
        self.has_quotes = has_quotes
        self._file: BinaryIO | None = None
        self._size = -1
        """How long the file was when nothing whole was found in it."""

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def take(self, rows_per_event: int, *, is_whole: bool, records_max: int | None = None) -> Block | None:
        """The next block, of the records that are there; None when none is.

        The last record of a file counts if its line has ended, or if the file is whole and nothing follows.
        """
        file = self._opened(is_whole)
        if file is None:
            return None
        size = os.fstat(file.fileno()).st_size
        self._check_size(size)
        if size == self._size and not is_whole:
            return None
        block = self._read(file, rows_per_event, is_whole, records_max or RECORDS_MAX)
        self.byte, self.line = block.end
        file.seek(self.byte)
        self._size = -1 if block.lines else size
        return block if block.lines else None

    def back_to(self, end: tuple[int, int]) -> None:
        """Goes back: the next block begins at this byte and line."""
        self.byte, self.line = end
        self._size = -1
        if self._file is not None:
            self._file.seek(self.byte)

    def _read(self, file: BinaryIO, rows_per_event: int, is_whole: bool, records_max: int) -> Block:
        lines: list[bytes] = []
        records = ends = length = 0
        is_open = False
        while (
            not records or records % rows_per_event or (records + rows_per_event <= records_max and length < BYTES_MAX)
        ):
            line = file.readline()
            if not line or not (is_whole or line.endswith(b"\n")):
                break
            lines.append(line)
            if self.has_quotes and line.count(b'"') % 2:
                is_open = not is_open
            if not is_open:
                records, ends = records + 1, len(lines)
                length += len(line)
        if is_open and is_whole:
            raise OutsideError(
                f"{self.path}: the file ends inside the quoted value that begins in line {self.line + ends + 1} (byte "
                f"{self.byte + sum(map(len, lines[:ends]))}); expected a closing quotation mark. Mend the file, or "
                f"write it elsewhere and rename it into place when it is whole; the run goes on from there."
            )
        return Block(self.byte, self.line, lines[:ends])

    def _opened(self, is_whole: bool) -> BinaryIO | None:
        if self._file is None:
            try:
                self._file = open(self.path, "rb")  # noqa: SIM115  (It stays open until the block after the last.)
            except FileNotFoundError:
                if is_whole or self.byte:
                    raise OutsideError(
                        f"{self.path} is not there any more; expected a file, read as far as byte {self.byte}. Bring "
                        f"it back; the run goes on from there."
                    ) from None
                return None
            self._file.seek(self.byte)
        return self._file

    def _check_size(self, size: int) -> None:
        if size < self.byte:
            raise OutsideError(
                f"{self.path} has {size} bytes, but {self.byte} of them have been read already; expected a file that "
                f"only grows. Bring the old contents back, or begin a new run with a new log."
            )
