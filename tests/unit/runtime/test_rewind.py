"""A host that goes back: all of its replicas begin anew in the same process, or it ends if something is in the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.runtime.test_host import hear, wait_until

import clew
from clew.log.snapshots import SnapshotLog
from clew.model.graph import Graph
from clew.model.names import Replica
from clew.operators.collect import Collect
from clew.protocol.barriers import SnapshotOperator, SnapshotSource
from clew.protocol.logio import OperatorKernel
from clew.protocol.settings import DEFAULT
from clew.runtime import control
from clew.runtime.frames import FrameReader
from clew.runtime.host import Host
from clew.runtime.kernels import kernel_of
from clew.runtime.spec import HostSpec, LogPlace, Timing

NUMBERS = Replica("numbers")
OPENED: list[object] = []
HELD = threading.Event()


class Slow(clew.Source):
    """Gives five events; the third and those after it only when it is let."""

    poll_s = 0.005

    def open(self, ctx: clew.Context) -> None:
        OPENED.append(self)

    def read(self, action: Any, offset: Any) -> Iterator[tuple[list[dict[str, int]], int] | None]:
        for number in range(offset or 0, 5):
            while number == 2 and not HELD.is_set():
                yield None
            yield [{"x": number}], number + 1


@pytest.fixture
def spec(tmp_path: Path) -> Iterator[HostSpec]:
    HELD.clear()
    OPENED.clear()
    pipeline = clew.Pipeline("back")
    pipeline.source("numbers", Slow()).write("sink", clew.call(print, "idempotent"))
    graph = pipeline.build()
    place = LogPlace("sqlite", str(tmp_path / "log"))
    place.open({**graph.describe(), "recovery": "snapshot"}).close()
    yield _spec(graph, place, "numbers")
    HELD.set()


def _spec(graph: Graph, place: LogPlace, name: str) -> HostSpec:
    return HostSpec(
        pipeline=graph.name,
        group=(Replica(name),),
        submission=1,
        secret=b"s" * 32,
        coordinator=("127.0.0.1", 1),
        bind="127.0.0.1",
        place=place,
        log_id="",
        settings=DEFAULT,
        timing=Timing(orphan_s=5.0),
        nodes=(),
        channels=tuple(graph.channels),
        description=graph.describe(),
        here=(graph.nodes[name],),
        recovery="snapshot",
    )


class Running:
    """A host on a thread of its own; what it says is kept."""

    def __init__(self, spec: HostSpec, answer: dict[str, Any]) -> None:
        self.host = Host(spec)
        self.said: list[dict[str, Any]] = []
        self.outcome: tuple[str, str, str] | None = None
        self.host._join = lambda: self.host._answers.put(answer)  # type: ignore[method-assign]
        self.host._tell_coordinator = self._keep  # type: ignore[method-assign]
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.outcome = self.host.run()

    def _keep(self, data: bytes) -> None:
        self.host.heard_at = time.monotonic()  # The coordinator is there, and would say something.
        reader = FrameReader()
        reader.fed(data)
        self.said += [control.read_message(*frame) for frame in reader.frames()]

    def told(self, kind: str, **fields: Any) -> None:
        """The coordinator says something."""
        self.host.loop.soon(lambda: hear(self.host, control.message(kind, **fields)))

    def saying(self, kind: str, condition: Callable[[dict[str, Any]], Any] = lambda said: True) -> dict[str, Any]:
        """What the host has said, as soon as it has."""

        def found() -> list[dict[str, Any]]:
            return [said for said in self.said if said["type"] == kind and condition(said)]

        return wait_until(f"it says {kind}", found)[0]  # type: ignore[no-any-return]

    def end(self) -> None:
        HELD.set()
        self.told("end")
        self.thread.join(30)
        assert self.host.close()


def accepted(generation: int, epoch: int = 0) -> dict[str, Any]:
    return {
        "type": "accepted",
        "hosts": {},
        "predecessor_dead": True,
        "cautious": [],
        "generation": generation,
        "epoch": epoch,
    }


def test_a_snapshot_is_stored_and_the_next_generation_goes_on_from_it(spec: HostSpec) -> None:
    running = Running(spec, accepted(1))
    assert running.saying("joined") == {
        "type": "joined",
        "replica": "numbers",
        "generation": 1,
        "is_finished": False,
    }
    first = running.host.replicas[NUMBERS]
    wait_until("two events are there", lambda: first.kernel.position >= 2)
    running.told("mark", generation=7, epoch=1)  # Of a generation that is not this one.
    running.told("mark", generation=1, epoch=1)
    assert running.saying("stored")["epoch"] == 1
    running.told("epoch", generation=1, epoch=1)
    wait_until("it heard so", lambda: first.snapshots is not None and first.snapshots._complete == 1)
    running.told("rewind", generation=2, epoch=1)
    running.saying("joined", lambda said: said["generation"] == 2)
    second = running.host.replicas[NUMBERS]
    assert first.is_ended
    assert second is not first
    assert isinstance(second.log, SnapshotLog)
    assert second.log.incarnation == 2
    assert len({id(each) for each in OPENED}) == 2, "what an operator keeps in memory is new as well"
    HELD.set()
    wait_until("all five are there", lambda: second.kernel.is_finished)
    assert second.counts is first.counts, "the process goes on counting"
    assert second.kernel.ports["out"].last == 7, "five events, a border, the end"
    running.end()
    assert running.outcome == ("end", "", "")


def test_a_host_that_is_told_later_where_to_begin_waits(spec: HostSpec) -> None:
    running = Running(spec, accepted(0))
    time.sleep(0.1)
    assert not running.host.replicas
    running.told("rewind", generation=3, epoch=0)
    assert running.saying("joined")["generation"] == 3
    running.end()


def test_only_the_last_of_several_words_counts(spec: HostSpec) -> None:
    running = Running(spec, accepted(1))
    running.saying("joined")
    for generation in (2, 3, 4):
        running.told("rewind", generation=generation, epoch=0)
    running.saying("joined", lambda said: said["generation"] == 4)
    time.sleep(0.1)
    assert running.host.replicas[NUMBERS].log.incarnation == 4
    running.end()


def test_a_host_whose_storing_hangs_ends(spec: HostSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two would work on one log."""
    monkeypatch.setattr("clew.runtime.threads.Worker.end", lambda worker, patience_s=5.0: worker._thread is None)
    running = Running(spec, accepted(1))
    running.saying("joined")
    first = running.host.replicas[NUMBERS]
    first._storer.do(lambda: None)
    running.told("rewind", generation=2, epoch=0)
    said = running.saying("died")
    assert said["reason"] == "stuck"
    assert "something of an earlier generation was still under way" in said["why"]
    monkeypatch.undo()
    HELD.set()
    running.thread.join(30)
    running.host.close()


def test_what_an_earlier_generation_dies_of_is_nothing_to_anybody(spec: HostSpec) -> None:
    running = Running(spec, accepted(1))
    running.saying("joined")
    first = running.host.replicas[NUMBERS]
    running.told("rewind", generation=2, epoch=0)
    running.saying("joined", lambda said: said["generation"] == 2)
    running.host.died(first, "move", "it failed, too late")
    time.sleep(0.05)
    assert running.outcome is None
    running.end()
    assert running.outcome == ("end", "", "")


def test_the_kinds_of_kernel(spec: HostSpec) -> None:
    running = Running(spec, accepted(1))
    running.saying("joined")
    assert isinstance(running.host.replicas[NUMBERS].kernel, SnapshotSource)
    running.end()
    operator = replace(spec.here[0], inputs=("in",), definition=Collect())
    assert kernel_of(operator, has_epochs=True) is SnapshotOperator
    assert kernel_of(operator, has_epochs=False) is OperatorKernel
