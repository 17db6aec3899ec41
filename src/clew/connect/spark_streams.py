"""A Structured Streaming query as a source: each micro-batch is one read action, deduplicated by its id.

Spark delivers a micro-batch through `foreachBatch` and takes it for done when that returns; a query that begins anew
from its checkpoint delivers the first batch that was not done once more, under the same id. So `foreachBatch` must
return only when the batch is durable in the log, and a batch that is durable already must be passed over.

Which moment proves that a batch is durable? The source is not replayable, so the kernel stores what the read action
returned, and turns it into events only when the transaction that completes it is durable (`FetchEffect` waits for
that); it asks for the next action only after the last of these events. So when `plan` is called, every action planned
before is durable, in this incarnation and after any crash: an action that was not would be read again instead. And
`plan` notes the id of a batch in the state, in the transaction that begins its action, hence before its records. So
in `plan`, and nowhere else, the noted id and all before it are known to be durable.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from clew.connect.settings import counted
from clew.connect.spark_frames import Frame, maker
from clew.errors import BuildError, MoveError, OutsideError
from clew.model.dataframes import events_of, words_of
from clew.model.driver import InDriver
from clew.model.operator import Context
from clew.model.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_MODES = ("append", "update", "complete")
_LOOK_S = 0.25
"""How long a move waits for the next batch at most."""


def read_stream(
    frame: Frame,
    *,
    checkpoint: str | os.PathLike[str],
    trigger: Mapping[str, Any] | None = None,
    rows_per_event: int = 500,
    output_mode: str = "append",
) -> Source:
    """The rows of a streaming DataFrame, or of the one that a function of the session returns; not replayable.

    Spark runs it as a query whose progress is kept at `checkpoint`; keep that with the log, each is of use only with
    the other. `trigger` are the arguments of Spark's trigger, such as `{"processingTime": "1 second"}`. With
    `{"availableNow": True}` the source ends when all that was there is read; otherwise it ends with the run. A batch
    of Spark is in the driver's memory as a whole. It is hosted in the driver.
    """
    return StreamSource(frame, checkpoint, trigger, rows_per_event, output_mode)


class StreamSource(InDriver, Source):
    """See `read_stream`."""

    is_replayable = False
    poll_s = 0.001  # Waiting is done in `read`, which is woken by the next batch.
    _passage: Passage | None

    def __init__(
        self,
        frame: Frame,
        checkpoint: str | os.PathLike[str],
        trigger: Mapping[str, Any] | None,
        rows_per_event: int,
        output_mode: str,
    ) -> None:
        self._make = maker("read_stream()", frame, is_streaming=True)
        place = os.fspath(checkpoint)
        self.checkpoint = place if urlsplit(place).scheme else os.path.abspath(place)
        self.rows_per_event = counted("read_stream()", "rows_per_event", rows_per_event)
        if trigger is not None and (type(trigger) is not dict or not trigger):
            raise BuildError(
                f"read_stream() was given trigger={trigger!r}; expected the arguments of Spark's trigger. Pass a "
                f"dictionary such as {{'processingTime': '1 second'}} or {{'availableNow': True}}."
            )
        self.trigger = trigger
        if output_mode not in _MODES:
            raise BuildError(
                f"read_stream() was given output_mode={output_mode!r}; expected {', '.join(_MODES)}. Pass one of these."
            )
        self.output_mode = output_mode
        self._passage = None
        self._known: str | None = None

    def __repr__(self) -> str:
        return f"<stream with checkpoint {self.checkpoint}>"

    def open(self, ctx: Context) -> None:
        """The query begins with the first action."""
        self._known = ctx.state.get("query")

    def plan(self, ctx: Context) -> tuple[str, int] | None:
        """The batch that Spark has delivered; while there is none, waiting is an action of its own."""
        last: int = ctx.state.get("batch", -1)
        passage = self._begun()
        passage.durable(last)
        is_over = passage.is_over()  # Asked first: what is delivered is still there afterwards.
        delivered = passage.delivered()
        if delivered is None:
            return None if is_over else ("wait", last)
        self._check_next(delivered, last)
        ctx.state["batch"] = delivered
        ctx.state["query"] = passage.id
        return "batch", delivered

    def read(self, action: tuple[str, int], offset: Any) -> Iterator[tuple[pa.Table, int] | None]:
        """The rows of one batch, or nothing until there is one."""
        passage = self._begun()
        kind, number = action
        if kind == "wait":
            while not passage.has_news(_LOOK_S):
                yield None
            self._check_next(passage.delivered(), number)  # Here, so that an error is one of the same action again.
            return
        passage.durable(number - 1)
        while passage.delivered() != number:
            if passage.is_over() or passage.delivered() not in (None, number):
                raise OutsideError(
                    f"the log has begun to read batch {number} of the query with checkpoint {self.checkpoint}, and "
                    f"Spark does not deliver it again. The checkpoint is not the one that belongs to the log, or it "
                    f"was changed: restore it, or run with a new checkpoint and a new log."
                )
            if not passage.has_news(_LOOK_S):
                yield None
        _ = self.spark  # Names the job.
        try:
            table = passage.frame().toArrow()
        except Exception as error:
            raise OutsideError(f"batch {number} of the stream could not be read: {words_of(error)}") from error
        for index, part in enumerate(events_of([table], self.rows_per_event), 1):
            yield part, index

    def _check_next(self, delivered: int | None, last: int) -> None:
        """Raises if batches are missing between the last one of the log and the one that Spark has delivered."""
        if delivered is not None and delivered > last + 1:
            raise OutsideError(
                f"the query with checkpoint {self.checkpoint} delivered its batch {delivered}; the log has its batches "
                f"up to {last}, so expected {last + 1}. Those between are lost to this log: run with the log that has "
                f"them, or with a new checkpoint and a new log."
            )

    def interrupt(self) -> None:
        """Ends the query; a batch that is not durable is not taken for done by Spark."""
        passage = self._passage
        if passage is not None:
            passage.close()
        super().interrupt()

    def _begun(self) -> Passage:
        if self._passage is None:
            if not self.is_lent:
                raise MoveError(
                    "read_stream() needs a run on Spark: a streaming query keeps its progress outside of the "
                    "simulator. In tests and with `clew verify`, put clew.testing.scripted(events, replayable=False) "
                    "in its place."
                )
            self._passage = Passage()
            self._passage.begin(self._query)
            if self._known not in (None, self._passage.id):
                self._passage.close()
                raise OutsideError(
                    f"the checkpoint {self.checkpoint} belongs to the query {self._passage.id}; the log was written by "
                    f"the query {self._known}, whose batches have other numbers. Run with the checkpoint that belongs "
                    f"to the log, or with a new checkpoint and a new log."
                )
        return self._passage

    def _query(self, deliver: Callable[[DataFrame, int], None]) -> StreamingQuery:
        try:
            writer = self._make(self.spark).writeStream.foreachBatch(deliver)
            writer = writer.option("checkpointLocation", self.checkpoint).outputMode(self.output_mode)
            if self.trigger is not None:
                writer = writer.trigger(**self.trigger)
            return writer.start()
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark.", "py4j.")):
                raise
            raise OutsideError(f"the streaming query could not be started: {words_of(error)}") from error


class Passage:
    """Where the thread in which Spark delivers a batch waits until the moves of the source have made it durable."""

    def __init__(self) -> None:
        self.id = ""
        """Of the query; the same for all its runs from one checkpoint."""
        self._query: StreamingQuery | None = None
        self._changed = threading.Condition()
        self._durable = -1
        self._batch: int | None = None
        self._frame: DataFrame | None = None
        self._is_closed = False

    def begin(self, query: Callable[[Callable[[DataFrame, int], None]], StreamingQuery]) -> None:
        """Starts the query."""
        self._query = query(self.deliver)
        self.id = str(self._query.id)
        if self._is_closed:
            self._query.stop()

    def deliver(self, frame: DataFrame, batch: int) -> None:
        """Spark's side: hands a batch over, and returns when it is durable."""
        with self._changed:
            if batch > self._durable:
                self._batch, self._frame = batch, frame
                self._changed.notify_all()
                if self._is_handed_over(batch):
                    return
        # Its records are in the log from an earlier run. Streams with state must see it computed all the same.
        frame.write.format("noop").mode("overwrite").save()

    def _is_handed_over(self, batch: int) -> bool:
        """Waits until it is durable; False if it was so before it was looked at."""
        while batch > self._durable:
            if self._is_closed:
                raise MoveError(f"the source has ended before batch {batch} was durable; it will be delivered again")
            self._changed.wait()
        is_read = self._frame is None
        self._batch = self._frame = None
        return is_read

    def durable(self, batch: int) -> None:
        """The source's side: this batch and all before it are in the log."""
        with self._changed:
            self._durable = batch
            if self._batch is not None and self._batch <= batch:
                self._batch = None
            self._changed.notify_all()

    def delivered(self) -> int | None:
        """The batch that waits."""
        return self._batch

    def frame(self) -> DataFrame:
        """Its rows, for which it is asked once."""
        with self._changed:
            frame, self._frame = self._frame, None
        assert frame is not None
        return frame

    def has_news(self, timeout_s: float) -> bool:
        """Waits a moment; whether a batch is there, or the query has ended."""
        with self._changed:
            if self._batch is None and not self._is_closed:
                self._changed.wait(timeout_s)
            if self._batch is not None:
                return True
        return self.is_over()

    def is_over(self) -> bool:
        """Whether the query has ended by itself; raises if it has failed."""
        assert self._query is not None
        if self._query.isActive:
            return False
        error = self._query.exception()
        if error is not None:
            raise OutsideError(f"the streaming query has failed: {words_of(error)}")
        return not self._is_closed

    def close(self) -> None:
        """Ends the query; whoever waits is told."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._query is not None:
            with contextlib.suppress(Exception):  # Spark itself may be gone.
                self._query.stop()
