"""Follows a run with real processes, kills some of them by condition, and tells all it knows when nothing goes on.

A run is in this process (`Watch`), or in a driver of its own that can be killed too (`Driver`); both are followed in
the same way. Conditions wait, with a limit of time, and never measure.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from clew.runtime.run import Run
from clew.runtime.spec import Timing, Tuning

LIMIT_S = 100.0
LOOK_S = 0.01
BRISK = Tuning(timing=Timing(beat_s=0.05))
"""Hosts say often how they are, so that conditions are seen soon."""


class Followed:
    """A run, seen from outside: its groups, how far they are, which processes they have."""

    replay = ""
    """The command that repeats what happened, as far as chance was in it."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.deadline = time.monotonic() + limit_s
        self.limit_s = limit_s
        self.killed: list[tuple[str, int]] = []
        self._furthest: dict[str, int] = {}

    # How it is

    def status(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        raise NotImplementedError

    def group(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.status()["groups"][name]
        return found

    def pid(self, name: str) -> int | None:
        """The process of a group, if it has one now."""
        group = self.group(name)
        return group["pid"] if group["state"] in ("opening", "running") else None

    def number(self, replica: str, what: str) -> int:
        """A number of a replica: `position`, `events`, `written`; the highest that was ever heard."""
        for group in self.status()["groups"].values():
            state = group.get("replicas", {}).get(replica)
            if state is not None:
                key = f"{replica} {what}"
                self._furthest[key] = max(self._furthest.get(key, 0), int(state[what]))
        return self._furthest.get(f"{replica} {what}", 0)

    def position(self, replica: str) -> int:
        return self.number(replica, "position")

    def commits(self, group: str) -> int:
        return int(self.group(group)["commits"])

    # What is done to it

    def until(self, what: str, condition: Callable[[], Any]) -> Any:
        """Waits until something holds, and gives it; fails with everything that is known if it never does."""
        while not (found := condition()):
            if self.is_over:
                found = condition()  # It may have come true with the end.
                if found:
                    return found
                raise AssertionError(f"the run is over, and never was it seen that {what}\n{self.story()}")
            if time.monotonic() > self.deadline:
                self.dump()
                raise AssertionError(f"in {self.limit_s:.0f} s it was not seen that {what}\n{self.story()}")
            time.sleep(LOOK_S)
        return found

    def passes(self, replica: str, position: int) -> None:
        """Waits until a replica is that far."""
        self.until(f"{replica} passes position {position}", lambda: self.position(replica) >= position)

    def kill(self, group: str, with_signal: int = signal.SIGKILL) -> int:
        """Kills the process of a group as soon as it has one."""
        pid: int = self.until(f"{group} has a process", lambda: self.pid(group))
        assert pid != os.getpid(), f"{group} is hosted in the driver"
        with contextlib.suppress(ProcessLookupError):  # It had just died by itself.
            os.kill(pid, with_signal)
        self.killed.append((group, pid))
        return pid

    def returns(self, group: str, after: int) -> None:
        """Waits until a group has another process than the one that was killed, and that runs."""
        self.until(
            f"{group} is back after the death of {after}",
            lambda: self.group(group)["state"] in ("running", "ended") and self.group(group)["pid"] != after,
        )

    # What is known of it

    def story(self) -> str:
        """Everything: groups, deaths, processes, and how to see it again."""
        status = self.status()
        lines = [json.dumps(status, indent=1, default=str), f"killed here: {self.killed}"]
        for name, group in status["groups"].items():
            lines.append(f"{name}: process {group['pid']} is {state_of(group['pid'])}")
        if self.replay:
            lines.append(f"replay: {self.replay}")
        return "\n".join(lines)

    def dump(self) -> None:
        """Makes every process write the stacks of its threads to the standard error output; the hosts end by it."""
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
        for group in self.status()["groups"].values():
            pid = group["pid"]
            if pid and pid != os.getpid() and is_there(pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGABRT)
        time.sleep(1)


class Watch(Followed):
    """Follows a run in this process; stops it at the end, whatever happened."""

    def __init__(self, run: Run, limit_s: float = LIMIT_S, replay: str = "") -> None:
        super().__init__(limit_s)
        self.run = run
        self.replay = replay

    def status(self) -> dict[str, Any]:
        return {**self.run.status(), "losses": self.run.losses()}

    @property
    def is_over(self) -> bool:
        return self.run.is_over

    def finish(self) -> Run:
        """Waits for the end; what made the run fail is raised."""
        while not self.run.is_over:
            if time.monotonic() > self.deadline:
                self.dump()
                raise AssertionError(f"the run has not come to an end in {self.limit_s:.0f} s\n{self.story()}")
            self.run.wait(0.2)
        return self.run.wait()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        if not self.run.is_over:
            self.run.stop()


class Driver(Followed):
    """A driver of its own in another process, with a Spark of its own; see `tests.spark.child`."""

    def __init__(self, order: Mapping[str, Any], limit_s: float = LIMIT_S) -> None:
        super().__init__(limit_s)
        environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
        self._latest: dict[str, Any] = {"groups": {}, "state": "starting"}
        self.result: dict[str, Any] | None = None
        self.words: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.child", json.dumps(order)],
            cwd=Path(__file__).parents[2],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # A signal for it is for it alone, not for the tests.
        )
        threads = [threading.Thread(target=each, daemon=True) for each in (self._listen, self._hear)]
        for thread in threads:
            thread.start()
        self._threads = threads

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if said["type"] == "status":
                self._latest = said
            else:
                self.result = said
                self._latest = said.get("status", self._latest)

    def _hear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.words.append(line.rstrip())

    def status(self) -> dict[str, Any]:
        return self._latest

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def started(self) -> None:
        """Waits until every group has a process."""
        self.until(
            "every group runs",
            lambda: self._latest["groups"] and all(map(self.pid, self._latest["groups"])),
        )

    def hosts(self) -> list[int]:
        """The processes of all groups."""
        return [group["pid"] for group in self._latest["groups"].values() if group["pid"]]

    def finish(self) -> dict[str, Any]:
        """Waits until the driver has ended; gives the last thing it said."""
        self.until("the driver has ended", lambda: self.is_over)
        for thread in self._threads:
            thread.join(10)
        assert self.result is not None, f"the driver ended with {self.process.returncode} and no result\n{self.story()}"
        return self.result

    def story(self) -> str:
        return "\n".join([super().story(), "the driver's last words:", *self.words[-60:]])

    def dump(self) -> None:
        super().dump()
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGABRT)

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


# Processes


def state_of(pid: int | None) -> str:
    """The letter of a process's state, and where in the kernel it is."""
    if not pid:
        return "none"
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return f"{letter} in {Path(f'/proc/{pid}/wchan').read_text() or '-'}"
    except OSError:
        return "gone"


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    return state_of(pid)[0] not in "gnZX"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def wait_until(what: str, condition: Callable[[], Any], limit_s: float = LIMIT_S) -> Any:
    """Waits until something holds that has nothing to do with a run."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"in {limit_s:.0f} s it was not seen that {what}"
        time.sleep(LOOK_S)
    return found
