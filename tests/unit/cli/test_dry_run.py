"""`clew dry-run`: the graph, the hosts and slots, and what is guaranteed, without a Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.log.sqlite import SqliteStore

SALES = Path(__file__).parents[3] / "examples" / "sales.py"
Run = Callable[..., Any]

KINDS = """
import clew
from clew.operators.batch import Batch
from clew.testing import Outside, scripted


class Here(Batch):
    is_in_driver = True


class Asks(Batch):
    reads = {"prices": Outside("prices").reader()}


pipeline = clew.Pipeline("kinds")
once = pipeline.source("once", scripted([[{"x": 1}]], replayable=False))
here = once.operator("here", Here(1))
asks = here.operator("asks", Asks(1), dead_letters=True)
asks.write("checked", Outside("a").writer("checkable"))
asks.write("again", Outside("b").writer("idempotent"))
pipeline.group("checked", "again")
once.parallel(2).batch(3, name="threes").write("kept", Outside("c").writer())
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_sales_pipeline(run: Run) -> None:
    result = run("dry-run", SALES)
    assert result.code == 0
    for words in (
        "orders.out -> hourly.in",
        "hourly    Spark task         1  out",
        "orders: reads in, replayable: read again from the last offset in the log",
        "report: writes to (conditional), exactly once, always",
        "task slots needed: 5, one for each host (5); without a master: local[7]",
        "lineage: orders.out to hourly.out",
        "log: sales.log (is made by the run)",
    ):
        assert words in result.out
    assert list(Path().iterdir()) == []


def test_no_spark_is_imported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert run("dry-run", SALES, "--json").code == 0


def test_each_kind_and_what_it_rests_on(file: Any, run: Run) -> None:
    result = run("dry-run", file(KINDS))
    assert result.code == 0
    network = "assumes that no request of the dead process is still under way in the network"
    for words in (
        "once: reads in, not replayable: stored in the log before an event of it leaves",
        "here: runs in the driver: shares the driver's fate, so it is outside the non-blocking claim",
        "asks: reads prices, asked inside a generation",
        "asks: an input that always fails goes to its port `dead`",
        f"checked: writes to (checkable), exactly once: asked whether it is in, once the predecessor is known to be "
        f"dead; {network}",
        f"again: writes to (idempotent), exactly once: done again, once the predecessor is known to be dead; {network}",
        "threes           Spark task         2  -",
        "hosts that operators share, and so fail together: checked+again",
        "and one kept for DataFrame jobs",
    ):
        assert words in result.out


def test_all_of_it_as_json(file: Any, run: Run) -> None:
    plan = run("dry-run", file(KINDS), "--json").json
    by_name = {each["operator"]: each for each in plan["operators"]}
    assert [(name, each["runs"], each["replicas"]) for name, each in by_name.items()] == [
        ("once", "Spark task", 1),
        ("here", "driver", 1),
        ("asks", "Spark task", 1),
        ("checked", "Spark task", 1),
        ("again", "Spark task", 1),
        ("threes-dispatch", "Spark task", 1),
        ("threes", "Spark task", 2),
        ("threes-merge", "Spark task", 1),
        ("kept", "Spark task", 1),
    ]
    assert by_name["threes"]["hosts"] == ["threes", "threes/1"]
    assert by_name["checked"]["hosts"] == by_name["again"]["hosts"] == ["checked+again"]
    assert not by_name["here"]["others_go_on_while_it_is_down"]
    assert by_name["checked"]["writes"][0]["assumes"]
    assert by_name["kept"]["writes"][0]["assumes"] is None
    assert plan["slots"] == {"needed": 9, "hosts": 8, "kept_for_dataframe_jobs": 1, "local_master": "local[11]"}
    assert plan["log"] == {"kind": "sqlite", "where": "kinds.log", "state": "is made by the run"}
    assert plan["mermaid"].startswith("flowchart LR")


def test_the_graph_as_mermaid(file: Any, run: Run) -> None:
    lines = run("dry-run", file(KINDS), "--mermaid").lines
    assert lines[0] == "flowchart LR"
    for line in (
        '  op0(["once"])',
        '  op6["threes × 2"]',
        "  subgraph host0 [one process]",
        '    op3["checked"]',
        "  op0 --> op1",
        '  op5 -->|"out-0 to in"| op6',
    ):
        assert line in lines
    assert sum("-.->" in line for line in lines) == 3


def test_the_log_that_would_be_used(file: Any, run: Run, tmp_path: Path) -> None:
    path = file(KINDS)
    other = tmp_path / "other.log"
    SqliteStore.create(other, {"pipeline": "other"})
    told = run("dry-run", path, "--log", other, "--json").json["log"]
    assert told["state"].startswith("would be refused: the log at ")
    assert "belongs to the pipeline 'other'" in told["state"]
    told = run("dry-run", path, "--log", "postgresql://ann:geheim@db.example/shop", "--json").json["log"]
    assert told == {"kind": "postgres", "where": "database shop at db.example, schema kinds", "state": "not looked at"}


def test_a_log_of_the_same_pipeline_is_continued(run: Run, tmp_path: Path) -> None:
    from clew.cli.load import load

    SqliteStore.create(tmp_path / "sales.log", load(str(SALES)).describe())
    assert "log: sales.log (is there: a run goes on where it was)" in run("dry-run", SALES).out
