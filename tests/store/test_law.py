"""A law: any history of transactions leaves the same log in every store."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.store.places import DESCRIPTION, Place, end_mark, event

from clew.log import sql_replica
from clew.log.contract import ReplicaLog, Store
from clew.log.encoding import Rows, rows_of
from clew.log.memory import MemoryStore
from clew.model.history import END_SERIAL, Cursor, Lineage, Output, Pair, ReadAction, Stored, Transaction, Use
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet

PORTS = ("out", "report")
KEYS = (b"a", b"b", b"c")
KINDS = ("sum", "hold")

small = st.integers(0, 9)
MOVES = """
    output output assign assign assign generate generate end state timer timer progress progress read store drop cursor
    forget_outputs forget_set forget_read commit commit commit reopen
"""
move = st.tuples(st.sampled_from(MOVES.split()), small, small, small)
moves = st.lists(move, max_size=60) | st.lists(move, min_size=30, max_size=60)  # By themselves, the first are short.
releases = st.fixed_dictionaries({}, optional={port: st.lists(st.integers(1, 12)) for port in PORTS})
moments = st.fixed_dictionaries({}, optional={port: st.none() | st.integers(0, 12) for port in PORTS})

_replicas = count(1)


class Author:
    """Writes a valid history, whatever numbers chance gives: the numbers choose among what is possible."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.channels = [Channel(Replica(name), "out", replica, name) for name in ("x", "y")]
        self.last = dict.fromkeys(PORTS, 0)
        self.taken = dict.fromkeys(self.channels, 0)
        self.order = self.serial = self.version = self.reads = 0
        self.open: list[int] = []
        self.closed: list[int] = []
        self.actions: dict[int, ReadAction] = {}
        self.effects: dict[int, int] = {}
        self.next = Transaction()

    def seal(self) -> Transaction:
        sealed, self.next = self.next, Transaction()
        sealed.counters |= {"order": self.order, "serial": self.serial, "state": self.version}
        return sealed

    def output(self, a: int, b: int, c: int) -> None:
        port = PORTS[a % 2]
        self.last[port] += 1
        number = self.last[port]
        if c == 0:
            made = end_mark(number, self.replica, port)
        else:
            header = {"time": (a, b), "attributes": {"b": b}} if b % 2 else {}
            made = event(number, sender=self.replica, port=port, rows=c % 4, **header)
        self.next.outputs.append(Output(made, float(number), (("report", a),) if a > 6 else ()))
        self.next.counters[f"out:{port}"] = number

    def assign(self, a: int, b: int, c: int) -> None:
        channel = self.channels[a % 2]
        self.taken[channel] += 1
        for _ in range(c % 3):
            if not self.open or b % 3 == 0:
                self.serial += 1
                self.open.append(self.serial)
                self.next.opened.append((self.serial, KEYS[c % 3]))
            self.order += 1
            serial = self.open[b % len(self.open)]
            note = None if b % 2 else b"%d" % b
            self.next.pairs.append(Pair(self.order, channel, self.taken[channel], serial, note))
            b += 1

    def generate(self, a: int, b: int, c: int) -> None:
        if self.open:
            serial = self.open.pop(a % len(self.open))
            self.closed.append(serial)
            self.next.closed.append(serial)
            for number in range(b % 3):
                self.output(a, number, 1)
                port = PORTS[a % 2]
                self.next.lineage.append(Lineage(port, self.last[port], serial))
            if c > 4 and self.version:
                self.next.uses.append(Use(serial, "state", self.version))
            if c > 7 and self.reads:
                self.next.uses.append(Use(serial, "read", self.reads))

    def end(self, a: int, b: int, c: int) -> None:
        if c > 5:
            self.order += 1
            self.next.pairs.append(Pair(self.order, self.channels[a % 2], 99, END_SERIAL, None))
        elif c > 3:
            self.next.counters["finished"] = b % 2

    def state(self, a: int, b: int, c: int) -> None:
        value = None if c < 3 else b"%d" % c
        self.version += 1
        self.next.state[KEYS[a % 3]] = value
        self.next.state_versions.append((self.version, {KEYS[a % 3]: value, KEYS[(a + b) % 3]: value}))
        self.next.state[KEYS[(a + b) % 3]] = value

    def timer(self, a: int, b: int, c: int) -> None:
        self.next.timers[KEYS[a % 2]] = None if c % 2 else b + c / 8

    def progress(self, a: int, b: int, c: int) -> None:
        """Sets one row, and replaces or removes another, which is likely to be there."""
        self.next.progress[KINDS[a % 2], KEYS[b % 2]] = b"%d" % c
        self.next.progress[KINDS[b % 2], KEYS[a % 2]] = None if c % 2 else b"%d" % b

    def read(self, a: int, b: int, c: int) -> None:
        if not self.actions or c < 3:
            self.reads += 1
            number = self.reads
            action = ReadAction(number, "Cx", b"q%d" % a, False, False, None, bool(b % 2))
        else:
            number = sorted(self.actions)[a % len(self.actions)]
            action = self.actions[number]._replace(is_complete=b > 2, is_done=b > 5, offset=b"%d" % c)
        self.actions[number] = action
        self.next.reads.append(action)

    def store(self, a: int, b: int, c: int) -> None:
        for action in list(self.actions)[:1]:
            index = self.effects.get(action, 0)
            self.effects[action] = index + 1
            self.next.stored.append(Stored(action, index, event(index + 1, sender=self.replica, port="Cx", rows=c % 3)))

    def drop(self, a: int, b: int, c: int) -> None:
        """Effects are discarded at the beginning of a transaction, as recovery does it."""
        for action in [action for action in self.effects if self.next == Transaction()][:1]:
            self.next.forget_effects.append(action)
            self.effects[action] = 0

    def cursor(self, a: int, b: int, c: int) -> None:
        channel = self.channels[a % 2]
        self.next.cursors[channel] = Cursor(self.taken[channel], IdSet(b, [b + 2, b + 3, b + 9][: c % 4]), c > 7)

    def forget_outputs(self, a: int, b: int, c: int) -> None:
        self.next.forget_outputs.append((PORTS[a % 2], b, b + c))

    def forget_set(self, a: int, b: int, c: int) -> None:
        known = self.open if c > 7 else self.closed
        if known:
            self.next.forget_sets.append(known.pop(a % len(known)))

    def forget_read(self, a: int, b: int, c: int) -> None:
        if self.actions:
            number = sorted(self.actions)[a % len(self.actions)]
            del self.actions[number]
            self.effects.pop(number, None)
            self.next.forget_reads.append(number)


