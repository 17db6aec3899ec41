"""A law: whatever happens between two epochs, a log with snapshots comes back as it was at the complete one.

The model is as simple as can be: it keeps all transactions, and what was at an epoch is what a fresh log in memory
holds after those up to it.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.store.places import DESCRIPTION, Place, event
from tests.store.test_law import Author

from clew.log.contract import Store
from clew.log.epochs import EPOCHS, EpochLog
from clew.log.memory import MemoryReplicaLog, MemoryStore
from clew.log.snapshot_memory import SnapshotMemory
from clew.log.snapshot_rows import Changes, snapshot_at, snapshot_state
from clew.log.snapshots import Capture, SnapshotLog
from clew.log.versions import Plan, Versions, rows_at, version_key
from clew.model.event import Event
from clew.model.history import Transaction
from clew.model.names import Channel, Replica

MOVES = """
    output output output assign assign assign assign generate generate state state state timer timer progress read read
    store store drop cursor written written written forget_outputs forget_set forget_read commit commit commit
    epoch epoch epoch border border keep keep complete crash crash
"""
small = st.integers(0, 9)
move = st.tuples(st.sampled_from(MOVES.split()), small, small, small)
moves = st.lists(move, max_size=40) | st.lists(move, min_size=40, max_size=100)

_replicas = count(1)


class Worker(Author):
    """A replica in a run with snapshots: it keeps the events that it takes, and writes what is complete."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica)
        self.done = 0

    def assign(self, a: int, b: int, c: int) -> None:
        before = self.order
        super().assign(a, b, c)
        if self.order > before:
            channel = self.channels[a % 2]
            taken = event(self.taken[channel], sender=channel.sender, rows=1 + b % 3, attributes={"b": b} if b else {})
            self.next.taken.append((channel, taken))

    def read(self, a: int, b: int, c: int) -> None:
        """A read action that is done stays so, and nobody asks for its effect any more."""
        super().read(a, b, c)
        for number in [number for number, action in self.actions.items() if action.is_done]:
            del self.actions[number]
            self.effects.pop(number, None)

    def written(self, limit: int) -> None:
        if self.done < limit:
            self.done += 1
            self.next.counters["written:report"] = self.done
            self.next.forget_outputs.append(("report", self.done, self.done))


