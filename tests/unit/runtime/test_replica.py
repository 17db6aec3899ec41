"""A running replica hears nothing before it has read its log, however long its operator takes to open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clew
from clew.log.sqlite import open_sqlite
from clew.model.names import Channel, Replica
from clew.protocol import inputs as was
from clew.protocol.effects import Session
from clew.protocol.settings import DEFAULT
from clew.runtime.replica import RunningReplica

OPENED = threading.Event()


class Slow(clew.Source):
    """Takes as long to open as the test wants."""

    def open(self, ctx: clew.Context) -> None:
        assert OPENED.wait(30)

    def read(self, action: Any, offset: Any) -> Any:
        for number in range(offset or 0, 5):
            yield [{"x": number}], number + 1


class Host:
    """What a replica tells its host, kept."""

    def __init__(self) -> None:
        self.deaths: list[str] = []

    def alarm(self, replica: RunningReplica, at: float) -> None:
        pass

    def later(self, seconds: float, job: Callable[[], None]) -> None:
        pass

    def resumed(self, replica: RunningReplica) -> None:
        pass

    def completed(self, replica: RunningReplica) -> None:
        pass

    def died(self, replica: RunningReplica, reason: str, message: str) -> None:
        self.deaths.append(message)


def test_what_comes_early_is_heard_after_the_start(tmp_path: Path) -> None:
    pipeline = clew.Pipeline("early")
    pipeline.source("numbers", Slow()).map(lambda table: table, name="same")
    graph = pipeline.build()
    store = open_sqlite(tmp_path / "log", graph.describe())
    replica, host = Replica("numbers"), Host()
    running = RunningReplica(
        graph, graph.nodes["numbers"], replica, store.open(replica), store.log_id, store.reader(), DEFAULT, host
    )
    heard: list[type] = []
    step = running.kernel.step
    running.kernel.step = lambda given: (heard.append(type(given)), step(given))[1]  # type: ignore[method-assign]
    channel = Channel(replica, "out", Replica("same"), "in")

    running.start(True, False)
    running.tick(1.0)
    running.take(was.Connected(channel, Session(1, 1), 0))
    running.take_all([was.Buried()])
    assert heard == []
    OPENED.set()
    deadline = time.monotonic() + 30
    while was.Planned not in heard:
        assert not host.deaths
        assert time.monotonic() < deadline, f"heard only {heard}"
        time.sleep(0.002)
    assert heard[:3] == [was.Started, was.Connected, was.Buried]
    assert running.end()
    store.close()
