"""A process that executes write actions, for tests that kill and pause it: `python -m tests.unit.connect.child`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.unit.connect.destinations import action, connected

import clew
from clew.connect import file_writer, postgres_writer, sqlite_writer
from clew.model.connection import WriteConnection

ROOT = Path(__file__).parents[3]


@contextmanager
def running(mode: str, what: str, where: str, *numbers: int) -> Iterator[subprocess.Popen[str]]:
    """Runs a child and ends it, whatever happens."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.connect.child", json.dumps([mode, what, where, *numbers])],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def write_all(connection: WriteConnection, first: int, last: int) -> None:
    """Executes actions and says the number of each that is done."""
    for number in range(first, last + 1):
        connection.execute(action(number))
        print(number, flush=True)


def write_and_stop(connection: WriteConnection, place: str, number: int) -> None:
    """Stops itself at a place in the middle of the action; when it goes on, says how that ended."""
    stopping = [True]

    def stop() -> None:
        if stopping:
            stopping.clear()
            print("inside", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)

    def stop_before(module: Any, name: str) -> None:
        original = getattr(module, name)
        setattr(module, name, lambda *given: (stop(), original(*given))[1])

    if isinstance(connection, file_writer.FileWriter):
        stop_before(file_writer, {"before": "_safe", "inside": "_is_linked", "after": "_sync"}[place])
    elif isinstance(connection, postgres_writer.PostgresWriter):
        stop_before(*{"before": (connection, "_execute"), "inside": (connection, "_add")}[place])
    elif isinstance(connection, sqlite_writer.SqliteWriter):
        stop_before(*{"before": (sqlite_writer, "_rows"), "inside": (connection, "_make")}[place])
    try:
        connection.execute(action(number))
        print("done", flush=True)
    except clew.ClewError as error:
        print(error, flush=True)


if __name__ == "__main__":
    mode, what, where, *numbers = json.loads(sys.argv[1])
    destination = connected(what, where)
    destination.open()
    if mode == "all":
        write_all(destination, *numbers)
    else:
        write_and_stop(destination, mode, *numbers)
