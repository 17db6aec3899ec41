"""The pipelines that are killed, each with what must come of it, computed in plain Python and by nothing of Clew.

Their sources go at a steady pace and hold back their last events until a file appears, the gate. So a run is under way
for as long as a test needs it to be, and still its data never changes.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet
from tests.spark.running import rows_of

import clew

Row = dict[str, Any]
Rows = list[tuple[Any, ...]]

ITEMS = ("apple", "fig", "pear")
STATES = ("Ohio", "Texas")
HELD_BACK = 20
"""How many events wait for the gate."""


def order_rows(number: int) -> list[Row]:
    """The records of one event: an hour goes by in about 40 of them."""
    return [
        {
            "id": 3 * number + part,
            "item": ITEMS[(number * 7 + part) % 3],
            "state": STATES[(number + part) % 2],
            "hour": (3 * number + part) // 120,
            "amount": 1 + (number * 31 + part * 17) % 100,
        }
        for part in range(3)
    ]


class Steady(clew.Source):
    """So many events a second, without catching up; the last ones only once the gate is open."""

    poll_s = 0.005

    def __init__(
        self, count: int, per_second: float, gate: Path, rows: Callable[[int], list[Row]] = order_rows
    ) -> None:
        self.count = count
        self.pause_s = 1 / per_second
        self.gate = str(gate)
        self.rows = rows

    def read(self, action: Any, offset: Any) -> Iterator[tuple[list[Row], int] | None]:
        first = offset or 0
        begin = time.monotonic()
        for number in range(first, self.count):
            while time.monotonic() < begin + (number - first) * self.pause_s:
                yield None
            while number >= self.count - HELD_BACK and not os.path.exists(self.gate):
                yield None
            yield self.rows(number), number + 1


class Hourly(clew.Operator):
    """Totals per hour, item and state; an hour is complete once a later one has begun."""

    def open(self, ctx: clew.Context) -> None:
        self.hours: dict[int, Counter[tuple[str, str]]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        hours = sorted({row["hour"] for row in event.rows})
        ctx.state["latest"] = max([*hours, ctx.state.get("latest", 0)])
        return hours

    def update(self, hour: int, event: clew.Event, note: Any = None) -> None:
        sums = self.hours.setdefault(hour, Counter())
        for row in event.rows:
            if row["hour"] == hour:
                sums[row["item"], row["state"]] += row["amount"]

    def ready(self, ctx: clew.Context) -> list[list[int]]:
        return [[hour] for hour in sorted(self.hours) if hour < ctx.state["latest"]]

    def generate(self, hours: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, list[Row]]]:
        for hour in hours:
            sums = sorted(self.hours.pop(hour).items())
            yield "out", [{"hour": hour, "item": item, "state": state, "total": n} for (item, state), n in sums]


class Running(clew.Operator):
    """The running total of every so many events, which all the state before them is needed for."""

    def __init__(self, every: int) -> None:
        self.every = every

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[int, list[Row]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        ctx.state["count"] = count = ctx.state.get("count", 0) + 1
        return [(count - 1) // self.every]

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(number, []).extend(event.rows)

    def ready(self, ctx: clew.Context) -> list[list[int]]:
        return [[number] for number in sorted(self.sets) if ctx.state["count"] >= (number + 1) * self.every]

    def generate(self, numbers: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, list[Row]]]:
        for number in numbers:
            total = ctx.state.get("total", 0) + sum(row["amount"] for row in self.sets.pop(number))
            ctx.state["total"] = total
            yield "out", [{"number": number, "total": total}]


def gate_of(directory: Path) -> Path:
    return directory / "gate"


def hold_of(directory: Path) -> Path:
    return directory / "hold"


class HeldHourly(Hourly):
    """The same, but whoever opens it while the hold is there must wait."""

    def __init__(self, hold: Path) -> None:
        self.hold = hold

    def open(self, ctx: clew.Context) -> None:
        wait_while(self.hold)
        super().open(ctx)


def wait_while(hold: Path) -> None:
    while hold.exists():
        time.sleep(0.01)


# orders ─┬─ hourly ─ report (SQLite)
#         └─ totals ─ archive (Parquet files)

SALES = ("orders", "hourly", "totals", "report", "archive")


def sales(directory: Path, count: int = 600, per_second: float = 150.0, every: int = 10) -> clew.Pipeline:
    pipeline = clew.Pipeline("sales")
    orders = pipeline.source("orders", Steady(count, per_second, gate_of(directory)))
    hourly = orders.operator("hourly", HeldHourly(hold_of(directory)))
    hourly.write("report", clew.sqlite(directory / "sales.db", "hourly_totals", create=True))
    totals = orders.operator("totals", Running(every))
    totals.write("archive", clew.parquet(directory / "archive"))
    return pipeline


def sales_expected(count: int = 600, every: int = 10) -> dict[str, Rows]:
    hours: Counter[tuple[int, str, str]] = Counter()
    totals, total = [], 0
    for number in range(count):
        for row in order_rows(number):
            hours[row["hour"], row["item"], row["state"]] += row["amount"]
            total += row["amount"]
        if number % every == every - 1 or number == count - 1:
            totals.append((number // every, total))
    return {"report": sorted((*key, amount) for key, amount in hours.items()), "archive": totals}


def sales_found(directory: Path) -> dict[str, Rows]:
    return {
        "report": rows_of(directory / "sales.db", "hourly_totals"),
        "archive": parquet_rows(directory / "archive"),
    }


# orders ──┐
#          ├─ match ─┬─ stock (PostgreSQL, done before what is sent)
# prices ──┘         └─ report (SQLite)

FAN_IN = ("orders", "prices", "match", "report")
PRICE_EVERY = 10


def price_rows(number: int) -> list[Row]:
    return [
        {"round": number, "item": item, "price": 1 + (number * 13 + index * 5) % 50} for index, item in enumerate(ITEMS)
    ]


class Match(clew.Operator):
    """Joins the orders of a round with its prices, once both are there; writes what was sold, and sends it on."""

    inputs = ("orders", "prices")
    writes_first = True

    def open(self, ctx: clew.Context) -> None:
        self.rounds: dict[int, tuple[list[Row], list[Row]]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        if event.input == "prices":
            return [event.rows[0]["round"]]
        ctx.state["orders"] = number = ctx.state.get("orders", 0) + 1
        return [(number - 1) // PRICE_EVERY]

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        orders, prices = self.rounds.setdefault(number, ([], []))
        (prices if event.input == "prices" else orders).extend(event.rows)

    def ready(self, ctx: clew.Context) -> list[list[int]]:
        found = sorted(self.rounds.items())
        return [[number] for number, (orders, prices) in found if prices and len(orders) == 3 * PRICE_EVERY]

    def generate(self, numbers: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, list[Row]]]:
        for number in numbers:
            orders, prices = self.rounds.pop(number)
            price = {row["item"]: row["price"] for row in prices}
            sold = [{"id": row["id"], "worth": row["amount"] * price[row["item"]]} for row in orders]
            yield "stock", sold
            ctx.state["worth"] = worth = ctx.state.get("worth", 0) + sum(row["worth"] for row in sold)
            yield "out", [{"round": number, "orders": len(sold), "worth": worth}]


def fan_in(directory: Path, dsn: str, count: int = 600, per_second: float = 150.0) -> clew.Pipeline:
    assert count % PRICE_EVERY == 0
    pipeline = clew.Pipeline("fan-in")
    gate = gate_of(directory)
    orders = pipeline.source("orders", Steady(count, per_second, gate))
    prices = pipeline.source("prices", Steady(count // PRICE_EVERY, per_second / PRICE_EVERY, gate, price_rows))
    matched = pipeline.operator(
        "match",
        Match(),
        {"orders": orders, "prices": prices},
        writes={"stock": clew.postgres(dsn, "sold", create=True)},
        writes_first=True,
    )
    matched.write("report", clew.sqlite(directory / "rounds.db", "rounds", create=True))
    return pipeline


def fan_in_expected(count: int = 600) -> dict[str, Any]:
    sold: list[tuple[int, int]] = []
    rounds: Counter[int] = Counter()
    for number in range(count):
        prices = {row["item"]: row["price"] for row in price_rows(number // PRICE_EVERY)}
        for row in order_rows(number):
            sold.append((row["id"], row["amount"] * prices[row["item"]]))
            rounds[number // PRICE_EVERY] += sold[-1][1]
    return {
        "stock": sold,
        "rounds": [(number, 3 * PRICE_EVERY) for number in range(count // PRICE_EVERY)],
        "worths": [rounds[number] for number in range(count // PRICE_EVERY)],
    }


def fan_in_found(directory: Path, dsn: str) -> dict[str, Any]:
    """The running worth goes by the order in which rounds were completed; what each round added does not."""
    with psycopg.connect(dsn) as connection:
        stock = connection.execute("SELECT id, worth FROM sold ORDER BY id").fetchall()
    rows = rows_of(directory / "rounds.db", "rounds")
    in_order = sorted(rows, key=lambda row: row[2])
    added = {row[0]: row[2] - before[2] for before, row in zip([(0, 0, 0), *in_order[:-1]], in_order, strict=True)}
    return {
        "stock": stock,
        "rounds": [(number, orders) for number, orders, _ in rows],
        "worths": [added[number] for number, _, _ in rows],
    }


# numbers ─ dispatcher ═ 3 × tally ═ merger ─ report (SQLite)

PARALLEL = ("numbers", "tally-dispatch", "tally", "tally/1", "tally/2", "tally-merge", "report")


class Tally(clew.Operator):
    """Counts per item, from the state; each event gives the counts that it changed."""

    def __init__(self, hold: Path) -> None:
        self.hold = hold

    def open(self, ctx: clew.Context) -> None:
        wait_while(self.hold)
        self.rows: list[Row] = []
        self.number = 0

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        return [event.id]

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        self.rows = event.rows
        self.number = number

    def ready(self, ctx: clew.Context) -> list[list[int]]:
        return [[self.number]] if self.rows else []

    def generate(self, numbers: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, list[Row]]]:
        made = []
        for row in self.rows:
            ctx.state[row["key"]] = count = ctx.state.get(row["key"], 0) + 1
            made.append({"key": row["key"], "count": count, "id": row["id"]})
        self.rows = []
        yield "out", made


def keyed_rows(number: int) -> list[Row]:
    """Thirty keys, so that each replica gets some."""
    return [{"key": f"key-{(number * 3 + part) % 30}", "id": number * 3 + part} for part in range(3)]


def parallel(directory: Path, count: int = 600, per_second: float = 150.0) -> clew.Pipeline:
    pipeline = clew.Pipeline("parallel")
    numbers = pipeline.source("numbers", Steady(count, per_second, gate_of(directory), keyed_rows))
    tallied = numbers.parallel(3, key="key").operator("tally", Tally(hold_of(directory)))
    tallied.write("report", clew.sqlite(directory / "tally.db", "tally", create=True))
    return pipeline


def parallel_expected(count: int = 600) -> Rows:
    counts: Counter[str] = Counter()
    rows = []
    for number in range(count):
        for row in keyed_rows(number):
            counts[row["key"]] += 1
            rows.append((row["key"], counts[row["key"]], row["id"]))
    return sorted(rows)


def parallel_found(directory: Path) -> Rows:
    return rows_of(directory / "tally.db", "tally")


# What outside systems hold


def parquet_rows(directory: Path) -> Rows:
    """The rows of all files, in the order of their actions."""
    tables = [pyarrow.parquet.read_table(path) for path in sorted(directory.glob("*.parquet"))]
    return [tuple(row.values()) for row in pa.concat_tables(tables).to_pylist()] if tables else []


def lines_of(path: Path) -> list[Any]:
    """The values of a file with one JSON value on each line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def differences(found: Iterable[Any], expected: Iterable[Any]) -> tuple[int, int]:
    """How many rows were lost and how many are too much: doubled, or wrong."""
    found_count, expected_count = Counter(found), Counter(expected)
    return (expected_count - found_count).total(), (found_count - expected_count).total()
