"""Topologies: which graphs are refused, and what could result in what."""

from __future__ import annotations

from typing import Any

import pytest

from clew.errors import BuildError, CycleWithoutFeedback
from clew.progress.components import components
from clew.progress.topology import Topology
from clew.times import IDENTITY, Add, Componentwise, Enter, Integers, Leave, MaxPlus, Order, Poset, Product, Table

INT, LOOP = Integers(), Product(Integers(), Integers())
ROUND = Componentwise(IDENTITY, Add(1))
TWO = Poset("ab", [("a", "b")])


def test_example_5_1() -> None:
    """Two ways from L1 to L3; the smaller sum decides."""
    graph = Topology.of_one_order(
        INT,
        ["L1", "L2", "L3", "U"],
        [("L1", "L2", Add(2)), ("L2", "U", Add(1)), ("U", "L3", Add(1)), ("L2", "L3", Add(1))],
    )
    assert {place: times.elements for place, times in graph.reach("L1", 1).items()} == {
        "L1": (1,),
        "L2": (3,),
        "L3": (4,),
        "U": (4,),
    }
    assert not graph.could_result_in(("L1", 1), ("L3", 3))
    assert graph.could_result_in(("L1", 1), ("L1", 1))
    assert not graph.could_result_in(("L3", 1), ("L1", 99))


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ([("a", "b", Add(0)), ("b", "a", IDENTITY)], "a -> b -> a"),
        ([("a", "a", IDENTITY)], "a -> a"),
        ([("a", "b", [Add(1)]), ("b", "c", MaxPlus(0, 4)), ("c", "b", MaxPlus(0, 2))], "b -> c -> b"),
    ],
)
def test_a_cycle_that_does_not_advance_time_is_refused_by_name(edges: Any, cycle: str) -> None:
    with pytest.raises(CycleWithoutFeedback) as caught:
        Topology.of_one_order(INT, "abc", edges)
    assert f"the cycle {cycle} does not advance time" in str(caught.value)
    assert "feedback operator" in str(caught.value)


def test_one_idle_summary_of_several_is_enough_for_a_refusal() -> None:
    edges = [("a", "b", IDENTITY), ("b", "a", [Componentwise(Add(1), Add(0)), Componentwise(Add(0), Add(0))])]
    with pytest.raises(CycleWithoutFeedback):
        Topology.of_one_order(LOOP, "ab", edges)


def test_a_table_cannot_advance_the_greatest_element() -> None:
    with pytest.raises(CycleWithoutFeedback):
        Topology.of_one_order(TWO, "xy", [("x", "y", Table(TWO, "bb")), ("y", "x", Table(TWO, "bb"))])


def test_rounds_that_are_forgotten_on_leaving_do_not_count() -> None:
    orders: dict[str, Order] = {"out": INT, "in": LOOP, "next": LOOP}
    inside = [("out", "in", Enter()), ("in", "next", ROUND)]
    Topology(orders, [*inside, ("next", "in", IDENTITY)])
    with pytest.raises(CycleWithoutFeedback, match="out -> in -> next -> out"):
        Topology(orders, [*inside, ("next", "out", Leave())])


def test_a_loop_in_a_loop() -> None:
    """Leaving the inner loop, advancing the outer time and entering again gives an earlier round of a later time."""
    orders: dict[str, Order] = {"outer": INT, "inner": LOOP, "next": LOOP, "again": INT}
    edges = [("outer", "inner", Enter()), ("inner", "next", ROUND), ("next", "inner", IDENTITY)]
    graph = Topology(orders, [*edges, ("next", "again", Leave()), ("again", "outer", Add(1))])
    assert set(graph.reach("inner", (5, 3))["inner"]) == {(5, 3), (6, 0)}


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        (("a", "zz", IDENTITY), "names a location that the topology does not have: 'zz'"),
        (("a", "loop", IDENTITY), "it stays in one order of times"),
        (("loop", "loop2", Add(1)), "it adds to whole numbers"),
        (("loop", "loop2", Componentwise(Add(1))), "it has 1 components"),
        (("loop", "loop2", Componentwise(Add(1), Table(TWO, "bb"))), "it is a table of"),
        (("a", "b", Enter()), "inside, times must be of Product(Integers(), ...)"),
        (("a", "b", Leave()), "inside, times must be of Product(Integers(), ...)"),
    ],
)
def test_a_summary_that_does_not_fit_its_edge_is_refused(edge: Any, words: str) -> None:
    with pytest.raises(BuildError) as caught:
        Topology({"a": INT, "b": INT, "loop": LOOP, "loop2": LOOP}, [edge])
    assert words in str(caught.value)


def test_only_the_least_summaries_of_an_edge_are_kept() -> None:
    graph = Topology.of_one_order(INT, "ab", [("a", "b", [Add(3), Add(1)]), ("a", "b", Add(2)), ("b", "a", [])])
    assert graph.edges == {"a": {"b": (Add(1),)}, "b": {}}


def test_components_come_along_the_edges_however_long_the_graph() -> None:
    after: dict[int, list[int]] = {n: [n + 1] for n in range(5000)}
    assert components([*range(5001)][::-1], after) == [[n] for n in range(5001)]
