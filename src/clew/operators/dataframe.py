"""DataFrame operators: so many events are given to Spark as a DataFrame, and what it makes of them goes out.

They are hosted in the driver, since a Spark job is begun there; log and recovery are those of every operator. In which
order Spark gives the rows of a result is not promised, unless the function or query sorts them.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.errors import BuildError, MoveError, OutsideError
from clew.model.dataframes import as_frame, events_of, words_of
from clew.model.driver import InDriver
from clew.model.operator import Context
from clew.operators.counted import Counted
from clew.operators.shape import check_function, some, together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VIEW = "events"
"""What a query calls the events of its Input Set."""


class FrameOperator(InDriver, Counted):
    """Every so many events are an Input Set, worked on as a DataFrame: subclasses write `result`."""

    def __init__(self, every: int, rows_per_event: int | None = None) -> None:
        super().__init__(every)
        if rows_per_event is not None and (type(rows_per_event) is not int or rows_per_event < 1):
            raise BuildError(
                f"{type(self).__name__} was given rows_per_event={rows_per_event!r}; expected a whole number from 1 "
                f"up, or None for one event with all rows. Pass how many rows of the result make an event."
            )
        self.rows_per_event = rows_per_event
        self._known = _Known()

    def result(self, events: DataFrame) -> DataFrame:
        """The result for the records of an Input Set, as a DataFrame that is not computed yet."""
        raise NotImplementedError

    def open(self, ctx: Context) -> None:
        """Nothing is waiting; a session must be there."""
        super().open(ctx)
        if not self._known.has_session:
            _ = self.spark
            self._known.has_session = True

    def apply(self, batches: list[pa.RecordBatch], ctx: Context) -> Iterable[tuple[str, Any]]:
        """The rows of the result, as one event or several."""
        events = together(batches)
        result = self._computed(events) if self.is_lent else self._known.computed(events, self._computed)
        parts = [result] if self.rows_per_event is None else events_of([result], self.rows_per_event)
        for part in parts:
            yield from some("out", part)

    def _computed(self, events: pa.Table) -> pa.Table:
        frame = as_frame(self.spark, events)
        try:
            result = self.result(frame)
            if hasattr(result, "toArrow"):
                return result.toArrow()
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark.", "py4j.")):
                raise
            raise OutsideError(f"Spark could not compute the result: {words_of(error)}") from error
        raise MoveError(
            f"the function of a DataFrame operator returned a {type(result).__name__}; expected a Spark DataFrame. "
            f"Return one; for a function on Arrow tables or pandas frames use batch(every, f=...)."
        )


class OnFrames(FrameOperator):
    """A function from a DataFrame to a DataFrame."""

    def __init__(self, f: Callable[[DataFrame], DataFrame], every: int, rows_per_event: int | None = None) -> None:
        super().__init__(every, rows_per_event)
        check_function("dataframe", f)
        self.f = f

    def result(self, events: DataFrame) -> DataFrame:
        """What the function makes of it."""
        return self.f(events)


class Query(FrameOperator):
    """A query in SQL, in which the records of an Input Set are the table `events`.

    It sees all else that the session has: tables, temporary views, functions. The name `events` is the query's own, so
    that any number of queries can run in one session at the same time.
    """

    def __init__(self, query: str, every: int, rows_per_event: int | None = None) -> None:
        super().__init__(every, rows_per_event)
        if type(query) is not str or not query.strip():
            raise BuildError(
                f"sql was given the query {query!r}; expected one as text. Write "
                f"sql(name, 'select ... from {VIEW} ...', every=...)."
            )
        self.query = query.strip().rstrip(";")

    def result(self, events: DataFrame) -> DataFrame:
        """What the query gives; a view of a name of its own is there while it is looked at."""
        session = events.sparkSession
        view = f"clew_{uuid.uuid4().hex}"
        events.createTempView(view)
        try:
            return session.sql(f"WITH {VIEW} AS (SELECT * FROM {view}) (\n{self.query}\n)")
        finally:
            session.catalog.dropTempView(view)


class _Known:
    """Results of a simulation: thousands of its runs ask for the same few, and each is computed once."""

    def __init__(self) -> None:
        self.has_session = False
        self._results: dict[bytes, pa.Table] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> _Known:
        return self

    def computed(self, events: pa.Table, compute: Callable[[pa.Table], pa.Table]) -> pa.Table:
        """The result for these events."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, events.schema) as writer:
            writer.write_table(events)
        key = hashlib.blake2b(sink.getvalue()).digest()
        if key not in self._results:
            self._results[key] = compute(events)
        return self._results[key]
