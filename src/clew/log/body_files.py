"""Body files: large bodies beside the log, durable before any row refers to them.

A file is named with the incarnation that made it and created exclusively, so that a predecessor which comes back
to life can never touch a file of its successor. A file that no row refers to is swept by a later incarnation.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from clew.errors import LogError

DEFAULT_THRESHOLD = 1 << 20
"""Bodies larger than this many bytes go to files."""


class BodyFiles:
    """The body files of one replica.

    >>> import tempfile
    >>> files = BodyFiles(Path(tempfile.mkdtemp()) / "hourly.0", incarnation=3)
    >>> files.create(b"records"), files.sync()
    ('3-1', None)
    >>> files.read("3-1")
    b'records'
    """

    def __init__(self, directory: Path, incarnation: int) -> None:
        self.directory = directory
        self._incarnation = incarnation
        self._made = 0

    def create(self, body: bytes) -> str:
        """Writes a new file and returns its name; durable once `sync` has returned."""
        if self._made == 0:
            _make_directory(self.directory)
        self._made += 1
        name = f"{self._incarnation}-{self._made}"
        place = self.directory / name
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            raise LogError(
                f"the body file {place} is there already, although only incarnation {self._incarnation} makes files of "
                f"this name; the directory belongs to another log, or was copied. Nothing was changed; name another "
                f"place for the log."
            ) from None
        try:
            rest = memoryview(body)
            while rest:
                rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        return name

    def sync(self) -> None:
        """Makes the names of all created files durable."""
        sync_directory(self.directory)

    def read(self, name: str) -> bytes:
        """The body in a file."""
        return (self.directory / name).read_bytes()

    def remove(self, names: Iterable[str]) -> None:
        """Removes files that no row refers to any more."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                (self.directory / name).unlink()

    def sweep(self, kept: frozenset[str]) -> None:
        """Removes what earlier incarnations left behind, except the files that rows refer to."""
        if not self.directory.is_dir():
            return
        for name in os.listdir(self.directory):
            maker, _, number = name.partition("-")
            is_ours = maker.isdigit() and number.isdigit()
            if is_ours and int(maker) < self._incarnation and name not in kept:
                self.remove([name])


def sync_directory(directory: Path) -> None:
    """Makes the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_directory(directory: Path) -> None:
    if directory.is_dir():
        return
    _make_directory(directory.parent)
    with contextlib.suppress(FileExistsError):
        directory.mkdir()
    sync_directory(directory.parent)
