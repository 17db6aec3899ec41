"""How fast the SQLite store commits events, beside a bare sqlite3 loop that writes the same rows to the same tables.

Both run in this process, in turns, on files in one directory, with the same durability (write-ahead log, synchronous
FULL). An event is one output row and one pair; an Input Set closes every 100 events; each commit also writes the cursor
and the counters. The bare loop gets its rows ready made; the store gets transactions and has to check the incarnation,
encode headers, number ports, channels and schemas, and find out what to write. Only commits are timed. The bytes of a
body are made once, for the log and the connection alike: they are ready for both loops. The last column is the ratio
when only the store has to make them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from clew.log.sql import ID_BITS
from clew.log.sqlite import SqliteStore
from clew.log.sqlite_files import TABLES
from clew.model.event import Event, as_batch
from clew.model.history import Cursor, Output, Pair, Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet

REPLICA = Replica("hourly")
CHANNEL = Channel(Replica("orders"), "out", REPLICA, "in")
SET_SIZE = 100
BODIES = {200: 1, 10_000: 9_800}
"""Sizes to measure, with the length of the text in each event that gives about this size."""
TARGET = 0.7

Commit = dict[str, list[tuple[Any, ...]]]

STATEMENTS = {
    "schemas": "INSERT INTO schemas (id, body) VALUES (?, ?)",
    "outputs": "INSERT INTO outputs (key, created, schema, time, attributes, file, body, requires) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "input_sets": "INSERT INTO input_sets (serial, key, closed) VALUES (?, ?, ?)",
    "pairs": "INSERT INTO pairs (serial, ord, channel, event, note) VALUES (?, ?, ?, ?, ?)",
    "closed": "UPDATE input_sets SET closed = 2 WHERE serial = ?",
    "cursors": "INSERT INTO cursors (channel, assigned, floor, above, ended) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (channel) DO UPDATE SET assigned = excluded.assigned, floor = excluded.floor, "
    "above = excluded.above, ended = excluded.ended",
    "counters": "INSERT INTO counters (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
}


def transactions(events: int, per_commit: int, text: int) -> Iterator[Transaction]:
    """What a replica that takes and makes one event at a time would commit."""
    for first in range(1, events + 1, per_commit):
        t = Transaction()
        for number in range(first, first + per_commit):
            serial = (number - 1) // SET_SIZE + 1
            batch = as_batch({"text": [f"{number:08}"[:text].ljust(text, "x")]})
            t.outputs.append(Output(Event(REPLICA, "out", number, batch), float(number)))
            t.pairs.append(Pair(number, CHANNEL, number, serial, None))
            if number % SET_SIZE == 1:
                t.opened.append((serial, b"%d" % serial))
            if number % SET_SIZE == 0:
                t.closed.append(serial)
        last = first + per_commit - 1
        t.cursors[CHANNEL] = Cursor(last, IdSet(last - last % SET_SIZE), False)
        t.counters = {"order": last, "serial": (last - 1) // SET_SIZE + 1, "out:out": last, "position": last}
        yield t


def rows_of(t: Transaction) -> Commit:
    """The same transaction as rows, in the order of tables in which the store writes them."""
    opened = {serial for serial, _ in t.opened}
    first = t.outputs[0].event
    assert first.batch is not None
    commit: Commit = {
        "schemas": [(1, first.batch.schema.serialize().to_pybytes())] if first.id == 1 else [],
        "outputs": [
            ((1 << ID_BITS) + output.event.id, output.created, 1, None, None, None, output.event.body, None)
            for output in t.outputs
        ],
        "input_sets": [(serial, key, 2 if serial in t.closed else 0) for serial, key in t.opened],
        "pairs": [(pair.serial, pair.order, 1, pair.event, pair.note) for pair in t.pairs],
        "closed": [(serial,) for serial in t.closed if serial not in opened],
        "cursors": [(1, cursor.assigned, cursor.released.floor, None, 0) for cursor in t.cursors.values()],
        "counters": list(t.counters.items()),
    }
    return {table: rows for table, rows in commit.items() if rows}


def run_bare(directory: Path, made: Iterable[Transaction]) -> float:
    """Seconds in commits with sqlite3 alone."""
    connection = sqlite3.connect(directory / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    connection.executescript(TABLES)
    seconds = 0.0
    for transaction in made:
        commit = rows_of(transaction)
        started = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        for table, rows in commit.items():
            connection.executemany(STATEMENTS[table], rows)
        connection.execute("COMMIT")
        seconds += time.perf_counter() - started
    connection.close()
    return seconds


def run_store(directory: Path, made: Iterable[Transaction], *, with_encoding: bool) -> float:
    """Seconds in commits with the store."""
    store = SqliteStore.create(directory / "log", {"pipeline": "bench", "operators": {}, "connections": []})
    log = store.open(REPLICA)
    seconds = 0.0
    for transaction in made:
        if not with_encoding:
            for output in transaction.outputs:
                assert output.event.body
        started = time.perf_counter()
        log.stage(transaction)
        log.commit(transaction)
        seconds += time.perf_counter() - started
    log.close()
    return seconds


def check_same(directory: Path) -> None:
    """Both files must hold the same rows, or the comparison means nothing."""
    with contextlib.closing(sqlite3.connect(directory / "bare.db")) as bare:
        with contextlib.closing(sqlite3.connect(directory / "log" / "hourly.0.db")) as store:
            for table in ("outputs", "input_sets", "pairs", "cursors", "counters", "schemas"):
                query = f"SELECT * FROM {table}"
                if bare.execute(query).fetchall() != store.execute(query).fetchall():
                    raise SystemExit(f"the two loops wrote different rows to {table}")


@contextlib.contextmanager
def fresh(parent: Path) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="clew-bench-", dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def measure(parent: Path, size: int, per_commit: int, events: int, repeats: int) -> dict[str, Any]:
    """One line of the table."""
    rates: dict[str, list[float]] = {"bare": [], "store": [], "encoding": []}
    events -= events % per_commit
    for repeat in range(repeats + 1):
        with fresh(parent) as directory:
            loops: dict[str, Callable[[Iterable[Transaction]], float]] = {
                "bare": partial(run_bare, directory),
                "store": partial(run_store, directory, with_encoding=False),
                "encoding": partial(run_store, directory / "encoding", with_encoding=True),
            }
            for name in sorted(loops, reverse=bool(repeat % 2)):
                seconds = loops[name](transactions(events, per_commit, BODIES[size]))
                if repeat > 0:  # The first round only warms up.
                    rates[name].append(events / seconds)
            check_same(directory)
    ratios = [one / other for one, other in zip(rates["store"], rates["bare"], strict=True)]
    encoding = [one / other for one, other in zip(rates["encoding"], rates["bare"], strict=True)]
    return {
        "body_bytes": size,
        "events_per_commit": per_commit,
        "events": events,
        "repeats": repeats,
        "bare_events_per_s": round(statistics.median(rates["bare"])),
        "store_events_per_s": round(statistics.median(rates["store"])),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_min": round(min(ratios), 3),
        "ratio_max": round(max(ratios), 3),
        "ratio_with_encoding": round(statistics.median(encoding), 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")
    parser.add_argument("--check", action="store_true", help="exit with 1 if the target is missed")
    parser.add_argument("--repeats", type=int, default=7, help="rounds of each pair of loops (default 7)")
    parser.add_argument(
        "--directory", type=Path, default=None, help="where to write (default: the temporary directory)"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="how many events, relative to the default")
    options = parser.parse_args()
    if not options.json:
        print("  body per commit  bare ev/s store ev/s  ratio    min..max  with encoding")
    is_reached = True
    for size in BODIES:
        for per_commit, events in ((1, 1500), (16, 8000), (128, 19200)):
            events = max(int(events * options.scale / (4 if size > 1000 and per_commit > 1 else 1)), 2 * per_commit)
            line = measure(options.directory, size, per_commit, events, options.repeats)
            is_reached = is_reached and line["ratio"] >= TARGET
            if options.json:
                print(json.dumps(line), flush=True)
            else:
                print(
                    f"{size:>6} {per_commit:>10} {line['bare_events_per_s']:>10} {line['store_events_per_s']:>10} "
                    f"{line['ratio']:>6.2f}  {line['ratio_min']:.2f}..{line['ratio_max']:.2f} "
                    f"{line['ratio_with_encoding']:>14.2f}",
                    flush=True,
                )
    if not options.json:
        print(f"target: at least {TARGET:.2f} of the bare loop: {'reached' if is_reached else 'MISSED'}")
    return 1 if options.check and not is_reached else 0


if __name__ == "__main__":
    sys.exit(main())
