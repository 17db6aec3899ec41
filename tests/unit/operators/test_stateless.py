"""The base of stateless operators, as users derive from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import clew
from clew.model.event import Event, as_batch
from clew.model.names import Replica
from clew.model.operator import Context
from clew.operators.batch import Batch
from clew.operators.stateless import Stateless
from clew.testing import Alone, scripted, verify


class Sorter(Stateless):
    outputs = ("even", "odd")

    def apply(self, event: Event, ctx: Context) -> Iterator[tuple[str, Any]]:
        for row in event.rows:
            yield ("odd" if row["x"] % 2 else "even"), [row]


class TwoInputs(Sorter):
    inputs = ("left", "right")


def event(number: int, port: str) -> Event:
    return Event(Replica("sender"), "out", number, as_batch([{"x": number}])).received(port)


def test_outputs_go_where_apply_says() -> None:
    assert Alone(Sorter()).send([{"x": 1}, {"x": 2}]) == [("odd", [{"x": 1}]), ("even", [{"x": 2}])]


def test_keys_name_the_port_only_where_there_are_several() -> None:
    alone = Alone(Sorter())
    assert Sorter().assign(event(7, "in"), alone.context) == (7,)
    assert TwoInputs().assign(event(7, "right"), alone.context) == (("right", 7),)


def test_what_waits_after_a_restart_is_generated_in_order() -> None:
    sorter = TwoInputs()
    ctx = Alone(sorter).context
    sorter.open(ctx)
    sorter.update(("left", 1), event(1, "left"))
    sorter.update(("right", 1), event(1, "right"))
    assert sorter.ready(ctx) == ([("left", 1)],)
    assert len(list(sorter.generate([("left", 1)], ctx))) == 1
    assert sorter.ready(ctx) == ([("right", 1)],)
    assert len(list(sorter.generate([("right", 1)], ctx))) == 1
    assert sorter.ready(ctx) == ()


def test_a_false_promise_to_generate_at_once_is_found_out() -> None:
    class Hasty(Batch):
        is_immediate = True

    pipeline = clew.Pipeline("hasty")
    numbers = pipeline.source("numbers", scripted([[{"x": number}] for number in range(4)]))
    numbers.operator("pairs", Hasty(2)).collect("found")
    with pytest.raises(clew.Violation, match=r"pairs: ready\(\) answered \[1\]; in a run without failures"):
        verify(pipeline, schedules=1)
