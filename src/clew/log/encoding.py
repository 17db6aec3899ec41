"""Encoding: a transaction as rows for the tables, reduced to what will be left of it, and rows as events again.

What a transaction both adds and removes is never written: an Input Set that was opened, generated and forgotten in
one transaction, as those of a stateless operator are, costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from clew.errors import LogDamaged
from clew.log.numbers import Numbers
from clew.log.sql import ID_BITS, Row
from clew.model.event import Event
from clew.model.history import Cursor, Output, Pair, Stored, Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet
from clew.model.values import decode, encode

OPEN = 0
CLOSED = 1
"""The Input Set was generated and outputs in the log came from it."""
BARE = 2
"""The Input Set was generated and no output in the log came from it, so that retention may remove it."""

AT_HAND = f"closed <> {CLOSED}"
"""The condition of the index of Input Sets that are open or bare; a query must say it to be answered by that index."""

ID_LIMIT = 1 << ID_BITS


@dataclass(slots=True)
class Rows:
    """A transaction as rows; the names are those of the tables."""

    ports: Sequence[tuple[int, str, int, str]] = ()
    channels: Sequence[tuple[int, str, int, str, str, int, str]] = ()
    schemas: Sequence[tuple[int, bytes]] = ()
    outputs: Sequence[Row] = ()
    input_sets: Sequence[tuple[int, bytes, int]] = ()
    pairs: Sequence[Row] = ()
    closed: Sequence[tuple[int]] = ()
    """Input Sets of earlier transactions that this one closes."""
    lineage: Sequence[tuple[int, int]] = ()
    late_lineage: Sequence[tuple[int]] = ()
    """Input Sets that get lineage rows and are not closed here."""
    uses: Sequence[tuple[int, str, int]] = ()
    cursors: Sequence[Row] = ()
    counters: Sequence[tuple[str, int]] = ()
    state: Sequence[tuple[bytes, bytes]] = ()
    state_removed: Sequence[tuple[bytes]] = ()
    state_versions: Sequence[tuple[int, bytes, bytes | None]] = ()
    timers: Sequence[tuple[bytes, float]] = ()
    timers_removed: Sequence[tuple[bytes]] = ()
    progress: Sequence[tuple[str, bytes, bytes]] = ()
    progress_removed: Sequence[tuple[str, bytes]] = ()
    reads: Sequence[Row] = ()
    effects: Sequence[Row] = ()
    forget_outputs: Sequence[tuple[int, int]] = ()
    forget_sets: Sequence[tuple[int]] = ()
    """Input Sets of earlier transactions that are removed."""
    is_forgetting_sets: bool = False
    """Whether any Input Set goes, even one that this transaction opened."""
    forget_reads: Sequence[tuple[int]] = ()
    forget_effects: Sequence[tuple[int]] = ()


def rows_of(replica: Replica, transaction: Transaction, numbers: Numbers, files: Mapping[int, str]) -> Rows:
    """The rows of a transaction. `files` has the body file of each event, by identity, whose body is not in its row."""
    t = transaction
    rows = Rows()
    if t.outputs:
        rows.outputs = _output_rows(replica, t.outputs, numbers, files)
    if t.opened or t.pairs or t.closed or t.lineage or t.uses or t.forget_sets:
        _add_sets(rows, replica, t, numbers)
    if t.cursors:
        rows.cursors = [_cursor_row(numbers.channel(channel), cursor) for channel, cursor in t.cursors.items()]
    if t.counters:
        rows.counters = list(t.counters.items())
    if t.state:
        rows.state = [(key, value) for key, value in t.state.items() if value is not None]
        rows.state_removed = [(key,) for key, value in t.state.items() if value is None]
    if t.state_versions:
        rows.state_versions = [
            (version, key, value) for version, changes in t.state_versions for key, value in changes.items()
        ]
    if t.timers:
        rows.timers = [(key, due) for key, due in t.timers.items() if due is not None]
        rows.timers_removed = [(key,) for key, due in t.timers.items() if due is None]
    if t.progress:
        rows.progress = [(*row, value) for row, value in t.progress.items() if value is not None]
        rows.progress_removed = [row for row, value in t.progress.items() if value is None]
    if t.reads:
        latest = {action.number: action for action in t.reads}
        rows.reads = [(*a[:3], int(a.is_complete), int(a.is_done), a.offset, int(a.is_stored)) for a in latest.values()]
    if t.stored:
        rows.effects = [_effect_row(stored, numbers, files) for stored in t.stored]
    if t.forget_outputs:
        rows.forget_outputs = [
            _span(numbers.port(replica, port), first, last) for port, first, last in t.forget_outputs
        ]
    if t.forget_reads or t.forget_effects:
        rows.forget_reads = [(number,) for number in t.forget_reads]
        rows.forget_effects = [(number,) for number in t.forget_effects]
    rows.ports, rows.channels, rows.schemas = numbers.new_ports, numbers.new_channels, numbers.new_schemas
    return rows


def _output_rows(replica: Replica, outputs: Iterable[Output], numbers: Numbers, files: Mapping[int, str]) -> list[Row]:
    rows: list[Row] = []
    bases: dict[str, int] = {}
    for event, created, requires in outputs:
        port = event.port
        base = bases.get(port)
        if base is None:
            base = bases[port] = numbers.port(replica, port) << ID_BITS
        batch = event.batch
        if batch is None or requires or files or event.attributes:
            content = _content(event, numbers, files)
            rows.append((base + event.id, created, *content, encode(requires) if requires else None))
        else:  # What most events are.
            time = None if event.time is None else encode(event.time)
            rows.append((base + event.id, created, numbers.schema(batch.schema), time, None, None, event.body, None))
    return rows


def _effect_row(stored: Stored, numbers: Numbers, files: Mapping[int, str]) -> Row:
    event = stored.event
    origin = numbers.port(event.sender, event.port)
    return (stored.action, stored.index, origin, event.id, *_content(event, numbers, files))


def _content(event: Event, numbers: Numbers, files: Mapping[int, str]) -> tuple[object, ...]:
    """Schema, time, attributes, file and body of an event. An end mark has none of schema, file and body."""
    time = None if event.time is None else encode(event.time)
    attributes = encode(dict(event.attributes)) if event.attributes else None
    batch = event.batch
    if batch is None:
        return None, time, attributes, None, None
    file = files.get(id(event))
    return numbers.schema(batch.schema), time, attributes, file, event.body if file is None else None


def _span(port: int, first: int, last: int) -> tuple[int, int]:
    """The keys of a range of ids, which must not reach into those of another port."""
    base = port << ID_BITS
    return base + max(first, 0), base + min(last, ID_LIMIT - 1)


def _add_sets(rows: Rows, replica: Replica, t: Transaction, numbers: Numbers) -> None:
    gone = set(t.forget_sets)
    if t.pairs:
        rows.pairs = _pair_rows(t.pairs, gone, numbers)
    if not (t.opened or t.closed or t.lineage or t.uses or gone):
        return
    closed = set(t.closed)
    opened = {serial for serial, _ in t.opened}
    if t.lineage:
        rows.lineage = [((numbers.port(replica, port) << ID_BITS) + event, serial) for port, event, serial in t.lineage]
    with_lineage = {serial for _, serial in rows.lineage}
    rows.input_sets = [
        (serial, key, (CLOSED if serial in with_lineage else BARE) if serial in closed else OPEN)
        for serial, key in t.opened
        if serial not in gone
    ]
    rows.closed = [(serial,) for serial in t.closed if serial not in opened and serial not in gone]
    rows.late_lineage = [(serial,) for serial in with_lineage - closed - opened - gone]
    rows.uses = [(serial, kind, number) for serial, kind, number in t.uses if serial not in gone]
    rows.forget_sets = [(serial,) for serial in t.forget_sets if serial not in opened]
    rows.is_forgetting_sets = bool(gone)


def _pair_rows(pairs: Iterable[Pair], gone: set[int], numbers: Numbers) -> list[Row]:
    rows: list[Row] = []
    latest: Channel | None = None
    number = 0
    for order, channel, event, serial, note in pairs:
        if serial in gone:
            continue
        if channel is not latest:
            number = numbers.channel(channel)
            latest = channel
        rows.append((serial, order, number, event, note))
    return rows


def _cursor_row(number: int, cursor: Cursor) -> Row:
    released = cursor.released
    ranges = released.ranges()
    above = encode([end for span in ranges for end in span]) if ranges else None
    return number, cursor.assigned, released.floor, above, int(cursor.ended)


def cursor_of(row: Row) -> Cursor:
    """The cursor in a row (assigned, floor, above, ended)."""
    assigned, floor, above, ended = row
    ends = [] if above is None else decode(above)
    return Cursor(assigned, IdSet.of_ranges(floor, zip(ends[::2], ends[1::2], strict=True)), bool(ended))


def event_of(
    sender: Replica, port: str, id: int, schema: pa.Schema | None, time: bytes | None, attributes: bytes | None,
    body: bytes,
) -> Event:  # fmt: skip
    """The event in a row; no schema means that it is an end mark."""
    try:
        batch = None if schema is None else pa.ipc.read_record_batch(pa.py_buffer(body), schema)
    except (pa.ArrowException, OSError) as error:
        raise LogDamaged(
            f"the body of event {sender}.{port}/{id} cannot be read ({error}); expected a record batch of {len(body)} "
            f"bytes. Restore the log from a copy."
        ) from None
    return Event(
        sender,
        port,
        id,
        batch,
        time=None if time is None else decode(time),
        attributes={} if attributes is None else decode(attributes),
    )
