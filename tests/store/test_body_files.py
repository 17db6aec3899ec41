"""Large bodies beside the log: durable before a row names them, never touched by two, gone with their rows."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.store.child import heard, running
from tests.store.places import OP1, OP3, Place, end_mark, event
from tests.store.test_contract import commit

from clew.errors import LogDamaged, LogError
from clew.log import body_files
from clew.log.contract import Store
from clew.log.sqlite_replica import SqliteReplicaLog
from clew.model.event import Event
from clew.model.history import Output, ReadAction, Stored, Transaction

THRESHOLD = 2000


@pytest.fixture
def place(durable_place: Place, tmp_path: Path) -> Place:
    return replace(durable_place, threshold=THRESHOLD, bodies=str(tmp_path / "shared"))


def directory(place: Place, store: Store) -> Path:
    """Where the bodies of OP3 are."""
    if place.kind == "sqlite":
        return Path(place.where) / "bodies" / "OP3.0"
    assert place.bodies is not None
    return Path(place.bodies) / store.log_id / "OP3.0"


def names(where: Path) -> list[str]:
    return sorted(path.name for path in where.iterdir()) if where.is_dir() else []


def large(number: int) -> Event:
    made = event(number, rows=500)
    assert len(made.body) > THRESHOLD
    return made


def test_only_large_bodies_go_to_files_and_come_back(place: Place) -> None:
    store = place.create()
    log = store.open(OP3)
    outputs = [Output(event(1), 1.0), Output(large(2), 1.0), Output(end_mark(3), 1.0), Output(large(4), 1.0)]
    effect = [Stored(1, 0, event(1, port="Cx", rows=400)), Stored(1, 1, event(2, port="Cx"))]
    commit(log, outputs=outputs, stored=effect, reads=[ReadAction(1, "Cx", b"q", True, False, None, True)])
    assert names(directory(place, store)) == ["1-1", "1-2", "1-3"]
    commit(log, outputs=[Output(large(5), 1.0)])
    assert names(directory(place, store)) == ["1-1", "1-2", "1-3", "1-4"]
    log.close()
    log = place.open().open(OP3)
    assert all(one.event.same(other.event) for one, other in zip(log.outputs("out", 1, 4), outputs, strict=True))
    assert all(one.event.same(other.event) for one, other in zip(log.effect(1, 0, 9), effect, strict=True))
    assert [each.id for each in store.reader().events(OP3, "out", [2, 5]) if each.same(large(each.id))] == [2, 5]


def test_files_go_after_the_rows_that_name_them(place: Place) -> None:
    store = place.create()
    log = store.open(OP3)
    commit(log, outputs=[Output(large(number), 1.0) for number in (1, 2, 3)])
    commit(log, stored=[Stored(1, 0, large(1))], reads=[ReadAction(1, "Cx", b"q", True, True, None, True)])
    commit(log, forget_outputs=[("out", 2, 9)])
    assert names(directory(place, store)) == ["1-1", "1-4"]
    commit(log, forget_effects=[1], stored=[Stored(1, 0, large(2))])
    assert names(directory(place, store)) == ["1-1", "1-5"]
    commit(log, forget_reads=[1])
    log = place.open().open(OP3)
    commit(log, forget_outputs=[("out", 1, 1)])
    assert names(directory(place, store)) == []


def test_what_was_staged_and_never_committed_is_swept(place: Place) -> None:
    store = place.create()
    log = store.open(OP3)
    commit(log, outputs=[Output(large(1), 1.0)])
    log.stage(Transaction(outputs=[Output(large(2), 1.0)]))
    (directory(place, store) / "notes.txt").write_text("not ours")
    assert names(directory(place, store)) == ["1-1", "1-2", "notes.txt"]
    log = store.open(OP3)
    assert names(directory(place, store)) == ["1-1", "notes.txt"]
    commit(log, outputs=[Output(large(2), 1.0)])
    assert names(directory(place, store)) == ["1-1", "2-1", "notes.txt"]
    assert [output.event.same(large(output.event.id)) for output in log.outputs("out", 1, 9)] == [True, True]


def test_a_file_is_made_by_one_incarnation_only(place: Place) -> None:
    store = place.create()
    store.open(OP3)
    log = store.open(OP3)
    commit(log, outputs=[Output(event(1), 1.0)])
    directory(place, store).mkdir(parents=True)
    (directory(place, store) / "2-1").write_bytes(b"somebody else's")
    with pytest.raises(LogError, match=r"2-1 is there already, although only incarnation 2 makes files of this name"):
        commit(log, outputs=[Output(large(2), 1.0)])
    assert (directory(place, store) / "2-1").read_bytes() == b"somebody else's"
    assert [row.id for row in store.reader().rows(OP3).outputs] == [1]


def test_a_missing_or_broken_file_is_damage(place: Place) -> None:
    store = place.create()
    log = store.open(OP3)
    commit(log, outputs=[Output(large(1), 1.0), Output(large(2), 1.0)])
    (directory(place, store) / "1-1").unlink()
    whole = (directory(place, store) / "1-2").read_bytes()
    (directory(place, store) / "1-2").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LogDamaged, match=r"event OP3\.out/1 should be in the file '1-1' .*not there\. Restore"):
        store.reader().events(OP3, "out", [1])
    with pytest.raises(LogDamaged, match=r"the body of event OP3\.out/2 cannot be read .*Restore the log"):
        store.reader().events(OP3, "out", [2])


@pytest.mark.postgres
def test_without_a_directory_bodies_are_in_the_database(postgres_place: Place, tmp_path: Path) -> None:
    place = replace(postgres_place, threshold=THRESHOLD)
    store = place.create()
    log = store.open(OP3)
    commit(log, outputs=[Output(large(1), 1.0)])
    assert log.outputs("out", 1, 1)[0].event.same(large(1))
    shared = replace(place, bodies=str(tmp_path / "shared")).open()
    commit(shared.open(OP1), outputs=[Output(event(1, sender=OP1, rows=500), 1.0)])
    with pytest.raises(LogError, match=r"file '1-1' of a shared directory, and no directory was given"):
        store.reader().events(OP1, "out", [1])


def test_bodies_are_durable_before_the_commit_begins(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    log = replace(sqlite_place, threshold=THRESHOLD).create().open(OP3)
    assert isinstance(log, SqliteReplicaLog)
    happened: list[str] = []

    def recorded(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            if name == "fsync":
                path = os.readlink(f"/proc/self/fd/{arguments[0]}")
                happened.append(f"fsync {Path(path).name}")
            else:
                happened.append(name)
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(body_files.os, "fsync", recorded("fsync", os.fsync))
    monkeypatch.setattr(body_files.os, "write", recorded("write", os.write))
    log._writing.connection.set_trace_callback(lambda statement: happened.append(statement.split()[0]))
    transaction = Transaction(outputs=[Output(large(1), 1.0)])
    log.stage(transaction)
    staged = list(happened)
    assert staged == ["fsync log", "fsync bodies", "write", "fsync 1-1", "fsync OP3.0"]
    log.commit(transaction)
    assert happened[len(staged)] == "BEGIN"
    assert happened[-1] == "COMMIT"
    assert "write" not in happened[len(staged) :]


def test_a_killed_owner_leaves_no_row_without_its_body(sqlite_place: Place) -> None:
    place = replace(sqlite_place, threshold=1)
    store = place.create()
    with running("stream", place) as child:
        while int(heard(child)) < 20:
            pass
    log = place.open().open(OP3)
    steps = log.recover().counters["position"]
    assert [output.event.id for output in log.outputs("out", 1, steps + 9)] == list(range(1, steps + 1))
    with sqlite3.connect(Path(place.where) / "OP3.0.db") as connection:
        kept = {name for (name,) in connection.execute("SELECT file FROM outputs")}
    assert set(names(directory(place, store))) == kept
    assert len(kept) == steps
