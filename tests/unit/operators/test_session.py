"""Sessions: any arrival within the rule of frontiers gives the sessions of a batch computation, each generated once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operators import timed_script as play
from tests.unit.operators.timed_script import Row, Script

from clew.errors import MoveError
from clew.model.event import Event
from clew.model.operator import Context, Operator
from clew.operators.session import COUNT, Sessions
from clew.operators.timed import aggregate, histogram, window
from clew.operators.window import OnRecords
from clew.operators.windows import session
from clew.testing import Alone

GAP = 6


def same(table: Any) -> Any:
    return table


def check_sessions(operator: Operator, script: Script, key: str | None, *, looks_inside: bool = True) -> None:
    """Each session once, with all its records; what is kept is what is open."""
    done: list[Any] = []

    def frees(alone: Alone, step: Any) -> None:
        done.append(step)
        found, _ = play.sessions_of(done, GAP, key)
        is_open = [each for each in found if each[-1]["ts"] + GAP > play.frontier(done)]
        state = {name: value for name, value in alone.context.state.items() if name != COUNT}
        assert sum(map(len, state.values())) == len(is_open)
        kept = {number for sessions in state.values() for _, _, sets in sessions for number, _ in sets}
        inner: Any = alone._operator
        assert set(alone.open_sets) == kept == set(inner._kept) == {number for _, number in inner._ends}

    outcome = play.play(operator, script, frees if looks_inside else None)
    found, late = play.sessions_of(script, GAP, key)
    expected = {frozenset(row["id"] for row in rows): (rows[0]["ts"], rows[-1]["ts"] + GAP) for rows in found}
    seen = [
        (frozenset(row["id"] for row in sent.rows), (sent.rows[0]["window_start"], sent.rows[0]["window_end"]))
        for sent in outcome.alone.sent
    ]
    assert len(seen) == len(expected)
    assert dict(seen) == expected
    assert outcome.alone.context.counts.get("late", 0) == len(late)
    assert {name for name in outcome.alone.context.state if name != COUNT} == set()


@pytest.mark.parametrize("key", [None, "item"])
def test_sessions_are_those_of_a_batch_computation(key: str | None) -> None:
    operator = window(session(GAP), same, keys=key)
    play.law(play.scripts(near_late=GAP), lambda script: check_sessions(operator, script, key))()


def test_aggregates_and_histograms_of_sessions() -> None:
    def check(script: Script) -> None:
        found, _ = play.sessions_of(script, GAP)
        totals = [
            {
                "window_start": rows[0]["ts"],
                "window_end": rows[-1]["ts"] + GAP,
                "item": rows[0]["item"],
                "n": len(rows),
                "total": sum(row["amount"] for row in rows),
            }
            for rows in found
        ]
        operator = aggregate(session(GAP), {"n": "count", "total": ("amount", "sum")}, "item")
        assert sorted(play.play(operator, script).rows, key=order) == sorted(totals, key=order)
        counts = sorted(play.play(histogram("item", session(GAP), keys="ts"), script).rows, key=order)
        assert sum(row["count"] for row in counts) == sum(row["n"] for row in totals)

    play.law(play.scripts(near_late=GAP), check, 30)()


def order(row: Row) -> Any:
    return row["window_start"], str(row["item"]), row.get("ts", 0)


class Touching(Sessions):
    """Joins records with exactly a gap between them."""

    def divide(self, event: Event, found: Any) -> Any:
        divided = super().divide(event, found)
        return divided._replace(parts=[part._replace(end=part.end + 1) for part in divided.parts])


class Apart(Sessions):
    """Never sees that two sessions are one."""

    def choose(self, event: Event, divided: Any, ctx: Context) -> Any:
        yield from super().choose(event, divided, ctx)
        for key, sessions in list(ctx.state.items()):
            if key != COUNT:
                ctx.state[key] = [[first, end, [each]] for first, end, sets in sessions for each in sets]


class Early(Sessions):
    """Closes one tick before the last moment has passed."""

    def complete(self, ctx: Context) -> Any:
        return super().complete(play.a_tick_ahead(ctx))


@pytest.mark.parametrize("broken", [Touching, Apart, Early])
def test_a_broken_operator_is_caught(broken: type[Sessions]) -> None:
    operator = broken(OnRecords(same, ["item"]), session(GAP), keys=["item"])

    def check(script: Script) -> None:
        check_sessions(operator, script, "item", looks_inside=broken is Early)

    with pytest.raises(AssertionError):
        play.law(play.scripts(near_late=GAP), check, 1000, is_canary=True)()


def test_closing_early_shows_in_what_leaves() -> None:
    script = play.at_the_last_moment(GAP - 1, GAP - 1)
    check_sessions(Sessions(OnRecords(same), session(GAP)), script, None, looks_inside=False)
    with pytest.raises(AssertionError):
        check_sessions(Early(OnRecords(same), session(GAP)), script, None, looks_inside=False)


def test_sessions_that_merge_are_generated_as_one_group() -> None:
    groups: list[Any] = []

    class Watched(Sessions):
        def generate(self, input_sets: Any, ctx: Context) -> Any:
            groups.append(list(input_sets))
            return super().generate(input_sets, ctx)

    alone = Alone(Watched(OnRecords(same), session(GAP)))
    alone.send([{"ts": 0, "x": 1}, {"ts": 10, "x": 2}], time=0)
    assert alone.open_sets == [1, 2]
    alone.send([{"ts": 5, "x": 3}], time=0)
    assert alone.open_sets == [1, 2]
    alone.restart()
    assert alone.advance(15) == []
    (sent,) = alone.advance(16)
    assert groups == [[1, 2]]
    assert [row["x"] for row in sent[1]] == [1, 2, 3]
    assert (sent[1][0]["window_start"], sent[1][0]["window_end"]) == (0, 16)
    assert alone.sent[0].time == 15
    assert alone.context.state == {COUNT: 2}


def test_a_record_joins_no_session_that_has_ended_by_the_time_of_its_event() -> None:
    """Whether the frontier was told before or not: the result is the same."""
    results = []
    for is_told in (False, True):
        alone = Alone(aggregate(session(10), {"n": "count"}))
        alone.send([{"ts": 0}], time=0)
        if is_told:
            alone.advance(10)
        alone.send([{"ts": 5}], time=10)
        alone.advance(20)
        results.append([sent.rows for sent in alone.sent])
    assert results[0] == results[1]
    assert [rows[0]["window_end"] for rows in results[0]] == [10, 15]


def test_late_records_of_sessions() -> None:
    alone = Alone(aggregate(session(10), {"n": "count"}, late="port"))
    assert alone.send([{"ts": 0}, {"ts": 1}], time=10) == [("late", [{"ts": 0}])]
    with pytest.raises(MoveError, match=r"1 late records of 2; the first is \{'ts': 0\}, at 0 by column 'ts', while"):
        Alone(aggregate(session(10), {"n": "count"}, late="error")).send([{"ts": 0}, {"ts": 1}], time=10)


def test_sessions_of_timestamps_and_two_keys() -> None:
    import datetime

    from clew.times.order import EventTime

    noon = datetime.datetime(2025, 2, 25, 12, tzinfo=datetime.UTC)
    minute = datetime.timedelta(minutes=1)
    alone = Alone(aggregate(session(5 * minute), {"n": "count"}, ["a", "b"]), order=EventTime())
    rows = [{"ts": noon + n * minute, "a": n % 2, "b": "x"} for n in (0, 1, 2, 3, 20)]
    alone.send(rows, time=noon)
    alone.advance(noon + 8 * minute)
    first, second = (sent.rows[0] for sent in alone.sent)
    assert first == {"window_start": noon, "window_end": noon + 7 * minute, "a": 0, "b": "x", "n": 2}
    assert second["window_end"] == noon + 8 * minute
    assert alone.open_sets == [2]
