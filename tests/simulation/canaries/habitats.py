"""Habitats: the tiny pipelines on which canaries live, each made so that one promise matters in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tests.simulation import timed
from tests.simulation.canaries.exchange import exchange
from tests.simulation.canaries.operators import Dice, Hours, Look, Orders, Pairs, Quiet, Sorted, Windows, numbers
from tests.simulation.operators import KeyCounts, Poisoned, keyed
from tests.simulation.pacing import Paced

import clew
from clew.log.memory import MemoryStore
from clew.model.graph import Graph
from clew.protocol.effects import Effect, Send
from clew.protocol.outbound import OutPort
from clew.protocol.settings import Settings
from clew.testing import Outside, scripted
from clew.verify.parts import SNAPSHOT, Parts


@dataclass(frozen=True)
class Habitat:
    """A pipeline and the healthy parts that it runs on."""

    name: str
    build: Callable[[], clew.Pipeline]
    parts: Parts = field(default_factory=Parts)

    @cached_property
    def graph(self) -> Graph:
        """The pipeline, built once: it is never changed."""
        return self.build().build()


TINY = Settings(window=2, commit_max=1, cache_max=1, read_max=1, pull_max=1)
"""Whatever can be cut into pieces is cut into the smallest."""

HABITATS: dict[str, Habitat] = {}
"""All habitats by name."""


def habitat(parts: Parts | None = None) -> Callable[[Callable[[], clew.Pipeline]], Habitat]:
    """Makes a habitat of a function that builds a pipeline."""

    def make(build: Callable[[], clew.Pipeline]) -> Habitat:
        made = HABITATS[build.__name__] = Habitat(build.__name__, build, parts or Parts())
        return made

    return make


@habitat()
def pairs() -> clew.Pipeline:
    """A stateful operator between a source and a sink."""
    pipeline = clew.Pipeline("pairs")
    source = pipeline.source("numbers", scripted(numbers(4)))
    source.operator("pairs", Pairs()).write("report", Outside("report").writer())
    return pipeline


@habitat(
    Parts(
        settings=Settings(window=1, cache_max=1),
        store=lambda graph: MemoryStore(graph.describe(), "5eed", file_bytes_min=1),
    )
)
def files() -> clew.Pipeline:
    """An operator that throws dice; the body of every event is in a file beside the log, and is read from there."""
    pipeline = clew.Pipeline("files")
    source = pipeline.source("numbers", scripted(numbers(1)))
    source.operator("dice", Dice()).write("report", Outside("report").writer())
    return pipeline


@habitat()
def windows() -> clew.Pipeline:
    """Each event belongs to two Input Sets and has notes."""
    pipeline = clew.Pipeline("windows")
    pipeline.source("numbers", scripted(numbers(4))).operator("windows", Windows())
    return pipeline


def _two_inputs(name: str, is_sorted: bool) -> clew.Pipeline:
    pipeline = clew.Pipeline(name)
    p = pipeline.source("p", scripted([[{"hour": 1, "x": 11}], [{"hour": 2, "x": 12}]]))
    q = pipeline.source("q", scripted([[{"hour": 1, "x": 21}], [{"hour": 1, "x": 22}]]))
    pipeline.operator("hours", Hours(is_sorted), {"p": p, "q": q})
    return pipeline


@habitat()
def hours() -> clew.Pipeline:
    """Two inputs whose events end each other's Input Sets, in whatever order they arrive."""
    return _two_inputs("hours", is_sorted=True)


@habitat(Parts(settings=TINY))
def arrivals() -> clew.Pipeline:
    """The same, where the order of arrival makes a difference."""
    return _two_inputs("arrivals", is_sorted=False)


@habitat()
def quiet() -> clew.Pipeline:
    """A timer that rings when the source pauses."""
    pipeline = clew.Pipeline("quiet")
    one, two, three, four = numbers(4)
    pipeline.source("numbers", scripted([one, two, three, None, four])).operator("quiet", Quiet())
    return pipeline


@habitat()
def checkable() -> clew.Pipeline:
    """Writes that can be asked for."""
    pipeline = clew.Pipeline("checkable")
    pipeline.source("numbers", scripted(numbers(3))).write("report", Outside("report").writer("checkable"))
    return pipeline


@habitat()
def idempotent() -> clew.Pipeline:
    """Writes that may be done twice in a row."""
    pipeline = clew.Pipeline("idempotent")
    pipeline.source("numbers", scripted(numbers(3))).write("report", Outside("report").writer("idempotent"))
    return pipeline


@habitat()
def shop() -> clew.Pipeline:
    """A writer whose writes come before its outputs, with a reader downstream."""
    pipeline = clew.Pipeline("shop")
    pipeline.source("numbers", scripted(numbers(3))).operator("orders", Orders()).operator("look", Look())
    return pipeline


@habitat()
def fan_out() -> clew.Pipeline:
    """One port with two receivers, one of which keeps its events for longer."""
    pipeline = clew.Pipeline("fan-out")
    source = pipeline.source("numbers", scripted(numbers(4)))
    source.write("at-once", Outside("one").writer())
    source.write("together", Outside("other").writer(), every=3)
    return pipeline


