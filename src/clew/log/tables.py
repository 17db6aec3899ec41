"""The five tables of the LOG.io text, as Arrow tables over the logs of all replicas of any store.

Clew does not store these tables: every replica writes only its own rows, and what the text calls the status of an event
is read off its receiver's rows. An event has one row for each receiver and Input Set (seed 002, section 3.2):

- operators are named by their replicas, `slow` and `slow/1`, since each has events and Input Sets of its own;
- not yet acknowledged by the receiver: undone, without an Input Set;
- assigned: one row for each pair, done when the Input Set was generated;
- acknowledged, and no pair is left (it was assigned to nothing, or retention removed its pairs): done;
- a write action has no sender port and its connection as receiver port; a read action whose effect is stored has its
  connection as sender port and no receiver port; a state that a captured generation used has neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from clew.errors import LogError
from clew.log.contract import LogReader, PairRow, ReplicaRows, Store, prefixes
from clew.model.event import Event
from clew.model.history import END_SERIAL
from clew.model.names import Channel, Replica, parse_replica
from clew.model.values import decode, encode

_CHUNK = 256
_END = "<end>"
"""The name of the reserved Input Set of end marks."""

EVENT_LOG = pa.schema(
    [
        ("Event_ID", pa.int64()),
        ("Status", pa.string()),
        ("Send_Op", pa.string()),
        ("Send_p", pa.string()),
        ("Rec_Op", pa.string()),
        ("Rec_p", pa.string()),
        ("InSet_ID", pa.string()),
    ]
)
EVENT_DATA = pa.schema(
    [
        ("Event_ID", pa.int64()),
        ("Send_Op", pa.string()),
        ("Send_p", pa.string()),
        ("Header", pa.binary()),
        ("Body", pa.binary()),
    ]
)
READ_ACTION = pa.schema(
    [
        ("Action_ID", pa.int64()),
        ("Status", pa.string()),
        ("OP_ID", pa.string()),
        ("Conn_ID", pa.string()),
        ("Action_Desc", pa.string()),
    ]
)
STATE = pa.schema([("State_ID", pa.int64()), ("OP_ID", pa.string()), ("State", pa.binary())])
EVENT_LINEAGE = pa.schema(
    [("Event_ID", pa.int64()), ("Send_Op", pa.string()), ("Send_p", pa.string()), ("InSet_ID", pa.string())]
)


class Tables(NamedTuple):
    """The five tables."""

    event_log: pa.Table
    event_data: pa.Table
    """`Header` holds time and attributes as an encoded value, `Body` the records as an Arrow stream; for a read action
    whose effect is stored, `Body` names that effect."""
    read_action: pa.Table
    state: pa.Table
    """`State` is the whole state as an encoded dictionary: the current one, and those that captured lineage needs."""
    event_lineage: pa.Table


def read_tables(store: Store, *, with_bodies: bool = True) -> Tables:
    """Reads all five tables; without bodies, `EVENT_DATA` holds only the headers' place and no data."""
    if store.description.get("recovery") == "snapshot":
        raise LogError(
            "the log was made with recovery='snapshot', which keeps no events; the five tables need one that was made "
            "with recovery='log'. `clew status` shows how its replicas stood at the last complete epoch."
        )
    reader = store.reader()
    logs = {replica: _Log(replica, reader.rows(replica)) for replica in reader.replicas()}
    return Tables(
        _table(EVENT_LOG, _event_log(logs, store.description)),
        _table(EVENT_DATA, _event_data(logs, reader, store.log_id, with_bodies)),
        _table(READ_ACTION, (row for log in logs.values() for row in log.read_actions())),
        _table(STATE, (row for log in logs.values() for row in log.states())),
        _table(EVENT_LINEAGE, (row for log in logs.values() for row in log.lineage())),
    )


