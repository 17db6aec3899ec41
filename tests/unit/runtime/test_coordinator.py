"""The coordinator, with hosts that say what a test wants: who is taken in, who is replaced, who is dead."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from clew.log.processes import Process
from clew.model.names import Replica
from clew.runtime import control, groups, server
from clew.runtime.control import message
from clew.runtime.coordinator import Coordinator
from clew.runtime.groups import Group
from clew.runtime.spec import Timing

SECRET = b"s" * 32
TIMING = Timing(silence_s=0.5, burial_s=None)


def wait_until(what: str, condition: Callable[[], Any], limit_s: float = 30.0) -> Any:
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it was not seen that {what}"
        time.sleep(0.002)
    return found


class Caller:
    """A host, as far as the coordinator sees it."""

    def __init__(self, coordinator: Coordinator, submission: int, process: Sequence[Any], group: str = "work") -> None:
        words = {
            "group": group,
            "submission": submission,
            "process": list(process),
            "machine": socket.gethostname(),
            "address": "127.0.0.1",
            "port": 1,
            "token": "t",
        }
        first = message("register", **words)
        self.sock = server.call(("127.0.0.1", coordinator.server.port), SECRET, first)

    def hear(self, kind: str) -> dict[str, Any]:
        """The next message of a kind."""
        while (said := control.read_message(*control.receive(self.sock)))["type"] != kind:
            pass
        return said

    def say(self, kind: str, **fields: Any) -> None:
        self.sock.sendall(message(kind, **fields))


class Stage:
    """A coordinator of one group, and how often that was launched."""

    def __init__(self, timing: Timing = TIMING) -> None:
        self.group = Group((Replica("work"),), is_in_driver=False)
        self.coordinator = Coordinator([self.group], SECRET, "127.0.0.1", timing, 10, True)
        self.launches: list[int] = []
        self.coordinator.launch = lambda group: self.launches.append(group.submission)
        self.coordinator.start()
        self.launched(1)

    def launched(self, count: int) -> int:
        wait_until(f"launch {count} happens", lambda: len(self.launches) >= count)
        return self.launches[-1]

    def host(self, process: Process | None = None) -> Caller:
        return Caller(self.coordinator, self.launches[-1], process or Process.current())


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.coordinator.stop()
    made.coordinator.close()


def test_a_host_that_leaves_before_the_end_is_replaced(stage: Stage) -> None:
    """One in the driver says good-bye whatever it ended of; nobody else would notice."""
    host = stage.host()
    host.hear("accepted")
    host.say("bye")
    stage.launched(2)
    assert stage.group.reason == "lost"


def test_what_spark_tries_again_is_refused_while_its_successor_waits_for_its_turn(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "PATIENT_S", (2.0,))
    host = stage.host()
    host.hear("accepted")
    host.say("died", reason="move", replica="work", why="it failed")
    wait_until("it is lost", lambda: stage.group.state == "down")
    stage.host().hear("refused")
    assert stage.launches == [1]
    stage.launched(2)
    stage.host().hear("accepted")


def test_words_that_cannot_be_read_cost_a_host_and_not_the_run(stage: Stage) -> None:
    with Caller(stage.coordinator, 1, [1, 2]).sock as sock:
        assert sock.recv(1) == b""
    host = stage.host()
    host.hear("accepted")
    host.say("beat", replicas={"work": {"counts": {}}})
    stage.launched(2)
    host = stage.host()
    host.hear("accepted")
    host.say("completed")
    stage.launched(3)
    stage.host().hear("accepted")
    assert stage.coordinator.error is None


def test_a_host_whose_spark_task_is_over_is_replaced_although_its_link_is_there(stage: Stage) -> None:
    host = stage.host()
    host.hear("accepted")
    stage.coordinator.job_ended(stage.group, 1, "its executor was lost")
    stage.launched(2)
    assert "its executor was lost" in stage.group.why


def dead() -> Process:
    with subprocess.Popen(["sleep", "100"]) as child:
        found = Process.of(child.pid)
        child.kill()
    return found


def test_of_those_before_the_run_only_a_host_that_finds_them_dead_may_speak(stage: Stage) -> None:
    """The first host of this run died for sure; who worked on the log before may be paused somewhere."""
    host = stage.host(dead())
    assert not host.hear("accepted")["predecessor_dead"]
    host.say("opened", alone=False)
    host.sock.close()
    stage.launched(2)
    host = stage.host(dead())
    assert not host.hear("accepted")["predecessor_dead"]
    host.say("opened", alone=True)
    host.sock.close()
    stage.launched(3)
    assert stage.host().hear("accepted")["predecessor_dead"]


@pytest.mark.parametrize("difference", ["boot", "namespace"])
def test_a_lost_host_that_cannot_be_seen_is_not_taken_for_dead(stage: Stage, difference: str) -> None:
    host = stage.host(dead()._replace(**{difference: "another"}))
    host.hear("accepted")
    host.say("opened", alone=True)
    host.sock.close()
    stage.launched(2)
    assert not stage.host().hear("accepted")["predecessor_dead"]


def test_a_silent_host_that_works_is_busy_and_one_that_does_nothing_is_hung(stage: Stage) -> None:
    """A move may have begun after the host's last word, and keep its interpreter."""
    for what, is_hung in (("while True: pass", False), ("import time; time.sleep(100)", True)):
        with subprocess.Popen([sys.executable, "-c", what]) as child:
            try:
                launches = len(stage.launches)
                host = stage.host(Process.of(child.pid))
                host.hear("accepted")
                if is_hung:
                    stage.launched(launches + 1)
                    assert stage.group.reason == "hung"
                else:
                    time.sleep(3.5)
                    assert len(stage.launches) == launches
            finally:
                child.kill()
        stage.launched(launches + 1)
