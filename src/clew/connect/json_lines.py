"""JSON lines: one object per line, turned into record batches whose types are learned as the file goes on.

The plain way, line by line with the standard library, says what the types are. Blocks that hold no news for the types
take the fast way: Arrow's own parser, which costs more per block and less per line.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pyarrow as pa

from clew.connect.learned import Columns, Conflict, Plain, merged, plain_of, schema_of
from clew.connect.lines import Block
from clew.errors import OutsideError

FAST_FROM = 100
"""From how many lines on the fast way is faster."""

Types = dict[str, Plain]


class Parsed(NamedTuple):
    """The records of a block, what is known of their types now, and how many lines they were."""

    batch: pa.RecordBatch
    types: Types
    lines: int


class JsonLines:
    """Parses blocks of one file."""

    has_quotes = False
    has_header = False

    def __init__(self, path: str, columns: Columns) -> None:
        self.path = path
        self.columns = columns

    def first_types(self) -> Types:
        """What is known before the first line."""
        return dict.fromkeys(self.columns.names or (), "null")

    def begin(self, block: Block) -> None:
        """There is no header."""

    def parse(self, block: Block, types: Types, rows_per_event: int) -> Parsed:
        """The records of the block; if a line cannot be read, of those whole events that come before it."""
        if len(block.lines) >= FAST_FROM and types and all(map(_is_fast, types.values())):
            batch = self._fast(block.lines, types)
            if batch is not None:
                return Parsed(batch, types, len(block.lines))
        rows: list[Any] = []
        learned = types
        for number, line in enumerate(block.lines):
            try:
                row = self._row(block, number, line)
                if row is not None:
                    learned = self._learn(block, number, row, learned)
                    rows.append(row)
            except OutsideError:
                whole = len(rows) // rows_per_event * rows_per_event
                if whole == 0:
                    raise
                before = Block(block.byte, block.line, _with_rows(block.lines, whole))
                return self.parse(before, types, rows_per_event)
        return Parsed(self._batch(block, rows, learned), learned, len(block.lines))

    def _fast(self, lines: list[bytes], types: Types) -> pa.RecordBatch | None:
        """All records at once, if there is one per line and the types are those that are known."""
        from pyarrow import json as arrow_json

        data = b"".join(lines)
        schema = schema_of(types, self.columns.given)
        others = "infer" if self.columns.names is None else "ignore"
        try:
            str(data, "utf-8")
            table = arrow_json.read_json(
                pa.BufferReader(data),
                arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None
        if table.num_rows != len(lines) or table.schema != schema:
            return None
        return table.combine_chunks().to_batches()[0]

    def _row(self, block: Block, number: int, line: bytes) -> dict[str, Any] | None:
        """One line; None if it is blank."""
        if block.byte == 0 and number == 0:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            return None
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._error(block, number, f"cannot be read as JSON ({error})", "one JSON object per line") from None
        if not isinstance(row, dict):
            raise self._error(block, number, f"holds a {type(row).__name__}", 'a JSON object such as {"id": 1}')
        if self.columns.names is not None:
            return {name: row.get(name) for name in self.columns.names}
        return row

    def _learn(self, block: Block, number: int, row: dict[str, Any], types: Types) -> Types:
        given = self.columns.given
        news: Types = {}
        for name, value in row.items():
            known = types.get(name)
            try:
                plain = "null" if name in given else plain_of(value)
                if known is None or plain != known:
                    better = plain if known is None else merged(known, plain)
                    if better != known:
                        news[name] = better
            except Conflict as conflict:
                raise self._error(
                    block,
                    number,
                    f"has another type in the field {name!r}: {conflict}",
                    "one type for each field of a file",
                    f"Give the type, columns={{{name!r}: 'string'}} for its JSON text, or mend the line",
                ) from None
        return {**types, **news} if news else types

    def _batch(self, block: Block, rows: list[dict[str, Any]], types: Types) -> pa.RecordBatch:
        schema = schema_of(types, self.columns.given)
        if not types:  # Even objects without a field are counted.
            return pa.RecordBatch.from_struct_array(pa.array(rows, pa.struct([])))
        arrays = []
        for field in schema:
            values = [row.get(field.name) for row in rows]
            given = self.columns.given.get(field.name)
            try:
                arrays.append(pa.array(values, field.type) if given is None else _converted(values, given))
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise self._misfit(block, rows, field.name, field.type, error) from None
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _misfit(
        self, block: Block, rows: list[dict[str, Any]], name: str, wanted: pa.DataType, error: Exception
    ) -> OutsideError:
        """The error for the first row whose value has not the type that was given."""
        seen = -1
        for number, line in enumerate(block.lines):
            if not line.strip():
                continue
            seen += 1
            try:
                _converted([rows[seen].get(name)], wanted)
            except (pa.ArrowException, TypeError, ValueError) as found:
                return self._error(
                    block, number, f"holds {rows[seen].get(name)!r} in the field {name!r} ({found})", f"a {wanted}"
                )
        return self._error(block, 0, f"or one after it does not fit the field {name!r} ({error})", f"a {wanted}")

    def _error(self, block: Block, number: int, found: str, expected: str, do: str = "Mend the line") -> OutsideError:
        byte = block.byte + sum(map(len, block.lines[:number]))
        return OutsideError(
            f"{self.path}: line {block.line + number + 1} (byte {byte}) {found}; expected {expected}. {do}; nothing "
            f"before it is lost and the run goes on from there."
        )


def _is_fast(plain: Plain, *, is_inner: bool = False) -> bool:
    """Whether Arrow's parser gets a type right; it does not if the values inside lists or structs were all null."""
    if isinstance(plain, dict):
        return bool(plain) and all(_is_fast(each, is_inner=True) for each in plain.values())
    if isinstance(plain, list):
        return _is_fast(plain[0], is_inner=True)
    return not is_inner or plain != "null"


def _converted(values: list[Any], wanted: pa.DataType) -> pa.Array:
    """Values as a type that the user gave; texts are read as that type, and anything can become text."""
    if pa.types.is_string(wanted) or pa.types.is_large_string(wanted):
        return pa.array(
            [each if each is None or isinstance(each, str) else json.dumps(each) for each in values], wanted
        )
    if values and all(each is None or isinstance(each, str) for each in values):
        return pa.array(values, pa.string()).cast(wanted)
    return pa.array(values, wanted)


def _with_rows(lines: list[bytes], rows: int) -> list[bytes]:
    """The first lines, up to so many that are not blank."""
    for number, line in enumerate(lines):
        rows -= bool(line.strip())
        if rows < 0:
            return lines[:number]
    return lines
