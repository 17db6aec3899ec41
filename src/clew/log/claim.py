"""Claims: only one run at a time works on a log.

Incarnations keep two runs from spoiling a log, but they would take it from each other for ever. So a run claims the log
before it starts anything; the claim ends with the process that made it, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from pathlib import Path
from typing import Protocol

from clew.errors import LogError
from clew.log.postgres import PostgresStore
from clew.log.sqlite import SqliteStore

_FILE = "run.lock"


class Claim(Protocol):
    """A log that this process works on."""

    def release(self) -> None:
        """Lets others work on it."""


def claim(store: object) -> Claim:
    """Claims a log, or raises `LogError` if another run works on it. A store that keeps nothing needs no claim."""
    if isinstance(store, SqliteStore):
        return _FileClaim(store.path)
    if isinstance(store, PostgresStore):
        return _DatabaseClaim(store)
    return _NoClaim()


class _NoClaim:
    def release(self) -> None:
        """Nothing was claimed."""


class _FileClaim:
    """A lock on a file in the log's directory, which the system takes back when the process ends."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._handle, 100, 0).decode(errors="replace").strip()
            os.close(self._handle)
            raise _in_use(str(path), f"process {holder}" if holder else "another process") from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Lets others work on it."""
        with contextlib.suppress(OSError):
            os.close(self._handle)


class _DatabaseClaim:
    """A lock in the database, which the server takes back when the connection ends."""

    def __init__(self, store: PostgresStore) -> None:
        self._connection = store.connect()
        self._connection.execute("SET tcp_keepalives_idle = 10")  # A machine that vanished is noticed, too.
        self._connection.execute("SET tcp_keepalives_interval = 5")
        self._connection.execute("SET tcp_keepalives_count = 4")
        number = zlib.crc32(store.log_id.encode())
        found = self._connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (0x636C6577, number - (1 << 31)))
        row = found.fetchone()
        if row is None or not row[0]:
            self._connection.close()
            raise _in_use(repr(store), "another run")

    def release(self) -> None:
        """Lets others work on it."""
        self._connection.close()


def _in_use(where: str, holder: str) -> LogError:
    return LogError(
        f"the log {where} is in use: {holder} runs its pipeline now. Wait until it is over, or stop it; two runs of "
        f"one pipeline need two logs."
    )
