"""Expiry: what retention may remove from one replica's log, found without changing anything.

The work is in proportion to what can go, not to what is kept: old outputs are found by an index on their age, closed
Input Sets that no output names are marked as such when they become so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from clew.log.encoding import AT_HAND, BARE, OPEN
from clew.log.numbers import Names
from clew.log.sql import ID_BITS, Session, by_chunks
from clew.model.history import Expired
from clew.model.names import Channel
from clew.model.ranges import IdSet

Span = tuple[int, int]
"""First and last of a run of output keys."""


def find_expired(
    session: Session,
    names: Names,
    port_number: Callable[[str], int | None],
    released: Mapping[str, IdSet],
    targets: Mapping[str, float | None],
) -> Expired:
    """See `ReplicaLog.expired`."""
    outputs: list[tuple[str, int, int]] = []
    spans: list[Span] = []
    for port, ids in sorted(released.items()):
        number = port_number(port)
        moment = targets.get(port)
        if number is None or (port in targets and moment is None):
            continue
        base = number << ID_BITS
        for first, last in _spans(session, base, ids, moment):
            spans.append((first, last))
            outputs.append((port, first - base, last - base))
    sets = _sets(session, spans)
    return Expired(tuple(outputs), tuple(sorted(sets)), _reads(session, sets), _freed(session, names, sets))


def _spans(session: Session, base: int, ids: IdSet, moment: float | None) -> list[Span]:
    """Runs of stored outputs among the released ones that are older than the moment, if there is one."""
    spans: list[Span] = []
    for first, last in [(1, ids.floor), *ids.ranges()]:
        if moment is None:
            rows = session.query(
                "SELECT key FROM outputs WHERE {own} AND key BETWEEN ? AND ? ORDER BY key", (base + first, base + last)
            )
        else:
            rows = session.query(  # Neither order nor range by key: that would walk over all that is too young.
                "SELECT key FROM outputs WHERE {own} AND +key BETWEEN ? AND ? AND created < ?",
                (base + first, base + last, moment),
            )
            rows.sort()
        for (key,) in rows:
            if spans and spans[-1][1] == key - 1:
                spans[-1] = (spans[-1][0], key)
            else:
                spans.append((key, key))
    return spans


def _sets(session: Session, spans: list[Span]) -> set[int]:
    """Closed Input Sets that have no lineage rows left when those of the spans are gone."""
    total: dict[int, int] = {}
    going: Counter[int] = Counter()
    closed: set[int] = set()
    for span in spans:
        affected = "serial IN (SELECT serial FROM lineage WHERE {own} AND output BETWEEN ? AND ?)"
        counts = session.query(
            "SELECT serial, count(*) FROM lineage WHERE {own} AND output BETWEEN ? AND ? GROUP BY serial", span
        )
        if not counts:
            continue
        going.update(dict(counts))
        total.update(
            session.query(f"SELECT serial, count(*) FROM lineage WHERE {{own}} AND {affected} GROUP BY serial", span)
        )
        closed.update(
            serial
            for (serial,) in session.query(
                f"SELECT serial FROM input_sets WHERE {{own}} AND closed <> {OPEN} AND {affected}", span
            )
        )
    sets = {serial for serial, count in going.items() if serial in closed and count == total[serial]}
    sets.update(
        serial
        for (serial,) in session.query(f"SELECT serial FROM input_sets WHERE {{own}} AND closed = {BARE} AND {AT_HAND}")
    )
    return sets


def _reads(session: Session, sets: set[int]) -> tuple[int, ...]:
    """Read actions that only these Input Sets used."""
    used = {
        number
        for (number,) in by_chunks(
            session,
            "SELECT number FROM uses WHERE {own} AND kind = 'read' AND serial IN ({list})",
            sorted(sets),
        )
    }
    kept = {
        number
        for number, serial in by_chunks(
            session,
            "SELECT number, serial FROM uses WHERE {own} AND kind = 'read' AND number IN ({list})",
            sorted(used),
        )
        if serial not in sets
    }
    return tuple(sorted(used - kept))


def _freed(session: Session, names: Names, sets: set[int]) -> tuple[tuple[Channel, int], ...]:
    """Input events that only these Input Sets have pairs of."""
    events: dict[int, set[int]] = {}
    for channel, event in by_chunks(
        session, "SELECT channel, event FROM pairs WHERE {own} AND serial IN ({list})", sorted(sets)
    ):
        events.setdefault(channel, set()).add(event)
    freed: list[tuple[Channel, int]] = []
    for channel, candidates in events.items():
        kept = {
            event
            for event, serial in by_chunks(
                session,
                "SELECT event, serial FROM pairs WHERE {own} AND channel = ? AND event IN ({list})",
                sorted(candidates),
                before=(channel,),
            )
            if serial not in sets
        }
        named = names.channel(session, channel)
        freed.extend((named, event) for event in candidates - kept)
    return tuple(sorted(freed))
