"""How a replica stands, read off its log alone: a few numbers, and which process holds the log now."""

from __future__ import annotations

from typing import NamedTuple

from clew.log.encoding import AT_HAND, OPEN
from clew.log.numbers import Names
from clew.log.processes import Process, is_alive, is_elsewhere
from clew.log.sql import Session
from clew.log.sql_reading import read_counters, read_cursors
from clew.model.history import Cursor
from clew.model.names import Channel


class Holder(NamedTuple):
    """Who holds a log, as far as it can be seen from here."""

    who: str
    is_alive: bool | None
    """None: it runs, if it runs, where it cannot be seen from here."""


class Standing(NamedTuple):
    """One replica at one moment."""

    incarnation: int
    counters: dict[str, int]
    cursors: dict[Channel, Cursor]
    open_sets: int
    undone_pairs: int
    state_keys: int
    timers: int
    stored_outputs: int
    """Output events and write actions that are still in the log."""
    lineage_rows: int
    holder: Holder | None = None

    @property
    def is_finished(self) -> bool:
        """Whether it has given out its last output."""
        return self.counters.get("finished", 0) != 0

    def events(self, port: str) -> int:
        """How many events an output port has given out, the end mark included, or a write connection actions."""
        return self.counters.get(f"out:{port}", 0)

    def written(self, connection: str) -> int:
        """How many write actions of a connection are done."""
        return self.counters.get(f"written:{connection}", 0)


def read_standing(session: Session, names: Names, incarnation: int, holder: Holder | None) -> Standing:
    """Counts in the database, so that a large log is not read. The caller makes sure that all is of one moment."""

    def count(statement: str) -> int:
        return int(session.query(f"SELECT count(*) FROM {statement}")[0][0])

    is_open = f"closed = {OPEN} AND {AT_HAND}"
    return Standing(
        incarnation=incarnation,
        counters=read_counters(session),
        cursors=read_cursors(session, names),
        open_sets=count(f"input_sets WHERE {{own}} AND {is_open}"),
        undone_pairs=count(f"pairs JOIN input_sets USING ({{c}}serial) WHERE {{own}} AND {is_open}"),
        state_keys=count("state WHERE {own}"),
        timers=count("timers WHERE {own}"),
        stored_outputs=count("outputs WHERE {own}"),
        lineage_rows=count("lineage WHERE {own}"),
        holder=holder,
    )


def holder_of(process: Process) -> Holder | None:
    """The holder that a process of this machine is; nobody has pid 0."""
    if not process.pid:
        return None
    return Holder(f"process {process.pid}", None if is_elsewhere(process) else is_alive(process))
