"""A store in memory: the simulator's disk. It survives the processes it simulates, not this one.

It keeps every promise of the contract, and also the journal, which the oracle re-executes.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from clew.errors import Fenced, LogDamaged, LogNotFound
from clew.log.contract import OutputRow, PairRow, ReplicaRows
from clew.model.event import Event
from clew.model.history import (
    END_SERIAL,
    Cursor,
    Expired,
    Output,
    Pair,
    ReadAction,
    Recovered,
    Stored,
    Transaction,
    UndonePair,
    Use,
)
from clew.model.names import Channel, Replica, is_name
from clew.model.ranges import IdSet


class Rows:
    """The rows of one replica's log."""

    def __init__(self) -> None:
        self.incarnation = 0
        self.outputs: dict[str, dict[int, Output]] = {}
        self.files: dict[tuple[int, str, int], pa.RecordBatch] = {}
        self.in_files: dict[tuple[str, int], int] = {}
        """Outputs whose body is in a file, with the incarnation that wrote it."""
        self.pairs: dict[int, dict[int, Pair]] = {}
        """By serial, then by order."""
        self.events: Counter[tuple[Channel, int]] = Counter()
        """How many pair rows each input event has."""
        self.open_sets: dict[int, bytes] = {}
        self.closed_sets: dict[int, bytes] = {}
        self.idle_sets: dict[int, None] = {}
        """Closed sets without lineage rows."""
        self.cursors: dict[Channel, Cursor] = {}
        self.counters: dict[str, int] = {}
        self.state: dict[bytes, bytes] = {}
        self.state_versions: list[tuple[int, bytes, bytes | None]] = []
        self.timers: dict[bytes, float] = {}
        self.progress: dict[tuple[str, bytes], bytes] = {}
        self.reads: dict[int, ReadAction] = {}
        self.stored: dict[int, list[Stored]] = {}
        self.lineage: dict[tuple[str, int], list[int]] = {}
        self.linked: Counter[int] = Counter()
        """How many lineage rows each Input Set has."""
        self.uses: dict[int, list[Use]] = {}
        self.read_uses: Counter[int] = Counter()
        self.journal: list[Any] = []

    def output(self, port: str, number: int) -> Output | None:
        """One output with its body, wherever that is."""
        output = self.outputs.get(port, {}).get(number)
        if output is None or not self.in_files:
            return output
        incarnation = self.in_files.get((port, number))
        if incarnation is None:
            return output
        body = self.files.get((incarnation, port, number))
        if body is None:
            raise LogDamaged(f"the body of {output.event} is missing: its row refers to a file that is not there")
        event = output.event
        whole = Event(event.sender, port, number, body, time=event.time, attributes=event.attributes)
        return output._replace(event=whole)


