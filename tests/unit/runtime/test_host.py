"""A host alone: what it hears while it opens, what it says when it cannot, and that it notices its own delays."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.log.sqlite import open_sqlite
from clew.model.event import as_batch
from clew.model.graph import Graph
from clew.model.history import Output
from clew.model.names import Replica
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.settings import DEFAULT
from clew.runtime import control
from clew.runtime.clock import Clock
from clew.runtime.frames import FrameReader
from clew.runtime.host import Host
from clew.runtime.link import Link
from clew.runtime.loop import Loop
from clew.runtime.replica import RunningReplica
from clew.runtime.spec import HostSpec, LogPlace, Timing


def wait_until(what: str, condition: Callable[[], Any], limit_s: float = 30.0) -> Any:
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it was not seen that {what}"
        time.sleep(0.002)
    return found


def writing() -> Graph:
    pipeline = clew.Pipeline("host")
    numbers = pipeline.source("numbers", clew.rate(1000, count=3))
    numbers.write("sink", clew.call(print, "idempotent"))
    return pipeline.build()


def spec_of(graph: Graph, place: LogPlace, port: int = 1) -> HostSpec:
    return HostSpec(
        graph.name,
        (Replica("sink"),),
        1,
        b"s" * 32,
        ("127.0.0.1", port),
        "127.0.0.1",
        place,
        "",
        DEFAULT,
        Timing(orphan_s=0.5),
        (),
        tuple(graph.channels),
        graph.describe(),
        (graph.nodes["sink"],),
    )


def hear(host: Host, said: bytes) -> None:
    reader = FrameReader()
    reader.fed(said)
    for kind, payload in reader.frames():
        host._on_control(kind, payload)


def test_a_burial_is_not_forgotten_while_the_host_opens(tmp_path: Path) -> None:
    """Otherwise writes that wait for it would wait for ever."""
    graph = writing()
    place = LogPlace("sqlite", str(tmp_path / "log"))
    store = place.open(graph.describe())
    paused = store.open(Replica("sink"))  # In this very process, so nobody can end it.
    host = Host(spec_of(graph, place))
    hear(host, control.message("buried"))
    host._open({"predecessor_dead": False, "cautious": []})
    running = host.replicas[Replica("sink")]
    wait_until("it has begun", lambda: running.kernel.incarnation)
    assert not any(writer.is_blocked for writer in running.kernel.writers.values())
    assert host.close()
    paused.close()
    store.close()


def test_whatever_a_host_fails_of_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = writing()
    host = Host(spec_of(graph, LogPlace("sqlite", "nowhere")))
    said: list[bytes] = []

    def joined() -> None:
        host._answers.put({"type": "accepted"})

    def full(answer: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host, "_join", joined)
    monkeypatch.setattr(host, "_open", full)
    monkeypatch.setattr(host, "_tell_coordinator", said.append)
    reason, _, why = host.run()
    assert (reason, "No space left" in why) == ("error", True)
    assert any(b"died" in each for each in said)
    host.close()


def test_a_coordinator_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(spec_of(writing(), LogPlace("sqlite", "nowhere")))
    monkeypatch.setattr(host, "_join", lambda: None)
    assert host.run()[::2] == ("refused", "the coordinator does not answer")
    host.close()


# Delays


def test_what_becomes_due_during_a_delay_waits_until_the_sockets_were_looked_at() -> None:
    """Code that keeps the interpreter delays the loop too, which must not take others for silent then."""
    errors: list[BaseException] = []
    loop = Loop("test", errors.append)
    one, other = socket.socketpair()
    order: list[str] = []
    link = Link(loop, one)
    link.on_closed = lambda reason: order.append("heard")

    def tick() -> None:
        order.append("tick")
        other.close()
        loop.after(0.01, lambda: order.append("next tick"))
        time.sleep(0.2)

    loop.soon(link.start)
    loop.after(0.05, tick)
    loop.start()
    wait_until("both ticks came", lambda: "next tick" in order)
    loop.end()
    assert order == ["tick", "heard", "next tick"]
    assert not errors


# Clocks


def test_a_clock_that_is_set_back_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, real = Clock(), time.time
    begin = clock.now()
    assert abs(begin - real()) < 1
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    time.sleep(0.02)
    assert 0.01 < clock.now() - begin < 60
    monkeypatch.setattr(time, "time", lambda: real() + 3600)
    assert clock.now() - begin > 3500


class Ticking(clew.Operator):
    """Sets its timer anew whenever it rings."""

    rang = 0

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[str]:
        ctx.timer("tick", ctx.now + 0.05)
        return []

    def update(self, input_set: Any, event: clew.Event, note: Any = None) -> None:
        raise AssertionError

    def generate(self, input_sets: Any, ctx: clew.Context) -> Any:
        raise AssertionError

    def on_timer(self, name: Any, ctx: clew.Context) -> None:
        Ticking.rang += 1
        ctx.timer("tick", ctx.now + 30)


class Around:
    """The host of one replica: it rings, and keeps what it is told."""

    def __init__(self) -> None:
        self.deaths: list[str] = []

    def alarm(self, replica: RunningReplica, at: float) -> None:
        timer = threading.Timer(max(0.0, at - replica.now()), lambda: replica.tick(max(at, replica.now())))
        timer.daemon = True
        timer.start()

    def later(self, seconds: float, job: Callable[[], None]) -> None:
        pass

    def resumed(self, replica: RunningReplica) -> None:
        pass

    def completed(self, replica: RunningReplica) -> None:
        pass

    def died(self, replica: RunningReplica, reason: str, message: str) -> None:
        self.deaths.append(message)


def test_timers_do_not_race_when_the_wall_clock_is_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = clew.Pipeline("ticks")
    pipeline.source("numbers", clew.rate(1000, count=1)).operator("ticking", Ticking())
    graph = pipeline.build()
    store = open_sqlite(tmp_path / "log", graph.describe())
    replica, around = Replica("ticking"), Around()
    running = RunningReplica(
        graph, graph.nodes["ticking"], replica, store.open(replica), store.log_id, store.reader(), DEFAULT, around
    )
    running.start(True, False)
    wait_until("it has begun", lambda: running._early is None)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    (channel,) = graph.inbound(replica)
    event = clew.Event(Replica("numbers"), "out", 1, as_batch([{"id": 1}]))
    running.take(was.Received(channel, running.kernel.session(channel), event))  # type: ignore[arg-type]
    wait_until("it rang", lambda: Ticking.rang)
    time.sleep(0.2)
    assert Ticking.rang == 1
    assert not around.deaths
    assert running.end()
    store.close()


# Memory


def test_large_outputs_are_not_read_all_at_once(tmp_path: Path) -> None:
    graph = writing()
    store = open_sqlite(tmp_path / "log", graph.describe())
    replica = Replica("numbers")
    running = RunningReplica(
        graph, graph.nodes["numbers"], replica, store.open(replica), store.log_id, store.reader(), DEFAULT, Around()
    )
    batch = as_batch([{"x": b"x" * (6 << 20)}])
    asked: list[tuple[int, int]] = []

    def outputs(port: str, first: int, limit: int) -> list[Output]:
        asked.append((first, limit))
        numbers = range(first, min(first + limit, 65))
        return [Output(clew.Event(replica, port, number, batch), 0.0) for number in numbers]

    given: list[Any] = []
    running.log.outputs = outputs  # type: ignore[method-assign]
    running.take = given.append  # type: ignore[method-assign,assignment]
    running._fetch_now(does.Fetch("out", 1, 64))
    assert [output.event.id for output in given[0].outputs] == [1, 2, 3]
    batch = as_batch([{"x": 1}])
    asked.clear()
    running._fetch_now(does.Fetch("out", 1, 64))
    assert [output.event.id for output in given[1].outputs] == list(range(1, 65))
    assert len(asked) <= 4
    running.log.close()
    store.close()


# Forks


def test_a_process_that_user_code_forks_does_not_keep_links_open() -> None:
    errors: list[BaseException] = []
    loop = Loop("test", errors.append)
    one, other = socket.socketpair()
    other.settimeout(30)
    link = Link(loop, one)
    going, stop = os.pipe()
    child = os.fork()
    if not child:
        os.close(stop)
        os.read(going, 1)  # Lives on, as a pool of processes does.
        os._exit(0)
    loop.start()
    loop.soon(lambda: link.close())
    assert other.recv(1) == b""
    os.close(stop)
    os.waitpid(child, 0)
    os.close(going)
    loop.end()
    other.close()
    assert not errors
