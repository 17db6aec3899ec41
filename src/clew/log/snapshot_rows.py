"""The rows of a snapshot: what a replica holds in memory at the end of an epoch, as keys and values of bytes.

The first byte of a key says what the row is about. Read back, a snapshot is one transaction: committed to an empty
memory, it leaves there what was captured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from clew.errors import LogDamaged, LogError
from clew.log.contract import ReplicaRows
from clew.log.snapshot_events import SCHEMA, Schemas, event_content, event_of_content, of_int, to_int
from clew.log.versions import rows_at
from clew.model.event import Event
from clew.model.history import Cursor, Output, Pair, ReadAction, Stored, Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet
from clew.model.values import decode, encode

VALUE_BYTES_MAX = 512 << 20
"""The largest value or body that a snapshot can hold: both stores hold more in a row, but not twice as much."""

_STATE, _COUNTER, _CURSOR, _TIMER, _PROGRESS, _READ = b"s", b"c", b"u", b"t", b"g", b"r"
_SET, _PAIR, _EVENT, _WRITE, _EFFECT = b"o", b"p", b"e", b"w", b"f"


class Changes(NamedTuple):
    """What changed in a replica's memory during an epoch; None: it is gone. Nothing in it changes any more."""

    state: dict[bytes, bytes | None]
    counters: dict[str, int]
    cursors: dict[Channel, Cursor]
    timers: dict[bytes, float | None]
    progress: dict[tuple[str, bytes], bytes | None]
    reads: dict[int, ReadAction | None]
    sets: dict[int, bytes | None]
    """Keys of open Input Sets, by serial."""
    pairs: dict[int, Pair | None]
    """Undone pairs, by order number."""
    events: dict[Channel, dict[int, Event | None]]
    """The events of undone pairs."""
    writes: dict[tuple[str, int], Output | None]
    """Write actions that are not done."""
    effects: dict[tuple[int, int], Event | None]
    """Stored effects of read actions that are not done, by action and index."""


def rows_of_changes(replica: Replica, changes: Changes, schemas: Schemas) -> dict[bytes, bytes | None]:
    """The rows that changed; None: the row has ended."""
    rows: dict[bytes, bytes | None] = {_STATE + key: value for key, value in changes.state.items()}
    rows.update((_COUNTER + name.encode(), encode(value)) for name, value in changes.counters.items())
    rows.update((_CURSOR + _of_channel(channel), _of_cursor(c)) for channel, c in changes.cursors.items())
    rows.update((_TIMER + key, None if due is None else encode(due)) for key, due in changes.timers.items())
    rows.update((_PROGRESS + encode(list(name)), value) for name, value in changes.progress.items())
    rows.update((_READ + of_int(n), None if read is None else encode(list(read))) for n, read in changes.reads.items())
    rows.update((_SET + of_int(serial), key) for serial, key in changes.sets.items())
    _add_pairs(rows, changes.pairs)
    for channel, events in changes.events.items():
        place = _EVENT + _of_channel(channel)
        for id, event in events.items():
            rows[place + of_int(id)] = None if event is None else encode(event_content(event, schemas))
    for (connection, id), output in changes.writes.items():
        rows[_WRITE + of_int(id) + connection.encode()] = None if output is None else _of_output(output, schemas)
    for (action, index), event in changes.effects.items():
        rows[_EFFECT + of_int(action) + of_int(index)] = None if event is None else _of_effect(event, schemas)
    rows.update(schemas.unsaved())
    for row, value in rows.items():
        if value is not None and len(value) > VALUE_BYTES_MAX:
            raise _too_large(replica, row, len(value))
    return rows


def transaction_of_rows(replica: Replica, rows: Mapping[bytes, bytes], schemas: Schemas) -> Transaction:
    """The snapshot as one transaction."""
    reading = _Reading(replica, schemas)
    for row, value in rows.items():
        try:
            reading.take(row[:1], row[1:], value)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise LogDamaged(
                f"a row of the snapshot of {replica} cannot be read: its key is {row[:60]!r} and it has {len(value)} "
                f"bytes ({type(error).__name__}: {error}). Restore the log from a copy, or use the version of Clew "
                f"that wrote it."
            ) from None
    snapshot = reading.snapshot
    snapshot.opened.sort()
    snapshot.pairs.sort()
    snapshot.stored.sort(key=lambda stored: stored[:2])
    return snapshot


def snapshot_at(replica: Replica, items: list[tuple[bytes, bytes]], epoch: int) -> Transaction:
    """The snapshot of an epoch as one transaction, from all state rows of a replica's durable log."""
    rows = rows_at(items, epoch)
    return transaction_of_rows(replica, rows, Schemas(rows))


def snapshot_state(rows: ReplicaRows, epoch: int) -> list[tuple[bytes, bytes]]:
    """The operator's own state at an epoch, ordered by key, from the rows of a replica's durable log."""
    return sorted((row[1:], value) for row, value in rows_at(rows.state, epoch).items() if row[:1] == _STATE)


