"""Files as a destination: one file per write action, which appears whole under the action's name or not at all.

Conditional: the name is the record. Whoever finds it there, or a later one of the same writer, does nothing.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from clew.connect.as_json import json_text
from clew.errors import OutsideError
from clew.model.connection import Kind, WriteAction, WriteConnection

Format = Callable[[pa.RecordBatch], bytes]

_TRIES = 3
_DIGITS = 12
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def parquet(directory: str | os.PathLike[str]) -> WriteConnection:
    """A directory to which each write action adds a Parquet file; conditional."""
    return FileWriter(directory, ".parquet", _parquet)


def csv(directory: str | os.PathLike[str]) -> WriteConnection:
    """A directory to which each write action adds a file of comma-separated values with a header; conditional."""
    return FileWriter(directory, ".csv", _csv)


def jsonl(directory: str | os.PathLike[str]) -> WriteConnection:
    """A directory to which each write action adds a file of JSON lines; conditional."""
    return FileWriter(directory, ".jsonl", _jsonl)


class FileWriter(WriteConnection):
    """A directory with one file per write action."""

    kind = Kind.CONDITIONAL

    def __init__(self, directory: str | os.PathLike[str], suffix: str, format: Format) -> None:
        self.directory = Path(os.path.abspath(directory))  # Other processes may run in other directories.
        self.system = ("files", str(self.directory))
        self._suffix = suffix
        self._format = format
        self._last: dict[str, int] = {}
        """The highest number that is there, per writer that this process has met."""

    def __repr__(self) -> str:
        return f"<{self._suffix[1:]} files in {self.directory}>"

    def open(self) -> None:
        """Makes the directory, if it is not there."""
        with self._errors_named("cannot be made or used"):
            missing = [each for each in (self.directory, *self.directory.parents) if not each.exists()]
            self.directory.mkdir(parents=True, exist_ok=True)
            for each in missing:
                _sync(each.parent)

    def execute(self, action: WriteAction) -> None:
        """Writes the file beside its place, makes it durable, and puts it there unless it is there already."""
        with self._errors_named(f"cannot take the write action {action.id}"):
            if action.writer not in self._last:
                self._meet(action.writer)
            if action.number <= self._last[action.writer]:
                _sync(self.directory)  # A predecessor may have died before it did.
                return
            final = self.directory / self._name(action.writer, action.number)
            for _ in range(_TRIES):
                if self._is_put(final, self._format(action.batch)):
                    self._last[action.writer] = action.number
                    return
            raise OutsideError(
                f"{final}: the file was removed {_TRIES} times while it was being written; expected to be left alone. "
                f"Look for what empties {self.directory}."
            )

    def _name(self, writer: str, number: int) -> str:
        return f"{_safe(writer)}.{number:0{_DIGITS}}{self._suffix}"

    def _meet(self, writer: str) -> None:
        """Finds out how far a writer is, and removes what its dead predecessors left unfinished."""
        prefix = f"{_safe(writer)}."
        last = 0
        for name in os.listdir(self.directory):
            if name.startswith(f".{prefix}") and name.endswith(".tmp"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.directory / name)
            elif name.startswith(prefix) and name.endswith(self._suffix):
                number = name[len(prefix) : -len(self._suffix)]
                if number.isdecimal():
                    last = max(last, int(number))
        self._last[writer] = last

    def _is_put(self, final: Path, data: bytes) -> bool:
        """Whether the file is there, whole and durable; it is not if a successor swept it away unfinished."""
        temporary = self.directory / f".{final.name}.{secrets.token_hex(6)}.tmp"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            if not _is_linked(temporary, final):
                return False
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        _sync(self.directory)
        return True

    @contextlib.contextmanager
    def _errors_named(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutsideError(
                f"the directory {self.directory} {what} ({error.strerror or error}); expected one that can be written "
                f"to. Look at its rights and at the space left, then start again."
            ) from error
        except pa.ArrowException as error:
            raise OutsideError(
                f"{self!r} {what} ({error}); expected records that the format can hold. Select or convert columns "
                f"before, or choose another format."
            ) from error


def _sync(directory: Path) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_linked(temporary: Path, final: Path) -> bool:
    """Gives a finished file its name, unless that is taken; False if the file is gone and nothing has the name."""
    try:
        os.link(temporary, final)
    except FileExistsError:
        pass
    except FileNotFoundError:
        return final.exists()
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            os.rename(temporary, final)  # Both writers have the same contents, so the last may win.
        except FileNotFoundError:
            return final.exists()
    return True


def _safe(writer: str) -> str:
    """The writer's id as part of a file name; different for different writers.

    >>> _safe("3fa9/report/0/to"), _safe("a.b/c")
    ('3fa9.report.0.to', 'a%2Eb.c')
    """
    return ".".join(quote(part, safe="").replace(".", "%2E") for part in writer.split("/"))


def _parquet(batch: pa.RecordBatch) -> bytes:
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_batches([batch]), sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _csv(batch: pa.RecordBatch) -> bytes:
    from pyarrow import csv

    sink = io.BytesIO()
    csv.write_csv(batch, sink)
    return sink.getvalue()


def _jsonl(batch: pa.RecordBatch) -> bytes:
    return "".join(f"{json_text(row)}\n" for row in batch.to_pylist()).encode()
