"""The sales example computes what it says, by an independent count."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from clew.testing import Alone


@pytest.fixture(scope="module")
def sales() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "sales.py"
    spec = importlib.util.spec_from_file_location("sales_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sales_example"] = module
    spec.loader.exec_module(module)
    return module


def outputs(alone: Alone, batches: list[pa.RecordBatch], crash: int | None = None) -> list[list[dict[str, Any]]]:
    found = []
    for number, batch in enumerate(batches):
        if number == crash:
            alone.restart()
        found += alone.send(batch)
    return [rows for _, rows in found + alone.end()]


def hourly(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    totals: Counter[tuple[datetime, str, str]] = Counter()
    for row in rows:
        hour = row["date"].replace(minute=0, second=0)
        totals[hour, row["item_ID"], row["state"]] += row["amount"]
    return [
        [
            {"hour": hour, "item_ID": item, "state": state, "total": totals[hour, item, state]}
            for _, item, state in sorted(key for key in totals if key[0] == hour)
        ]
        for hour in sorted({key[0] for key in totals})
    ]


def test_the_pipeline_is_figure_1(sales: ModuleType) -> None:
    graph = sales.pipeline.build()
    assert [str(channel) for channel in graph.channels] == [
        "orders.out->hourly.in",
        "orders.out->totals.in",
        "hourly.out->report.in",
        "totals.out->archive.in",
    ]
    assert {name: list(map(str, (w.kind for w in node.writes.values()))) for name, node in graph.nodes.items()} == {
        "orders": [],
        "hourly": [],
        "totals": [],
        "report": ["conditional"],
        "archive": ["conditional"],
    }
    assert [name for name, node in graph.nodes.items() if node.capture.is_on] == ["hourly"]


def test_the_records_are_ordered_and_some_events_cover_two_hours(sales: ModuleType) -> None:
    batches = sales.sales(events=20, records=3, hours=6)
    rows = [row for batch in batches for row in batch.to_pylist()]
    dates = [row["date"] for row in rows]
    assert dates == sorted(dates)
    assert dates[0] == datetime(2025, 2, 23, 10)
    assert len({date.replace(minute=0, second=0) for date in dates}) == 6
    covered = [len({row["date"].hour for row in batch.to_pylist()}) for batch in batches]
    assert 0 < covered.count(2) < len(batches) // 2
    assert {row["state"] for row in rows} == {"Ohio", "Texas", "Oregon"}


@pytest.mark.parametrize("crash", [None, 0, 7, 13, 19])
def test_hourly_totals(sales: ModuleType, crash: int | None) -> None:
    batches = sales.sales(events=20, records=3, hours=6)
    expected = hourly([row for batch in batches for row in batch.to_pylist()])
    assert outputs(Alone(sales.HourlyTotals()), batches, crash) == expected


@pytest.mark.parametrize("crash", [None, 0, 4, 5, 19])
def test_totals_of_every_so_many_events(sales: ModuleType, crash: int | None) -> None:
    batches = sales.sales(events=20, records=3, hours=6)
    found = outputs(Alone(sales.Totals(8)), batches, crash)
    for number, rows in enumerate(found):
        totals: Counter[tuple[str, str]] = Counter()
        for batch in batches[number * 8 : number * 8 + 8]:
            for row in batch.to_pylist():
                totals[row["item_ID"], row["state"]] += row["amount"]
        assert rows == [
            {"item_ID": item, "state": state, "total": total} for (item, state), total in sorted(totals.items())
        ]
    assert len(found) == 3


def test_the_files_hold_the_made_up_records(sales: ModuleType) -> None:
    made = [row for batch in sales.sales(events=20, records=3, hours=6) for row in batch.to_pylist()]
    source = sales.pipeline.build().nodes["orders"].definition
    names = sorted(sales.ORDERS.parent.glob(sales.ORDERS.name))
    batches = [batch for name in names for batch, _ in source.read(("file", str(name)), None)]
    assert all(batch.schema == sales.SALE for batch in batches)
    assert [row for batch in batches for row in batch.to_pylist()] == made
