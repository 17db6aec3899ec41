"""Checks of a machine that need no Spark: packages, disk, memory, sockets, processes."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from clew.log.processes import Process, is_alive

_COMMITS = 50
_SLOW_COMMIT_MS = 20.0
_GB = 1 << 30


class Check(NamedTuple):
    """What was looked at, how it is, and what to do."""

    what: str
    result: str
    """`ok`, `warn` or `fail`."""
    found: str
    remedy: str = ""


def machine_checks(directory: str) -> Iterator[Check]:
    """All of them, one after another."""
    version = ".".join(map(str, sys.version_info[:3]))
    is_new = sys.version_info >= (3, 11)
    yield Check("Python", "ok" if is_new else "fail", f"{version} at {sys.executable}", "" if is_new else "Use 3.11.")
    yield _package("pyspark", "4", "5")
    yield _package("pandas", "2.2", "3")
    yield _package("pyarrow", "18", None)
    yield _processors()
    yield _memory()
    yield _sockets()
    yield _processes()
    yield from _disk(Path(directory))
    yield _postgres()


def _package(name: str, lowest: str, below: str | None) -> Check:
    wanted = f"{name}>={lowest}{f',<{below}' if below else ''}"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, "fail", "not installed", f"Install it: pip install '{wanted}'.")
    is_fit = _parts(lowest) <= _parts(version) and (below is None or _parts(version) < _parts(below))
    return Check(
        name, "ok" if is_fit else "fail", version, "" if is_fit else f"Install another: pip install '{wanted}'."
    )


def _parts(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    >>> _parts("4.1.0.dev1") < _parts("5")
    True
    """
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _processors() -> Check:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = f"{count} for this process"
    if count > 1:
        return Check("processors", "ok", found)
    return Check("processors", "warn", found, "A pipeline works on one, but slowly: each operator is a process.")


def _memory() -> Check:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return Check("memory", "warn", "cannot be found out", "Spark wants 1 GB, each operator about 100 MB.")
    limit = _limit()
    words = f"{free / _GB:.1f} GB available"
    if limit is not None:
        words += f", limited to {limit / _GB:.1f} GB"
    is_enough = min(free, limit or free) > 1.5 * _GB
    do = "" if is_enough else "Spark wants 1 GB, each operator about 100 MB: end other programs."
    return Check("memory", "ok" if is_enough else "warn", words, do)


def _limit() -> int | None:
    """The limit of the control group that this process is in, if it has one."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path("/sys/fs/cgroup/memory.max").read_text())
    return None


def _sockets() -> Check:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            with socket.create_connection(server.getsockname(), 5):
                server.accept()[0].close()
    except OSError as error:
        return Check("loopback", "fail", f"127.0.0.1 cannot be used ({error})", "Hosts talk over it: allow it.")
    return Check("loopback", "ok", "127.0.0.1 accepts connections")


def _processes() -> Check:
    """Supervision needs to see a process of its own, and to end it."""
    if not Process.current().started:
        do = "A successor could not make sure that its predecessor is dead: mount /proc."
        return Check("processes", "fail", "/proc does not show this process", do)
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        process = Process.of(child.pid)
        is_seen = is_alive(process)
        os.kill(child.pid, signal.SIGKILL)
        child.wait(10)
        is_gone = not is_alive(process)
    except OSError as error:
        return Check("processes", "fail", f"a process of one's own cannot be ended ({error})", "Allow signals.")
    finally:
        child.kill()
        child.wait()
        if child.stdin is not None:
            child.stdin.close()
    if not (is_seen and is_gone):
        do = "A successor could not make sure that its predecessor is dead: mount /proc without hidepid."
        return Check("processes", "fail", "processes of one's own cannot be seen in /proc", do)
    with contextlib.suppress(OSError):
        return Check("processes", "ok", f"can be seen and ended in {os.readlink('/proc/self/ns/pid')}")
    return Check("processes", "ok", "can be seen and ended")


def _disk(directory: Path) -> Iterator[Check]:
    if not directory.is_dir():
        yield Check("disk", "fail", f"{directory} is no directory", "Name one that is there: --directory DIR.")
        return
    free = shutil.disk_usage(directory).free
    do = "" if free > _GB else "The log and Spark need room: name another --directory, or clear this one."
    yield Check("disk", "ok" if free > _GB else "warn", f"{free / _GB:.1f} GB free in {directory.resolve()}", do)
    yield _sqlite(directory)
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK):
        yield Check("shared memory", "warn", "/dev/shm cannot be written", "Some Python libraries need it: mount it.")


def _sqlite(directory: Path) -> Check:
    """How long a durable commit takes where the log would be."""
    what = f"SQLite {sqlite3.sqlite_version}"
    path = directory / f".clew-doctor-{secrets.token_hex(4)}.db"
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("CREATE TABLE t (x)")
            begin = time.perf_counter()
            for number in range(_COMMITS):
                connection.execute("INSERT INTO t VALUES (?)", (number,))
            took_ms = (time.perf_counter() - begin) * 1000 / _COMMITS
    except (sqlite3.Error, OSError) as error:
        return Check(what, "fail", f"no log can be made in {directory} ({error})", "Look at its rights.")
    finally:
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
    found = f"a durable commit takes {took_ms:.2f} ms"
    if mode != "wal":
        return Check(
            what, "fail", f"no write-ahead log in {directory}", "Put the log on a local disk, not a network's."
        )
    if took_ms > _SLOW_COMMIT_MS:
        return Check(what, "warn", found, "It works, but a faster disk would make pipelines faster.")
    return Check(what, "ok", found)


def _postgres() -> Check:
    """Only a log in PostgreSQL needs it, and only its server does."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, folders)])
    found = shutil.which("postgres", path=path)
    if found:
        return Check("PostgreSQL programs", "ok", f"at {found} (optional)")
    return Check("PostgreSQL programs", "ok", "not here; only a log in PostgreSQL needs a server")
