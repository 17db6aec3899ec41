"""Tumbling and sliding time windows: any arrival within the rule of frontiers gives what a batch computation gives."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operators import timed_script as play
from tests.unit.operators.timed_script import Row, Script

from clew.errors import MoveError
from clew.model.event import Event, as_batch
from clew.model.operator import Context, Operator
from clew.operators import aggregate as aggregating
from clew.operators.aggregate import Aggregates
from clew.operators.gathered import Kept
from clew.operators.late import Late
from clew.operators.timed import aggregate, histogram, window
from clew.operators.window import OnRecords
from clew.operators.windowed import Windowed
from clew.operators.windows import Windows, sliding, tumbling
from clew.testing import Alone

SHAPES = [tumbling(10), tumbling(7, offset=3), sliding(10, 4), sliding(12, 3, offset=-1)]
SPEC = {
    "n": "count",
    "total": ("amount", "sum"),
    "least": ("amount", "min"),
    "most": ("weight", "max"),
    "weight": ("weight", "sum"),
    "mean": ("weight", "mean"),
    "items": ("item", "count"),
}


def numbers(windows: Windows) -> tuple[int, int, int]:
    return windows.size, windows.every, windows.offset  # type: ignore[return-value]


def same(table: Any) -> Any:
    return table


def aggregates(rows: list[Row]) -> Row:
    """What SPEC says, record by record."""
    weight = 0.0
    for row in rows:
        weight += row["weight"]
    return {
        "n": len(rows),
        "total": sum(row["amount"] for row in rows),
        "least": min(row["amount"] for row in rows),
        "most": max(row["weight"] for row in rows),
        "weight": weight,
        "mean": weight / len(rows),
        "items": sum(row["item"] is not None for row in rows),
    }


def frees(windows: Windows, script: Script) -> Any:
    """After each step, what is open is what the frontier has not passed, and nothing else is kept."""
    done: list[Any] = []

    def check(alone: Alone, step: Any) -> None:
        done.append(step)
        found, _ = play.by_window(done, *numbers(windows))
        has_open = {start for start in found if start + windows.size > play.frontier(done)}  # type: ignore[operator]
        assert set(alone.open_sets) == has_open
        operator: Any = alone._operator
        assert set(operator._kept) == set(operator._starts) == has_open
        assert operator._late == {}

    return check


def check_records(operator: Operator, windows: Windows, script: Script, *, looks_inside: bool = True) -> None:
    """All records of each window in the order of their assignment, each window once; late ones counted or sent."""
    found, late = play.by_window(script, *numbers(windows))
    outcome = play.play(operator, script, frees(windows, script) if looks_inside else None)
    sent = [each.rows for each in outcome.alone.sent if each.port == "out"]
    assert [(rows[0]["window_start"], [row["id"] for row in rows]) for rows in sent] == [
        (start, [row["id"] for row in rows]) for start, rows in found.items()
    ]
    if operator.late is Late.PORT:  # type: ignore[attr-defined]
        assert outcome.late == late
        assert outcome.alone.context.counts == {}
    else:
        assert outcome.alone.context.counts.get("late", 0) == len(late)


def check_aggregates(operator: Operator, windows: Windows, script: Script) -> None:
    found, late = play.by_window(script, *numbers(windows))
    outcome = play.play(operator, script, frees(windows, script))
    expected = [
        {"window_start": start, "window_end": start + windows.size, "item": item, **aggregates(rows)}  # type: ignore[operator]
        for start, members in found.items()
        for item, rows in play.by_key(members).items()
    ]
    assert outcome.rows == expected
    assert outcome.alone.context.counts.get("late", 0) == len(late)


@pytest.mark.parametrize("windows", SHAPES)
@pytest.mark.parametrize("late", ["drop", "port"])
def test_windows_hold_the_records_of_a_batch_computation(windows: Windows, late: str) -> None:
    operator = window(windows, same, late=late)
    play.law(play.scripts(), lambda script: check_records(operator, windows, script))()


@pytest.mark.parametrize("windows", SHAPES)
def test_aggregates_are_those_of_a_batch_computation(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregating, "_ROWS", 3)  # So that rows are folded in small scripts as well.
    operator = aggregate(windows, SPEC, ["item"])
    play.law(play.scripts(), lambda script: check_aggregates(operator, windows, script))()


def test_histograms_count_values() -> None:
    def check(script: Script) -> None:
        found, _ = play.by_window(script, 10, 10)
        expected = [
            {"window_start": start, "window_end": start + 10, "item": item, "count": len(rows)}
            for start, members in found.items()
            for item, rows in play.by_key(members).items()
        ]
        assert play.play(histogram("item", tumbling(10)), script).rows == expected

    play.law(play.scripts(), check)()


@pytest.mark.parametrize("keys", [None, "even"])
def test_running_histograms_count_all_time_so_far(keys: str | None) -> None:
    def check(script: Script) -> None:
        for step in script:
            for row in step.rows if isinstance(step, play.Send) else ():
                row["even"] = row["amount"] % 2 == 0
        found, _ = play.by_window(script, 10, 10)
        so_far: dict[Any, int] = {}
        expected = []
        for start, rows in found.items():
            for row in rows:
                value = (row["even"], row["item"]) if keys else (row["item"],)
                so_far[value] = so_far.get(value, 0) + 1
            expected.append((start, dict(so_far)))
        outcome = play.play(histogram("item", tumbling(10), keys=keys, running=True), script)
        names = ("even", "item") if keys else ("item",)
        seen: dict[int, dict[Any, int]] = {}
        for row in outcome.rows:
            seen.setdefault(row["window_start"], {})[tuple(row[name] for name in names)] = row["count"]
        assert list(seen.items()) == expected
        assert outcome.alone.context.state == so_far

    play.law(play.scripts(), check)()


def test_a_running_histogram_writes_only_what_changed() -> None:
    alone = Alone(histogram("item", tumbling(10), running=True))
    alone.send([{"ts": 1, "item": "a"}, {"ts": 2, "item": "b"}, {"ts": 11, "item": "b"}], time=0)
    written: list[Any] = []

    class Watched(dict[Any, Any]):
        def __setitem__(self, key: Any, value: Any) -> None:
            written.append(key)
            super().__setitem__(key, value)

    alone.context.state = Watched(alone.context.state)
    alone.advance(10)
    assert written == [("a",), ("b",)]
    written.clear()
    assert [rows for _, rows in alone.advance(20)] == [
        [
            {"window_start": 10, "window_end": 20, "item": "a", "count": 1},
            {"window_start": 10, "window_end": 20, "item": "b", "count": 2},
        ]
    ]
    assert written == [("b",)]


# Canaries: broken operators that the laws above catch.


class Early(Windowed):
    """Closes one tick before the last moment has passed."""

    def complete(self, ctx: Context) -> Any:
        return super().complete(play.a_tick_ahead(ctx))


class Twice(Windowed):
    """Keeps in the state what `update` builds again after a crash."""

    def assign(self, event: Event, ctx: Context) -> Any:
        ctx.state["seen"] = [*ctx.state.get("seen", ()), (event.id, event.time, event.batch)]
        return super().assign(event, ctx)

    def open(self, ctx: Context) -> None:
        super().open(ctx)
        for number, time, batch in ctx.state.get("seen", ()):
            event = Event("sender", "in", number, batch, time=time).received("in")  # type: ignore[arg-type]
            for start in self.divided(event)[0].places:
                if not ctx.frontier().passed(start + 9):
                    self.update(start, event)


class Generous(Windowed):
    """Takes records whose window ends at the time of their event."""

    def divide(self, event: Event, found: Any) -> Any:
        return super().divide(Event(event.sender, event.port, event.id, event.batch, time=event.time - 1), found)


class Hasty(Windowed):
    """Calls records late whose window ends one tick after the time of their event."""

    def divide(self, event: Event, found: Any) -> Any:
        return super().divide(Event(event.sender, event.port, event.id, event.batch, time=event.time + 1), found)


class Hoarding(Windowed):
    """Never forgets."""

    def generate(self, input_sets: Any, ctx: Context) -> Any:
        kept = dict(self._kept)
        yield from super().generate(input_sets, ctx)
        self._kept.update((key, Kept(each.content, each.type)) for key, each in kept.items())
        self._starts = [start for start in self._starts if start not in input_sets]


@pytest.mark.parametrize("broken", [Early, Twice, Generous, Hasty, Hoarding])
def test_a_broken_operator_is_caught(broken: type[Windowed]) -> None:
    windows = tumbling(10)
    operator = broken(OnRecords(same), windows)
    with pytest.raises((AssertionError, MoveError)):
        play.law(play.scripts(), lambda script: check_records(operator, windows, script), 500, is_canary=True)()


def test_closing_early_shows_in_what_leaves() -> None:
    windows, script = tumbling(10), play.at_the_last_moment(9, 9)
    check_records(Windowed(OnRecords(same), windows), windows, script, looks_inside=False)
    with pytest.raises(AssertionError):
        check_records(Early(OnRecords(same), windows), windows, script, looks_inside=False)


def test_aggregates_that_count_twice_are_caught() -> None:
    windows = tumbling(10)
    operator = Twice(Aggregates(SPEC, ["item"]), windows)
    with pytest.raises(AssertionError):
        play.law(play.scripts(), lambda script: check_aggregates(operator, windows, script), 500, is_canary=True)()


# One by one.


def test_a_window_with_no_result_sends_nothing() -> None:
    alone = Alone(window(tumbling(10), lambda table: table.slice(0, 0)))
    alone.send([{"ts": 1}], time=0)
    assert alone.advance(10) == []
    assert alone.open_sets == []


def test_a_function_on_each_key() -> None:
    operator = window(tumbling(10), lambda table: [{"n": table.num_rows}], keys=["item"])
    alone = Alone(operator)
    alone.send([{"ts": 1, "item": "b"}, {"ts": 2, "item": "a"}, {"ts": 3, "item": "b"}], time=0)
    assert alone.advance(10) == [
        (
            "out",
            [
                {"window_start": 0, "window_end": 10, "item": "b", "n": 2},
                {"window_start": 0, "window_end": 10, "item": "a", "n": 1},
            ],
        )
    ]


def test_nothing_but_the_result_with_bounds_off() -> None:
    alone = Alone(aggregate(tumbling(10), {"n": "count"}, bounds=False))
    alone.send([{"ts": 1}], time=0)
    assert alone.advance(None) == [("out", [{"n": 1}])]


def test_late_records_leave_at_once_at_the_time_of_their_event() -> None:
    alone = Alone(aggregate(tumbling(10), {"n": "count"}, late="port"))
    alone.advance(25)
    assert alone.send([{"ts": 3, "x": 1}, {"ts": 26, "x": 2}], time=25, attributes={"late": True}) == [
        ("late", [{"ts": 3, "x": 1}])
    ]
    assert (alone.sent[0].time, alone.sent[0].attributes) == (25, {"late": True})
    alone.restart()
    assert alone.advance(30) == [("out", [{"window_start": 20, "window_end": 30, "n": 1}])]


def test_a_record_of_a_window_that_is_open_is_not_late_though_its_event_is_later() -> None:
    alone = Alone(aggregate(tumbling(10), {"n": "count"}, late="error"))
    alone.advance(9)
    alone.send([{"ts": 0}], time=9)
    assert alone.advance(10) == [("out", [{"window_start": 0, "window_end": 10, "n": 1}])]


def test_the_frontier_of_a_later_event_closes_nothing() -> None:
    alone = Alone(aggregate(tumbling(10), {"n": "count"}))
    alone.send([{"ts": 0}], time=0)
    alone.send([{"ts": 99}], time=99)
    assert alone.open_sets == [0, 90]
    alone.send([{"ts": 1}], time=1)
    assert alone.advance(10) == [("out", [{"window_start": 0, "window_end": 10, "n": 2}])]


def test_events_without_records_belong_nowhere() -> None:
    alone = Alone(aggregate(tumbling(10), {"n": "count"}))
    assert alone.send(as_batch([{"ts": 0}]).slice(0, 0), time=0) == []
    assert alone.open_sets == []


def test_scripts_have_late_records_and_restarts() -> None:
    """The laws would say little otherwise."""
    seen = {"late": 0, "restart": 0, "out of order": 0}

    def look(script: Script) -> None:
        _, late = play.by_window(script, 10, 10)
        seen["late"] += len(late)
        seen["restart"] += any(isinstance(step, play.Restart) for step in script)
        times = [step.time for step in script if isinstance(step, play.Send)]
        seen["out of order"] += times != sorted(times)

    play.law(play.scripts(), look, 100)()
    assert all(seen.values()), seen