class MemoryReplicaLog:
    """One replica's log, open for one incarnation."""

    def __init__(self, rows: Rows, replica: Replica, file_bytes_min: int | None) -> None:
        self.replica = replica
        self.rows = rows
        self.file_bytes_min = file_bytes_min
        rows.incarnation += 1
        self.incarnation = rows.incarnation

    def recover(self) -> Recovered:
        """Everything the incarnation needs to go on."""
        rows = self.rows
        undone = sorted(
            UndonePair(pair.order, pair.channel, pair.event, pair.serial, rows.open_sets[serial], pair.note)
            for serial in rows.open_sets
            for pair in rows.pairs.get(serial, {}).values()
        )
        return Recovered(
            incarnation=self.incarnation,
            cursors={
                channel: cursor._replace(released=cursor.released.copy()) for channel, cursor in rows.cursors.items()
            },
            counters=dict(rows.counters),
            undone=undone,
            open_sets=sorted(rows.open_sets.items()),
            timers=dict(rows.timers),
            reads=[row for _, row in sorted(rows.reads.items()) if not row.is_done],
            progress=dict(sorted(rows.progress.items())),
        )

    def stage(self, transaction: Transaction) -> None:
        """Puts large bodies into files."""
        if self.file_bytes_min is not None:
            for output in transaction.outputs:
                if self._is_large(output):
                    event = output.event
                    self.rows.files[self.incarnation, event.port, event.id] = event.batch

    def _is_large(self, output: Output) -> bool:
        batch = output.event.batch
        return self.file_bytes_min is not None and batch is not None and batch.nbytes >= self.file_bytes_min

    def commit(self, transaction: Transaction) -> None:
        """Applies a transaction, or raises `Fenced` and changes nothing."""
        if self.rows.incarnation != self.incarnation:
            raise Fenced(
                f"incarnation {self.incarnation} of {self.replica} has been replaced by incarnation "
                f"{self.rows.incarnation}; this process must exit."
            )
        self._append(transaction)
        self._forget(transaction)

    def _append(self, transaction: Transaction) -> None:
        rows = self.rows
        for output in transaction.outputs:
            event = output.event
            by_id = rows.outputs.get(event.port)
            if by_id is None:
                by_id = rows.outputs[event.port] = {}
            if self.file_bytes_min is not None and self._is_large(output):
                rows.in_files[event.port, event.id] = self.incarnation
            by_id[event.id] = output
        rows.open_sets.update(transaction.opened)
        for pair in transaction.pairs:
            rows.pairs.setdefault(pair.serial, {})[pair.order] = pair
            rows.events[pair.channel, pair.event] += 1
        for port, number, serial in transaction.lineage:
            rows.lineage.setdefault((port, number), []).append(serial)
            rows.linked[serial] += 1
        for serial in transaction.closed:
            rows.closed_sets[serial] = rows.open_sets.pop(serial)
            if not rows.linked[serial]:
                rows.idle_sets[serial] = None
        rows.cursors.update(transaction.cursors)
        rows.counters.update(transaction.counters)
        for key, value in transaction.state.items():
            if value is None:
                rows.state.pop(key, None)
            else:
                rows.state[key] = value
        for version, changes in transaction.state_versions:
            rows.state_versions.extend((version, key, value) for key, value in changes.items())
        for name, at in transaction.timers.items():
            if at is None:
                rows.timers.pop(name, None)
            else:
                rows.timers[name] = at
        for row, content in transaction.progress.items():
            if content is None:
                rows.progress.pop(row, None)
            else:
                rows.progress[row] = content
        for read in transaction.reads:
            rows.reads[read.number] = read
        for action in transaction.forget_effects:
            rows.stored.pop(action, None)
        for stored in transaction.stored:
            rows.stored.setdefault(stored.action, []).append(stored)
        for use in transaction.uses:
            rows.uses.setdefault(use.serial, []).append(use)
            if use.kind == "read":
                rows.read_uses[use.number] += 1
        rows.journal.extend(transaction.journal)

    def _forget(self, transaction: Transaction) -> None:
        rows = self.rows
        for port, first, last in transaction.forget_outputs:
            by_id = rows.outputs.get(port, {})
            for number in range(first, last + 1) if last - first < len(by_id) else sorted(by_id):
                if first <= number <= last:
                    self._forget_output(by_id, port, number)
        for serial in transaction.forget_sets:
            self._forget_set(serial)
        if transaction.forget_sets and rows.state_versions:
            self._merge_versions()
        for action in transaction.forget_reads:
            rows.reads.pop(action, None)
            rows.stored.pop(action, None)

    def _forget_output(self, by_id: dict[int, Output], port: str, number: int) -> None:
        rows = self.rows
        if by_id.pop(number, None) is not None:
            if rows.in_files:
                incarnation = rows.in_files.pop((port, number), None)
                if incarnation is not None:
                    rows.files.pop((incarnation, port, number), None)
            for serial in rows.lineage.pop((port, number), ()):
                rows.linked[serial] -= 1
                if not rows.linked[serial] and serial in rows.closed_sets:
                    rows.idle_sets[serial] = None

    def _forget_set(self, serial: int) -> None:
        rows = self.rows
        rows.open_sets.pop(serial, None)
        rows.closed_sets.pop(serial, None)
        rows.idle_sets.pop(serial, None)
        rows.linked.pop(serial, None)
        for pair in rows.pairs.pop(serial, {}).values():
            _count_down(rows.events, (pair.channel, pair.event))
        for use in rows.uses.pop(serial, ()):
            if use.kind == "read":
                _count_down(rows.read_uses, use.number)

    def _merge_versions(self) -> None:
        """Removes what no version of the state that is still used, or may be used later, is made of."""
        rows = self.rows
        used = (use.number for uses in rows.uses.values() for use in uses if use.kind == "state")
        floor = min(used, default=rows.state_versions[-1][0])
        merged = {key: (version, key, value) for version, key, value in rows.state_versions if version <= floor}
        rows.state_versions = [
            *sorted(row for row in merged.values() if row[2] is not None),
            *(row for row in rows.state_versions if row[0] > floor),
        ]

    def state(self, key: bytes) -> bytes | None:
        """The committed value of one state key."""
        return self.rows.state.get(key)

    def state_items(self) -> list[tuple[bytes, bytes]]:
        """All committed state, ordered by key."""
        return sorted(self.rows.state.items())

    def outputs(self, port: str, first: int, limit: int) -> list[Output]:
        """Outputs of a port from an id on."""
        by_id = self.rows.outputs.get(port, {})
        numbers = [number for number in range(first, first + limit) if number in by_id]
        if len(numbers) < limit:
            numbers = sorted(number for number in by_id if number >= first)[:limit]
        found = (self.rows.output(port, number) for number in numbers)
        return [output for output in found if output is not None]

    def effect(self, action: int, first: int, limit: int) -> list[Stored]:
        """Batches of a stored effect from an index on."""
        return self.rows.stored.get(action, [])[first : first + limit]

    def expired(self, released: Mapping[str, IdSet], targets: Mapping[str, float | None]) -> Expired:
        """What may be removed; changes nothing."""
        rows = self.rows
        outputs: list[tuple[str, int, int]] = []
        unlinked: Counter[int] = Counter()
        for port, ids in sorted(released.items()):
            before = targets.get(port, float("inf"))
            if before is None:
                continue
            gone = IdSet()
            for number, output in sorted(rows.outputs.get(port, {}).items()):
                if number in ids and output.created < before:
                    gone.add_range(number, number)
                    unlinked.update(rows.lineage.get((port, number), ()))
            outputs.extend((port, first, last) for first, last in gone.minus(IdSet()))
        sets = list(rows.idle_sets)
        sets += [
            serial for serial, count in unlinked.items() if serial in rows.closed_sets and rows.linked[serial] == count
        ]
        lost: Counter[tuple[Channel, int]] = Counter()
        reads: Counter[int] = Counter()
        for serial in sets:
            lost.update((pair.channel, pair.event) for pair in rows.pairs.get(serial, {}).values())
            reads.update(use.number for use in rows.uses.get(serial, ()) if use.kind == "read")
        return Expired(
            outputs=tuple(outputs),
            sets=tuple(sorted(sets)),
            reads=tuple(sorted(number for number, count in reads.items() if rows.read_uses[number] == count)),
            freed=tuple(sorted(event for event, count in lost.items() if rows.events[event] == count)),
        )

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryReader:
    """Reads all logs of a memory store."""

    def __init__(self, logs: dict[Replica, Rows]) -> None:
        self.logs = logs

    def replicas(self) -> list[Replica]:
        """The replicas that have a log."""
        return sorted(each for each in self.logs if is_name(each.operator))

    def events(self, sender: Replica, port: str, ids: Iterable[int]) -> list[Event]:
        """These output events with their bodies."""
        rows = self.logs.get(sender)
        if rows is None:
            return []
        found = (rows.output(port, number) for number in ids)
        return [output.event for output in found if output is not None]

    def rows(self, replica: Replica) -> ReplicaRows:
        """All rows of one replica's log except bodies."""
        if replica not in self.logs:
            raise LogNotFound(f"there is no log of {replica} here; there are {', '.join(map(str, self.replicas()))}.")
        rows = self.logs[replica]
        sets = {**{serial: (key, False) for serial, key in rows.open_sets.items()}}
        sets |= {serial: (key, True) for serial, key in rows.closed_sets.items()}
        is_finished = bool(rows.counters.get("finished"))
        return ReplicaRows(
            incarnation=rows.incarnation,
            outputs=sorted(
                OutputRow(port, number, output.created, output.event.is_end)
                for port, by_id in rows.outputs.items()
                for number, output in by_id.items()
            ),
            pairs=sorted(
                PairRow(
                    pair.order,
                    pair.channel,
                    pair.event,
                    serial,
                    None if serial == END_SERIAL else sets[serial][0],
                    is_finished if serial == END_SERIAL else sets[serial][1],
                    pair.note,
                )
                for serial, by_order in rows.pairs.items()
                for pair in by_order.values()
            ),
            sets=sorted((serial, key, closed) for serial, (key, closed) in sets.items()),
            cursors={channel: (row.assigned, row.released.copy(), row.ended) for channel, row in rows.cursors.items()},
            counters=dict(rows.counters),
            state=sorted(rows.state.items()),
            state_versions=sorted(rows.state_versions, key=lambda row: row[:2]),
            timers=dict(rows.timers),
            reads=[row for _, row in sorted(rows.reads.items())],
            stored=sorted((each.action, each.index) for stored in rows.stored.values() for each in stored),
            lineage=sorted(
                (port, number, serial) for (port, number), serials in rows.lineage.items() for serial in serials
            ),
            uses=sorted(use for uses in rows.uses.values() for use in uses),
            progress=dict(sorted(rows.progress.items())),
        )


class MemoryStore:
    """The logs of all replicas of one pipeline, in memory."""

    def __init__(
        self, description: Mapping[str, Any], log_id: str | None = None, file_bytes_min: int | None = None
    ) -> None:
        self.description = description
        self.log_id = log_id or secrets.token_hex(8)
        self.file_bytes_min = file_bytes_min
        self.logs: dict[Replica, Rows] = {}

    def open(self, replica: Replica) -> MemoryReplicaLog:
        """The replica's log under the next incarnation."""
        return MemoryReplicaLog(self.logs.setdefault(replica, Rows()), replica, self.file_bytes_min)

    def reader(self) -> MemoryReader:
        """Reads all logs."""
        return MemoryReader(self.logs)

    def close(self) -> None:
        """Nothing to let go of."""


def _count_down(counts: Counter[Any], key: Any) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
