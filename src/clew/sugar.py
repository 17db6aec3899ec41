"""The sugar: ready operators behind a stream, one method each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from clew.errors import DoublyUsedPort
from clew.model.connection import ReadConnection, WriteConnection
from clew.model.declaration import declare_operator
from clew.model.operator import Operator
from clew.operators import timed
from clew.operators.aggregate import Spec
from clew.operators.batch import Batch
from clew.operators.collect import Collect
from clew.operators.dataframe import OnFrames, Query
from clew.operators.functions import Filter, FlatMap, Map
from clew.operators.shape import shape_of
from clew.operators.windows import Session, Windows
from clew.operators.writer import writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clew.pipeline import Input, Parallel, Pipeline, Stream


class Sugar:
    """What streams and parallel streams share: an operator is declared behind them, by itself or ready-made."""

    __slots__ = ()

    pipeline: Pipeline

    def operator(
        self,
        name: str,
        operator: Operator,
        inputs: Mapping[str, Input] | None = None,
        *,
        writes: Mapping[str, WriteConnection] | None = None,
        reads: Mapping[str, ReadConnection] | None = None,
        writes_first: bool | None = None,
        dead_letters: bool = False,
    ) -> Stream:
        """Declares an operator behind this stream, which goes to the first input port that `inputs` does not name.

        If this stream or one of `inputs` is parallel, so is the operator, and every replica gets all of an input that
        is not; the stream that is returned is the merger's. With `dead_letters`, an input that always crashes the
        operator is set aside on one more output port, `stream["dead"]`, instead of stopping the run.
        """
        node = declare_operator(
            name, operator, writes=writes, reads=reads, writes_first=writes_first, dead_letters=dead_letters
        )
        named = inputs or {}
        free = next((port for port in node.inputs if port not in named), None)
        if free is None:
            raise DoublyUsedPort(
                f"operator {name!r} behind stream {self}: inputs names a stream for every input port "
                f"({', '.join(node.inputs)}); expected one port left for {self}. Leave its port out of inputs, or use "
                f"pipeline.operator()."
            )
        return self.pipeline._declare(node, {free: cast("Stream | Parallel", self), **named})

    def map(
        self,
        f: Callable[[Any], Any],
        name: str | None = None,
        *,
        rows: bool = False,
        pandas: bool = False,
        dead_letters: bool = False,
    ) -> Stream:
        """What a function makes of each event: of its Arrow table, with `pandas` its frame, with `rows` each row."""
        made = Map(f, shape_of(rows=rows, pandas=pandas))
        return self.operator(self._free_name("map", f, name), made, dead_letters=dead_letters)

    def filter(
        self,
        f: Callable[[Any], Any],
        name: str | None = None,
        *,
        rows: bool = False,
        pandas: bool = False,
        dead_letters: bool = False,
    ) -> Stream:
        """The records for which a function is true: on the table or frame it gives one truth value per record."""
        made = Filter(f, shape_of(rows=rows, pandas=pandas))
        return self.operator(self._free_name("filter", f, name), made, dead_letters=dead_letters)

    def flat_map(
        self,
        f: Callable[[Any], Any],
        name: str | None = None,
        *,
        rows: bool = False,
        pandas: bool = False,
        dead_letters: bool = False,
    ) -> Stream:
        """The events that a function makes of each event, any number of them; with `rows`, rows of each row."""
        made = FlatMap(f, shape_of(rows=rows, pandas=pandas))
        return self.operator(self._free_name("flat_map", f, name), made, dead_letters=dead_letters)

    def batch(
        self,
        every: int,
        name: str | None = None,
        f: Callable[[Any], Any] | None = None,
        *,
        rows: bool = False,
        pandas: bool = False,
        dead_letters: bool = False,
    ) -> Stream:
        """One event for every so many: their records together, or what a function makes of these."""
        made = Batch(every, f, shape_of(rows=rows, pandas=pandas))
        return self.operator(self._free_name("batch", f, name), made, dead_letters=dead_letters)

    def dataframe(
        self,
        f: Callable[[DataFrame], DataFrame],
        every: int = 100,
        name: str | None = None,
        *,
        rows_per_event: int | None = None,
        dead_letters: bool = False,
    ) -> Stream:
        """What a function from a Spark DataFrame to another makes of the records of every so many events.

        It runs as a Spark job from the driver, where the operator is hosted. The rows of the result go out as one
        event, or so many at a time; in which order is up to Spark, unless the function sorts them.
        """
        made = OnFrames(f, every, rows_per_event)
        return self.operator(self._free_name("dataframe", f, name), made, dead_letters=dead_letters)

    def sql(
        self, name: str, query: str, every: int = 100, *, rows_per_event: int | None = None, dead_letters: bool = False
    ) -> Stream:
        """What a query gives in Spark SQL, in which the records of every so many events are the table `events`.

        It sees the tables, views and functions of the run's session as well; otherwise as `dataframe`.
        """
        return self.operator(name, Query(query, every, rows_per_event), dead_letters=dead_letters)

    def window(
        self,
        name: str,
        windows: Windows | Session,
        f: Callable[[Any], Any],
        by: str = "ts",
        keys: timed.Keys = None,
        *,
        late: str = "drop",
        nulls: str = "error",
        bounds: bool = True,
        rows: bool = False,
        pandas: bool = False,
        dead_letters: bool = False,
    ) -> Stream:
        """What a function makes of all records of a time window, or of those of each key in it, when it is over.

        The time of a record is in the column `by`. The function is given an Arrow table, with `pandas` a frame, with
        `rows` a list of dictionaries. What it gives has the columns `window_start` and `window_end` added, unless
        `bounds` is False. Late records are dropped and counted, or leave on `stream["late"]` with `late="port"`, or
        stop the run with `late="error"`; records without a time stop it, unless `nulls="drop"`.
        """
        shape = shape_of(rows=rows, pandas=pandas)
        made = timed.window(windows, f, by, keys, shape=shape, late=late, nulls=nulls, bounds=bounds)
        return self.operator(name, made, dead_letters=dead_letters)

    def aggregate(
        self,
        name: str,
        windows: Windows | Session,
        spec: Spec,
        keys: timed.Keys = None,
        by: str = "ts",
        *,
        late: str = "drop",
        nulls: str = "error",
        bounds: bool = True,
        dead_letters: bool = False,
    ) -> Stream:
        """Aggregates of each key in a time window: `{"total": ("amount", "sum"), "n": "count"}`.

        The ways are sum, count, min, max and mean. One row is kept for each key and open time window, not its records.
        Otherwise as `window`.
        """
        made = timed.aggregate(windows, spec, keys, by, late=late, nulls=nulls, bounds=bounds)
        return self.operator(name, made, dead_letters=dead_letters)

    def histogram(
        self,
        name: str,
        column: str,
        windows: Windows | Session,
        by: str = "ts",
        keys: timed.Keys = None,
        *,
        running: bool = False,
        late: str = "drop",
        nulls: str = "error",
        bounds: bool = True,
        dead_letters: bool = False,
    ) -> Stream:
        """How often each value of a column occurs in a time window, in the column `count`.

        With `running`, each time window gives the counts of all time up to its end. Otherwise as `window`.
        """
        made = timed.histogram(column, windows, by, keys, running=running, late=late, nulls=nulls, bounds=bounds)
        return self.operator(name, made, dead_letters=dead_letters)

    def join(
        self,
        name: str,
        right: Input,
        on: str | Sequence[str],
        within: Windows,
        by: str | tuple[str, str] = "ts",
        how: str = "inner",
        *,
        suffix: str = "_right",
        late: str = "drop",
        nulls: str = "error",
        bounds: bool = False,
        dead_letters: bool = False,
    ) -> Stream:
        """Pairs of this stream's records and another's, with equal values in the columns `on`, in one time window.

        `by` names the column of times, or a pair of columns, of this stream and the other. `how` is inner, left, right
        or full. A column of the other stream whose name this one has, too, gets the suffix. Otherwise as `window`.
        """
        made = timed.join(on, within, by, how, suffix=suffix, late=late, nulls=nulls, bounds=bounds)
        return self.operator(name, made, {"right": right}, dead_letters=dead_letters)

    def write(
        self,
        name: str,
        connection: WriteConnection,
        columns: Sequence[str] | None = None,
        *,
        every: int = 1,
        dead_letters: bool = False,
    ) -> Stream:
        """Writes each event, or every so many events together, to an outside system; the connection is named `to`."""
        return self.operator(name, writer(connection, every, columns), dead_letters=dead_letters)

    def collect(self, name: str) -> Stream:
        """Keeps all records in the log, for `run.results(name)`; for results that fit into memory."""
        return self.operator(name, Collect())

    def _free_name(self, kind: str, f: Callable[..., Any] | None, name: str | None) -> str:
        return self.pipeline._free_name(kind, f, name)
