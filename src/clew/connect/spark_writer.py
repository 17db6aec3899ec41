"""A Spark DataFrame writer as a destination: a directory per write action, whole once Spark has put its mark there.

Checkable: an action is in when its directory has the mark `_SUCCESS`. What a dead predecessor left without the mark is
overwritten.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from clew.connect.settings import counted
from clew.errors import BuildError, OutsideError
from clew.model.connection import Kind, WriteAction, WriteConnection
from clew.model.dataframes import as_frame, words_of
from clew.model.driver import InDriver

COLUMN = "clew_action"
"""The partition column that whoever reads the whole place finds beside the records."""
_DIGITS = 12


def frame_writer(
    path: str | os.PathLike[str], format: str = "parquet", *, files: int = 1, **options: Any
) -> WriteConnection:
    """A place to which each write action adds a directory, written by Spark in any of its file formats; checkable.

    The directories are named as values of a partition column, `clew_action`, so `spark.read.parquet(path)` reads all
    of them. Each action writes so many `files`; `options` are those of Spark's DataFrameWriter. The operator that
    writes is hosted in the driver.
    """
    return FrameWriter(path, format, files, options)


class FrameWriter(InDriver, WriteConnection):
    """See `frame_writer`."""

    kind = Kind.CHECKABLE

    def __init__(self, path: str | os.PathLike[str], format: str, files: int, options: dict[str, Any]) -> None:
        place = os.fspath(path)
        if not place or not (type(format) is str and format):
            raise BuildError(
                f"frame_writer() was given path={path!r} and format={format!r}; expected a place and a format that "
                f"Spark can write to, such as frame_writer('totals', 'parquet')."
            )
        self.path = place.rstrip("/") if urlsplit(place).scheme else os.path.abspath(place)
        self.format = format
        self.files = counted("frame_writer()", "files", files)
        self.options = options
        self.system = ("frames", self.path)

    def __repr__(self) -> str:
        return f"<{self.format} directories in {self.path}>"

    def execute(self, action: WriteAction) -> None:
        """Lets Spark write the directory anew, and returns when it is whole."""
        place = self.place(action)
        try:
            frame = as_frame(self.spark, pa.Table.from_batches([action.batch]))
            frame = frame.coalesce(1) if self.files == 1 else frame.repartition(self.files)
            frame.write.format(self.format).options(**self.options).mode("overwrite").save(place)
            self._sync(place)
        except Exception as error:
            raise OutsideError(
                f"Spark could not write {place} as {self.format} ({words_of(error)}); expected a place that it can "
                f"write to and records that the format can hold. Mend the cause; the action is executed again."
            ) from error

    def is_in(self, action: WriteAction) -> bool:
        """Whether the directory has Spark's mark."""
        place = self.place(action)
        hadoop: Any = self.spark.sparkContext
        mark = hadoop._jvm.org.apache.hadoop.fs.Path(f"{place}/_SUCCESS")
        if not mark.getFileSystem(hadoop._jsc.hadoopConfiguration()).exists(mark):
            return False
        self._sync(place)  # A predecessor may have died before it did.
        return True

    def place(self, action: WriteAction) -> str:
        """The directory of an action; different for different actions of all writers."""
        return f"{self.path}/{COLUMN}={action.writer.replace('/', '.')}.{action.number:0{_DIGITS}}"

    def _sync(self, place: str) -> None:
        """Makes files of this machine durable; other file systems do so by themselves."""
        local = unquote(urlsplit(place).path) if place.startswith("file:") else place
        if not os.path.isdir(local):
            return
        for folder, _, names in os.walk(local):
            for name in (*names, "."):
                _sync_file(os.path.join(folder, name))
        _sync_file(os.path.dirname(local))


def _sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
