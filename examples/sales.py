"""Sales totals: batches of sales records become totals per hour and totals of every so many batches.

    orders ──┬── hourly ─── report      totals per hour, item and state; an hour ends when a later one begins
             └── totals ─── archive     totals per item and state of every so many events

The records are those of the files in `orders/`. The results go to the table `hourly_totals` of `sales.db` and to
Parquet files in `sales-totals/`. The lineage from orders to hourly totals is captured.

    clew dry-run examples/sales.py      what would run where, and what is guaranteed
    clew verify examples/sales.py       crashes it in many ways in the simulator
    clew run examples/sales.py          runs it on Spark
    clew demo                           the same pipeline on more data, with a process killed in the middle
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import clew

ORDERS = Path(__file__).parent / "orders" / "*.jsonl"

HOUR_S = 3600
BEGIN_S = 483418 * HOUR_S  # 2025-02-23T10:00:00Z
ITEMS = ("BZ234", "BZ235", "KT100", "KT107", "QX900")
CITIES = (("Cleveland", "Ohio"), ("Columbus", "Ohio"), ("Austin", "Texas"), ("Portland", "Oregon"))

SALE = pa.schema(
    {
        "store_ID": pa.int64(),
        "item_ID": pa.string(),
        "city": pa.string(),
        "state": pa.string(),
        "date": pa.timestamp("s"),
        "amount": pa.int64(),  # In cents, so that sums are exact.
    }
)
ITEM, STATE, DATE, AMOUNT = (SALE.get_field_index(name) for name in ("item_ID", "state", "date", "amount"))
HOURLY_TOTAL = pa.schema({"hour": pa.timestamp("s"), "item_ID": pa.string(), "state": pa.string(), "total": pa.int64()})
TOTAL = pa.schema({"item_ID": pa.string(), "state": pa.string(), "total": pa.int64()})


class HourlyTotals(clew.Operator):
    """Totals per item and state for each hour; an hour is complete once a later one has begun."""

    def open(self, ctx: clew.Context) -> None:
        self.windows: dict[int, list[pa.RecordBatch]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        hours = sorted(set(hours_of(event.batch)))
        if hours[-1] > ctx.state.get("latest", 0):
            ctx.state["latest"] = hours[-1]
        return hours

    def update(self, hour: int, event: clew.Event, note: Any = None) -> None:
        self.windows.setdefault(hour, []).append(event.batch)

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[hour] for hour in sorted(self.windows) if hour < ctx.state["latest"]]

    def generate(self, hours: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, pa.RecordBatch]]:
        for hour in hours:
            sums = sums_of(self.windows.pop(hour), hour)
            rows = [(hour * HOUR_S, item, state, total) for (item, state), total in sorted(sums.items())]
            yield "out", batch_of(rows, HOURLY_TOTAL)


class Totals(clew.Operator):
    """Totals per item and state of every so many events; the state counts them."""

    def __init__(self, every: int) -> None:
        self.every = every

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[int, list[pa.RecordBatch]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        ctx.state["count"] = count = ctx.state.get("count", 0) + 1
        return [(count - 1) // self.every + 1]

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(number, []).append(event.batch)

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[number] for number in self.sets if ctx.state["count"] >= number * self.every]

    def generate(self, numbers: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, pa.RecordBatch]]:
        for number in numbers:
            sums = sums_of(self.sets.pop(number))
            yield "out", batch_of([(item, state, total) for (item, state), total in sorted(sums.items())], TOTAL)


def hours_of(batch: pa.RecordBatch) -> list[int]:
    """The hour that each record falls into, as hours since 1970."""
    return [date // HOUR_S for date in batch.column(DATE).view(pa.int64()).to_pylist()]


def sums_of(batches: list[pa.RecordBatch], hour: int | None = None) -> dict[tuple[str, str], int]:
    """The amounts summed up per item and state: of all records, or of those that fall into one hour."""
    records = pa.concat_batches(batches)
    items, states, amounts = (records.column(index).to_pylist() for index in (ITEM, STATE, AMOUNT))
    hours = [hour] * len(items) if hour is None else hours_of(records)
    sums: dict[tuple[str, str], int] = {}
    for item, state, amount, its_hour in zip(items, states, amounts, hours, strict=True):
        if its_hour == hour:
            sums[item, state] = sums.get((item, state), 0) + amount
    return sums


def batch_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def sales(events: int, records: int, hours: int) -> list[pa.RecordBatch]:
    """Made-up sales records, always the same, ordered by date; here and there an event covers the turn of an hour."""
    count = events * records
    moments = list(itertools.accumulate(1 + number * number % 11 for number in range(count)))
    rows = [
        (
            number % 7 + 1,
            ITEMS[number * 3 % len(ITEMS)],
            *CITIES[number * 7 // 3 % len(CITIES)],
            BEGIN_S + (moment - 1) * hours * HOUR_S // moments[-1],
            99 + number * 7919 % 10_000,
        )
        for number, moment in enumerate(moments)
    ]
    return [batch_of(rows[first : first + records], SALE) for first in range(0, count, records)]


def build(orders: clew.Source | None = None, every: int = 5, results: str | Path = ".") -> clew.Pipeline:
    """The pipeline on a source of sales records; totals of `every` events; where the results go."""
    pipeline = clew.Pipeline("sales")
    if orders is None:
        orders = clew.files(ORDERS, rows_per_event=3, columns=dict(zip(SALE.names, SALE.types, strict=True)))
    sold = pipeline.source("orders", orders)
    hourly = sold.operator("hourly", HourlyTotals())
    totals = sold.operator("totals", Totals(every))
    hourly.write("report", clew.sqlite(Path(results) / "sales.db", table="hourly_totals", create=True))
    totals.write("archive", clew.parquet(Path(results) / "sales-totals"))
    pipeline.lineage("orders.out", "hourly.out")
    return pipeline


pipeline = build()
