"""A pipeline that reads a stream of files; as a process of its own it dies by SIGKILL at a point that is named.

python -m tests.spark.stream_child ROOT reading|durable BATCH
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clew
from clew.connect.spark_streams import Passage, StreamSource
from clew.runtime.session import local_session

KEPT = 16
"""So many events of a batch are read at once; what is beyond is read after these were stored."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_reading(batch: int) -> None:
    """Dies when part of the batch is in the log and part is not."""
    read = StreamSource.read

    def reading(self: StreamSource, action: Any, offset: Any) -> Iterator[Any]:
        for index, part in enumerate(read(self, action, offset)):
            if action == ("batch", batch) and index == KEPT:
                time.sleep(0.5)
                die()
            yield part

    StreamSource.read = reading  # type: ignore[method-assign]


def die_durable(batch: int) -> None:
    """Dies when the batch is durable and Spark has not been told."""
    durable = Passage.durable

    def said(self: Passage, last: int) -> None:
        if last == batch:
            die()
        durable(self, last)

    Passage.durable = said  # type: ignore[method-assign]


def build(root: Path) -> clew.Pipeline:
    def lines(spark: Any) -> Any:
        reader = spark.readStream.schema("id long, word string").option("maxFilesPerTrigger", 1)
        return reader.json(str(root / "in"))

    pipeline = clew.Pipeline("stream")
    source = clew.read_stream(lines, checkpoint=root / "checkpoint", trigger={"availableNow": True}, rows_per_event=3)
    words = pipeline.source("words", source).map(lambda row: {**row, "length": len(row["word"])}, "lengths", rows=True)
    words.write("save", clew.sqlite(root / "out.db", "words", create=True), every=5)
    words.write("lake", clew.frame_writer(root / "lake"), every=9)
    return pipeline


if __name__ == "__main__":
    root, point, batch = sys.argv[1:]
    {"reading": die_reading, "durable": die_durable}[point](int(batch))
    build(Path(root)).run(local_session("stream", 3), log=Path(root) / "log")
