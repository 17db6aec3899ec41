"""Ancestors of one event: a join of two of the log's tables, hop by hop, as far as lineage was captured.

Both tables are read whole, so this is for logs that fit into memory.
"""

from __future__ import annotations

from typing import NamedTuple

from clew.log.contract import Store
from clew.log.tables import read_tables


class EventName(NamedTuple):
    """An event by its sender, output port and id.

    >>> str(EventName("hourly", "out", 3))
    'hourly.out/3'
    """

    sender: str
    port: str
    id: int

    def __str__(self) -> str:
        return f"{self.sender}.{self.port}/{self.id}"


class Hop(NamedTuple):
    """An event, the Input Sets it was generated from, and the events that were in these."""

    event: EventName
    input_sets: tuple[str, ...]
    sources: tuple[EventName, ...]


def hops_back(store: Store, event: EventName) -> list[Hop]:
    """The way back from an event, nearest first; empty if the log has no lineage of it.

    EVENT_LINEAGE says from which Input Sets an output was generated, EVENT_LOG which events were assigned to these
    (seed 002, section 3.2).
    """
    tables = read_tables(store, with_bodies=False)
    sets: dict[EventName, list[str]] = {}
    for row in tables.event_lineage.to_pylist():
        sets.setdefault(EventName(row["Send_Op"], row["Send_p"], row["Event_ID"]), []).append(row["InSet_ID"])
    members: dict[tuple[str, str], list[EventName]] = {}
    for row in tables.event_log.to_pylist():
        if row["InSet_ID"] is not None and row["Send_p"] is not None and row["Rec_p"] is not None:
            name = EventName(row["Send_Op"], row["Send_p"], row["Event_ID"])
            members.setdefault((row["Rec_Op"], row["InSet_ID"]), []).append(name)
    found: list[Hop] = []
    waiting, seen = [event], {event}
    for each in waiting:
        labels = sorted(sets.get(each, ()))
        sources = sorted({member for label in labels for member in members.get((each.sender, label), ())})
        if labels:
            found.append(Hop(each, tuple(labels), tuple(sources)))
        new = [source for source in sources if source not in seen]
        seen.update(new)
        waiting.extend(new)
    return found
