"""Simulated pipelines whose events have times: windows, joins, loops, late records, idle sources, holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from examples import components
from tests.simulation.operators import Fault, Outputs, row

import clew
from clew.operators.stateless import Stateless
from clew.testing import Outside, scripted
from clew.times import Antichain

Moments = Sequence[Sequence[int] | None]
"""The times of the records of each event; None is a moment without an event."""

SCHEMA = pa.schema({"t": pa.int64()})


def script(moments: Moments) -> list[pa.RecordBatch | None]:
    """The events of a source."""
    return [None if each is None else pa.RecordBatch.from_pydict({"t": list(each)}, SCHEMA) for each in moments]


def source(
    pipeline: clew.Pipeline,
    name: str,
    moments: Moments,
    late_by: int = 4,
    idle_after_s: float | None = None,
    ahead_by: int | None = None,
    **options: Any,
) -> clew.Stream:
    """A source of records with whole numbers as times."""
    times = clew.event_time("t", late_by=late_by, whole_numbers=True, idle_after_s=idle_after_s, ahead_by=ahead_by)
    return pipeline.source(name, scripted(script(moments), **options), times=times)


class Windows(clew.Operator):
    """Counts the records of each window; late ones are only counted. It checks that nothing comes after its time."""

    is_timely = True

    def __init__(self, size: int, inputs: Sequence[str] = ("in",)) -> None:
        self.size = size
        self.inputs = inputs

    def open(self, ctx: clew.Context) -> None:
        self.windows: dict[int, dict[str, list[int]]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> Iterator[clew.Assigned]:
        if ctx.frontier(event.input).passed(event.time):
            raise Fault(f"{event} has the time {event.time}, which {ctx.frontier(event.input)} had passed")
        starts = {each["t"] - each["t"] % self.size: None for each in event.rows}
        open_ones = [start for start in starts if start + self.size > event.time]
        late = sum(each["t"] - each["t"] % self.size not in open_ones for each in event.rows)
        if late:
            ctx.count("dropped", late)
        for start in open_ones:
            yield clew.Assigned(start, None, start + self.size - 1)

    def update(self, start: int, event: clew.Event, note: Any = None) -> None:
        found = [each["t"] for each in event.rows if each["t"] - each["t"] % self.size == start]
        self.windows.setdefault(start, {}).setdefault(event.input, []).extend(found)

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        frontier = ctx.frontier()
        return [[start] for start in sorted(self.windows) if frontier.passed(start + self.size - 1)]

    def generate(self, starts: Sequence[int], ctx: clew.Context) -> Outputs:
        for start in starts:
            sides = self.windows.pop(start)
            counts = {port: len(sides.get(port, ())) for port in self.inputs}
            if len(counts) == 1 or all(counts.values()):
                yield "out", row(t=start, **{f"from_{port}": count for port, count in counts.items()})


class EventWindows(clew.Operator):
    """Counts events by their own times, whatever is in them."""

    is_timely = True

    def __init__(self, size: int, inputs: Sequence[str] = ("in",)) -> None:
        self.size = size
        self.inputs = inputs

    def open(self, ctx: clew.Context) -> None:
        self.counts: dict[int, int] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[clew.Assigned]:
        if ctx.frontier(event.input).passed(event.time):
            raise Fault(f"{event} has the time {event.time}, which {ctx.frontier(event.input)} had passed")
        start = event.time - event.time % self.size
        return [clew.Assigned(start, None, start + self.size - 1)]

    def update(self, start: int, event: clew.Event, note: Any = None) -> None:
        self.counts[start] = self.counts.get(start, 0) + 1

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[start] for start in sorted(self.counts) if ctx.frontier().passed(start + self.size - 1)]

    def generate(self, starts: Sequence[int], ctx: clew.Context) -> Outputs:
        for start in starts:
            yield "out", row(x=self.counts.pop(start), start=start)


class Running(clew.Operator):
    """Holds a time under a name, moves it on with its frontier, and says at the end how much there was."""

    is_timely = True

    def open(self, ctx: clew.Context) -> None:
        self.counts: dict[int, int] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        ctx.state["total"] = ctx.state.get("total", 0) + len(event.rows)
        if "held" not in ctx.state:
            ctx.hold("last", event.time)
            ctx.state["held"] = event.time
        return [event.time]

    def update(self, time: int, event: clew.Event, note: Any = None) -> None:
        self.counts[time] = self.counts.get(time, 0) + len(event.rows)

    def on_frontier(self, port: str, frontier: Antichain, ctx: clew.Context) -> None:
        for time in frontier:
            if "held" in ctx.state and time > ctx.state["held"]:
                ctx.hold("last", time)
                ctx.state["held"] = time

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[time] for time in sorted(self.counts) if ctx.frontier("in").passed(time)]

    def generate(self, times: Sequence[int], ctx: clew.Context) -> Outputs:
        for time in times:
            ctx.at(max(time, ctx.state["held"]))
            yield "out", row(t=time, count=self.counts.pop(time))

    def finish(self, times: Sequence[int], ctx: clew.Context) -> Outputs:
        yield from self.generate(sorted(times), ctx)
        if "held" in ctx.state:
            ctx.at(ctx.state["held"] + 1)
            yield "out", row(t=ctx.state["held"] + 1, total=ctx.state["total"])


class Bad(Stateless):
    """Passes events on, except those that it cannot digest."""

    def __init__(self, bad: Sequence[int]) -> None:
        self.bad = bad

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        if any(each["t"] in self.bad for each in event.rows):
            raise Fault("bad food")
        yield "out", event.batch, dict(event.attributes)


def windows(moments: Moments, size: int, *, has_all: bool = True, **options: Any) -> clew.Pipeline:
    """Windows over windows, and late records."""
    pipeline = clew.Pipeline("windows")
    stream = source(pipeline, "moments", moments, **options)
    if has_all:
        stream = stream.map(lambda table: table, name="same")
    found = stream.operator("windows", Windows(size))
    if has_all:
        found.operator("larger", Windows(3 * size)).write("report", Outside("report").writer())
        pipeline.lineage("moments.out", "larger.out", keep_s=0.02)
    return pipeline


def join(left: Moments, right: Moments, size: int, *, has_all: bool = True, **options: Any) -> clew.Pipeline:
    """Two sources that are in different times, joined by window."""
    pipeline = clew.Pipeline("join")
    inputs: Mapping[str, clew.Stream] = {
        "left": source(pipeline, "left", left, **options),
        "right": source(pipeline, "right", right, **options),
    }
    both = pipeline.operator("both", Windows(size, ("left", "right")), inputs)
    if has_all:
        both.write("report", Outside("report").writer("checkable"))
    return pipeline


def holds(moments: Moments, *, has_all: bool = True) -> clew.Pipeline:
    """A time that is held under a name, and windows behind it that must wait for it."""
    pipeline = clew.Pipeline("holds")
    found = source(pipeline, "moments", moments).operator("running", Running())
    if has_all:
        found.operator("windows", Windows(5)).write("report", Outside("report").writer())
    return pipeline


def parallel(moments: Moments, replicas: int, *, has_all: bool = True) -> clew.Pipeline:
    """Windows in several replicas, of which some may never get anything."""
    pipeline = clew.Pipeline("parallel")
    stream = source(pipeline, "moments", moments).parallel(replicas, key="t")
    counted = stream.operator("windows", Windows(4))
    if has_all:
        counted.operator("larger", Windows(8)).write("report", Outside("report").writer())
    return pipeline


def poison(moments: Moments, bad: Sequence[int], *, has_all: bool = True) -> clew.Pipeline:
    """What is given up gives up its time, too: dead letters come in time, and nothing waits for what is gone."""
    pipeline = clew.Pipeline("timed-poison")
    eaten = source(pipeline, "moments", moments).operator("eat", Bad(bad), dead_letters=True)
    found = eaten.operator("windows", Windows(4))
    if has_all:
        found.write("report", Outside("report").writer())
        eaten["dead"].operator("dead-windows", Windows(4))
    return pipeline


def loop(batches: int, size: int, nodes: int) -> clew.Pipeline:
    """The components of a graph, in a loop."""
    return components.build(scripted(components.edges(batches, size, nodes)), Outside("report").writer())


def small_loop(rounds: int) -> clew.Pipeline:
    """A number that goes round so often, and nothing else."""
    pipeline = clew.Pipeline("small-loop")
    numbers = pipeline.source("numbers", scripted([[{"left": rounds}]]), times=clew.numbered())

    def body(entered: clew.Stream, back: clew.Stream) -> tuple[clew.Stream, clew.Stream]:
        counted = entered.operator("count", CountDown(), {"back": back})
        return counted["again"], counted["out"]

    numbers.iterate("loop", body)
    return pipeline


class CountDown(Stateless):
    """Sends a number round again until it is 0."""

    inputs = ("in", "back")
    outputs = ("again", "out")

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        for each in event.rows:
            yield ("again" if each["left"] else "out"), row(left=each["left"] - 1)