def transactions(author: Author, script: Sequence[tuple[str, int, int, int]]) -> Any:
    for move, *numbers in script:
        if move == "reopen":
            yield None
        elif move == "commit":
            yield author.seal()
        else:
            getattr(author, move)(*numbers)
    yield author.seal()


def bodies(store: Store, log: ReplicaLog) -> list[Any]:
    found: list[Any] = []
    for port in PORTS:
        outputs = log.outputs(port, 1, 100)
        read = store.reader().events(log.replica, port, [output.event.id for output in outputs])
        assert all(one.same(other.event) for one, other in zip(read, outputs, strict=True))
        found += [(each.event.port, each.event.id, each.created, each.requires, each.event.batch) for each in outputs]
        found += [(each.event.time, dict(each.event.attributes)) for each in outputs]
    for action in range(12):
        found += [(stored.index, stored.event.id, stored.event.batch) for stored in log.effect(action, 0, 100)]
    return found


def check(
    store: Store,
    script: Sequence[tuple[str, int, int, int]],
    released: dict[str, list[int]],
    before: dict[str, int | None],
) -> None:
    replica = Replica("r", next(_replicas))
    memory = MemoryStore(DESCRIPTION)
    expected, found = memory.open(replica), store.open(replica)
    try:
        for transaction in transactions(Author(replica), script):
            if transaction is None:
                found.close()
                expected, found = memory.open(replica), store.open(replica)
            else:
                for log in (expected, found):
                    log.stage(transaction)
                    log.commit(transaction)
        ids = {port: IdSet(0, numbers) for port, numbers in released.items()}
        moments = {port: None if moment is None else float(moment) for port, moment in before.items()}
        assert found.expired(ids, moments) == expected.expired(ids, moments)
        assert found.recover() == expected.recover()
        assert list(found.recover().progress) == list(expected.recover().progress)
        assert store.reader().rows(replica) == memory.reader().rows(replica)
        assert bodies(store, found) == bodies(memory, expected)
        assert found.state_items() == expected.state_items()
    finally:
        found.close()
        store.close()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves, releases, moments)
def test_sqlite_holds_what_memory_holds(sqlite_store: Store, script: Any, released: Any, before: Any) -> None:
    check(sqlite_store, script, released, before)


@pytest.mark.postgres
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves, releases, moments)
def test_postgres_holds_what_memory_holds(postgres_store: Store, script: Any, released: Any, before: Any) -> None:
    check(postgres_store, script, released, before)


@pytest.mark.parametrize(
    "part", ["outputs", "pairs", "closed", "lineage", "state_removed", "timers_removed", "progress", "progress_removed"]
)
def test_the_law_notices_a_store_that_loses_rows(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def rows_without(*arguments: Any) -> Rows:
        rows = rows_of(*arguments)
        setattr(rows, part, ())
        return rows

    monkeypatch.setattr(sql_replica, "rows_of", rows_without)

    @settings(max_examples=120, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(moves)
    def holds(script: Any) -> None:
        check(sqlite_store, script, {}, {})

    with pytest.raises(AssertionError):
        holds()


@pytest.fixture
def sqlite_store(sqlite_place: Place) -> Store:
    return sqlite_place.create({**DESCRIPTION, "capture": {"r": {}}})


@pytest.fixture
def postgres_store(postgres_place: Place) -> Store:
    return postgres_place.create()
