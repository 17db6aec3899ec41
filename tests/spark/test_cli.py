"""The commands on a real Spark, as processes of their own: results, exit codes, and that nothing is left running."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.log.processes import Process, is_alive

pytestmark = pytest.mark.spark

NEAR = "def doubled(x):\n    return 2 * x\n"
GOOD = """
import time

import clew
import near


def numbers(offset):
    for number in range(offset or 0, {count}):
        time.sleep({pause})
        yield [{{"x": number}}], number + 1


class Half:
    def of(self, x):
        return x / 2


HALF = Half()


def work(row):
    return {{"x": HALF.of(near.doubled(near.doubled(row["x"])))}}


pipeline = clew.Pipeline("mine")
found = pipeline.source("numbers", clew.generator(numbers)).map(work, rows=True)
found.write("save", clew.sqlite("mine.db", table="rows", create=True))
"""


class Command:
    """A command under way."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "clew.cli.main", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def family(self) -> list[Process]:
        """The command's process and all that it and its children have started."""
        children: dict[int, list[int]] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(path.parent.name))
        found = [self.process.pid]
        for pid in found:
            found += children.get(pid, ())
        return [Process.of(pid) for pid in found]

    def end(self, timeout_s: float = 60) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, out, err


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Starts `clew` in a folder of its own; what is left of it at the end is ended."""
    started: list[Command] = []

    def start(*arguments: str) -> Command:
        started.append(Command(tmp_path, *arguments))
        return started[-1]

    (tmp_path / "near.py").write_text(NEAR)
    yield start
    for each in started:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
            each.process.communicate()


def rows(folder: Path) -> list[float]:
    try:
        with sqlite3.connect(f"file:{folder / 'mine.db'}?mode=ro", uri=True) as connection:
            return [x for (x,) in connection.execute("SELECT x FROM rows ORDER BY rowid")]
    except sqlite3.OperationalError:
        return []


def until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)


def last(text: str) -> Any:
    return json.loads(text.splitlines()[-1])


def test_a_run_is_stopped_looked_at_and_goes_on(command: Callable[..., Command], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.format(count=150, pause=0.02))
    running = command("run", "mine.py", "--json")
    until(lambda: len(rows(tmp_path)) > 20)
    code, out, _ = command("status", "mine.log", "--json").end()
    assert code == 0
    assert last(out)["state"] == "running"
    assert last(out)["replicas"]["save"]["holder"]["is_alive"]
    family = running.family()
    assert len(family) >= 6  # The command, Spark, its daemon, three hosts.
    os.killpg(running.process.pid, signal.SIGINT)  # As Ctrl-C does: all of them get it.
    code, out, err = running.end()
    assert (code, last(out)["status"]) == (130, "stopped")
    assert err.splitlines()[-1].endswith("Go on with: clew run mine.py")
    until(lambda: not any(map(is_alive, family)), 10)
    stopped_at = len(rows(tmp_path))
    assert stopped_at < 150

    code, out, err = command("run", "mine.py", "--json").end(120)
    assert (code, last(out)["status"]) == (0, "completed"), err
    assert last(out)["metrics"]["save"]["written"] == 150
    assert last(out)["losses"] == []
    assert rows(tmp_path) == [2.0 * number for number in range(150)]
    code, out, _ = command("status", "mine.log").end()
    assert code == 0
    assert out.startswith("pipeline 'mine': finished; log mine.log")


def test_an_operator_that_fails_fails_the_run(command: Callable[..., Command], tmp_path: Path) -> None:
    text = GOOD.format(count=10, pause=0).replace(
        "return {", 'if row["x"] == 7:\n        raise ValueError("no seven")\n    return {'
    )
    (tmp_path / "mine.py").write_text(text)
    running = command("run", "mine.py")
    code, out, err = running.end(120)
    assert code == 1, err
    assert "pipeline 'mine': failed after" in out
    assert "operator 'work'" in err
    assert "ValueError: no seven" in err
    assert "Traceback" not in err
    assert rows(tmp_path) == [2.0 * number for number in range(7)]


def test_a_run_that_is_ended_while_spark_starts(command: Callable[..., Command], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.format(count=10, pause=0))
    running = command("run", "mine.py")
    until(lambda: len(running.family()) > 1)
    family = running.family()
    running.process.send_signal(signal.SIGTERM)
    code, out, err = running.end()
    assert (code, out) == (143, "")
    assert err.splitlines()[-1] == "clew: stopped before the run had begun"
    until(lambda: not any(map(is_alive, family)), 10)


def test_too_few_slots_are_a_wrong_call(command: Callable[..., Command], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.format(count=10, pause=0))
    code, out, err = command("run", "mine.py", "--master", "local[2]").end()
    assert (code, out) == (2, "")
    assert "the pipeline needs 3 task slots at the same time" in err


def test_the_demo_is_exact(command: Callable[..., Command]) -> None:
    begin = time.monotonic()
    running = command("demo", "--json")
    code, out, err = running.end(180)
    assert code == 0, err
    told = last(out)
    assert (told["exact"], told["lost"], told["doubled"], told["killed"]) == (True, 0, 0, "hourly")
    assert 0 < told["recovery_s"] < 30
    assert told["others_committed_meanwhile"] > 0
    assert told["lineage"]["agrees"]
    assert told["lineage"]["from"]
    assert "was killed with SIGKILL" in err
    assert told["seconds"] <= time.monotonic() - begin
