"""A process that a test can pause and kill: `python -m tests.store.child MODE PLACE`. It says what it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.store.places import OP3, Place, step

from clew.errors import ClewError
from clew.log import sql_replica

ROOT = Path(__file__).parents[2]


@contextmanager
def running(mode: str, place: Place) -> Iterator[subprocess.Popen[str]]:
    """Runs a child and ends it, whatever happens."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.store.child", mode, place.to_json()],
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


def heard(child: subprocess.Popen[str]) -> str:
    """The next line that a child says; empty when it has ended."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


def state_of(child: subprocess.Popen[str]) -> str:
    """The letter that the system has for what a process does: T when it is stopped."""
    return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_until_stopped(child: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30
    while state_of(child) != "T":
        assert time.monotonic() < deadline
        time.sleep(0.005)


def stream(place: Place) -> None:
    """Commits one transaction after the other and says the number of each that is durable."""
    log = place.open().open(OP3)
    for number in range(1, 100_000):
        transaction = step(number)
        log.stage(transaction)
        log.commit(transaction)
        print(number, flush=True)


def pause(place: Place) -> None:
    """Stops itself inside the transaction of its second commit; when it goes on, says how that ended."""
    log = place.open().open(OP3)
    log.commit(step(1))
    original = sql_replica.apply

    def apply_and_stop(*arguments: object, **options: object) -> object:
        applied = original(*arguments, **options)  # type: ignore[arg-type]
        print("inside", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        return applied

    sql_replica.apply = apply_and_stop  # type: ignore[assignment]
    try:
        log.commit(step(2))
        print("committed", flush=True)
    except ClewError as error:
        print(type(error).__name__, flush=True)


def let_go(place: Place) -> None:
    """Closes its log and lives on."""
    log = place.open().open(OP3)
    log.commit(step(1))
    log.close()
    print("closed", flush=True)
    time.sleep(60)


def twice(place: Place) -> None:
    """Opens its log again without letting go of it, and lets go of the second only."""
    store = place.open()
    first = store.open(OP3)
    store.open(OP3).close()
    print("opened twice", flush=True)
    time.sleep(60)
    first.close()


if __name__ == "__main__":
    {"stream": stream, "pause": pause, "let_go": let_go, "twice": twice}[sys.argv[1]](Place.of_json(sys.argv[2]))
