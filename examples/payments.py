"""Orders and payments that arrive out of order: totals of every minute, and which orders were paid within it.

    clew run examples/payments.py

Both sources give their events times from a column and wait for records that come up to ten seconds late. A minute's
totals leave when nothing of that minute can come any more, once, whatever was killed meanwhile; what comes later than
that goes to a port of its own.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import clew

BEGIN = datetime(2025, 2, 25, 15, tzinfo=UTC)
LATE_S = 10
Rows = list[dict[str, Any]]


def records(seed: int, column: str, events: int, size: int = 20) -> Iterator[Rows]:
    """Events of so many records, a second apart and shuffled by a few; one record in a hundred is a minute late."""
    chance = random.Random(seed)
    for event in range(events):
        rows = []
        for place in range(size):
            number = event * size + place
            delay_s = 75.0 if number % 100 == 99 else chance.uniform(0, LATE_S / 2)
            moment = BEGIN + timedelta(seconds=number - min(delay_s, number))
            rows.append(
                {"order": number, "item": chance.choice("abc"), "amount": chance.randint(1, 99), column: moment}
            )
        yield rows


def source(seed: int, column: str, events: int) -> Callable[[int | None], Iterator[tuple[Rows, int]]]:
    """The same records again, from any event on."""

    def read(offset: int | None) -> Iterator[tuple[Rows, int]]:
        for number, rows in enumerate(records(seed, column, events), 1):
            if number > (offset or 0):
                yield rows, number

    return read


def build(
    orders: clew.Source,
    payments: clew.Source,
    totals: clew.WriteConnection,
    paid: clew.WriteConnection,
    late: clew.WriteConnection,
) -> clew.Pipeline:
    """The pipeline, from two sources to wherever totals, pairs and late records go."""
    pipeline = clew.Pipeline("payments")
    ordered = pipeline.source("orders", orders, times=clew.event_time("ordered", late_by=LATE_S))
    settled = pipeline.source("payments", payments, times=clew.event_time("settled", late_by=LATE_S))
    minutes = ordered.aggregate(
        "minutes",
        clew.tumbling(60),
        {"total": ("amount", "sum"), "orders": "count"},
        keys="item",
        by="ordered",
        late="port",
    )
    minutes.write("totals", totals)
    minutes["late"].write("late", late)
    joined = ordered.join("joined", settled, on="order", within=clew.tumbling(60), by=("ordered", "settled"))
    joined.write("paid", paid)
    return pipeline


pipeline = build(
    clew.generator(source(1, "ordered", 60)),
    clew.generator(source(2, "settled", 60)),
    clew.jsonl("payments/totals"),
    clew.jsonl("payments/paid"),
    clew.jsonl("payments/late"),
)


def main() -> None:
    """Runs the pipeline and says what was late."""
    run = pipeline.run(log="payments.log")
    sys.stdout.write(f"late: {run.status()['counts']}\n")


if __name__ == "__main__":
    main()
