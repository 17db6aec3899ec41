"""The demo's second opinion: the same totals by a plain Spark batch, and the lineage of one of them by its records."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.lineage.ancestors import EventName, hops_back
from clew.log.contract import Store
from clew.model.names import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = Counter[tuple[Any, ...]]


def computed(spark: SparkSession, orders: Path) -> tuple[Rows, Rows]:
    """Totals per hour, and per file of orders, as Spark computes them from the files alone."""
    from pyspark.sql import functions as f

    sold = spark.read.parquet(str(orders))
    hour = f.date_format(f.date_trunc("hour", "date"), "yyyy-MM-dd'T'HH:mm:ss")
    total = f.sum("amount").alias("total")
    hourly = sold.groupBy(hour.alias("hour"), "item_ID", "state").agg(total).collect()
    by_file = sold.groupBy(f.input_file_name().alias("file"), "item_ID", "state").agg(total).collect()
    numbers = {name: number for number, name in enumerate(sorted({row["file"] for row in by_file}), 1)}
    return (
        Counter((row["hour"], row["item_ID"], row["state"], row["total"]) for row in hourly),
        Counter((numbers[row["file"]], row["item_ID"], row["state"], row["total"]) for row in by_file),
    )


def written(results: Path) -> tuple[Rows, Rows]:
    """Totals per hour, and per file of orders, as the pipeline has written them to the outside."""
    from pyarrow import parquet

    with contextlib.closing(sqlite3.connect(results / "sales.db")) as connection:
        hourly = connection.execute("SELECT hour, item_ID, state, total FROM hourly_totals").fetchall()
    files = sorted((results / "sales-totals").glob("*.parquet"))
    by_file: Rows = Counter()
    for number, file in enumerate(files, 1):
        rows = parquet.read_table(file).to_pylist()
        by_file.update((number, row["item_ID"], row["state"], row["total"]) for row in rows)
    return Counter(map(tuple, hourly)), by_file


def lineage_of(store: Store, number: int) -> dict[str, Any]:
    """Where an hourly total came from, and whether the records that led to it add up to it."""
    reader = store.reader()
    event = EventName("hourly", "out", number)
    hops = hops_back(store, event)
    sources = hops[0].sources if hops else ()
    (made,) = reader.events(Replica(event.sender), event.port, [number])
    totals: Counter[tuple[str, str]] = Counter()
    hour: datetime = made.rows[0]["hour"]
    records = 0
    for source in sources:
        for found in reader.events(Replica(source.sender), source.port, [source.id]):
            for row in found.rows:
                if row["date"].replace(minute=0, second=0) == hour:
                    records += 1
                    totals[row["item_ID"], row["state"]] += row["amount"]
    return {
        "event": str(event),
        "hour": hour.isoformat(),
        "rows": len(made.rows),
        "input_sets": list(hops[0].input_sets) if hops else [],
        "from": [str(source) for source in sources],
        "records": records,
        "agrees": totals == Counter({(row["item_ID"], row["state"]): row["total"] for row in made.rows}),
    }
