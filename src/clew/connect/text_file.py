"""Text files: events from a file of lines, from any offset, whole or while it grows.

An offset names the block that an event is in (byte, line, the types known there) and how many rows of it have been
given. A block is parsed with the types known at its begin, so going on from an offset gives what would have come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from clew.connect.json_lines import Parsed, Types
from clew.connect.lines import Block, Lines


class Parser(Protocol):
    """Turns the blocks of a file into records."""

    path: str
    has_quotes: bool
    has_header: bool

    def first_types(self) -> Types:
        """What is known before the first record."""

    def begin(self, block: Block) -> None:
        """Takes the header, if there is one."""

    def parse(self, block: Block, types: Types, rows_per_event: int) -> Parsed:
        """The records of a block."""


Item = tuple[pa.RecordBatch, list[Any]] | None


def read_text(
    parser: Parser, offset: list[Any] | None, rows_per_event: int, *, is_growing: bool, idle_max: int | None
) -> Iterator[Item]:
    """The events of a file from an offset on.

    Of a growing file every complete line is given as soon as it is there, and None where there is none; it ends when
    there was none so many times in a row.
    """
    byte, line, types, taken = offset or [0, 0, parser.first_types(), 0]
    if parser.has_header:
        with Lines(parser.path, has_quotes=parser.has_quotes) as lines:
            for header in _blocks(lines, 1, is_growing=is_growing, idle_max=idle_max, records_max=1):
                if header is not None:
                    break
                yield None
            else:
                return
        parser.begin(header)
        byte, line = (byte, line) if byte else header.end
    with Lines(parser.path, byte, line, has_quotes=parser.has_quotes) as lines:
        for block in _blocks(lines, rows_per_event, is_growing=is_growing, idle_max=idle_max):
            if block is None:
                yield None
                continue
            parsed = parser.parse(block, types, rows_per_event)
            if parsed.lines < len(block.lines):
                block = block._replace(lines=block.lines[: parsed.lines])
                lines.back_to(block.end)
            rows = parsed.batch.num_rows
            for first in range(taken, rows, rows_per_event):
                last = min(first + rows_per_event, rows)
                here = [block.byte, block.line, types, last]
                yield parsed.batch.slice(first, last - first), here if last < rows else [*block.end, parsed.types, 0]
            types, taken = parsed.types, 0


def _blocks(
    lines: Lines, rows_per_event: int, *, is_growing: bool, idle_max: int | None, records_max: int | None = None
) -> Iterator[Block | None]:
    idle, is_whole = 0, not is_growing
    while True:
        block = lines.take(rows_per_event, is_whole=is_whole, records_max=records_max)
        if block is not None:
            idle = 0
            yield block
        elif is_whole:
            return
        elif idle == idle_max:
            is_whole = True
        else:
            idle += 1
            yield None
