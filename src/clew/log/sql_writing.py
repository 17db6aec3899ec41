"""Applying the rows of a transaction, inside the transaction of a database that makes it all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from clew.log.encoding import BARE, CLOSED, Rows
from clew.log.sql import Session

_CLOSE: Final = f"""
    UPDATE input_sets SET closed = CASE
        WHEN EXISTS (SELECT 1 FROM lineage WHERE {{own}} AND lineage.serial = input_sets.serial) THEN {CLOSED}
        ELSE {BARE} END
    WHERE {{own}} AND serial = ?"""
_LATE_LINEAGE: Final = f"UPDATE input_sets SET closed = {CLOSED} WHERE {{own}} AND serial = ? AND closed = {BARE}"
_STRIPPED: Final = f"""
    UPDATE input_sets SET closed = {BARE}
    WHERE {{own}} AND serial = ? AND closed = {CLOSED}
        AND NOT EXISTS (SELECT 1 FROM lineage WHERE {{own}} AND lineage.serial = input_sets.serial)"""
_SET_CURSOR: Final = """
    INSERT INTO cursors ({c}channel, assigned, floor, above, ended) VALUES ({v}?, ?, ?, ?, ?)
    ON CONFLICT ({c}channel) DO UPDATE SET
        assigned = excluded.assigned, floor = excluded.floor, above = excluded.above, ended = excluded.ended"""
_SET_COUNTER: Final = """
    INSERT INTO counters ({c}name, value) VALUES ({v}?, ?)
    ON CONFLICT ({c}name) DO UPDATE SET value = excluded.value"""
_SET_STATE: Final = """
    INSERT INTO state ({c}key, value) VALUES ({v}?, ?)
    ON CONFLICT ({c}key) DO UPDATE SET value = excluded.value"""
_SET_TIMER: Final = """
    INSERT INTO timers ({c}key, due) VALUES ({v}?, ?)
    ON CONFLICT ({c}key) DO UPDATE SET due = excluded.due"""
_SET_PROGRESS: Final = """
    INSERT INTO progress ({c}kind, name, value) VALUES ({v}?, ?, ?)
    ON CONFLICT ({c}kind, name) DO UPDATE SET value = excluded.value"""
_SET_READ: Final = """
    INSERT INTO reads ({c}number, connection, description, complete, done, position, stored)
    VALUES ({v}?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT ({c}number) DO UPDATE SET
        connection = excluded.connection, description = excluded.description, complete = excluded.complete,
        done = excluded.done, position = excluded.position, stored = excluded.stored"""


class Applied(NamedTuple):
    """What is to be remembered once the transaction is durable."""

    unused_files: list[str]
    """Body files that no row refers to any more."""
    state_floor: int
    """The version up to which superseded versions of the state are gone."""


def apply(session: Session, rows: Rows, *, has_files: bool, has_versions: bool, state_floor: int) -> Applied:
    """Executes everything."""
    if rows.ports:
        session.insert("ports", "id, operator, idx, name", rows.ports)
    if rows.channels:
        session.insert("channels", "id, sender, sender_idx, output, receiver, receiver_idx, input", rows.channels)
    if rows.schemas:
        session.insert("schemas", "id, body", rows.schemas)
    if rows.outputs:
        session.insert("outputs", "key, created, schema, time, attributes, file, body, requires", rows.outputs)
    if rows.input_sets:
        session.insert("input_sets", "serial, key, closed", rows.input_sets)
    if rows.pairs:
        session.insert("pairs", "serial, ord, channel, event, note", rows.pairs)
    if rows.lineage:
        session.insert("lineage", "output, serial", rows.lineage)
    if rows.uses:
        session.insert("uses", "serial, kind, number", rows.uses)
    if rows.closed:
        session.many(_CLOSE, rows.closed)
    if rows.late_lineage:
        session.many(_LATE_LINEAGE, rows.late_lineage)
    if rows.cursors:
        session.many(_SET_CURSOR, rows.cursors)
    if rows.counters:
        session.many(_SET_COUNTER, rows.counters)
    _apply_state(session, rows)
    unused = _apply_reads(session, rows, has_files) + _forget_outputs(session, rows, has_files)
    if rows.forget_sets:
        session.many("DELETE FROM pairs WHERE {own} AND serial = ?", rows.forget_sets)
        session.many("DELETE FROM uses WHERE {own} AND serial = ?", rows.forget_sets)
        session.many("DELETE FROM input_sets WHERE {own} AND serial = ?", rows.forget_sets)
    if rows.is_forgetting_sets and has_versions:
        state_floor = _merge_versions(session, state_floor)
    return Applied(unused, state_floor)


def _apply_state(session: Session, rows: Rows) -> None:
    if rows.state:
        session.many(_SET_STATE, rows.state)
    if rows.state_removed:
        session.many("DELETE FROM state WHERE {own} AND key = ?", rows.state_removed)
    if rows.state_versions:
        session.insert("state_versions", "version, key, value", rows.state_versions)
    if rows.timers:
        session.many(_SET_TIMER, rows.timers)
    if rows.timers_removed:
        session.many("DELETE FROM timers WHERE {own} AND key = ?", rows.timers_removed)
    if rows.progress:
        session.many(_SET_PROGRESS, rows.progress)
    if rows.progress_removed:
        session.many("DELETE FROM progress WHERE {own} AND kind = ? AND name = ?", rows.progress_removed)


def _apply_reads(session: Session, rows: Rows, has_files: bool) -> list[str]:
    """A read effect that is forgotten may be stored anew in the same transaction; a forgotten read action is gone."""
    unused: list[str] = []
    if rows.reads:
        session.many(_SET_READ, rows.reads)
    if rows.forget_effects:
        unused += _forget_effects(session, rows.forget_effects, has_files)
    if rows.effects:
        session.insert("effects", "action, idx, origin, id, schema, time, attributes, file, body", rows.effects)
    if rows.forget_reads:
        unused += _forget_effects(session, rows.forget_reads, has_files)
        session.many("DELETE FROM reads WHERE {own} AND number = ?", rows.forget_reads)
    return unused


def _forget_effects(session: Session, actions: Sequence[tuple[int]], has_files: bool) -> list[str]:
    unused: list[str] = []
    if has_files:
        for action in actions:
            unused += _files(
                session, "SELECT file FROM effects WHERE {own} AND action = ? AND file IS NOT NULL", action
            )
    session.many("DELETE FROM effects WHERE {own} AND action = ?", actions)
    return unused


def _forget_outputs(session: Session, rows: Rows, has_files: bool) -> list[str]:
    unused: list[str] = []
    for span in rows.forget_outputs:
        stripped = session.query("SELECT DISTINCT serial FROM lineage WHERE {own} AND output BETWEEN ? AND ?", span)
        if has_files:
            unused += _files(
                session, "SELECT file FROM outputs WHERE {own} AND key BETWEEN ? AND ? AND file IS NOT NULL", span
            )
        session.many("DELETE FROM outputs WHERE {own} AND key BETWEEN ? AND ?", [span])
        if stripped:
            session.many("DELETE FROM lineage WHERE {own} AND output BETWEEN ? AND ?", [span])
            session.many(_STRIPPED, stripped)
    return unused


def _merge_versions(session: Session, done: int) -> int:
    """Removes what no version of the state that is still used, or may be used later, is made of.

    Returns the version up to which this is done; the work is in proportion to the changes since the last time.
    """
    ((used,),) = session.query("SELECT min(number) FROM uses WHERE {own} AND kind = 'state'")
    ((latest,),) = session.query("SELECT max(version) FROM state_versions WHERE {own}")
    floor = latest if used is None else used
    if floor is None or floor <= done:
        return done
    superseding = session.query(
        "SELECT key, max(version) FROM state_versions WHERE {own} AND version > ? AND version <= ? GROUP BY key",
        (done, floor),
    )
    if superseding:
        session.many("DELETE FROM state_versions WHERE {own} AND key = ? AND version < ?", superseding)
        session.many(
            "DELETE FROM state_versions WHERE {own} AND version > ? AND version <= ? AND value IS NULL", [(done, floor)]
        )
    return int(floor)


def _files(session: Session, statement: str, parameters: tuple[int, ...]) -> list[str]:
    return [name for (name,) in session.query(statement, parameters)]