class Model:
    """All transactions, and how many of them each epoch has."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.history: list[Transaction] = []
        self.epochs: dict[int, tuple[int, Worker]] = {0: (0, Worker(replica))}
        self.settled: dict[str, int] = {}

    def end_epoch(self, epoch: int, worker: Worker) -> None:
        self.epochs[epoch] = (len(self.history), copy.deepcopy(worker))

    def go_back(self, epoch: int) -> Worker:
        length, worker = self.epochs[epoch]
        del self.history[length:]
        worker = copy.deepcopy(worker)
        worker.done = max(worker.done, self.settled.get("written:report", 0))
        self.epochs = {each: found for each, found in self.epochs.items() if each <= epoch}
        return worker

    def replay(self) -> tuple[MemoryReplicaLog, dict[tuple[Channel, int], Event]]:
        log = MemoryStore(DESCRIPTION).open(self.replica)
        for transaction in self.history:
            log.commit(transaction)
        return log, {(channel, each.id): each for t in self.history for channel, each in t.taken}

    def check(self, log: SnapshotLog, floor: int) -> None:
        """The log holds what the transactions say; of the port `out` only what came after an id."""
        expected, bodies = self.replay()
        recovered = expected.recover()
        recovered.incarnation = log.incarnation
        for name, number in self.settled.items():
            recovered.counters[name] = max(number, recovered.counters.get(name, 0))
        found = log.recover()
        assert found == recovered
        assert list(found.progress) == list(recovered.progress)
        assert log.state_items() == expected.state_items()
        wanted = [(pair.channel, pair.event) for pair in recovered.undone]
        undone = log.events(wanted)
        assert all(one.same(bodies[each]) for one, each in zip(undone, wanted, strict=True))
        done = recovered.counters.get("written:report", 0)
        for port, first in (("out", floor + 1), ("report", done + 1)):
            kept = [each for each in log.outputs(port, 1, 100) if each.event.id >= first]
            outputs = expected.outputs(port, first, 100)
            assert [each[1:] for each in kept] == [each[1:] for each in outputs]
            assert all(one.event.same(other.event) for one, other in zip(kept, outputs, strict=True))
        for action in (read.number for read in recovered.reads):
            effect, stored = log.effect(action, 0, 100), expected.effect(action, 0, 100)
            assert [each[:2] for each in effect] == [each[:2] for each in stored]
            assert all(one.event.same(other.event) for one, other in zip(effect, stored, strict=True))


class Trial:
    """One script, played to a log and to the model."""

    def __init__(self, store: Store, is_settling: bool) -> None:
        self.store = store
        self.replica = Replica("r", next(_replicas))
        self.model = Model(self.replica)
        self.worker = Worker(self.replica)
        self.epochs = EpochLog(store.open(Replica(f"{EPOCHS.operator}-{self.replica.index}")))
        self.durable_writes = frozenset({"report"} if is_settling else ())
        self.log = self.open()
        self.number = 0
        self.waiting: deque[Capture] = deque()
        self.stored: deque[int] = deque()
        self.limit = 0
        """The last write action of a complete epoch."""
        self.floor = 0
        """The last output event before the present generation: nothing is under way at a border, so it is not kept."""

    def open(self) -> SnapshotLog:
        return SnapshotLog(
            self.store.open(self.replica),
            self.epochs.begin_generation(),
            self.epochs.epoch,
            write_connections=frozenset({"report"}),
            durable_writes=self.durable_writes,
        )

    def play(self, script: Sequence[tuple[str, int, int, int]]) -> None:
        for name, *numbers in script:
            if name in ("commit", "epoch", "border", "keep", "complete", "crash"):
                getattr(self, name)()
            elif name == "written":
                self.worker.written(self.limit)
            else:
                getattr(self.worker, name)(*numbers)
        self.commit()
        self.model.check(self.log, self.floor)
        self.crash()
        self.log.close()

    def commit(self) -> None:
        transaction = self.worker.seal()
        self.log.stage(transaction)
        self.log.commit(transaction)
        self.model.history.append(transaction)
        if self.durable_writes and "written:report" in transaction.counters:
            self.model.settled["written:report"] = transaction.counters["written:report"]

    def epoch(self) -> None:
        """One as most are: it ends, is stored and becomes complete before anything else happens."""
        self.border()
        while self.waiting:
            self.keep()
        while self.stored:
            self.complete()

    def border(self) -> None:
        self.commit()
        self.number += 1
        self.waiting.append(self.log.capture(self.number, is_final=False))
        self.model.end_epoch(self.number, self.worker)

    def keep(self) -> None:
        if self.waiting:
            capture = self.waiting.popleft()
            self.log.store(capture)
            self.stored.append(capture.epoch)

    def complete(self) -> None:
        if self.stored:
            epoch = self.stored.popleft()
            self.epochs.complete(epoch)
            self.log.completed(epoch)
            self.limit = self.model.epochs[epoch][1].last["report"]

    def crash(self) -> None:
        self.log.close()
        self.log = self.open()
        self.begin_again()

    def begin_again(self) -> None:
        self.worker = self.model.go_back(self.epochs.epoch)
        self.floor = self.worker.last["out"]
        self.number = self.epochs.epoch
        self.waiting.clear()
        self.stored.clear()
        self.model.check(self.log, self.floor)
        assert self.log.outputs("out", 1, 100) == []
        rows = self.store.reader().rows(self.replica)
        assert snapshot_state(rows, self.number) == self.log.state_items()
        settled = {**snapshot_at(self.replica, rows.state, self.number).counters, **self.model.settled}
        assert settled == self.log.recover().counters


def check(store: Store, script: Any, is_settling: bool) -> None:
    trial = Trial(store, is_settling)
    trial.play(script)


@settings(max_examples=120, deadline=None)
@given(moves, st.booleans())
def test_what_was_complete_comes_back_in_memory(script: Any, is_settling: bool) -> None:
    check(MemoryStore(DESCRIPTION), script, is_settling)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves, st.booleans())
def test_what_was_complete_comes_back_from_sqlite(sqlite_store: Store, script: Any, is_settling: bool) -> None:
    check(sqlite_store, script, is_settling)


@pytest.mark.postgres
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves, st.booleans())
def test_what_was_complete_comes_back_from_postgres(postgres_store: Store, script: Any, is_settling: bool) -> None:
    check(postgres_store, script, is_settling)


@pytest.mark.soak
@settings(max_examples=5000, deadline=None)
@given(st.lists(move, max_size=300), st.booleans())
def test_long_histories_come_back_too(script: Any, is_settling: bool) -> None:
    check(MemoryStore(DESCRIPTION), script, is_settling)


# Canaries: what is broken on purpose must be seen.


def _plan_without_ends(self: Versions, epoch: int, changes: Mapping[bytes, bytes | None], complete: int) -> Plan:
    return _plan(self, epoch, {row: value for row, value in changes.items() if value is not None}, complete)


def _plan_that_removes_too_early(
    self: Versions, epoch: int, changes: Mapping[bytes, bytes | None], complete: int
) -> Plan:
    return _plan(self, epoch, changes, epoch)


def _plan_that_keeps_strays(self: Versions, epoch: int, changes: Mapping[bytes, bytes | None], complete: int) -> Plan:
    self._stray.clear()
    return _plan(self, epoch, changes, complete)


_plan = Versions.plan
PLANS = [_plan_without_ends, _plan_that_removes_too_early, _plan_that_keeps_strays]


def examples_until_the_law_fails() -> int:
    """How many it takes; 0: it holds."""
    tried = 0

    @settings(max_examples=100, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(moves, st.booleans())
    def holds(script: Any, is_settling: bool) -> None:
        nonlocal tried
        tried += 1
        check(MemoryStore(DESCRIPTION), script, is_settling)

    try:
        holds()
    except (AssertionError, KeyError, ValueError):
        return tried
    return 0


def test_nothing_is_noticed_when_nothing_is_wrong() -> None:
    assert examples_until_the_law_fails() == 0


@pytest.mark.parametrize("plan", PLANS)
def test_the_law_notices_wrong_versions(monkeypatch: pytest.MonkeyPatch, plan: Any) -> None:
    monkeypatch.setattr(Versions, "plan", plan)
    assert examples_until_the_law_fails()


@pytest.mark.parametrize("part", Changes._fields)
def test_the_law_notices_a_capture_without(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    capture = SnapshotMemory.capture

    def without(self: SnapshotMemory) -> Changes:
        return capture(self)._replace(**{part: {}})

    monkeypatch.setattr(SnapshotMemory, "capture", without)
    assert examples_until_the_law_fails()


def test_the_law_notices_marks_that_are_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SnapshotLog, "_settle", lambda self, marks: None)
    assert examples_until_the_law_fails()


# Versions by themselves, against a map that is copied at each epoch.

changes = st.dictionaries(st.sampled_from([b"a", b"b", b"ab", b""]), st.none() | st.binary(max_size=3), max_size=4)
epochs = st.lists(st.tuples(changes, st.booleans(), st.booleans()), max_size=12)


@settings(max_examples=200, deadline=None)
@given(epochs)
def test_versions_are_the_map_of_each_epoch_that_can_be_gone_back_to(script: Any) -> None:
    durable: dict[bytes, bytes] = {}
    images: dict[int, dict[bytes, bytes]] = {0: {}}
    versions, epoch, complete = Versions([], 0), 0, 0
    for changed, is_completed, is_lost in script:
        if is_lost:
            epoch = complete
            versions = Versions(sorted(durable), complete)
        plan = versions.plan(epoch + 1, changed, complete)
        for key, value in plan.state.items():
            if value is None:
                assert durable.pop(key, None) is not None
            else:
                durable[key] = value
        versions.stored(plan)
        assert len(versions) == len(durable)
        image = {row: value for row, value in {**images[epoch], **changed}.items() if value is not None}
        epoch += 1
        images = {each: found for each, found in images.items() if each < epoch} | {epoch: image}
        if is_completed:
            complete = epoch
        for each in range(complete, epoch + 1):
            assert rows_at(sorted(durable.items()), each) == images[each]
    plan = versions.plan(epoch + 1, {}, epoch)
    for key in (key for key, value in plan.state.items() if value is None):
        del durable[key]
    assert len(durable) == len(images[epoch])  # One version of each row is left, and none of what has ended.


def test_versions_of_rows_that_begin_alike_do_not_mix() -> None:
    row = b"a"
    longer = version_key(row, 2)  # A row whose key looks like a version of another.
    items = sorted([(version_key(row, 2), b"short"), (version_key(longer, 2), b"long")])
    assert rows_at(items, 1) == {row: b"short", longer: b"long"}


@pytest.fixture
def sqlite_store(sqlite_place: Place) -> Store:
    return sqlite_place.create()


@pytest.fixture
def postgres_store(postgres_place: Place) -> Store:
    return postgres_place.create()
