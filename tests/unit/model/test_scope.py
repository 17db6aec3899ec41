"""Lineage scopes: Example 5 of LOG.io, and what its rules mean at the edges."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from clew.model.event import Event
from clew.model.graph import Capture, Graph, Scope
from clew.model.operator import Context, Operator
from clew.model.scope import capture, captures, paths, reachable
from clew.model.stamps import numbered
from clew.pipeline import Pipeline
from clew.testing import Outside, scripted
from clew.times import IDENTITY, Add


class Pass(Operator):
    def __init__(self, inputs: str = "in", outputs: str = "out", is_feedback: bool = False) -> None:
        self.inputs = tuple(inputs.split())
        self.outputs = tuple(outputs.split())
        self.is_feedback = is_feedback
        self.summaries = dict.fromkeys(self.inputs, Add(1) if is_feedback else IDENTITY)

    def assign(self, event: Event, ctx: Context) -> list[int]:
        return [event.id]

    def update(self, input_set: Any, event: Event, note: Any = None) -> None: ...

    def generate(self, input_sets: Any, ctx: Context) -> Iterable[tuple[str, Any]]:
        return ()


def both(inputs: str, outputs: str = "out") -> tuple[set[str], set[str]]:
    return set(inputs.split()), set(outputs.split())


def ports(found: dict[str, Capture]) -> dict[str, tuple[set[str], set[str]]]:
    return {name: (set(each.inputs), set(each.outputs)) for name, each in found.items()}


def figure_2() -> Pipeline:
    pipeline = Pipeline("figure-2")
    pipeline.source("R1", scripted([]))
    pipeline.source("R2", scripted([]))
    pipeline.operator("OP1", Pass(outputs="out1 out2"), "R2.out")
    pipeline.operator("OP2", Pass("in1 in2"), {"in1": "R1.out", "in2": "OP1.out1"})
    pipeline.operator("OP3", Pass("in1 in2"), {"in1": "OP2.out", "in2": "OP1.out2"})
    return pipeline


def test_example_5_paths() -> None:
    graph = figure_2().build()
    assert list(paths(graph, Scope("R2.out", "OP3.out"))) == [
        ("R2.out", "OP1.in", "OP1.out1", "OP2.in2", "OP2.out", "OP3.in1", "OP3.out"),
        ("R2.out", "OP1.in", "OP1.out2", "OP3.in2", "OP3.out"),
    ]


def test_example_5_ports() -> None:
    pipeline = figure_2()
    pipeline.lineage("R2.out", "OP3.out")
    graph = pipeline.build()
    captured = {name: node.capture for name, node in graph.nodes.items() if node.capture.is_on}
    assert ports(captured) == {"OP1": both("in", "out1 out2"), "OP2": both("in2"), "OP3": both("in1 in2")}
    assert captured["OP3"].targets == {"out": None}
    assert captured["OP1"].targets == captured["OP2"].targets == {}


def test_the_start_operator_is_not_captured() -> None:
    graph = figure_2().build()
    assert ports(capture(graph, Scope("OP1.out1", "OP3.out"))) == {"OP2": both("in2"), "OP3": both("in1")}


def test_a_target_in_the_middle_captures_nothing_behind_it() -> None:
    graph = figure_2().build()
    assert ports(capture(graph, Scope("R2.out", "OP1.out1"))) == {"OP1": both("in", "out1")}
    assert list(paths(graph, Scope("R2.out", "OP1.out1"))) == [("R2.out", "OP1.in", "OP1.out1")]


def test_two_scopes_are_captured_together() -> None:
    graph = figure_2().build()
    found = captures(graph, [Scope("R1.out", "OP3.out", 60), Scope("OP1.out2", "OP3.out", 30)])
    assert ports(found) == {"OP2": both("in1"), "OP3": both("in1 in2")}
    assert found["OP3"].targets == {"out": 60}


def test_one_scope_that_ends_where_another_goes_on() -> None:
    graph = figure_2().build()
    found = captures(graph, [Scope("R1.out", "OP2.out", 5), Scope("R2.out", "OP3.out", 7)])
    assert ports(found) == {"OP1": both("in", "out1 out2"), "OP2": both("in1 in2"), "OP3": both("in1 in2")}
    assert (found["OP2"].targets, found["OP3"].targets) == ({"out": 5}, {"out": 7})


def test_a_write_connection_as_target() -> None:
    pipeline = figure_2()
    pipeline.operator("W", Pass(), "OP3.out", writes={"a": Outside("a").writer(), "b": Outside("b").writer()})
    graph = pipeline.build()
    scope = Scope("OP2.out", "W.a")
    assert list(paths(graph, scope)) == [("OP2.out", "OP3.in1", "OP3.out", "W.in", "W.a")]
    assert ports(capture(graph, scope)) == {"OP3": both("in1"), "W": both("in", "a")}


def test_no_path() -> None:
    graph = figure_2().build()
    assert capture(graph, Scope("R1.out", "OP1.out1")) == {}
    assert list(paths(graph, Scope("R1.out", "OP1.out1"))) == []
    assert list(paths(graph, Scope("OP3.out", "OP3.out"))) == []
    assert reachable(graph, "R1.out") == ["OP2.out", "OP3.out"]


def ladder(rungs: int) -> Graph:
    """So many diamonds in a row, with 2 ** rungs paths."""
    pipeline = Pipeline("ladder")
    stream = pipeline.source("start", scripted([]))
    for rung in range(rungs):
        split = stream.operator(f"split{rung}", Pass(outputs="left right"))
        stream = pipeline.operator(f"join{rung}", Pass("left right"), {"left": split["left"], "right": split["right"]})
    stream.operator("end", Pass())
    pipeline.lineage("start.out", "end.out")
    return pipeline.build()


def test_many_diamonds_are_captured_fast_and_enumerated_one_by_one() -> None:
    graph = ladder(200)
    assert all(node.capture.is_on for node in graph.nodes.values() if not node.is_source)
    first, second = islice(paths(graph, graph.scopes[0]), 2)
    assert len(first) == len(second) == 1 + 2 * 401
    assert first != second


def test_a_few_diamonds_have_all_their_paths() -> None:
    graph = ladder(5)
    found = list(paths(graph, graph.scopes[0]))
    assert len(found) == len(set(found)) == 32


def loop() -> Pipeline:
    """in -> enter -> work -> exit, and from work back to enter."""
    pipeline = Pipeline("loop")
    pipeline.source("in", scripted([]), times=numbered())
    pipeline.operator("enter", Pass("new old"), {"new": "in.out"})
    pipeline.operator("work", Pass(outputs="again done"), "enter.out")
    pipeline.operator("way", Pass(is_feedback=True), "work.again")
    pipeline.connect("way.out", "enter.old")
    pipeline.operator("exit", Pass(), "work.done")
    return pipeline


def test_what_goes_round_is_captured_too() -> None:
    graph = loop().build()
    scope = Scope("in.out", "exit.out")
    assert ports(capture(graph, scope)) == {
        "enter": both("new old"),
        "work": both("in", "again done"),
        "way": both("in"),
        "exit": both("in"),
    }
    assert list(paths(graph, scope)) == [
        ("in.out", "enter.new", "enter.out", "work.in", "work.done", "exit.in", "exit.out")
    ]


def test_a_target_that_is_passed_and_reached_again() -> None:
    graph = loop().build()
    assert ports(capture(graph, Scope("in.out", "enter.out"))) == {
        "enter": both("new old"),
        "work": both("in", "again"),
        "way": both("in"),
    }


def test_a_start_on_a_cycle_is_captured_because_a_path_leads_through_it() -> None:
    graph = loop().build()
    scope = Scope("enter.out", "enter.out")
    assert list(paths(graph, scope)) == [
        ("enter.out", "work.in", "work.again", "way.in", "way.out", "enter.old", "enter.out")
    ]
    assert ports(capture(graph, scope)) == {
        "enter": both("old"),
        "work": both("in", "again"),
        "way": both("in"),
    }
