"""Real processes that execute write actions, really killed and paused: the destination has each action once."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest
from tests.store.child import heard, wait_until_stopped
from tests.unit.connect.child import running
from tests.unit.connect.destinations import action, connected, found, wanted

import clew

FILES = ["parquet", "csv", "jsonl"]
POSTGRES = [pytest.param(name, marks=pytest.mark.postgres) for name in ("postgres", "upsert")]


@pytest.fixture
def where(request: pytest.FixtureRequest, what: str, tmp_path: Path) -> str:
    """The place of the destination, for another process too."""
    if what in ("postgres", "upsert"):
        return str(request.getfixturevalue("dsn"))
    return str(tmp_path / ("numbers.db" if what == "sqlite" else "out"))


@pytest.mark.parametrize("what", [*FILES[:1], "sqlite", *POSTGRES])
def test_killed_at_any_moment_each_action_is_in_once(what: str, where: str) -> None:
    chance = random.Random(what)
    done, last, kills = 0, 20, 0
    while done < last:
        with running("all", what, where, done + 1, last) as child:
            told = done
            until = min(last, done + chance.randint(5, 9))
            while told < until and (line := heard(child)):
                told = int(line)
            if told < last:
                time.sleep(chance.random() * 0.003)  # Into the middle of the next action, or the one after it.
                child.kill()
                child.wait()
                kills += 1
                done = max(0, told - 1)  # Its done mark may be lost, so the last is asked for again.
            else:
                done = last
    assert kills >= 2
    connection = connected(what, where)
    connection.open()
    connection.execute(action(last))
    connection.execute(action(1))
    connection.close()
    assert found(what, where) == wanted(range(1, last + 1))
    if what in FILES:
        assert len(list(Path(where).iterdir())) == last  # Nothing unfinished is left.


@pytest.mark.parametrize(
    ("what", "place"), [("parquet", "before"), ("parquet", "inside"), ("parquet", "after"), ("csv", "inside")]
)
def test_a_paused_predecessor_and_its_successor_leave_one_whole_file(what: str, where: str, place: str) -> None:
    with running(place, what, where, 1) as child:
        assert heard(child) == "inside"
        wait_until_stopped(child)
        successor = connected(what, where)
        successor.open()
        successor.execute(action(1))
        successor.execute(action(2))
        child.send_signal(signal.SIGCONT)
        assert heard(child) == "done"
    assert found(what, where) == wanted(range(1, 3))
    assert len(list(Path(where).iterdir())) == 2


@pytest.mark.postgres
@pytest.mark.parametrize("what", ["postgres", "upsert"])
def test_a_paused_predecessor_outside_its_transaction_finds_the_action_done(what: str, where: str) -> None:
    with running("before", what, where, 1) as child:
        assert heard(child) == "inside"
        wait_until_stopped(child)
        successor = connected(what, where)
        successor.execute(action(1))
        successor.execute(action(2))
        child.send_signal(signal.SIGCONT)
        assert heard(child) == "done"
        successor.close()
    assert found(what, where) == wanted(range(1, 3))


@pytest.mark.postgres
@pytest.mark.parametrize("what", ["postgres", "upsert"])
def test_a_predecessor_paused_inside_its_transaction_is_ended_by_the_server(what: str, where: str) -> None:
    with running("inside", what, where, 1) as child:
        assert heard(child) == "inside"
        wait_until_stopped(child)
        successor = connected(what, where)
        successor.wait_s = 0.1  # type: ignore[attr-defined]
        successor.execute(action(1))
        successor.execute(action(2))
        child.send_signal(signal.SIGCONT)
        assert heard(child) == "done"  # It connected again and found that the action is in.
        successor.close()
    assert found(what, where) == wanted(range(1, 3))


@pytest.mark.parametrize("what", ["sqlite"])
def test_a_paused_predecessor_outside_its_sqlite_transaction_finds_the_action_done(what: str, where: str) -> None:
    with running("before", what, where, 1) as child:
        assert heard(child) == "inside"
        wait_until_stopped(child)
        successor = connected(what, where)
        successor.open()
        successor.execute(action(1))
        successor.execute(action(2))
        child.send_signal(signal.SIGCONT)
        assert heard(child) == "done"
        successor.close()
    assert found(what, where) == wanted(range(1, 3))


@pytest.mark.parametrize("what", ["sqlite"])
@pytest.mark.parametrize("ending", [signal.SIGCONT, signal.SIGKILL])
def test_a_predecessor_paused_inside_its_sqlite_transaction_is_named(
    what: str, where: str, ending: signal.Signals
) -> None:
    with running("inside", what, where, 1) as child:
        assert heard(child) == "inside"
        wait_until_stopped(child)
        successor = connected(what, where)
        successor.busy_s = 0.05  # type: ignore[attr-defined]
        with pytest.raises(clew.ClewError, match=r"numbers\.db cannot .*locked.*let it go on, or end it"):
            successor.execute(action(1))
        child.send_signal(ending)
        assert heard(child) == ("done" if ending is signal.SIGCONT else "")
        child.wait()
        successor.close()
    successor = connected(what, where)
    successor.execute(action(1))
    successor.execute(action(2))
    successor.close()
    assert found(what, where) == wanted(range(1, 3))