@habitat(Parts(settings=TINY))
def unrepeatable() -> clew.Pipeline:
    """A source that gives other data each time it is read."""
    pipeline = clew.Pipeline("unrepeatable")
    source = pipeline.source("numbers", scripted(numbers(4), replayable=False, actions=2))
    source.write("report", Outside("report").writer())
    return pipeline


@habitat()
def traced() -> clew.Pipeline:
    """Captured lineage of groups of Input Sets, with a read action in each generation."""
    return _traced("traced", None)


@habitat()
def expiring() -> clew.Pipeline:
    """The same, with lineage that is kept for a moment only."""
    return _traced("expiring", 0.001)


def _traced(name: str, keep_s: float | None) -> clew.Pipeline:
    pipeline = clew.Pipeline(name)
    source = pipeline.source("numbers", scripted(numbers(4)))
    source.operator("sorted", Sorted()).write("report", Outside("report").writer())
    pipeline.lineage("numbers.out", "sorted.out", keep_s)
    return pipeline


@habitat()
def replicas() -> clew.Pipeline:
    """Two replicas that count by key, with a dispatcher and a merger."""
    pipeline = clew.Pipeline("replicas")
    orders = pipeline.source("orders", scripted(keyed(4, 1, 4)))
    orders.parallel(2, key="key").operator("counts", KeyCounts(1))
    return pipeline


@habitat()
def poison() -> clew.Pipeline:
    """An Input Set that its operator cannot generate from; its dead letters wait in the log."""
    pipeline = clew.Pipeline("poison")
    source = pipeline.source("numbers", scripted(numbers(3)))
    source.operator("eat", Poisoned("generate", [2]), dead_letters=True)
    return pipeline


class LeakyPort(OutPort):
    """Stands for a network that loses messages while both ends live: every second event, once, if another follows."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.lost: set[int] = set()

    def pump(self, is_allowed: Any, effects: list[Effect]) -> None:
        sent: list[Effect] = []
        super().pump(is_allowed, sent)
        for effect, following in zip(sent, [*sent[1:], None], strict=False):
            number = effect.event.id if isinstance(effect, Send) and isinstance(following, Send) else 1
            if number % 2 or number in self.lost:
                effects.append(effect)
            else:
                self.lost.add(number)


@habitat(exchange(Parts(settings=Settings(window=4, commit_max=2)), LeakyPort))
def leaky() -> clew.Pipeline:
    """A connection that loses messages."""
    pipeline = clew.Pipeline("leaky")
    pipeline.source("numbers", scripted(numbers(5))).write("report", Outside("report").writer())
    return pipeline


@habitat()
def moments() -> clew.Pipeline:
    """Windows of time behind an operator that passes events on, and more windows behind them."""
    pipeline = clew.Pipeline("moments")
    stream = timed.source(pipeline, "moments", [[1], [6], [3]], late_by=2)
    stream.operator("windows", timed.Windows(2)).operator("larger", timed.Windows(4))
    return pipeline


@habitat()
def two_moments() -> clew.Pipeline:
    """Two sources, one of which is idle for a while."""
    return timed.join([[1], None, None, [5]], [[1], [8]], 4, has_all=False, idle_after_s=0.05)


@habitat()
def loops() -> clew.Pipeline:
    """A number that goes round twice."""
    return timed.small_loop(2)


EPOCHS = replace(
    SNAPSHOT, source=Paced, every_s=0.0, settings=Settings(window=4, commit_max=2, read_max=1, backlog_max=4)
)
"""Epochs as short as can be, one after the other, with one read in each."""


@habitat(EPOCHS)
def epochs_pairs() -> clew.Pipeline:
    """A stateful operator between a source and a writer, with snapshots."""
    pipeline = clew.Pipeline("epochs-pairs")
    source = pipeline.source("numbers", scripted(numbers(6)))
    paired = source.operator("pairs", Pairs())
    paired.write("report", Outside("report").writer())
    return pipeline


@habitat(EPOCHS)
def epochs_two() -> clew.Pipeline:
    """Two inputs whose order of arrival makes a difference, and a writer, with snapshots."""
    pipeline = clew.Pipeline("epochs-two")
    p = pipeline.source("p", scripted([[{"hour": 1, "x": 11}], [{"hour": 2, "x": 12}], [{"hour": 3, "x": 13}]]))
    q = pipeline.source("q", scripted([[{"hour": 1, "x": 21}], [{"hour": 1, "x": 22}]]))
    pipeline.operator("hours", Hours(False), {"p": p, "q": q})
    return pipeline


@habitat(EPOCHS)
def epochs_idempotent() -> clew.Pipeline:
    """Writes that may be done twice in a row, with snapshots."""
    pipeline = clew.Pipeline("epochs-idempotent")
    pipeline.source("numbers", scripted(numbers(4))).write("report", Outside("report").writer("idempotent"))
    return pipeline


@habitat(EPOCHS)
def epochs_moments() -> clew.Pipeline:
    """Two sources with times, joined by windows, with snapshots."""
    return timed.join([[1], [5]], [[1], [8]], 4, has_all=False)
