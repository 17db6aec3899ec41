"""Comma-separated values: a header line and rows, turned into record batches of types learned from the first block."""

from __future__ import annotations

import csv

import pyarrow as pa

from clew.connect.json_lines import Parsed, Types
from clew.connect.learned import Columns, Conflict, arrow_of, merged, schema_of
from clew.connect.lines import Block
from clew.errors import OutsideError


class CommaSeparated:
    """Parses blocks of one file."""

    has_quotes = True
    has_header = True

    def __init__(self, path: str, columns: Columns) -> None:
        self.path = path
        self.columns = columns
        self.header: list[str] = []

    def first_types(self) -> Types:
        """What is known before the first row."""
        return {}

    def begin(self, block: Block) -> None:
        """Takes the header."""
        line = b"".join(block.lines).removeprefix(b"\xef\xbb\xbf")
        try:
            self.header = next(csv.reader(str(line, "utf-8").splitlines(keepends=True)), [])
        except UnicodeDecodeError as error:
            raise OutsideError(f"{self.path}: the header is not UTF-8 ({error}). Save the file as UTF-8.") from None
        if len(set(self.header)) < len(self.header) or not self.header:
            raise OutsideError(
                f"{self.path}: the header names the columns {', '.join(self.header) or '(none)'}; expected each name "
                f"once. Mend the header."
            )
        missing = [name for name in self.columns.names or () if name not in self.header]
        if missing:
            raise OutsideError(
                f"{self.path} has no column {', '.join(map(repr, missing))}; its header names "
                f"{', '.join(self.header)}. Pass some of these in columns=, or mend the header."
            )

    def parse(self, block: Block, types: Types, rows_per_event: int) -> Parsed:
        """The rows of the block; if one cannot be read, of those whole events that come before it."""
        try:
            batch, learned = self._typed(block, types)
        except (pa.ArrowException, Conflict, UnicodeDecodeError) as error:
            good = self._good(block, types)
            whole = self._lines_of(block.lines, good // rows_per_event * rows_per_event)
            if whole == 0:
                raise self._error(block, self._lines_of(block.lines, good), error) from None
            before = Block(block.byte, block.line, block.lines[:whole])
            batch, learned = self._typed(before, types)
            return Parsed(batch, learned, whole)
        return Parsed(batch, learned, len(block.lines))

    def _typed(self, block: Block, types: Types) -> tuple[pa.RecordBatch, Types]:
        known = {name: plain for name, plain in types.items() if plain != "null"}
        try:
            table = self._table(block.lines, known)
        except pa.ArrowInvalid:  # Perhaps whole numbers have become doubles.
            known = {name: plain for name, plain in known.items() if plain != "int64"}
            table = self._table(block.lines, known)
        found = [field for field in table.schema if field.name not in known and field.name not in self.columns.given]
        if not found:
            return _one(table), types
        learned = dict(types)
        for field in found:
            try:
                learned[field.name] = merged(types.get(field.name, "null"), str(field.type))
            except Conflict as conflict:
                raise Conflict(f"column {field.name!r}: {conflict}") from None
        schema = schema_of({name: learned.get(name, "null") for name in table.schema.names}, self.columns.given)
        return _one(table.cast(schema)), learned

    def _table(self, lines: list[bytes], types: Types) -> pa.Table:
        from pyarrow import csv as arrow_csv

        data = b"".join(lines)
        str(data, "utf-8")
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(column_names=self.header, use_threads=False, block_size=len(data) + 1),
            arrow_csv.ParseOptions(newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types={**{name: arrow_of(plain) for name, plain in types.items()}, **self.columns.given},
                include_columns=self.columns.names,
            ),
        )

    def _good(self, block: Block, types: Types) -> int:
        """How many of the first rows can be read; found by halving."""
        low, high = 0, len(_records(block.lines))
        while high - low > 1:
            middle = (low + high) // 2
            try:
                self._typed(Block(block.byte, block.line, block.lines[: self._lines_of(block.lines, middle)]), types)
                low = middle
            except (pa.ArrowException, Conflict, UnicodeDecodeError):
                high = middle
        return low

    def _lines_of(self, lines: list[bytes], rows: int) -> int:
        return sum(_records(lines)[:rows])

    def _error(self, block: Block, number: int, error: Exception) -> OutsideError:
        byte = block.byte + sum(map(len, block.lines[:number]))
        why = " ".join(str(error).split())
        return OutsideError(
            f"{self.path}: line {block.line + number + 1} (byte {byte}) cannot be read ({why}); "
            f"expected {len(self.header)} columns ({', '.join(self.header)}) of the types of the lines before. Mend "
            f"the line, or give the type, as in columns={{{self.header[0]!r}: 'string'}}; nothing before it is lost "
            f"and the run goes on from there."
        )


def _records(lines: list[bytes]) -> list[int]:
    """The number of lines of each record."""
    found, is_open, length = [], False, 0
    for line in lines:
        length += 1
        if line.count(b'"') % 2:
            is_open = not is_open
        if not is_open:
            found.append(length)
            length = 0
    return found


def _one(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
