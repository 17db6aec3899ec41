"""A table that notes when each write action came: a conditional outside system for workloads 2 to 4."""

from __future__ import annotations

import sqlite3
import time

import clew


class NotingTable(clew.WriteConnection):
    """One row per action, and the moment at which it was written; a second execution finds the row."""

    kind = "conditional"

    def __init__(self, path: str, columns: tuple[str, ...]) -> None:
        self.path = path
        self.columns = columns

    def open(self) -> None:
        self.connection = sqlite3.connect(self.path, isolation_level=None, timeout=30, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        names = ", ".join(self.columns)
        self.connection.execute(f"CREATE TABLE IF NOT EXISTS noted (action TEXT PRIMARY KEY, {names}, written REAL)")

    def execute(self, action: clew.WriteAction) -> None:
        row = action.batch.to_pylist()[0]
        values = (action.id, *(row[name] for name in self.columns), time.time())
        places = ", ".join("?" * len(values))
        self.connection.execute(f"INSERT OR IGNORE INTO noted VALUES ({places})", values)

    def close(self) -> None:
        self.connection.close()
