"""The operators on event time behind streams: in the simulator, under any schedule, with crashes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from clew.errors import BuildError, Violation
from clew.model.event import Event
from clew.model.operator import Context
from clew.model.stamps import event_time
from clew.operators.aggregate import Aggregates
from clew.operators.windowed import Windowed
from clew.operators.windows import session, sliding, tumbling
from clew.pipeline import Pipeline, Stream
from clew.testing import Crash, Outside, run, scripted, verify


def orders(pipeline: Pipeline, name: str = "orders", seed: int = 3, late_by: int = 1) -> Stream:
    """Four events of two orders each, up to eight units late, of which the source waits for one."""
    dice = random.Random(seed)
    events = [
        [{"ts": 4 * number + dice.randrange(8), "item": dice.choice("ab"), "amount": number} for _ in range(2)]
        for number in range(4)
    ]
    return pipeline.source(name, scripted(events), times=event_time("ts", late_by, whole_numbers=True))


def totals(pipeline: Pipeline) -> None:
    stream = orders(pipeline).aggregate("totals", tumbling(6), {"n": "count"}, keys="item", late="port")
    stream.write("save", Outside("save").writer())
    stream["late"].write("late", Outside("late").writer())


def visits(pipeline: Pipeline) -> None:
    stream = orders(pipeline).aggregate("visits", session(4), {"n": "count", "t": ("amount", "sum")}, keys="item")
    stream.write("save", Outside("save").writer())


def so_far(pipeline: Pipeline) -> None:
    stream = orders(pipeline).histogram("counts", "item", tumbling(6), running=True)
    stream.write("save", Outside("save").writer())


def pairs(pipeline: Pipeline) -> None:
    returns = orders(pipeline, "returns", seed=4, late_by=3)
    orders(pipeline).join("pairs", returns, on="item", within=tumbling(6)).write("save", Outside("save").writer())


def latest(pipeline: Pipeline) -> None:
    stream = orders(pipeline).parallel(2, key="item")
    last = stream.window("latest", sliding(8, 4), lambda rows: [rows[-1]], keys="item", rows=True)
    last.write("save", Outside("save").writer())


ALL = [totals, visits, so_far, pairs, latest]


def built(declare: Callable[[Pipeline], None]) -> Pipeline:
    pipeline = Pipeline("timed")
    declare(pipeline)
    return pipeline


def order(row: dict[str, Any]) -> list[str]:
    return [str(value) for value in row.values()]


@pytest.mark.parametrize("declare", ALL)
def test_results_depend_on_no_schedule_and_no_crash(declare: Callable[[Pipeline], None]) -> None:
    operator = declare.__name__ if declare is not so_far else "counts"
    calm = sorted(run(built(declare)).rows("save.to"), key=order)
    assert calm
    for seed in range(1, 4):
        result = run(built(declare), crashes=[Crash(operator, seed)], seed=seed)
        assert result.restarts == 1
        assert sorted(result.rows("save.to"), key=order) == calm


def test_totals_of_a_run() -> None:
    rows = run(built(totals)).rows("save.to")
    late = run(built(totals)).rows("late.to")
    assert sum(row["n"] for row in rows) + len(late) == 8
    assert len({(row["window_start"], row["item"]) for row in rows}) == len(rows)


def test_a_stream_without_times_is_refused() -> None:
    pipeline = Pipeline("timeless")
    stream = pipeline.source("orders", scripted([[{"ts": 1}]]))
    stream.aggregate("totals", tumbling(6), {"n": "count"}).write("save", Outside("save").writer())
    with pytest.raises(
        BuildError, match=r"operator 'totals' works by time, but the events of its input in have no times"
    ):
        pipeline.build()


@pytest.mark.soak
@pytest.mark.parametrize("declare", ALL)
def test_a_crash_at_any_point(declare: Callable[[Pipeline], None]) -> None:
    assert verify(built(declare)) > 100


class Twice(Windowed):
    """Keeps in the state what `update` builds again after a crash."""

    def assign(self, event: Event, ctx: Context) -> Any:
        ctx.state["seen"] = [*ctx.state.get("seen", ()), (event.id, event.time, event.batch)]
        return super().assign(event, ctx)

    def open(self, ctx: Context) -> None:
        super().open(ctx)
        for number, time, batch in ctx.state.get("seen", ()):
            event = Event("orders", "out", number, batch, time=time).received("in")  # type: ignore[arg-type]
            for start in self.divided(event)[0].places:
                self.update(start, event)


@pytest.mark.soak
def test_an_operator_that_counts_twice_after_a_crash_is_caught() -> None:
    def declare(pipeline: Pipeline) -> None:
        twice = Twice(Aggregates({"n": "count"}), tumbling(6))
        orders(pipeline).operator("twice", twice).write("save", Outside("save").writer())

    with pytest.raises(Violation):
        verify(built(declare))
