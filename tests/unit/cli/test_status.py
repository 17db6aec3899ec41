"""`clew status`: how replicas stand, read off logs made by hand; damage, absence, and secrets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.store.places import DESCRIPTION, OP3, step

from clew.log.contract import ReplicaLog, Store
from clew.log.sqlite import SqliteStore
from clew.model.history import Transaction

Run = Callable[..., Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sales.log"


def work(store: Store) -> ReplicaLog:
    log = store.open(OP3)
    for number in range(1, 6):
        transaction = step(number)
        log.stage(transaction)
        log.commit(transaction)
    last = Transaction(counters={"out:report": 3, "written:report": 1}, timers={b"\xa1t": 5.0})
    log.stage(last)
    log.commit(last)
    return log


def test_a_log_that_this_process_holds(path: Path, run: Run) -> None:
    store = SqliteStore.create(path, DESCRIPTION)
    log = work(store)
    told = run("status", path, "--json").json
    log.close()
    assert (told["pipeline"], told["state"], told["log"], told["log_id"]) == (
        "sales",
        "running",
        str(path),
        store.log_id,
    )
    assert list(told["replicas"]) == ["OP1", "OP3", "OP4"]
    assert told["replicas"]["OP1"]["incarnation"] == 0
    mine = told["replicas"]["OP3"]
    assert mine.pop("holder")["is_alive"]
    assert mine == {
        "incarnation": 1,
        "position": 5,
        "is_finished": False,
        "events": {"out": 5},
        "written": {"report": 1},
        "waiting": {"report": 2},
        "open_sets": 1,
        "undone_pairs": 2,
        "state_keys": 1,
        "timers": 1,
        "stored_outputs": 5,
        "lineage_rows": 0,
        "cursors": {"OP1.out->OP3.in": {"assigned": 5, "released": 2, "ended": False}},
    }
    assert told["totals"] == {
        "events": 5,
        "written": 1,
        "waiting": 2,
        "open_sets": 1,
        "undone_pairs": 2,
        "timers": 1,
    }
    store.close()


def test_the_same_for_people(path: Path, run: Run) -> None:
    store = SqliteStore.create(path, DESCRIPTION)
    log = work(store)
    log.close()
    store.close()
    result = run("status", path)
    assert result.code == 0
    assert result.lines[0] == f"pipeline 'sales': stopped; log {path} ({store.log_id})"
    rows = [line.split() for line in result.lines[2:]]
    assert rows[2] == ["OP3", "1", "5", "5", "1", "2", "1", "2", "1", "no", "nobody"]
    assert ["OP1.out->OP3.in", "5", "2", "no"] in rows


def test_not_begun_and_finished(path: Path, run: Run) -> None:
    store = SqliteStore.create(path, DESCRIPTION)
    assert run("status", path, "--json").json["state"] == "not begun"
    for name in ("OP1", "OP3", "OP4"):
        log = store.open(OP3._replace(operator=name))
        log.commit(Transaction(counters={"finished": 1, "out:out": 4}))
        log.close()
    store.close()
    told = run("status", path, "--json").json
    assert told["state"] == "finished"
    assert told["replicas"]["OP3"]["events"] == {"out": 3}  # Without the end mark.


def test_there_is_no_log(path: Path, run: Run) -> None:
    result = run("status", path)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"clew: there is no log at {path}: it does not exist")


def test_damage_is_exit_code_1(path: Path, run: Run) -> None:
    store = SqliteStore.create(path, DESCRIPTION)
    log = work(store)
    log.close()
    store.close()
    file = path / "OP3.0.db"
    file.write_bytes(b"\0" * file.stat().st_size)
    result = run("status", path)
    assert (result.code, result.out) == (1, "")
    assert f"{file} cannot be read" in result.err
    (path / "log.json").write_text("{")
    result = run("status", path)
    assert result.code == 1
    assert "is not JSON" in result.err


def test_a_password_is_never_shown(run: Run) -> None:
    result = run("status", "postgresql://ann:geheim@127.0.0.1:1/shop?connect_timeout=2")
    assert result.code == 2
    assert "database shop at 127.0.0.1" in result.err
    assert "geheim" not in result.out + result.err


def test_a_schema_of_a_directory(path: Path, run: Run) -> None:
    assert "only a PostgreSQL log has one" in run("status", path, "--schema", "x").err


def test_a_reader_that_has_seen_enough_is_no_error(path: Path) -> None:
    work(SqliteStore.create(path, DESCRIPTION)).close()
    command = [sys.executable, "-u", "-m", "clew.cli.main", "status", str(path)]
    reading, writing = os.pipe()
    os.close(reading)
    found = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (found.returncode, found.stderr) == (141, b"")
