"""Reading one replica's tables: what recovery needs, single events, and all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from clew.errors import LogDamaged
from clew.log.contract import OutputRow, PairRow, ReplicaRows
from clew.log.encoding import AT_HAND, OPEN, cursor_of, event_of
from clew.log.numbers import Names
from clew.log.sql import ID_BITS, Row, Session
from clew.model.event import Event
from clew.model.history import END_SERIAL, Cursor, Output, ReadAction, Recovered, Stored, UndonePair
from clew.model.names import Channel, Replica
from clew.model.values import decode

_CONTENT = "schema, time, attributes, file, body"

ReadFile = Callable[[str], bytes]
"""Reads a body file by its name."""


def read_recovered(session: Session, names: Names, incarnation: int) -> Recovered:
    """Everything an incarnation needs to go on."""
    undone = session.query(
        f"SELECT ord, channel, event, serial, key, note FROM pairs JOIN input_sets USING ({{c}}serial) "
        f"WHERE {{own}} AND closed = {OPEN} AND {AT_HAND} ORDER BY ord"
    )
    return Recovered(
        incarnation=incarnation,
        cursors=read_cursors(session, names),
        counters=read_counters(session),
        undone=[
            UndonePair(order, names.channel(session, channel), event, serial, key, note)
            for order, channel, event, serial, key, note in undone
        ],
        open_sets=_tuples(
            session.query(
                f"SELECT serial, key FROM input_sets WHERE {{own}} AND closed = {OPEN} AND {AT_HAND} ORDER BY serial"
            )
        ),
        timers=dict(_tuples(session.query("SELECT key, due FROM timers WHERE {own} ORDER BY key"))),
        reads=[_read_action(row) for row in _read_rows(session, "AND done = 0")],
        progress=_read_progress(session),
    )


def read_outputs(
    session: Session, names: Names, replica: Replica, port: str, first: int, limit: int, read_file: ReadFile
) -> list[Output]:
    """Up to `limit` outputs of a port from id `first` on."""
    number = names.port_number(session, replica, port)
    if number is None:
        return []
    base = number << ID_BITS
    rows = session.query(
        f"SELECT key, {_CONTENT}, created, requires FROM outputs "
        "WHERE {own} AND key BETWEEN ? AND ? ORDER BY key LIMIT ?",
        (base + max(first, 1), base + (1 << ID_BITS) - 1, limit),
    )
    outputs = []
    for key, *content, created, requires in rows:
        event = _event(session, names, replica, port, key - base, content, read_file)
        needs = () if requires is None else tuple((connection, action) for connection, action in decode(requires))
        outputs.append(Output(event, created, needs))
    return outputs


def read_events(
    session: Session, names: Names, sender: Replica, port: str, ids: Iterable[int], read_file: ReadFile
) -> list[Event]:
    """These events, in the order asked for; what is not there is left out."""
    wanted = list(ids)
    number = names.port_number(session, sender, port)
    if number is None:
        return []
    base = number << ID_BITS
    found: dict[int, Event] = {}
    for first, last in _runs(wanted):
        for key, *content in session.query(
            f"SELECT key, {_CONTENT} FROM outputs WHERE {{own}} AND key BETWEEN ? AND ?", (base + first, base + last)
        ):
            try:
                found[key - base] = _event(session, names, sender, port, key - base, content, read_file)
            except FileNotFoundError:
                if session.query("SELECT 1 FROM outputs WHERE {own} AND key = ?", (key,)):
                    raise LogDamaged(
                        f"the body of event {sender}.{port}/{key - base} should be in the file {content[3]!r} of the "
                        f"replica's body files, which is not there. Restore the log from a copy."
                    ) from None
    return [found[id] for id in wanted if id in found]


def read_effect(
    session: Session, names: Names, action: int, first: int, limit: int, read_file: ReadFile
) -> list[Stored]:
    """Up to `limit` batches of a read action's stored effect from index `first` on."""
    rows = session.query(
        f"SELECT idx, origin, id, {_CONTENT} FROM effects WHERE {{own}} AND action = ? AND idx >= ? "
        f"ORDER BY idx LIMIT ?",
        (action, first, limit),
    )
    effect = []
    for index, origin, id, *content in rows:
        sender, port = names.port(session, origin)
        effect.append(Stored(action, index, _event(session, names, sender, port, id, content, read_file)))
    return effect


