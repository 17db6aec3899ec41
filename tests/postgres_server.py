"""A private PostgreSQL server for tests: the distribution's programs, on the loopback, in a directory of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

PASSWORD = "xyzzy-secret"
"""The server asks for it, so that tests can look for it where it must not be."""

_START_S = 60.0


class NoPostgres(Exception):
    """There are no server programs on this machine."""


def find_programs() -> Path:
    """The directory of `initdb` and `postgres`, the newest version first."""
    found = shutil.which("postgres")
    candidates = [Path(found).resolve().parent] if found else []
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    candidates += sorted(versions, key=lambda path: int(path.parent.name), reverse=True)
    for candidate in candidates:
        if (candidate / "initdb").exists() and (candidate / "postgres").exists():
            return candidate
    raise NoPostgres(
        "there are no PostgreSQL server programs (initdb, postgres) in PATH or /usr/lib/postgresql/*/bin. Install them "
        "(Debian: apt-get install postgresql), or set CLEW_SKIP_POSTGRES=1 to leave these tests out."
    )


@contextmanager
def postgres_server() -> Iterator[str]:
    """Runs a server and gives its connection string."""
    programs = find_programs()
    directory = Path(tempfile.mkdtemp(prefix="clew-postgres-"))
    user = _other_user(directory)
    try:
        _initialise(programs, directory, user)
        port = _free_port()
        log = (directory / "server.log").open("wb")
        server = subprocess.Popen(
            [
                programs / "postgres", "-D", directory / "data", "-p", str(port), "-h", "127.0.0.1", "-k", "",
                "-c", "max_connections=100", "-c", "shared_buffers=32MB", "-c", "fsync=off", "-c", "autovacuum=off",
            ],
            cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **_as(user),
        )  # fmt: skip
        log.close()
        try:
            dsn = f"postgresql://clew:{PASSWORD}@127.0.0.1:{port}/postgres"
            _wait_until_up(server, dsn, directory / "server.log")
            yield dsn
        finally:
            server.send_signal(signal.SIGINT)  # Without waiting for its clients.
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.send_signal(signal.SIGQUIT)
                server.wait(20)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _initialise(programs: Path, directory: Path, user: str | None) -> None:
    secret = directory / "password"
    secret.write_text(PASSWORD)
    if user is not None:
        shutil.chown(secret, user)
    done = subprocess.run(
        [
            programs / "initdb", "-D", directory / "data", "-U", "clew", "-A", "scram-sha-256",
            f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync",
        ],
        cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **_as(user),
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"initdb failed: {done.stderr}")


def _other_user(directory: Path) -> str | None:
    """PostgreSQL refuses to run as root, so then another user runs it in a directory that is theirs."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        shutil.chown(directory, name)
        return name
    raise RuntimeError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


def _as(user: str | None) -> dict[str, object]:
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(server: subprocess.Popen[bytes], dsn: str, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            psycopg.connect(dsn).close()
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the PostgreSQL server did not start: {error}\n{log.read_text()}") from error
        time.sleep(0.05)
