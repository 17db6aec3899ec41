"""The parts of `clew demo` that need no Spark: the pace, the kill, the comparison, the lineage."""

from __future__ import annotations

import itertools
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from examples import sales
from pyarrow import parquet

from clew.cli import demo
from clew.cli.follow import Follower
from clew.cli.paced import Paced
from clew.cli.sales_check import lineage_of, written
from clew.testing import scripted
from clew.verify.schedule import Schedule
from clew.verify.world import World

Run = Callable[..., Any]


def test_a_directory_that_is_not_empty_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    result = run("demo", "--directory", tmp_path)
    assert result.code == 2
    assert "is not an empty directory; expected one, or a name that is free." in result.err


def test_the_example_is_found() -> None:
    assert demo._example() == Path(sales.__file__)


def test_events_come_at_a_steady_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(100.0, 0.1)
    monkeypatch.setattr("clew.cli.paced.time.monotonic", lambda: next(now))
    source = Paced(scripted([[{"x": number}] for number in range(4)]), 2)
    source.open(None)  # type: ignore[arg-type]
    found = list(source.read(0, 1))
    assert found[0] is not None  # The first is due at once, the others half a second after each other.
    assert sum(item is None for item in found) >= 4
    assert [item[1] for item in found if item is not None] == [2, 3, 4]


class Told:
    """A run in its middle."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.events = 0
        self.lost: list[dict[str, Any]] = []

    def status(self) -> dict[str, Any]:
        counts = dict.fromkeys(("commits", "events_in", "moves", "move_s", "commit_s"), self.events)
        said = {"incarnation": 1, "events": self.events, "written": 0, "backlog": 0, "unwritten": 0}
        return {
            "groups": {
                name: {
                    "state": "running",
                    "pid": number,
                    "starts": 1,
                    "replicas": {name: {**said, "is_finished": False, "counts": counts}},
                }
                for number, name in enumerate(self.graph.nodes, 1001)
            }
        }

    def losses(self) -> list[dict[str, Any]]:
        return self.lost


def test_the_process_is_killed_once_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr("clew.cli.demo.os.kill", lambda pid, number: killed.append((pid, number)))
    told = Told(sales.build().build())
    out = StringIO()
    killer = demo.Killer("hourly", Follower(told.graph, out))
    killer(told)  # type: ignore[arg-type]
    assert killed == []
    told.events = demo.EVENTS // 2
    killer(told)  # type: ignore[arg-type]
    killer(told)  # type: ignore[arg-type]
    assert killed == [(1002, signal.SIGKILL)]
    assert killer.next_hour == demo.EVENTS // 2 + 1
    told.events += 9
    told.lost = [{"pid": 1002, "recovery_s": None}]
    killer(told)  # type: ignore[arg-type]
    assert "is back" not in out.getvalue()
    told.lost = [{"pid": 1002, "recovery_s": 0.7}]
    killer(told)  # type: ignore[arg-type]
    assert "hourly is back, 0.7 s after its death was noticed" in out.getvalue()
    assert "orders 9, totals 9, report 9, archive 9." in out.getvalue()


def test_what_is_lost_or_doubled_is_counted(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "sales.db") as connection:
        connection.execute("CREATE TABLE hourly_totals (hour, item_ID, state, total)")
        rows = [("H1", "a", "Ohio", 5), ("H1", "b", "Ohio", 6), ("H1", "b", "Ohio", 6)]
        connection.executemany("INSERT INTO hourly_totals VALUES (?, ?, ?, ?)", rows)
    (tmp_path / "sales-totals").mkdir()
    for number in (1, 2):
        table = pa.table({"item_ID": ["a"], "state": ["Ohio"], "total": [number]})
        parquet.write_table(table, tmp_path / "sales-totals" / f"x.{number:03}.parquet")
    found = written(tmp_path)
    assert found[1] == {(1, "a", "Ohio", 1): 1, (2, "a", "Ohio", 2): 1}
    expected = Counter([("H1", "a", "Ohio", 5), ("H1", "b", "Ohio", 6), ("H2", "a", "Ohio", 1)])
    out = StringIO()
    assert demo._compare((expected, found[1]), found, out) == (1, 1)
    assert "report: 3 rows, 1 lost, 1 doubled or wrong" in out.getvalue()
    assert "archive: 2 rows, 0 lost, 0 doubled or wrong" in out.getvalue()


def test_the_lineage_adds_up() -> None:
    world = World(sales.build(scripted(sales.sales(events=20, records=3, hours=6))).build(), Schedule(1))
    world.run(1_000_000)
    found = lineage_of(world.store, 2)
    assert found["event"] == "hourly.out/2"
    assert found["hour"] == "2025-02-23T11:00:00"
    assert found["agrees"]
    assert found["from"][0].startswith("orders.out/")


def test_orders_are_one_file_for_each_event_of_totals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EVENTS", 12), ("RECORDS", 5), ("EVERY", 4)):
        monkeypatch.setattr(demo, name, value)
    demo._make_orders(sales, tmp_path / "orders")
    files = sorted((tmp_path / "orders").iterdir())
    assert [parquet.read_metadata(file).num_rows for file in files] == [20, 20, 20]