def read_rows(session: Session, names: Names, incarnation: int) -> ReplicaRows:
    """All rows except bodies. The caller makes sure that all of them are of one moment."""
    counters = read_counters(session)
    is_finished = counters.get("finished", 0) != 0
    outputs = session.query("SELECT key, created, schema FROM outputs WHERE {own}")
    pairs = session.query(
        "SELECT ord, channel, event, serial, key, closed, note FROM pairs LEFT JOIN input_sets USING ({c}serial) "
        "WHERE {own} ORDER BY ord, serial"
    )
    return ReplicaRows(
        incarnation=incarnation,
        outputs=sorted(
            OutputRow(*_port_and_id(session, names, key), created, s is None) for key, created, s in outputs
        ),
        pairs=[
            PairRow(
                order,
                names.channel(session, channel),
                event,
                serial,
                key,
                is_finished if serial == END_SERIAL else closed != OPEN,
                note,
            )
            for order, channel, event, serial, key, closed, note in pairs
        ],
        sets=[
            (serial, key, closed != OPEN)
            for serial, key, closed in session.query(
                "SELECT serial, key, closed FROM input_sets WHERE {own} ORDER BY serial"
            )
        ],
        cursors={channel: (c.assigned, c.released, c.ended) for channel, c in read_cursors(session, names).items()},
        counters=counters,
        state=read_state_items(session),
        state_versions=_tuples(
            session.query("SELECT version, key, value FROM state_versions WHERE {own} ORDER BY version, key")
        ),
        timers=dict(_tuples(session.query("SELECT key, due FROM timers WHERE {own} ORDER BY key"))),
        reads=[_plain_read(row) for row in _read_rows(session, "")],
        stored=_tuples(session.query("SELECT action, idx FROM effects WHERE {own} ORDER BY action, idx")),
        lineage=sorted(
            (*_port_and_id(session, names, output), serial)
            for output, serial in session.query("SELECT output, serial FROM lineage WHERE {own}")
        ),
        uses=_tuples(session.query("SELECT serial, kind, number FROM uses WHERE {own} ORDER BY serial, kind, number")),
        progress=_read_progress(session) if session.has_table("progress") else {},  # An older log may have none yet.
    )


def read_state(session: Session, key: bytes) -> bytes | None:
    """The value of one state key."""
    rows = session.query("SELECT value FROM state WHERE {own} AND key = ?", (key,))
    return rows[0][0] if rows else None


def read_state_items(session: Session) -> list[tuple[bytes, bytes]]:
    """All state, ordered by key."""
    return _tuples(session.query("SELECT key, value FROM state WHERE {own} ORDER BY key"))


def read_file_names(session: Session) -> frozenset[str]:
    """The body files that rows refer to."""
    return frozenset(
        name
        for table in ("outputs", "effects")
        for (name,) in session.query(f"SELECT file FROM {table} WHERE {{own}} AND file IS NOT NULL")
    )


def _event(
    session: Session, names: Names, sender: Replica, port: str, id: int, content: list[Any], read_file: ReadFile
) -> Event:
    schema, time, attributes, file, body = content
    if schema is None:
        return event_of(sender, port, id, None, time, attributes, b"")
    data = read_file(file) if file is not None else body
    return event_of(sender, port, id, names.schema(session, schema), time, attributes, data)


def read_cursors(session: Session, names: Names) -> dict[Channel, Cursor]:
    """How far the replica is on each of its inbound channels."""
    rows = session.query("SELECT channel, assigned, floor, above, ended FROM cursors WHERE {own} ORDER BY channel")
    return {names.channel(session, row[0]): cursor_of(row[1:]) for row in rows}


def read_counters(session: Session) -> dict[str, int]:
    """All counters by name."""
    return dict(_tuples(session.query("SELECT name, value FROM counters WHERE {own} ORDER BY name")))


def _read_progress(session: Session) -> dict[tuple[str, bytes], bytes]:
    """All rows of time."""
    rows = session.query("SELECT kind, name, value FROM progress WHERE {own} ORDER BY kind, name")
    return {(kind, name): value for kind, name, value in rows}


def _read_rows(session: Session, condition: str) -> list[Row]:
    return session.query(
        f"SELECT number, connection, description, complete, done, position, stored FROM reads "
        f"WHERE {{own}} {condition} ORDER BY number"
    )


def _plain_read(row: Row) -> tuple[int, str, bytes, bool, bool, bytes | None, bool]:
    number, connection, description, complete, done, position, stored = row
    return number, connection, description, bool(complete), bool(done), position, bool(stored)


def _read_action(row: Row) -> ReadAction:
    return ReadAction(*_plain_read(row))


def _port_and_id(session: Session, names: Names, key: int) -> tuple[str, int]:
    return names.port(session, key >> ID_BITS)[1], key & ((1 << ID_BITS) - 1)


def _runs(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Runs of consecutive numbers, each as its first and last.

    >>> list(_runs([7, 2, 3, 4]))
    [(2, 4), (7, 7)]
    """
    for _, run in groupby(enumerate(sorted(set(ids))), key=lambda item: item[1] - item[0]):
        numbers = [number for _, number in run]
        yield numbers[0], numbers[-1]


def _tuples(rows: list[Row]) -> list[Row]:
    return rows
