"""The example with windows and a join gives what plain loops over all records give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from examples import payments

from clew.testing import Outside, run, scripted

EVENTS = 8
LATE_MICROSECONDS = payments.LATE_S * 1_000_000
RESOLUTION = LATE_MICROSECONDS // 100


def stamped(seed: int, column: str) -> Iterator[tuple[dict[str, Any], int, bool]]:
    """Each record with its time, and whether its minute was over when it came: the rule, once more."""
    watermark = None
    for rows in payments.records(seed, column, EVENTS):
        times = [microseconds(row[column]) for row in rows]
        before = [time for time in times if watermark is not None and time < watermark]
        others = [time for time in times if watermark is None or time >= watermark]
        event = None if not others else min(others) // RESOLUTION * RESOLUTION
        if watermark is not None and event is not None:
            event = max(event, watermark)
        for row, time in zip(rows, times, strict=True):
            end = time // 60_000_000 * 60_000_000 + 60_000_000
            sent_at = watermark if time in before and watermark is not None and time < watermark else event
            yield row, time, sent_at is not None and end <= sent_at
        moved = (max(times) - LATE_MICROSECONDS) // RESOLUTION * RESOLUTION
        watermark = moved if watermark is None else max(watermark, moved)


def microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


@pytest.mark.parametrize("crashes", [[], [("minutes", 3), ("joined", 5), ("late", 1)]], ids=["calm", "crashes"])
def test_totals_pairs_and_late_records_are_exact(crashes: list[tuple[str, int]]) -> None:
    pipeline = payments.build(
        scripted(payments.records(1, "ordered", EVENTS)),
        scripted(payments.records(2, "settled", EVENTS)),
        *(Outside(name).writer() for name in ("totals", "paid", "late")),
    )
    result = run(pipeline, crashes=crashes)
    totals: Counter[tuple[int, str]] = Counter()
    orders: dict[int, int] = {}
    late = []
    for row, time, is_late in stamped(1, "ordered"):
        if is_late:
            late.append(row["order"])
        else:
            totals[time // 60_000_000, row["item"]] += row["amount"]
            orders[row["order"]] = time // 60_000_000
    came = {
        (microseconds(row["window_start"]) // 60_000_000, row["item"]): row["total"] for row in result.rows("totals.to")
    }
    assert came == dict(totals)
    assert len(came) == len(result.rows("totals.to"))
    assert sorted(row["order"] for row in result.rows("late.to")) == sorted(late)
    assert late
    pairs = [
        row["order"]
        for row, time, is_late in stamped(2, "settled")
        if not is_late and orders.get(row["order"]) == time // 60_000_000
    ]
    assert sorted(row["order"] for row in result.rows("paid.to")) == sorted(pairs)
    assert pairs
