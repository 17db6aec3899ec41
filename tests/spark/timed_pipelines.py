"""Pipelines whose records have times, each with what must come of it, computed in plain Python and by nothing of Clew.

A record is late when its time window had ended by its source's watermark, which is the latest time of all records
before its event, less what the source waits. That depends on the records alone, so it is computed here as well.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from examples import components
from tests.spark.pipelines import Row, Rows, Steady, gate_of
from tests.spark.running import rows_of

import clew
from clew.operators.hashing import hash_of
from clew.operators.windows import tumbling

SIZE, LATE_BY = 1000, 600
"""Of time windows, and how long a source waits for records that are out of order."""

Events = Iterable[Sequence[Row]]


def times(late_by: int = LATE_BY, idle_after_s: float | None = None) -> clew.Stamps:
    """Times from the column `ts`, as whole numbers, none of which count as one."""
    return clew.event_time("ts", late_by, whole_numbers=True, resolution=1, idle_after_s=idle_after_s)


class Divided(NamedTuple):
    """The records of a source, by what becomes of them."""

    windows: dict[int, list[Row]]
    """By start of the time window: those that are in it."""
    dropped: list[Row]
    """Those whose time window had ended."""
    late: int
    """How many were behind the watermark, whether their time window had ended or not."""


def divided(events: Events, late_by: int = LATE_BY, watermark: int | None = None) -> Divided:
    """Follows the watermark through all events of a source."""
    found = Divided(defaultdict(list), [], 0)
    late = 0
    for rows in events:
        latest = watermark
        for row in rows:
            start = row["ts"] // SIZE * SIZE
            late += watermark is not None and row["ts"] < watermark
            if watermark is not None and start + SIZE <= watermark:
                found.dropped.append(row)
            else:
                found.windows[start].append(row)
            latest = row["ts"] - late_by if latest is None else max(latest, row["ts"] - late_by)
        watermark = latest
    return found._replace(late=late)


# orders ───┬─ totals ─┬─ report (SQLite)
#           │          └─ stragglers (SQLite)
#           └─┐
# payments ───┴─ pairs ─── matched (SQLite)

TIMED = ("orders", "payments", "totals", "pairs", "report", "stragglers", "matched")
ORDERS, PAYMENTS, PER_EVENT = 300, 200, 40
KEYS = 200


def order_rows(number: int) -> list[Row]:
    """Forty orders about a tenth of a second later than those before, out of order, a few of them far too late."""
    return _rows(number, 100 * number, "order_id")


def payment_rows(number: int) -> list[Row]:
    return _rows(-1 - number, 150 * number, "payment_id")


def _rows(seed: int, now: int, name: str) -> list[Row]:
    chance = random.Random(seed)
    rows = []
    for part in range(PER_EVENT):
        behind = chance.randrange(5000) if chance.random() < 0.03 else chance.randrange(LATE_BY)
        number = abs(seed) * PER_EVENT + part
        ts = now - behind
        rows.append({"ts": ts, name: number, "key": chance.randrange(KEYS), "amount": chance.randrange(1000)})
    return rows


def timed(directory: Path, per_second: float = 60.0) -> clew.Pipeline:
    """An aggregate over time windows and a join of two sources."""
    pipeline = clew.Pipeline("timed")
    gate, database = gate_of(directory), directory / "timed.db"
    orders = pipeline.source("orders", Steady(ORDERS, per_second, gate, order_rows), times=times())
    payments = pipeline.source("payments", Steady(PAYMENTS, per_second / 1.5, gate, payment_rows), times=times())
    spec = {"total": ("amount", "sum"), "n": "count"}
    totals = orders.aggregate("totals", tumbling(SIZE), spec, keys="key", late="port")
    totals.write("report", clew.sqlite(database, "totals", create=True))
    totals["late"].write("stragglers", clew.sqlite(database, "late", create=True))
    pairs = orders.join("pairs", payments, on="key", within=tumbling(SIZE))
    pairs.write("matched", clew.sqlite(database, "pairs", create=True), ["order_id", "payment_id"])
    return pipeline


def timed_expected() -> dict[str, Any]:
    orders, payments = divided(map(order_rows, range(ORDERS))), divided(map(payment_rows, range(PAYMENTS)))
    totals: dict[tuple[int, int], list[int]] = defaultdict(list)
    for start, rows in orders.windows.items():
        for row in rows:
            totals[start, row["key"]].append(row["amount"])
    pairs = [
        (one["order_id"], other["payment_id"])
        for start, rows in orders.windows.items()
        for one in rows
        for other in payments.windows.get(start, ())
        if one["key"] == other["key"]
    ]
    return {
        "totals": sorted((start, start + SIZE, key, sum(of), len(of)) for (start, key), of in totals.items()),
        "late": sorted(tuple(row.values()) for row in orders.dropped),
        "pairs": sorted(pairs),
        "counts": {
            "orders": {"late": orders.late},
            "payments": {"late": payments.late},
            "pairs": {"late": len(orders.dropped) + len(payments.dropped)},
        },
    }


def timed_found(directory: Path, counts: dict[str, dict[str, int]]) -> dict[str, Any]:
    tables = {name: rows_of(directory / "timed.db", name) for name in ("totals", "late", "pairs")}
    return {**tables, "counts": counts}


# edges ─ round-enter ─ spread ═ round-again; spread ─ round-leave ─ latest ─ report (SQLite)

LOOP = ("spread", "round-again", "latest")
BATCHES, EDGES, NODES = 80, 6, 300


def batch_rows(number: int) -> list[Row]:
    return components.edges(BATCHES, EDGES, NODES)[number]


def loop(directory: Path, per_second: float = 20.0) -> clew.Pipeline:
    """The connected components of `examples/components.py`, of edges that come at a steady pace."""
    source = Steady(BATCHES, per_second, gate_of(directory), batch_rows)
    return components.build(source, clew.sqlite(directory / "loop.db", "components", create=True))


def loop_expected() -> Rows:
    """What each batch has changed, by union and find: nodes that are new or got another name, and their names."""
    above: dict[int, int] = {}

    def name_of(node: int) -> int:
        while above[node] != node:
            node = above[node]
        return node

    rows: Rows = []
    known: dict[int, int] = {}
    for number in range(BATCHES):
        for edge in batch_rows(number):
            one, other = (name_of(above.setdefault(edge[end], edge[end])) for end in ("one", "other"))
            above[max(one, other)] = min(one, other)
        names = {node: name_of(node) for node in above}
        rows += [(number, node, name) for node, name in names.items() if known.get(node) != name]
        known = names
    return sorted(rows)


def loop_found(directory: Path) -> Rows:
    return rows_of(directory / "loop.db", "components")


# Sources that have nothing for a while

STAGES = 3
PER_STAGE = 40


class Staged(clew.Source):
    """Stages of events, each of which begins when its gate is open; it ends with the last gate."""

    poll_s = 0.02

    def __init__(self, stages: Sequence[tuple[Path | None, Sequence[Sequence[Row]]]]) -> None:
        self.gates = [gate and str(gate) for gate, events in stages for _ in events]
        self.events = [rows for _, events in stages for rows in events]
        self.end = stages[-1][0] and str(stages[-1][0])

    def read(self, action: Any, offset: Any) -> Iterator[tuple[Sequence[Row], int] | None]:
        for number in range(offset or 0, len(self.events)):
            yield from self.waits(self.gates[number])
            yield self.events[number], number + 1
        yield from self.waits(self.end)

    def waits(self, gate: str | None) -> Iterator[None]:
        while gate is not None and not os.path.exists(gate):
            yield None


def staged_rows(stage: int, side: str) -> list[list[Row]]:
    """Records of a stage, one at every 100; the last begins a time window, so that those before it are over."""
    moments = range(100 * PER_STAGE * stage, 100 * PER_STAGE * (stage + 1) + 1, 100)
    return [[{"ts": ts, "key": ts % 7, side: ts}] for ts in moments]


def stage_gate(directory: Path, stage: int) -> Path:
    return directory / f"stage-{stage}"


def quiet(directory: Path, ends: bool) -> clew.Pipeline:
    """A join whose right side has nothing after its first stage: it ends, or is idle until the left side has ended."""
    gates = [None, *(stage_gate(directory, stage) for stage in range(1, STAGES + 1))]
    left = Staged([*((gates[stage], staged_rows(stage, "left")) for stage in range(STAGES)), (gates[-1], [])])
    more = [] if ends else [(gates[-1], staged_rows(STAGES, "right"))]
    right = Staged([(None, staged_rows(0, "right")), *more])
    idle_after_s = None if ends else 0.2
    pipeline = clew.Pipeline("quiet")
    lefts = pipeline.source("left", left, times=times(0, idle_after_s))
    rights = pipeline.source("right", right, times=times(0, idle_after_s))
    pairs = lefts.join("pairs", rights, on="key", within=tumbling(SIZE), how="full")
    both = pairs.map(lambda row: {"left": row.get("left"), "right": row.get("right")}, "both", rows=True)
    both.write("report", clew.sqlite(directory / "quiet.db", "pairs", create=True))
    return pipeline


def quiet_expected(ends: bool, stages: int | None = None) -> Rows:
    """Pairs of all stages, or of those time windows that are over after so many of them."""
    windows: dict[int, dict[str, list[Row]]] = defaultdict(lambda: {"left": [], "right": []})
    for side, those in (("left", range(STAGES)), ("right", (0,) if ends else (0, STAGES))):
        for row in (row for stage in those for (row,) in staged_rows(stage, side)):
            windows[row["ts"] // SIZE * SIZE][side].append(row)
    pairs: Rows = []
    for start, sides in windows.items():
        if stages is None or start < 100 * PER_STAGE * stages:
            for one, other in (("left", "right"), ("right", "left")):
                for row in sides[one]:
                    found = [each[other] for each in sides[other] if each["key"] == row["key"]]
                    if one == "left":
                        pairs += [(row["left"], each) for each in found or [None]]
                    elif not found:
                        pairs.append((None, row["right"]))
    return sorted(pairs, key=_nulls_first)


def quiet_found(directory: Path) -> Rows:
    return rows_in(directory / "quiet.db", "pairs")


# numbers ─ dispatcher ═ 3 × counts, one of which gets nothing ═ merger ─ report (SQLite)

REPLICAS = 3
FEW_KEYS = [key for key in range(30) if hash_of(key) % REPLICAS != 1]
"""None of them belongs to replica 1."""


def few_rows(number: int) -> list[Row]:
    return [{"ts": 50 * number + part, "key": FEW_KEYS[(number + part) % len(FEW_KEYS)]} for part in range(3)]


def lopsided(directory: Path, count: int, per_second: float = 150.0) -> clew.Pipeline:
    pipeline = clew.Pipeline("lopsided")
    numbers = pipeline.source("numbers", Steady(count, per_second, gate_of(directory), few_rows), times=times(0))
    divided = numbers.parallel(REPLICAS, key="key")
    counts = divided.aggregate("counts", tumbling(SIZE), {"n": "count"}, keys="key")
    counts.write("report", clew.sqlite(directory / "lopsided.db", "counts", create=True))
    return pipeline


def lopsided_expected(count: int, until: int | None = None) -> Rows:
    """The counts of all time windows, or of those that have ended by a moment."""
    counts = Counter((row["ts"] // SIZE * SIZE, row["key"]) for each in range(count) for row in few_rows(each))
    return sorted(
        (start, start + SIZE, key, n) for (start, key), n in counts.items() if until is None or start + SIZE <= until
    )


# What outside systems hold


def rows_in(database: Path, table: str) -> Rows:
    """All rows of a table, sorted, nulls first; none if it is not there yet."""
    if not database.exists():
        return []
    with sqlite3.connect(database) as connection:
        is_there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        rows = connection.execute(f"SELECT * FROM {table}").fetchall() if is_there else []
    return sorted(rows, key=_nulls_first)


def _nulls_first(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in row]
