"""Real processes, really paused and killed, on the stores that outlive them."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from tests.store.child import heard, running, state_of, wait_until_stopped
from tests.store.places import DESCRIPTION, OP3, A, Place, step

from clew.errors import CommitUnknown, LogError, ValueNotStorable
from clew.log import processes
from clew.log.memory import MemoryStore
from clew.log.postgres_replica import PostgresReplicaLog
from clew.log.processes import Process
from clew.log.sqlite_files import file_name
from clew.log.sqlite_replica import SqliteReplicaLog
from clew.model.event import Event
from clew.model.history import Cursor, Output, Transaction
from clew.model.ranges import IdSet


def check_prefix(place: Place, steps: int) -> None:
    """The log holds the first transactions, whole, and nothing else."""
    store = place.open()
    rows = store.reader().rows(OP3)
    wanted = MemoryStore(DESCRIPTION)
    log = wanted.open(OP3)
    for number in range(1, steps + 1):
        log.commit(step(number))
    assert rows._replace(incarnation=1) == wanted.reader().rows(OP3)
    found = store.reader().events(OP3, "out", range(1, steps + 2))
    assert [each.id for each in found] == list(range(1, steps + 1))
    store.close()


@pytest.mark.parametrize("told", [1, 5, 40])
def test_a_killed_process_leaves_a_prefix_of_what_it_committed(durable_place: Place, told: int) -> None:
    durable_place.create().close()
    with running("stream", durable_place) as child:
        last = 0
        while last < told:
            last = int(heard(child))
        child.kill()
        child.wait()
        assert child.stdout is not None
        last = max([last, *(int(line) for line in child.stdout.read().split("\n")[:-1])])
    log = durable_place.open().open(OP3)
    recovered = log.recover()
    steps = recovered.counters["position"]
    assert last <= steps <= last + 1  # The last commit may have become durable without a word.
    assert recovered.cursors == {A: Cursor(steps, IdSet(steps // 2), False)}
    assert log.state(b"latest") == recovered.progress["hold", b"out"] == b"%d" % steps
    check_prefix(durable_place, steps)
    log.commit(step(steps + 1))
    check_prefix(durable_place, steps + 1)
    log.close()


def test_a_successor_ends_a_paused_predecessor_that_holds_the_file(sqlite_place: Place) -> None:
    sqlite_place.create().close()
    with running("pause", sqlite_place) as child:
        assert heard(child) == "inside"
        wait_until_stopped(child)
        check_prefix(sqlite_place, 1)  # Reading does not wait for its transaction.
        started = time.monotonic()
        log = sqlite_place.open().open(OP3)
        assert time.monotonic() - started < 20  # It did not wait for the lock to time out.
        assert child.wait(5) == -signal.SIGKILL
        assert isinstance(log, SqliteReplicaLog)
        assert (log.incarnation, log.is_predecessor_dead) == (2, True)
    check_prefix(sqlite_place, 1)
    log.commit(step(2))
    check_prefix(sqlite_place, 2)


@pytest.mark.postgres
def test_a_successor_terminates_the_connection_of_a_paused_predecessor(postgres_place: Place) -> None:
    postgres_place.create().close()
    with running("pause", postgres_place) as child:
        assert heard(child) == "inside"
        wait_until_stopped(child)
        check_prefix(postgres_place, 1)
        log = postgres_place.open().open(OP3)
        assert isinstance(log, PostgresReplicaLog)
        assert (log.incarnation, log.is_predecessor_dead) == (2, False)
        check_prefix(postgres_place, 1)
        log.commit(step(2))
        child.send_signal(signal.SIGCONT)
        assert heard(child) == "Fenced"
    check_prefix(postgres_place, 2)
    log.close()


@pytest.mark.postgres
def test_a_predecessor_of_this_machine_is_known_to_be_dead_when_its_process_is(postgres_place: Place) -> None:
    postgres_place.create().close()
    with running("pause", postgres_place) as child:
        assert heard(child) == "inside"
        wait_until_stopped(child)
        second = postgres_place.open().open(OP3)
        assert isinstance(second, PostgresReplicaLog)
        assert not second.is_predecessor_dead
        second.close()
        third = postgres_place.open().open(OP3)
        assert isinstance(third, PostgresReplicaLog)
        assert not third.is_predecessor_dead  # The second let go, the first did not.
        child.kill()
        child.wait()
        third.close()
        fourth = postgres_place.open().open(OP3)
        assert isinstance(fourth, PostgresReplicaLog)
        assert (fourth.incarnation, fourth.is_predecessor_dead) == (4, True)
        fourth.close()


def test_a_process_that_let_go_of_its_log_lives_on(sqlite_place: Place) -> None:
    sqlite_place.create().close()
    with running("let_go", sqlite_place) as child:
        assert heard(child) == "closed"
        log = sqlite_place.open().open(OP3)
        assert isinstance(log, SqliteReplicaLog)
        assert (log.incarnation, log.is_predecessor_dead) == (2, True)
        assert state_of(child) == "S"


def test_a_successor_in_the_same_process_kills_nobody(sqlite_place: Place) -> None:
    store = sqlite_place.create()
    store.open(OP3)
    log = store.open(OP3)
    assert isinstance(log, SqliteReplicaLog)
    assert not log.is_predecessor_dead  # It may still be at work in another thread.
    log.close()
    log = store.open(OP3)
    assert isinstance(log, SqliteReplicaLog)
    assert not log.is_predecessor_dead  # The second let go, the first did not.
    store.close()
    store.open(OP3).close()


def test_every_forgotten_predecessor_is_dead_when_its_process_is(sqlite_place: Place) -> None:
    sqlite_place.create().close()
    with running("twice", sqlite_place) as child:
        assert heard(child) == "opened twice"
        log = sqlite_place.open().open(OP3)
        assert isinstance(log, SqliteReplicaLog)
        assert child.wait(5) == -signal.SIGKILL
        assert (log.incarnation, log.is_predecessor_dead) == (3, True)


@pytest.mark.parametrize("difference", ["started", "boot", "namespace"])
def test_another_process_with_the_same_number_is_left_alone(sqlite_place: Place, difference: str) -> None:
    store = sqlite_place.create()
    store.open(OP3)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as stranger:
        try:
            status = processes._status(stranger.pid)
            assert status is not None
            it = Process.current()._replace(pid=stranger.pid, started=status.started)
            assert processes.is_alive(it)
            it = it._replace(**{difference: 1 if difference == "started" else "another"})
            with sqlite3.connect(Path(sqlite_place.where) / file_name(OP3)) as connection:
                connection.execute("UPDATE owner SET pid = ?, started = ?, boot = ?, namespace = ?", it)
            log = store.open(OP3)
            assert isinstance(log, SqliteReplicaLog)
            assert log.is_predecessor_dead == (difference != "namespace")  # In another container it may be alive.
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_ending_a_process_waits_until_it_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        status = processes._status(child.pid)
        assert status is not None
        it = Process.current()._replace(pid=child.pid, started=status.started)
        processes.end(it)
        assert not processes.is_alive(it)
        processes.end(it)
    processes.end(Process.current())
    assert os.getpid() == Process.current().pid


class Faulty:
    """A connection that fails when it is asked to commit, before or after it has done so."""

    def __init__(self, connection: object, error: Exception, *, is_done: bool) -> None:
        self._connection = connection
        self._error = error
        self._is_done = is_done

    def execute(self, statement: object, *parameters: object) -> object:
        if statement == "COMMIT":
            if self._is_done:
                self._connection.execute(statement)  # type: ignore[attr-defined]
            raise self._error
        return self._connection.execute(statement, *parameters)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)


@pytest.mark.parametrize("is_done", [False, True])
def test_a_commit_without_an_answer_is_unknown_and_the_last(durable_place: Place, is_done: bool) -> None:
    log = durable_place.create().open(OP3)
    log.commit(step(1))
    session = log._writing if isinstance(log, SqliteReplicaLog) else log._session  # type: ignore[attr-defined]
    error: Exception = sqlite3.OperationalError("disk I/O error")
    session.connection = Faulty(session.connection, error, is_done=is_done)
    for _ in range(2):
        with pytest.raises(CommitUnknown, match=r"OP3 \(incarnation 1\).*disk I/O error.*must exit"):
            log.commit(step(2))
    durable_place.open().open(OP3)
    check_prefix(durable_place, 2 if is_done else 1)


@pytest.mark.postgres
def test_a_lost_connection_before_the_commit_is_no_mystery(postgres_place: Place) -> None:
    log = postgres_place.create().open(OP3)
    log.commit(step(1))
    assert isinstance(log, PostgresReplicaLog)
    log._session.connection.close()
    with pytest.raises(LogError, match=r"nothing was changed|cannot be used") as caught:
        log.commit(step(2))
    assert not isinstance(caught.value, CommitUnknown)
    check_prefix(postgres_place, 1)


def test_a_transaction_that_fails_in_the_middle_changes_nothing(durable_place: Place) -> None:
    store = durable_place.create()
    log = store.open(OP3)
    log.commit(step(1))
    before = store.reader().rows(OP3)
    wrong = step(2)
    wrong.outputs += step(1).outputs  # An id that was given out before, after new channels, ports and pairs.
    wrong.cursors = {A._replace(input="new"): Cursor(1, IdSet(), False)}
    with pytest.raises(LogError, match=r"contradicts what .* holds already"):
        log.commit(wrong)
    unstorable = step(2)
    unstorable.state = {b"key": 2.5j}  # type: ignore[dict-item]
    with pytest.raises(Exception, match=r"complex|adapt|bind"):
        log.commit(unstorable)
    assert store.reader().rows(OP3) == before
    log.commit(step(2))
    check_prefix(durable_place, 2)


def test_a_reader_sees_whole_transactions_while_they_are_committed(durable_place: Place) -> None:
    durable_place.create().close()
    with running("stream", durable_place) as child:
        assert heard(child) == "1"
        reader = durable_place.open().reader()
        seen: list[int] = []
        while len(set(seen)) < 10:
            rows = reader.rows(OP3)
            steps = rows.counters["position"]
            assert [output.id for output in rows.outputs] == [pair.order for pair in rows.pairs]
            assert len(rows.outputs) == steps == rows.cursors[A][0]
            assert rows.state == [(b"latest", b"%d" % steps)]
            assert rows.progress["hold", b"out"] == b"%d" % steps
            assert [each.id for each in reader.events(OP3, "out", [steps])] == [steps]
            seen.append(steps)
    assert seen == sorted(seen)


def test_columns_that_would_lose_their_values_are_refused(durable_place: Place) -> None:
    store = durable_place.create()
    log = store.open(OP3)
    column = pa.array(["a", "b", "a"]).dictionary_encode()
    event = Event(OP3, "out", 1, pa.RecordBatch.from_arrays([column], names=["state"]))
    with pytest.raises(ValueNotStorable, match=r"column 'state' .* dictionary<.*; expected .* Cast the column"):
        log.commit(Transaction(outputs=[Output(event, 1.0)]))
    assert store.reader().rows(OP3).outputs == []
