"""Channels of a real run: strangers are refused and counted, and a stalled operator does not fill anybody's memory."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark import pipelines
from tests.spark.harness import BRISK, Watch
from tests.spark.running import rows_of

import clew
from clew.errors import WireError
from clew.runtime import server
from clew.runtime.control import dial_frame, message
from clew.runtime.frames import frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


# Strangers


def test_strangers_on_any_port_are_refused_and_counted_and_the_run_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    run = pipelines.sales(tmp_path).run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)
    chance = random.Random(1)
    with Watch(run) as watch:
        watch.passes("report", 3)
        coordinator = run._coordinator
        ports = {name: group.address.port for name, group in coordinator.groups.items() if group.address is not None}
        assert set(ports) == set(pipelines.SALES)
        calls = [lambda port: shout(port, chance.randbytes(500)), whisper, pretend]
        for port in (coordinator.server.port, *ports.values()):
            for call in calls:
                call(port)
        watch.until("the coordinator has counted", lambda: run.status()["refused"] >= len(calls))
        for name in ports:
            watch.until(f"{name} has counted", lambda name=name: watch.group(name).get("refused", 0) >= len(calls))
        assert run.losses() == []

        # Even one who knows the secret must speak like a host.
        secret = run._secret
        for first in (b"\0\0\0\4\1junk", message("good day"), frame(99, b"")):
            with server.call(("127.0.0.1", coordinator.server.port), secret, first) as known:
                assert known.recv(1) == b""
        channel = run.graph.channels[0]
        for first in (b"\0\0\0\4\2junk", dial_frame(channel._replace(output="other"))):
            with server.call(("127.0.0.1", ports["orders"]), secret, first) as known:
                assert known.recv(1) == b""
        with server.call(("127.0.0.1", ports["orders"]), secret, dial_frame(channel)) as known:
            known.sendall(b"\0\0\0\4\x63junk")  # The link ends, and the real receiver calls again.
            while known.recv(1024):
                pass
        pipelines.gate_of(tmp_path).touch()
        watch.finish()
    assert run.losses() == []
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()


def shout(port: int, data: bytes) -> None:
    """Sends garbage, and reads until it is shown the door."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as stranger, contextlib.suppress(OSError):
        stranger.sendall(data)
        while stranger.recv(1024):
            pass


def whisper(port: int) -> None:
    """Begins like one who knows how, and goes away."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as stranger:
        stranger.sendall(b"clew/1\n")


def pretend(port: int) -> None:
    """Tries a secret of its own."""
    with pytest.raises((WireError, ConnectionError)):
        server.call(("127.0.0.1", port), b"guess" * 6, b"", timeout_s=30)


# Back-pressure

EVENT_BYTES = 10_000


class Flood(clew.Source):
    """As many events of 10 KB as anybody takes."""

    def __init__(self, count: int) -> None:
        self.count = count

    def read(self, action: Any, offset: Any) -> Iterator[tuple[pa.RecordBatch, int]]:
        for number in range(offset or 0, self.count):
            filling = number.to_bytes(8, "big") * (EVENT_BYTES // 8)
            yield pa.record_batch({"number": [number], "filling": [filling]}), number + 1


class Stalled(clew.Operator):
    """Adds up the numbers, in order; its first move lasts until the test lets it go on."""

    def __init__(self, gate: Path) -> None:
        self.gate = gate

    def assign(self, event: clew.Event, ctx: clew.Context) -> tuple[()]:
        while not self.gate.exists():
            time.sleep(0.01)
        (row,) = event.rows
        seen = ctx.state.get("seen", 0)
        assert row["number"] == seen, f"expected {seen}, got {row['number']}"
        assert row["filling"] == seen.to_bytes(8, "big") * (EVENT_BYTES // 8)
        ctx.state["seen"] = seen + 1
        return ()

    def update(self, input_set: Any, event: clew.Event, note: Any = None) -> None:
        raise AssertionError("no event belongs to an Input Set")

    def generate(self, input_sets: Any, ctx: clew.Context) -> Any:
        raise AssertionError("there are no Input Sets")

    def finish(self, input_sets: Any, ctx: clew.Context) -> Any:
        yield "out", [{"seen": ctx.state["seen"]}]


def rss_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def flood(spark: SparkSession, directory: Path, count: int) -> None:
    pipeline = clew.Pipeline("flood")
    gate = pipelines.gate_of(directory)
    flooding = pipeline.source("flood", Flood(count))
    passed = flooding.map(lambda table: table, name="pass")
    passed.operator("stalled", Stalled(gate)).write("report", clew.sqlite(directory / "out.db", "seen", create=True))
    names = ("flood", "pass", "stalled", "report")
    peak = dict.fromkeys(names, 0)
    run = pipeline.run(spark, log=directory / "log", blocking=False, tuning=BRISK)
    with Watch(run, limit_s=300) as watch:

        def look() -> None:
            for name in names:
                pid = watch.pid(name)
                peak[name] = max(peak[name], rss_bytes(pid) if pid else 0)

        def stands() -> bool:
            """Whether the source has sent something, and nothing more in a second."""
            before = watch.number("flood", "events")
            for _ in range(20):
                look()
                time.sleep(0.05)
            return before > 100 and watch.number("flood", "events") == before

        watch.until("the source is held back", stands)
        held_at = watch.number("flood", "events")
        assert held_at < min(count, 3000), "the source went on although nobody took anything"
        gate.touch()

        def is_over() -> bool:
            look()
            return watch.is_over

        watch.until("the run is over", is_over)
        watch.finish()
    print(f"held back at {held_at} of {count} events; peak memory in MB: {mb(peak)}")
    assert rows_of(directory / "out.db", "seen") == [(count,)]
    assert run.losses() == []
    for name, found in peak.items():
        assert found < 400_000_000, f"{name} took {found / 1e6:.0f} MB"


def mb(sizes: dict[str, int]) -> dict[str, int]:
    return {name: round(size / 1e6) for name, size in sizes.items()}


def test_a_stalled_operator_holds_back_a_fast_source(spark: SparkSession, tmp_path: Path) -> None:
    flood(spark, tmp_path, 20_000)


@pytest.mark.soak
def test_a_stalled_operator_holds_back_a_fast_source_for_long(spark: SparkSession, tmp_path: Path) -> None:
    flood(spark, tmp_path, 100_000)
