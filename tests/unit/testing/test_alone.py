"""One operator alone: the moves come in the order that a pipeline promises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from clew.errors import MoveError
from clew.model.connection import ReadConnection
from clew.model.event import Event
from clew.model.operator import Assigned, Context, Operator
from clew.testing import Alone, Outside


class Minutes(Operator):
    """Sums per minute of arrival, ten seconds after the minute began; the first seen number is noted."""

    inputs = ("in", "more")

    def open(self, ctx: Context) -> None:
        self.sums: dict[int, list[Any]] = {}

    def assign(self, event: Event, ctx: Context) -> list[Assigned]:
        minute = int(ctx.now // 60)
        ctx.timer(minute, 60.0 * minute + 10)
        return [Assigned(minute, (event.input, ctx.now))]

    def update(self, input_set: Any, event: Event, note: Any = None) -> None:
        self.sums.setdefault(input_set, []).append((note[0], event.rows[0]["x"]))

    def ready(self, ctx: Context) -> list[list[int]]:
        return [[minute] for minute in self.sums if ctx.state.get(("due", minute))]

    def on_timer(self, name: Any, ctx: Context) -> None:
        ctx.state["due", name] = True

    def generate(self, input_sets: Any, ctx: Context) -> Iterator[tuple[str, Any]]:
        for minute in input_sets:
            yield "out", [{"minute": minute, "from": port, "x": x} for port, x in self.sums.pop(minute)]


def test_timers_fire_when_their_time_has_come() -> None:
    alone = Alone(Minutes(), now=60.0)
    assert alone.send([{"x": 1}]) == []
    assert alone.send([{"x": 2}], "more") == []
    assert alone.at(69.9) == []
    assert alone.at(70.0) == [("out", [{"minute": 1, "from": "in", "x": 1}, {"minute": 1, "from": "more", "x": 2}])]
    assert alone.at(999.0) == []


def test_a_restart_keeps_state_pairs_notes_and_timers() -> None:
    alone = Alone(Minutes())
    alone.send([{"x": 1}])
    alone.restart()
    alone.send([{"x": 2}], "more")
    alone.restart()
    assert alone.at(10) == [("out", [{"minute": 0, "from": "in", "x": 1}, {"minute": 0, "from": "more", "x": 2}])]


def test_the_end_generates_what_is_open() -> None:
    alone = Alone(Minutes())
    alone.send([{"x": 1}])
    assert alone.end() == [("out", [{"minute": 0, "from": "in", "x": 1}])]
    assert alone.context.ended == {"in", "more"}


class Forgetful(Operator):
    """Keeps in the object what belongs into the state."""

    count = 0

    def assign(self, event: Event, ctx: Context) -> Iterable[int]:
        self.count += 1
        return [(self.count - 1) // 2]

    def open(self, ctx: Context) -> None:
        self.sets: dict[int, int] = {}

    def update(self, input_set: Any, event: Event, note: Any = None) -> None:
        self.sets[input_set] = self.sets.get(input_set, 0) + 1

    def ready(self, ctx: Context) -> list[list[int]]:
        return [[number] for number, size in self.sets.items() if size == 2]

    def generate(self, input_sets: Any, ctx: Context) -> Iterator[tuple[str, Any]]:
        yield "out", [{"set": input_sets[0], "size": self.sets.pop(input_sets[0])}]


def test_a_restart_shows_what_an_operator_forgets() -> None:
    def run(crash: bool) -> list[Any]:
        alone = Alone(Forgetful())
        outputs = alone.send([{"x": 1}]) + alone.send([{"x": 2}]) + alone.send([{"x": 3}])
        if crash:
            alone.restart()
        return outputs + alone.send([{"x": 4}])

    assert run(crash=False) != run(crash=True)


def test_ready_may_name_open_sets_only() -> None:
    class Eager(Forgetful):
        def ready(self, ctx: Context) -> list[list[int]]:
            return [[99]]

    with pytest.raises(
        MoveError, match=r"ready\(\) of Eager named the Input Sets \[99\], which are not open; open are"
    ):
        Alone(Eager()).send([{"x": 1}])


def test_reads_are_answered_by_an_empty_outside_system() -> None:
    class Asking(Forgetful):
        reads: dict[str, ReadConnection] = {"rates": Outside("rates").reader()}  # noqa: RUF012

        def generate(self, input_sets: Any, ctx: Context) -> Iterator[tuple[str, Any]]:
            yield "out", [{"rates": ctx.read("rates").num_rows, "backlog": ctx.backlog("out")}]
            self.sets.clear()

    alone = Alone(Asking())
    alone.send([{"x": 1}])
    assert alone.send([{"x": 2}]) == [("out", [{"rates": 0, "backlog": 0}])]


class Latest(Operator):
    """The largest number seen, at the frontier; told how far it is, and holding what it will still say."""

    inputs = ("in", "more")
    is_timely = True

    def open(self, ctx: Context) -> None:
        self.events: dict[Any, Event] = {}

    def assign(self, event: Event, ctx: Context) -> list[Any]:
        ctx.count("seen")
        wanted = event.rows[0].get("at")
        return [event.rows[0]["x"] if wanted is None else Assigned(event.rows[0]["x"], time=wanted)]

    def update(self, input_set: Any, event: Event, note: Any = None) -> None:
        self.events[input_set] = event

    def on_frontier(self, port: str, frontier: Any, ctx: Context) -> None:
        ctx.state[port] = list(frontier)
        if ctx.state.get("in") == [7]:
            ctx.hold("seven", 7)

    def ready(self, ctx: Context) -> list[list[Any]]:
        over = [key for key, event in self.events.items() if ctx.frontier().passed(event.time)]
        return [over] if over else []

    def generate(self, input_sets: Any, ctx: Context) -> Iterator[tuple[str, Any]]:
        for key in input_sets:
            del self.events[key]
        yield "out", [{"x": max(input_sets)}]
        ctx.at(9)
        yield "out", [{"x": -1}]


def test_frontiers_are_told_and_hold_events_back() -> None:
    alone = Alone(Latest())
    assert not alone.context.frontier().passed(-1000)
    alone.send([{"x": 1}], time=3)
    alone.send([{"x": 2}], "more", time=2)
    assert alone.advance(4, "in") == []
    assert alone.context.state == {"in": [4]}
    alone.restart()
    assert alone.advance(4, "more") == [("out", [{"x": 2}]), ("out", [{"x": -1}])]
    assert [(sent.rows[0]["x"], sent.time) for sent in alone.sent] == [(2, 2), (-1, 9)]
    assert alone.context.counts == {"seen": 2}
    assert alone.advance(None) == []
    assert not alone.context.frontier()


def test_events_and_frontiers_keep_to_the_rule() -> None:
    alone = Alone(Latest())
    alone.advance(5)
    with pytest.raises(
        MoveError, match=r"an event at 4 was sent on port 'in', which has moved on to Antichain\(\{5\}\)"
    ):
        alone.send([{"x": 1}], time=4)
    with pytest.raises(MoveError, match=r"port 'in' would go back from Antichain\(\{5\}\) to Antichain\(\{4\}\)"):
        alone.advance(4)


def test_times_of_input_sets_keep_to_the_rule() -> None:
    alone = Alone(Latest())
    with pytest.raises(MoveError, match=r"gave the Input Set 1 the time 2, but its event is at 3"):
        alone.send([{"x": 1, "at": 2}], time=3)
    alone.send([{"x": 2, "at": 8}], time=3)
    with pytest.raises(MoveError, match=r"gave the Input Set 2 the time 9, .* earlier ones gave it 8"):
        alone.send([{"x": 2, "at": 9}], time=3)
    alone.advance(4)
    assert alone.sent[0].time == 8


def test_only_what_is_held_can_be_held_or_said() -> None:
    alone = Alone(Latest())
    with pytest.raises(MoveError, match=r"ctx.hold was given the time 7, which is not at or after one that .*: none"):
        alone.advance(7, "in")
    late = Alone(Latest())
    late.send([{"x": 1}], time=11)
    with pytest.raises(MoveError, match=r"ctx.at was given the time 9, which is not at or after .*holds: 11"):
        late.advance(None)


def test_holds_outlive_a_restart() -> None:
    class Holding(Latest):
        def assign(self, event: Event, ctx: Context) -> list[Any]:
            ctx.hold("a", event.time + 1)
            ctx.hold("b", event.time + 2)
            ctx.drop("b")
            return []

    alone = Alone(Holding())
    alone.send([{"x": 1}], time=3)
    alone.restart()
    assert alone.context.holds == {"a": 4}