class _Log:
    """One replica's rows, with the names of its Input Sets and its pairs by event."""

    def __init__(self, replica: Replica, rows: ReplicaRows) -> None:
        self.replica = replica
        self.name = str(replica)
        self.rows = rows
        self._labels = _labels(rows.sets)
        self.pairs: dict[tuple[Channel, int], list[PairRow]] = {}
        for pair in rows.pairs:
            self.pairs.setdefault((pair.channel, pair.event), []).append(pair)

    def label(self, serial: int) -> str:
        """The name of an Input Set: its key, and its serial if the key has several."""
        return self._labels.get(serial, f"#{serial}")

    def lineage(self) -> Iterator[tuple[Any, ...]]:
        """Rows of EVENT_LINEAGE."""
        for port, event, serial in self.rows.lineage:
            yield event, self.name, port, self.label(serial)

    def read_actions(self) -> Iterator[tuple[Any, ...]]:
        """Rows of READ_ACTION."""
        for number, connection, description, is_complete, *_ in self.rows.reads:
            yield number, "complete" if is_complete else "incomplete", self.name, connection, _text(description)

    def states(self) -> Iterator[tuple[Any, ...]]:
        """Rows of STATE: versions that generations used, rebuilt from the changes, and the current state."""
        current = self.rows.counters.get("state", 0)
        used = {number for _, kind, number in self.rows.uses if kind == "state"} - {current}
        changes = iter([*self.rows.state_versions, None])
        change = next(changes)
        state: dict[bytes, bytes] = {}
        for version in sorted(used):
            while change is not None and change[0] <= version:
                _, key, value = change
                if value is None:
                    state.pop(key, None)
                else:
                    state[key] = value
                change = next(changes)
            yield version, self.name, _state(state)
        if current or self.rows.state:
            yield current, self.name, _state(dict(self.rows.state))

    def own_events(self, writes: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        """Rows of EVENT_LOG for read actions, states and write actions."""
        closed = {serial for serial, _, is_closed in self.rows.sets if is_closed}
        uses: dict[tuple[str, int], list[int]] = {}
        for serial, kind, number in self.rows.uses:
            uses.setdefault((kind, number), []).append(serial)
        for number, connection, _, is_complete, is_done, _, is_stored in self.rows.reads:
            if is_complete and is_stored:
                insets: list[str | None] = [self.label(serial) for serial in uses.get(("read", number), ())]
                for inset in insets or [None]:
                    yield number, _status(is_done), self.name, connection, self.name, None, inset
        for (kind, number), serials in uses.items():
            for serial in serials:
                if kind == "state":
                    yield number, _status(serial in closed), self.name, None, self.name, None, self.label(serial)
        for output in self.rows.outputs:
            if output.port in writes:
                is_done = output.id <= self.rows.counters.get(f"written:{output.port}", 0)
                yield output.id, _status(is_done), self.name, None, self.name, output.port, None


def _event_log(logs: Mapping[Replica, _Log], description: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    operators = description.get("operators", {})
    channels = _channels(logs, description)
    shown: set[tuple[Channel, int]] = set()
    for replica, log in logs.items():
        writes = operators.get(replica.operator, {}).get("writes", {})
        yield from log.own_events(writes)
        for output in log.rows.outputs:
            if output.port in writes:
                continue
            receivers = channels.get((replica, output.port), ())
            if not receivers:
                yield output.id, "done", log.name, output.port, None, None, None
            for channel in receivers:
                shown.add((channel, output.id))
                yield from _event_rows(logs, channel, output.id)
    for log in logs.values():
        for channel, event in log.pairs:
            if (channel, event) not in shown:  # The sender has removed the event, or had not made it when it was read.
                yield from _event_rows(logs, channel, event)


def _event_rows(logs: Mapping[Replica, _Log], channel: Channel, event: int) -> Iterator[tuple[Any, ...]]:
    """The rows of one event and one receiver."""
    head = str(channel.sender), channel.output, str(channel.receiver), channel.input
    log = logs.get(channel.receiver)
    pairs = log.pairs.get((channel, event), ()) if log is not None else ()
    if log is not None and pairs:
        for pair in pairs:
            yield event, _status(pair.is_done), *head, log.label(pair.serial)
        return
    assigned = log.rows.cursors[channel][0] if log is not None and channel in log.rows.cursors else 0
    yield event, _status(event <= assigned), *head, None


def _channels(logs: Mapping[Replica, _Log], description: Mapping[str, Any]) -> dict[tuple[Replica, str], list[Channel]]:
    """The receivers of each output port: those that have a row for it, and those of the graph that have none yet."""
    seen = {channel for log in logs.values() for channel in (*log.rows.cursors, *(c for c, _ in log.pairs))}
    for sender, output, receiver, port in description.get("connections", ()):
        seen.add(Channel(parse_replica(sender), output, parse_replica(receiver), port))
    found: dict[tuple[Replica, str], list[Channel]] = {}
    for channel in sorted(seen):
        found.setdefault((channel.sender, channel.output), []).append(channel)
    return found


def _event_data(
    logs: Mapping[Replica, _Log], reader: LogReader, log_id: str, with_bodies: bool
) -> Iterator[tuple[Any, ...]]:
    for replica, log in logs.items():
        for action in dict.fromkeys(action for action, _ in log.rows.stored):
            place = "/".join((*prefixes(log_id, replica), "effect", str(action)))
            yield action, log.name, None, None, place.encode()
        ids: dict[str, list[int]] = {}
        for output in log.rows.outputs:
            ids.setdefault(output.port, []).append(output.id)
        for port, numbers in ids.items():
            if not with_bodies:
                yield from ((number, log.name, port, None, None) for number in numbers)
                continue
            for start in range(0, len(numbers), _CHUNK):
                for event in reader.events(replica, port, numbers[start : start + _CHUNK]):
                    yield event.id, log.name, port, _header(event), _body(event)


def _labels(sets: Iterable[tuple[int, bytes, bool]]) -> dict[int, str]:
    names = {serial: _text(key) for serial, key, _ in sets}
    counts = Counter(names.values())
    labels = {serial: name if counts[name] == 1 else f"{name}#{serial}" for serial, name in names.items()}
    return {END_SERIAL: _END, **labels}


def _header(event: Event) -> bytes:
    return encode({"time": event.time, "attributes": dict(event.attributes)})


def _body(event: Event) -> bytes | None:
    if event.batch is None:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, event.batch.schema) as writer:
        writer.write_batch(event.batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _state(items: Mapping[bytes, bytes]) -> bytes:
    return encode({decode(key): decode(value) for key, value in sorted(items.items())})


def _text(data: bytes) -> str:
    try:
        return str(decode(data))
    except ValueError:  # Not an encoded value, but somebody's own bytes.
        return data.decode(errors="backslashreplace")


def _status(is_done: bool) -> str:
    return "done" if is_done else "undone"


def _table(schema: pa.Schema, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