def _of_channel(channel: Channel) -> bytes:
    return encode([*channel.sender, channel.output, *channel.receiver, channel.input])


def _to_channel(data: bytes) -> Channel:
    sender, sender_index, output, receiver, receiver_index, input = decode(data)
    return Channel(Replica(sender, sender_index), output, Replica(receiver, receiver_index), input)


def _of_cursor(cursor: Cursor) -> bytes:
    released = cursor.released
    return encode([cursor.assigned, released.floor, cursor.ended, *(list(span) for span in released.ranges())])


def _add_pairs(rows: dict[bytes, bytes | None], pairs: Mapping[int, Pair | None]) -> None:
    latest: Channel | None = None
    place = b""
    for order, pair in pairs.items():
        if pair is None:
            rows[_PAIR + of_int(order)] = None
            continue
        if pair.channel is not latest:
            latest = pair.channel
            place = _of_channel(latest)
        rows[_PAIR + of_int(order)] = encode([place, pair.event, pair.serial, pair.note])


def _of_output(output: Output, schemas: Schemas) -> bytes:
    return encode([output.created, [list(each) for each in output.requires], *event_content(output.event, schemas)])


def _of_effect(event: Event, schemas: Schemas) -> bytes:
    return encode([*event.sender, event.port, event.id, *event_content(event, schemas)])


class _Reading:
    """Reads the rows of a snapshot one by one."""

    def __init__(self, replica: Replica, schemas: Schemas) -> None:
        self.replica = replica
        self.schemas = schemas
        self.snapshot = Transaction()
        self._channels: dict[bytes, Channel] = {}

    def take(self, kind: bytes, key: bytes, value: bytes) -> None:
        snapshot = self.snapshot
        if kind == _STATE:
            snapshot.state[key] = value
        elif kind == _EVENT:
            self._event(key, value)
        elif kind == _PAIR:
            place, event, serial, note = decode(value)
            snapshot.pairs.append(Pair(to_int(key), self._channel(place), event, serial, note))
        elif kind == _SET:
            snapshot.opened.append((to_int(key), value))
        elif kind == _TIMER:
            snapshot.timers[key] = decode(value)
        elif kind == _COUNTER:
            snapshot.counters[key.decode()] = decode(value)
        elif kind == _CURSOR:
            assigned, floor, ended, *ranges = decode(value)
            snapshot.cursors[self._channel(key)] = Cursor(assigned, IdSet.of_ranges(floor, ranges), ended)
        elif kind == _PROGRESS:
            what, name = decode(key)
            snapshot.progress[what, name] = value
        elif kind == _READ:
            snapshot.reads.append(ReadAction(*decode(value)))
        elif kind == _WRITE:
            self._write(key, value)
        elif kind == _EFFECT:
            operator, index, port, id, *content = decode(value)
            event = event_of_content(Replica(operator, index), port, id, content, self.schemas)
            snapshot.stored.append(Stored(to_int(key[:8]), to_int(key[8:]), event))
        elif kind != SCHEMA:
            raise ValueError(f"no row begins with {kind!r}")

    def _channel(self, data: bytes) -> Channel:
        channel = self._channels.get(data)
        if channel is None:
            channel = self._channels[data] = _to_channel(data)
        return channel

    def _event(self, key: bytes, value: bytes) -> None:
        channel = self._channel(key[:-8])
        event = event_of_content(channel.sender, channel.output, to_int(key[-8:]), decode(value), self.schemas)
        self.snapshot.taken.append((channel, event))

    def _write(self, key: bytes, value: bytes) -> None:
        created, requires, *content = decode(value)
        event = event_of_content(self.replica, key[8:].decode(), to_int(key[:8]), content, self.schemas)
        needs = tuple((connection, action) for connection, action in requires)
        self.snapshot.outputs.append(Output(event, created, needs))


def _too_large(replica: Replica, row: bytes, size: int) -> LogError:
    kind, key = row[:1], row[1:]
    if kind == _STATE:
        what, remedy = f"the value of state key {_shown(key)}", "Keep it under several keys"
    elif kind == _EVENT:
        channel = _to_channel(key[:-8])
        what = f"event {channel.sender}.{channel.output}/{to_int(key[-8:])}, which waits in an Input Set,"
        remedy = "Let its sender yield its records as several events"
    elif kind == _WRITE:
        what = f"write action {to_int(key[:8])} on {key[8:].decode()!r}"
        remedy = "Yield its records as several write actions"
    else:
        what, remedy = "a row", "Store less in it"
    return LogError(
        f"operator {replica}: {what} has {size} bytes; a snapshot can hold at most {VALUE_BYTES_MAX} in one piece. "
        f"{remedy}, or run with recovery='log'."
    )


def _shown(key: bytes) -> str:
    try:
        return repr(decode(key))[:80]
    except Exception:
        return repr(key)[:80]
