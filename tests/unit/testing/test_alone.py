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
