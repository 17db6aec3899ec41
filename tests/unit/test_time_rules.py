"""What an operator may do with times, and the words it hears when it does something else; loops; late records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from examples import components
from tests.simulation import timed

import clew
from clew.errors import Violation
from clew.testing import Outside, run, scripted, verify
from clew.times import Antichain, Integers, Product

Move = Callable[[Any], Any]


class Rules(clew.Operator):
    """An operator whose moves a test gives it."""

    is_timely = True

    def __init__(
        self, assign: Move | None = None, generate: Move | None = None, on_frontier: Move | None = None
    ) -> None:
        self._assign = assign
        self._generate = generate
        self._on_frontier = on_frontier

    def open(self, ctx: clew.Context) -> None:
        self.waiting: dict[Any, int] = {}

    def assign(self, event: clew.Event, ctx: Any) -> Iterable[Any]:
        return ["all"] if self._assign is None else self._assign((event, ctx))

    def update(self, key: Any, event: clew.Event, note: Any = None) -> None:
        self.waiting[key] = event.id

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[Any]]:
        return [[key] for key in self.waiting]

    def generate(self, keys: Sequence[Any], ctx: clew.Context) -> Iterable[Any]:
        for key in keys:
            self.waiting.pop(key)
            if self._generate is not None:
                self._generate(ctx)
            yield "out", [{"key": str(key)}]

    def on_frontier(self, port: str, frontier: Antichain, ctx: clew.Context) -> None:
        if self._on_frontier is not None:
            self._on_frontier(ctx)


def broken(**moves: Move) -> str:
    pipeline = clew.Pipeline("p")
    timed.source(pipeline, "moments", [[5], [9]], late_by=0).operator("rules", Rules(**moves))
    with pytest.raises(Violation) as caught:
        run(pipeline)
    return str(caught.value)


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        (
            {"assign": lambda given: [clew.Assigned("all", time=4)]},
            "assign() gave the Input Set 'all' the time 4, which is not at or after the time 5 of its event",
        ),
        (
            {"generate": lambda ctx: ctx.at(3)},
            "it yielded records at the time 3, which is not at or after one that it holds: 5",
        ),
        ({"on_frontier": lambda ctx: ctx.hold("mine", -3)}, "it would hold the time -3 under the name 'mine'"),
        ({"generate": lambda ctx: ctx.frontier("other")}, "asks for the frontier of 'other'; its input ports are in"),
        ({"generate": lambda ctx: ctx.at("noon")}, "'noon' is no time of Integers()"),
    ],
    ids=["assigned too early", "output too early", "held too early", "unknown port", "no time"],
)
def test_a_broken_rule_is_named(moves: dict[str, Move], words: str) -> None:
    assert words in broken(**moves)


def test_without_times_nothing_can_be_held() -> None:
    pipeline = clew.Pipeline("p")

    def assign(given: Any) -> list[str]:
        given[1].hold("mine", 3)
        return []

    rules = Rules(assign=assign)
    rules.is_timely = False
    pipeline.source("numbers", scripted([[{"x": 1}]])).operator("rules", rules)
    with pytest.raises(Violation, match="names the time 3, but its events have no times"):
        run(pipeline)


def test_only_timely_operators_have_frontiers() -> None:
    pipeline = clew.Pipeline("p")
    rules = Rules(generate=lambda ctx: ctx.frontier())
    rules.is_timely = False
    timed.source(pipeline, "moments", [[5]]).operator("rules", rules)
    with pytest.raises(Violation, match=r"asks for a frontier, but it is told none. Set is_timely = True"):
        run(pipeline)


def test_late_records_are_marked_counted_and_dropped_by_windows() -> None:
    result = run(timed.windows([[1], [20], [2, 21]], 4, late_by=3))
    assert result.rows("windows.out") == [{"t": 0, "from_in": 1}, {"t": 20, "from_in": 2}]
    assert result.rows("report.to") == [{"t": 0, "from_in": 1}, {"t": 12, "from_in": 1}]
    assert result.counts("moments") == {"late": 1}
    assert result.counts("windows") == {"dropped": 1}


def test_both_inputs_of_a_join_may_end_at_once() -> None:
    result = run(timed.join([[1, 2]], [[1]], 4))
    assert result.rows("report.to") == [{"t": 0, "from_left": 2, "from_right": 1}]


def test_a_replica_without_input_holds_nobody_back() -> None:
    result = run(timed.parallel([[2], [2], [30], [2]], 3))
    assert result.rows("larger.out") == [{"t": 0, "from_in": 1}, {"t": 24, "from_in": 1}]


def components_of(batches: list[list[dict[str, int]]]) -> list[dict[str, int]]:
    """What each batch changes, by union and find."""
    parent: dict[int, int] = {}

    def find(node: int) -> int:
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    rows, before = [], dict[int, int]()
    for number, batch in enumerate(batches):
        for edge in batch:
            one, other = sorted((find(edge["one"]), find(edge["other"])))
            parent[other] = one
        now = {node: find(node) for node in list(parent)}
        rows += [
            {"batch": number, "node": node, "component": now[node]}
            for node in sorted(now)
            if before.get(node) != now[node]
        ]
        before = now
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_components_are_what_union_and_find_gives(seed: int) -> None:
    batches = components.edges(6, 4, 14, seed)
    result = run(components.build(scripted(batches), Outside("report").writer()), crashes=[("spread", 3)], seed=seed)
    assert result.rows("report.to") == components_of(batches)


def test_components_survive_crashes() -> None:
    assert verify(components.build(scripted(components.edges(2, 2, 4)), Outside("report").writer()), schedules=10) > 30


class Pairs(clew.Stamps):
    """A user's own times: pairs, read from two columns, of which nothing is ever over before the end."""

    order = Product(Integers(), Integers())
    start = ((0, 0),)

    def stamp(self, batch: pa.RecordBatch, held: tuple[Any, ...]) -> Any:
        row = batch.to_pylist()[0]
        return [clew.Stamped(batch, (row["a"], row["b"]))], [(row["a"], 0), (0, row["b"])]


def test_times_of_ones_own() -> None:
    pipeline = clew.Pipeline("p")
    source = scripted([[{"a": 1, "b": 2}], [{"a": 1, "b": 5}], [{"a": 4, "b": 5}]])
    seen: list[Any] = []
    stream = pipeline.source("pairs", source, times=Pairs())
    stream.operator("rules", Rules(on_frontier=lambda ctx: seen.append(set(ctx.frontier()))))
    run(pipeline)
    assert seen[-1] == set()
    assert {(0, 2), (1, 0)} in seen


def test_stamps_that_go_back_are_refused() -> None:
    class Back(Pairs):
        def stamp(self, batch: pa.RecordBatch, held: tuple[Any, ...]) -> Any:
            return [clew.Stamped(batch, (3, 3))], [(3, 3)] if held == self.start else [(2, 3)]

    pipeline = clew.Pipeline("p")
    pipeline.source("pairs", scripted([[{"a": 1}], [{"a": 1}]]), times=Back()).operator("rules", Rules())
    with pytest.raises(
        Violation, match=r"source 'pairs' holds the time \(2, 3\), which is not at or after one that it"
    ):
        run(pipeline)
