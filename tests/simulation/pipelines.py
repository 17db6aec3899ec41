"""The catalog of simulated pipelines, each in three sizes: one for every shape and habit that recovery must survive.

Small ones have at most 80 points in the run without faults, so that every pair of crashes can be tried. Middle-sized
ones get one crash at every point in each `make test`, large ones thousands of random schedules in `make soak`.
`python -m tests.simulation.replay NAME SCHEDULE` repeats one run with its trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
from examples import sales as example
from tests.simulation import operators as ops
from tests.simulation import timed
from tests.simulation.operators import numbers
from tests.simulation.pacing import Paced

import clew
from clew.log.memory import MemoryStore
from clew.model.graph import Graph, Node
from clew.protocol.moves import Moves, Surroundings
from clew.protocol.settings import Settings
from clew.testing import Outside, scripted
from clew.verify.parts import HEALTHY, SNAPSHOT, Parts

SIZES = ("small", "tight", "middle", "large")
"""Tight is the small one with no room to spare."""
POINTS_SMALL = 80
TIMED = (
    "windows", "windows-once", "join", "aligned", "idle", "idle-once", "holds", "timed-parallel", "timed-poison",
    "loop",
)  # fmt: skip
"""Pipelines whose events have times. `make test` tries some of their many points, `make soak` all."""
SLOW = ("keyed", "replicas", "dispatch", "ports")
"""Others of which one run takes long."""
LONG = ("idle", "idle-once", "timed-poison", "loop")
"""Pipelines that have more points than that in their smallest size."""
POINTS_LONG = 125

ROOMY = Settings(
    window=64, commit_max=128, cache_max=128, read_max=16, backlog_max=256, pull_max=64, survey_every=64, tries=1
)
"""Large commits make short runs, so that more of the pipeline fits into few points."""
TIGHT = Settings(
    window=1, commit_max=1, cache_max=1, read_max=1, backlog_max=1, pull_max=1, survey_every=1, tries=1, caution_moves=1
)
"""No room to spare: everything waits for something."""


class Case(NamedTuple):
    """One pipeline of the catalog: how to build it in each size, and the parts of the world it is run in."""

    small: Callable[[], clew.Pipeline]
    middle: Callable[[], clew.Pipeline]
    large: Callable[[], clew.Pipeline]
    special: Parts = HEALTHY
    """Another store, or other moves, than usual."""

    def graph(self, size: str) -> Graph:
        """The graph of one size."""
        build: Callable[[], clew.Pipeline] = getattr(self, "small" if size == "tight" else size)
        return build().build()

    def parts(self, size: str) -> Parts:
        """The small pipeline has fixed settings; for the larger ones each seed chooses, mostly small sizes."""
        return replace(self.special, settings={"small": ROOMY, "tight": TIGHT}.get(size))

    def with_snapshots(self, size: str, every_s: float | None = 0.0) -> Parts:
        """The same with barrier snapshots.

        Epochs last so long, and sources read once in each; if none is given, the seed chooses, and they read on.
        """
        parts = replace(self.parts(size), operator=SNAPSHOT.operator, source=SNAPSHOT.source, epochs=SNAPSHOT.epochs)
        if every_s is None:
            return parts
        settings = None if parts.settings is None else replace(parts.settings, read_max=2)
        return replace(parts, source=Paced, settings=settings, every_s=every_s)


def linear(events: int, size: int, *, has_all: bool = True) -> clew.Pipeline:
    """The seed's first use case: a stateful middle, then a writer in the middle, then a sink."""
    pipeline = clew.Pipeline("linear")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    if has_all:
        stream = stream.operator("double", ops.Double())
    stream = stream.operator("sliding", ops.Sliding(size, size // 2))
    stream = stream.operator("middle", ops.CountedWriter(2, Outside("store").writer()))
    if has_all:
        stream.operator("end", ops.Terminal())
    return pipeline


def fan_out(events: int, *, has_all: bool = True) -> clew.Pipeline:
    """One output port with several receivers of different speed, which release its events at different times."""
    pipeline = clew.Pipeline("fan-out")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    stream.write("each", Outside("each").writer())
    stream.operator("counted", ops.CountedWriter(2, Outside("counted").writer("checkable")))
    if has_all:
        stream.operator("sliding", ops.Sliding(4, 2)).write("windows", Outside("windows").writer("idempotent"))
        stream.operator("end", ops.Terminal())
    return pipeline


def fan_in(events: int, every: int, *, has_all: bool = True) -> clew.Pipeline:
    """The seed's second use case: two paths, and a writer that needs so many events on each of its two inputs."""
    pipeline = clew.Pipeline("fan-in")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    if has_all:
        fast = stream.operator("fast", ops.Double())
        slow = stream.operator("slow", ops.Sliding(4, 2))
    else:
        fast = slow = stream
    both = pipeline.operator("both", ops.Synchronised(every, Outside("store").writer()), {"left": fast, "right": slow})
    if has_all:
        both.operator("end", ops.Terminal())
    return pipeline


def two_sources(left: int, right: int, every: int) -> clew.Pipeline:
    """Two sources of different length, synchronised: what one has too many of is generated at the end."""
    pipeline = clew.Pipeline("two-sources")
    inputs = {
        "left": pipeline.source("left", scripted(numbers(left))),
        "right": pipeline.source("right", scripted(numbers(right, first=100), actions=min(2, right))),
    }
    pipeline.operator("both", ops.Synchronised(every, Outside("store").writer("checkable")), inputs)
    return pipeline


def diamond(events: int, *, has_all: bool = True) -> clew.Pipeline:
    """Two paths that part and meet again, where the order of arrival shows; one of them is direct in small."""
    pipeline = clew.Pipeline("diamond")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    left = stream.operator("left", ops.Double())
    right = stream.batch(2, name="right") if has_all else stream
    meet = pipeline.operator("meet", ops.Arrivals(("one", "two")), {"one": left, "two": right})
    if has_all:
        meet.write("report", Outside("report").writer())
    pipeline.lineage("numbers.out", "meet.out")
    return pipeline


def chance(events: int, *, has_all: bool = True) -> clew.Pipeline:
    """An operator that decides by chance and clock about assignment, triggering and the number of outputs."""
    pipeline = clew.Pipeline("chance")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    drawn = stream.operator("chance", ops.Chance())
    if has_all:
        drawn.write("report", Outside("report").writer("checkable"))
    return pipeline


def not_replayable(events: int, actions: int, *, has_all: bool = True) -> clew.Pipeline:
    """A source whose data differ each time that they are read, in several read actions."""
    pipeline = clew.Pipeline("not-replayable")
    stream = pipeline.source("readings", scripted(numbers(events), replayable=False, actions=actions))
    twos = stream.operator("twos", ops.OneReading(2, -(-events // actions)))
    if has_all:
        twos.write("report", Outside("report").writer())
    return pipeline


def two_writers(events: int) -> clew.Pipeline:
    """Two writers of different kinds on one outside system."""
    pipeline = clew.Pipeline("two-writers")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    shared = Outside("shared")
    stream.write("one", shared.writer("conditional"))
    stream.write("other", shared.writer("checkable"), every=2)
    return pipeline


def writes_first(events: int, *, has_all: bool = True) -> clew.Pipeline:
    """A writer that writes before it sends, and a reader downstream that looks for what was written."""
    pipeline = clew.Pipeline("writes-first")
    store = Outside("store")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    written = stream.operator("announce", ops.WriteThenSend(store.writer("checkable")))
    found = written.operator("look", ops.ReadWritten(store.reader()))
    if has_all:
        found.write("report", Outside("report").writer())
    return pipeline


def timers(script: list[int | None], *, has_all: bool = True) -> clew.Pipeline:
    """Windows that timers close, while the source pauses now and then."""
    schema = pa.schema({"x": pa.int64()})
    events = [None if each is None else pa.RecordBatch.from_pydict({"x": [each]}, schema=schema) for each in script]
    pipeline = clew.Pipeline("timers")
    timed = pipeline.source("numbers", scripted(events)).operator("timed", ops.Timed())
    if has_all:
        timed.write("report", Outside("report").writer())
    return pipeline


def paused(events: int, pauses: int) -> list[int | None]:
    """So many numbers with a few moments without any between them."""
    script: list[int | None] = []
    for number in range(1, events + 1):
        script.append(number)
        script.extend([None] * (number * 5 % pauses if number % 2 else 0))
    return script


def kinds(events: int, *names: str) -> clew.Pipeline:
    """One operator with a write connection of each kind."""
    pipeline = clew.Pipeline("kinds")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    stream.operator("kinds", ops.Kinds(**{kind: Outside(kind).writer(kind) for kind in names}))
    return pipeline


def dispatch(events: int, workers: int) -> clew.Pipeline:
    """The seed's third use case: a dispatcher that looks at the backlog, workers, and a merger."""
    pipeline = clew.Pipeline("dispatch")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    shared = stream.operator("dispatch", ops.Dispatch(workers))
    ports = [shared[f"out{number}"] for number in range(1, workers + 1)]
    if workers > 2:
        ports = [port.operator(f"worker{number}", ops.Double()) for number, port in enumerate(ports, 1)]
        ports[0].merge(*ports[1:], name="merge").write("report", Outside("report").writer())
    else:
        ports[0].merge(*ports[1:], name="merge")
    return pipeline


def keyed(events: int, keys: int, replicas: int, *, has_all: bool = True) -> clew.Pipeline:
    """Replicas that count by key: every key has one home, and what comes of it stays in order behind the merger."""
    pipeline = clew.Pipeline("keyed")
    stream = pipeline.source("orders", scripted(ops.keyed(events, 2, keys))).parallel(replicas, key="key")
    if has_all:
        counts = stream.operator("counts", ops.KeyCounts(2))
        counts.operator("watch", ops.KeyWatch()).write("report", Outside("report").writer())
        pipeline.lineage("orders.out", "counts-merge.out")
    else:
        stream.write("report", Outside("report").writer(), every=2)
    return pipeline


def replicas(events: int, count: int, *, has_all: bool = True) -> clew.Pipeline:
    """Replicas that take events in turn and write outside, each for itself; in large with a second input for all."""
    pipeline = clew.Pipeline("replicas")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    if has_all:
        rates = {"right": pipeline.source("rates", scripted(numbers(2, first=100)))}
        both = ops.Synchronised(2, Outside("store").writer("checkable"))
        work = stream.parallel(count).operator("work", both, rates)
        work.operator("end", ops.Terminal())
        pipeline.lineage("numbers.out", "work.store", keep_s=0.02)
    else:
        stream.parallel(count).write("work", Outside("store").writer("checkable"))
    return pipeline


def sessions(moments: list[int], *, has_all: bool = True) -> clew.Pipeline:
    """Sessions that merge: several Input Sets are generated together, and outputs say which of them they used."""
    pipeline = clew.Pipeline("sessions")
    schema = pa.schema({"at": pa.int64()})
    script = [pa.RecordBatch.from_pydict({"at": [moment]}, schema=schema) for moment in moments]
    stream = pipeline.source("clicks", scripted(script))
    found = stream.operator("sessions", ops.Sessions(3))
    if has_all:
        found.write("report", Outside("report").writer())
    pipeline.lineage("clicks.out", "sessions.out")
    return pipeline


def reused(events: int, every: int, *, has_all: bool = True) -> clew.Pipeline:
    """Keys that are used again after they were generated."""
    pipeline = clew.Pipeline("reused")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    found = stream.operator("reused", ops.Reused(every))
    if has_all:
        found.write("report", Outside("report").writer())
    pipeline.lineage("numbers.out", "reused.out")
    return pipeline


def no_set(events: int, *, has_all: bool = True) -> clew.Pipeline:
    """Events that belong to no Input Set."""
    pipeline = clew.Pipeline("no-set")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    found = stream.operator("choosy", ops.Choosy())
    if has_all:
        found.write("report", Outside("report").writer())
    pipeline.lineage("numbers.out", "choosy.out")
    return pipeline


def notes(events: int, every: int, *, has_all: bool = True) -> clew.Pipeline:
    """Pairs with notes that hold state, chance and clock, and attributes on outputs."""
    pipeline = clew.Pipeline("notes")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    found = stream.operator("noted", ops.Noted(every))
    if has_all:
        found.write("report", Outside("report").writer("idempotent"))
    return pipeline


def side_reads(events: int) -> clew.Pipeline:
    """Reads from an outside system that a third operator changes meanwhile, with captured lineage."""
    pipeline = clew.Pipeline("side-reads")
    prices = Outside("prices")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    stream.write("prices", prices.writer(), every=2)
    found = stream.operator("lookup", ops.Lookup(prices.reader()))
    if events > 2:
        found.write("report", Outside("report").writer())
    pipeline.lineage("numbers.out", "lookup.out")
    return pipeline


def retention(events: int, length: int, keep_s: float) -> clew.Pipeline:
    """A chain with overlapping lineage scopes of finite retention time."""
    pipeline = clew.Pipeline("retention")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    for number in range(1, length + 1):
        stream = stream.operator(f"link{number}", ops.Sliding(2, 1) if number == 2 else ops.Double())
    stream.write("report", Outside("report").writer(), every=2)
    pipeline.lineage("numbers.out", "report.to", keep_s=keep_s)
    if length > 1:
        pipeline.lineage("numbers.out", "link2.out", keep_s=keep_s / 3)
        pipeline.lineage("link1.out", f"link{length}.out", keep_s=keep_s * 2)
    return pipeline


def ports(events: int, *, has_all: bool = True) -> clew.Pipeline:
    """Several output ports: some with receivers, one without, and one that goes to two ports of one operator."""
    pipeline = clew.Pipeline("ports")
    stream = pipeline.source("numbers", scripted(numbers(events, rows=2)))
    split = stream.operator("split", ops.Split())
    split["odd"].operator("odd", ops.CountedWriter(2, Outside("odd").writer()))
    if has_all:
        split["even"].write("even", Outside("even").writer("checkable"))
        pipeline.operator("twice", ops.Arrivals(("one", "two")), {"one": split["odd"], "two": split["odd"]})
    return pipeline


def empty(events: int) -> clew.Pipeline:
    """A source that gives nothing, next to one that does; everything still ends."""
    pipeline = clew.Pipeline("empty")
    nothing = pipeline.source("nothing", scripted([]))
    something = pipeline.source("something", scripted(numbers(events)))
    merged = nothing.merge(something, name="merge")
    if events > 3:
        merged.write("report", Outside("report").writer())
        nothing.operator("windows", ops.Sliding(2, 1)).write("never", Outside("never").writer("checkable"))
    return pipeline


def bodies(events: int, length: int, *, has_all: bool = True) -> clew.Pipeline:
    """Large bodies, which the store keeps in files beside the log."""
    pipeline = clew.Pipeline("bodies")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    large = stream.operator("swell", ops.Swell(length))
    batched = large.batch(2, name="twos")
    if has_all:
        batched.write("report", Outside("report").writer())
        pipeline.lineage("swell.out", "twos.out", keep_s=0.02)
    return pipeline


def state(events: int, every: int, *, has_all: bool = True) -> clew.Pipeline:
    """Many keys of state, changed in place and walked through."""
    pipeline = clew.Pipeline("state")
    stream = pipeline.source("numbers", scripted(numbers(events, rows=2)))
    found = stream.operator("histogram", ops.Histogram(every))
    if has_all:
        found.write("report", Outside("report").writer())
    return pipeline


def poison(where: str, events: int, *bad: int, every: int = 2, has_all: bool = True) -> clew.Pipeline:
    """An operator that cannot digest some numbers: they go to its dead letters, the rest is as if they had not been."""
    pipeline = clew.Pipeline("poison")
    stream = pipeline.source("numbers", scripted(numbers(events)))
    eaten = stream.operator("eat", ops.Poisoned(where, bad, every), dead_letters=True)
    if has_all:
        eaten.write("report", Outside("report").writer())
        eaten["dead"].write("aside", Outside("aside").writer("checkable"))
    if every > 2:
        pipeline.lineage("numbers.out", "eat.dead")
        pipeline.lineage("numbers.out", "eat.out", keep_s=0.01)
    return pipeline


def poison_join(events: int) -> clew.Pipeline:
    """Two inputs with poison on both: the order of arrival changes between tries."""
    pipeline = clew.Pipeline("poison-join")
    left = pipeline.source("left", scripted(numbers(events)))
    right = pipeline.source("right", scripted(numbers(events, first=11)))
    inputs = {"one": left, "two": right}
    pipeline.operator("eat", ops.PoisonedArrivals((2, 12)), inputs, dead_letters=True)
    return pipeline


def sales(events: int, every: int, hours: int) -> clew.Pipeline:
    """The sales pipeline of the seed's Figure 1."""
    return example.build(scripted(example.sales(events, records=3, hours=hours)), every)


def sales_small() -> clew.Pipeline:
    """Figure 1 without what lies behind: three events, of which the second covers the turn of the hour."""
    pipeline = clew.Pipeline("sales")
    orders = pipeline.source("orders", scripted(example.sales(events=3, records=2, hours=2)))
    orders.operator("hourly", example.HourlyTotals())
    orders.operator("totals", example.Totals(2))
    pipeline.lineage("orders.out", "hourly.out")
    return pipeline


def with_files(graph: Graph) -> MemoryStore:
    """A store that puts bodies from 400 bytes up into files."""
    return MemoryStore(graph.describe(), "5eed", file_bytes_min=400)


class Forgetful(Moves):
    """Moves that keep only three keys of the state in memory, so that they load them again and again."""

    def __init__(self, node: Node, definition: clew.Operator | clew.Source, around: Surroundings) -> None:
        super().__init__(node, definition, around)
        self.ctx.state.kept_max = 3


MERGING = [1, 20, 2, 24, 5, 22, 40, 47, 44, 41, 60, 66, 63, 80, 90, 85, 93, 88, 96, 120, 121, 140]
"""Moments of clicks; 22, 44 and 63 each come between two sessions and merge them."""

OUT_OF_ORDER = [[1, 3], [2], [12], [8], [25, 14], [3], [40], [37, 44], [30], [47]]
"""Times of records that come out of order, some of them late."""

PIPELINES: dict[str, Case] = {
    "linear": Case(lambda: linear(2, 2, has_all=False), lambda: linear(6, 4), lambda: linear(24, 4)),
    "fan-out": Case(lambda: fan_out(2, has_all=False), lambda: fan_out(6), lambda: fan_out(16)),
    "fan-in": Case(lambda: fan_in(2, 1, has_all=False), lambda: fan_in(6, 2), lambda: fan_in(20, 4)),
    "two-sources": Case(lambda: two_sources(2, 1, 1), lambda: two_sources(7, 5, 2), lambda: two_sources(40, 30, 4)),
    "diamond": Case(lambda: diamond(1, has_all=False), lambda: diamond(5), lambda: diamond(18)),
    "chance": Case(lambda: chance(5, has_all=False), lambda: chance(8), lambda: chance(40)),
    "not-replayable": Case(
        lambda: not_replayable(3, 2, has_all=False), lambda: not_replayable(9, 3), lambda: not_replayable(40, 6)
    ),
    "two-writers": Case(lambda: two_writers(2), lambda: two_writers(8), lambda: two_writers(30)),
    "writes-first": Case(lambda: writes_first(2, has_all=False), lambda: writes_first(5), lambda: writes_first(18)),
    "sales": Case(sales_small, lambda: sales(8, 3, 4), lambda: sales(40, 8, 10)),
    "timers": Case(
        lambda: timers([1, None, None, None, 2, 3], has_all=False),
        lambda: timers(paused(9, 6)),
        lambda: timers(paused(40, 7)),
    ),
    "kinds": Case(
        lambda: kinds(2, "idempotent", "checkable"),
        lambda: kinds(7, "idempotent", "checkable", "conditional"),
        lambda: kinds(24, "idempotent", "checkable", "conditional"),
    ),
    "dispatch": Case(lambda: dispatch(2, 2), lambda: dispatch(6, 3), lambda: dispatch(24, 4)),
    "keyed": Case(lambda: keyed(2, 4, 2, has_all=False), lambda: keyed(5, 4, 2), lambda: keyed(20, 7, 3)),
    "replicas": Case(lambda: replicas(2, 2, has_all=False), lambda: replicas(5, 2), lambda: replicas(24, 3)),
    "sessions": Case(
        lambda: sessions([1, 6, 3, 20], has_all=False),
        lambda: sessions(MERGING[:9]),
        lambda: sessions(MERGING),
    ),
    "reused": Case(lambda: reused(3, 2, has_all=False), lambda: reused(8, 2), lambda: reused(30, 3)),
    "no-set": Case(lambda: no_set(4, has_all=False), lambda: no_set(10), lambda: no_set(36)),
    "notes": Case(lambda: notes(3, 2, has_all=False), lambda: notes(9, 2), lambda: notes(36, 3)),
    "side-reads": Case(lambda: side_reads(2), lambda: side_reads(5), lambda: side_reads(20)),
    "retention": Case(lambda: retention(2, 1, 0.001), lambda: retention(6, 2, 0.01), lambda: retention(24, 4, 0.02)),
    "ports": Case(lambda: ports(2, has_all=False), lambda: ports(4), lambda: ports(14)),
    "empty": Case(lambda: empty(2), lambda: empty(5), lambda: empty(24)),
    "bodies": Case(
        lambda: bodies(2, 500, has_all=False),
        lambda: bodies(6, 1000),
        lambda: bodies(24, 5000),
        special=Parts(store=with_files),
    ),
    "poison": Case(
        lambda: poison("generate", 1, 1, every=1, has_all=False),
        lambda: poison("generate", 5, 3),
        lambda: poison("generate", 18, 3, 7, 8, 15, every=3),
    ),
    "state": Case(
        lambda: state(3, 2, has_all=False), lambda: state(8, 2), lambda: state(30, 3), special=Parts(moves=Forgetful)
    ),
    "windows": Case(
        lambda: timed.windows([[1, 3], [9]], 2, has_all=False),
        lambda: timed.windows(OUT_OF_ORDER[:6], 4),
        lambda: timed.windows(OUT_OF_ORDER * 2, 4),
    ),
    "windows-once": Case(
        lambda: timed.windows([[1], [9, 2]], 2, has_all=False, replayable=False),
        lambda: timed.windows(OUT_OF_ORDER[:5], 4, replayable=False, actions=2),
        lambda: timed.windows(OUT_OF_ORDER * 2, 4, replayable=False, actions=5),
    ),
    "join": Case(
        lambda: timed.join([[1]], [[1], [7]], 4, has_all=False),
        lambda: timed.join(OUT_OF_ORDER[:4], OUT_OF_ORDER[2:6], 4),
        lambda: timed.join(OUT_OF_ORDER, OUT_OF_ORDER[2:7] * 3, 4),
    ),
    "aligned": Case(
        lambda: timed.join([[1], [6]], [[5]], 4, has_all=False, ahead_by=2),
        lambda: timed.join(OUT_OF_ORDER[:5], [[1], [9], None, [30]], 4, ahead_by=5, idle_after_s=0.05),
        lambda: timed.join(OUT_OF_ORDER, OUT_OF_ORDER[2:7] * 3, 4, ahead_by=5),
    ),
    "idle": Case(
        lambda: timed.join([None, None, [9]], [[8], None, None], 4, has_all=False, idle_after_s=0.02),
        lambda: timed.join([[1], None, None, [3], [20]], [[1], [8], None, None, None, [16]], 4, idle_after_s=0.05),
        lambda: timed.join(
            [[1], None, None, [3], [20], *[None] * 5, [40]], [*OUT_OF_ORDER, None, None, [60]], 4, idle_after_s=0.05
        ),
    ),
    "idle-once": Case(
        lambda: timed.join([[1], None, None], [[9], None], 4, has_all=False, idle_after_s=0.02, replayable=False),
        lambda: timed.join(
            [[1], [9], [6], None, None, [8]],
            [[20], [24], None, None, None, [30]],
            4,
            idle_after_s=0.02,
            replayable=False,
            actions=3,
        ),
        lambda: timed.join(
            [[1], [9], [6], None, None, [8], [20], [19], [18], None, None, [17]],
            [[20], [24], None, None, [30], *OUT_OF_ORDER],
            4,
            idle_after_s=0.02,
            replayable=False,
            actions=4,
        ),
    ),
    "holds": Case(
        lambda: timed.holds([[1], [6]], has_all=False),
        lambda: timed.holds(OUT_OF_ORDER[:5]),
        lambda: timed.holds(OUT_OF_ORDER * 2),
    ),
    "timed-parallel": Case(
        lambda: timed.windows([[2], [5]], 3, has_all=False),
        lambda: timed.parallel([[2, 3], [9], [8]], 2),
        lambda: timed.parallel(OUT_OF_ORDER, 3),
    ),
    "timed-poison": Case(
        lambda: timed.poison([[1], [7]], [7], has_all=False),
        lambda: timed.poison([[1], [2], [9], [3, 10]], [2]),
        lambda: timed.poison(OUT_OF_ORDER, [8, 30]),
    ),
    "loop": Case(lambda: timed.small_loop(0), lambda: timed.small_loop(3), lambda: timed.loop(6, 3, 12)),
}
