"""Propagation: the figures of the seed, refusals by their words, and work that is proportional to what changes."""

from __future__ import annotations

from typing import Any

import pytest

from clew.errors import MoveError
from clew.progress import propagation as module
from clew.progress.propagation import Propagation
from clew.progress.topology import Topology
from clew.times import IDENTITY, Add, Changes, Componentwise, Enter, Integers, Leave, Order, Product


def shown(kernel: Propagation) -> dict[Any, set[Any]]:
    return {place: set(times) for place, times in kernel.frontiers().items()}


def test_figure_2_3() -> None:
    """One capability at the output of Concat, time 5; only the way through Feedback adds to it."""
    edges = [
        ("concat.in1", "concat.out", IDENTITY),
        ("concat.in2", "concat.out", IDENTITY),
        ("concat.out", "branch.in", IDENTITY),
        ("branch.in", "branch.out", IDENTITY),
        ("branch.out", "feedback.in", IDENTITY),
        ("feedback.in", "feedback.out", Add(1)),
        ("feedback.out", "concat.in2", IDENTITY),
    ]
    places = list(dict.fromkeys(place for edge in edges for place in edge[:2]))
    kernel = Propagation(Topology.of_one_order(Integers(), places, edges), {"concat.out": {5: 1}})
    kernel.propagate()
    assert shown(kernel) == {
        "concat.in1": set(),
        "concat.in2": {6},
        "concat.out": {5},
        "branch.in": {5},
        "branch.out": {5},
        "feedback.in": {5},
        "feedback.out": {6},
    }


def test_a_negative_count_hides_only_itself() -> None:
    kernel = Propagation(Topology.of_one_order(Integers(), "a", []), {"a": {3: 1}})
    kernel.propagate()
    kernel.change("a", 4, -1)
    assert kernel.propagate() == {}
    kernel.change("a", 3, -1)
    assert {place: set(times) for place, times in kernel.propagate().items()} == {"a": set()}
    assert kernel.pointstamps("a") == {4: -1}


def test_a_loop_is_over_when_its_rounds_are() -> None:
    times, rounds = Integers(), Product(Integers(), Integers())
    orders: dict[str, Order] = {"source": times, "body": rounds, "feedback": rounds, "sink": times}
    graph = Topology(
        orders,
        [
            ("source", "body", Enter()),
            ("body", "feedback", Componentwise(IDENTITY, Add(1))),
            ("feedback", "body", IDENTITY),
            ("body", "sink", Leave()),
        ],
    )
    kernel = Propagation(graph, {"source": {0: 1}, "body": {(0, 2): 1}})
    kernel.propagate()
    assert shown(kernel) == {"source": {0}, "body": {(0, 0)}, "feedback": {(0, 1)}, "sink": {0}}
    kernel.change("source", 1, 1)
    kernel.change("source", 0, -1)
    kernel.propagate()
    assert shown(kernel) == {"source": {1}, "body": {(0, 2), (1, 0)}, "feedback": {(0, 3), (1, 1)}, "sink": {0}}
    kernel.change("body", (0, 2), -1)
    kernel.propagate()
    assert shown(kernel) == {"source": {1}, "body": {(1, 0)}, "feedback": {(1, 1)}, "sink": {1}}


@pytest.mark.parametrize(
    ("location", "time", "count", "words"),
    [
        ("a", 3, 0, "a change must not be 0"),
        ("a", 2, 1, "the frontier there is Antichain({3}). Only times that it covers can change."),
        ("b", 3, -1, "a change at 'b', time 3, which is over"),
        ("c", 3, 1, "there is no location 'c'; the locations are a, b"),
    ],
)
def test_refusals(location: str, time: int, count: int, words: str) -> None:
    kernel = Propagation(Topology.of_one_order(Integers(), "ab", [("a", "b", Add(1))]), {"a": {3: 1}})
    kernel.propagate()
    with pytest.raises(MoveError) as caught:
        kernel.change(location, time, count)
    assert words in str(caught.value)
    assert kernel.pointstamps("a") == Changes({3: 1})


def test_no_change_before_the_first_round() -> None:
    kernel = Propagation(Topology.of_one_order(Integers(), "a", []), {"a": {0: 1}})
    with pytest.raises(MoveError, match="which is over"):
        kernel.change("a", 0, 1)


def test_a_round_looks_only_at_what_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1000
    graph = Topology.of_one_order(Integers(), range(size), [(n, n + 1, IDENTITY) for n in range(size - 1)])
    kernel = Propagation(graph, {0: {0: 1}, size - 10: {0: 1}})
    kernel.propagate()
    asked: list[Any] = []
    real = module.Propagation._moves
    monkeypatch.setattr(
        module.Propagation, "_moves", lambda self, site, *rest: asked.append(site) or real(self, site, *rest)
    )
    kernel.change(size - 10, 0, -1)  # The first operator still holds 0, so nothing moves.
    assert kernel.propagate() == {}
    assert len(asked) == 1
    kernel.change(0, 5, 1)
    kernel.change(0, 0, -1)
    assert len(kernel.propagate()) == size
    assert len(asked) == 1 + size


def test_on_a_cycle_each_time_is_taken_once_at_each_place(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 50
    ring = [(n, (n + 1) % size, Add(1) if n == 0 else IDENTITY) for n in range(size)]
    kernel = Propagation(Topology.of_one_order(Integers(), range(size), ring), {7: {3: 1}})
    taken = []
    real = module.Agenda.take
    monkeypatch.setattr(module.Agenda, "take", lambda self: taken.append(real(self)) or taken[-1])
    kernel.propagate()
    kernel.change(7, 3, -1)
    kernel.propagate()
    pairs = [(site.location, time) for site, time in taken]
    assert len(pairs) <= 2 * (size + 2)
    assert all(pairs.count(pair) <= 2 for pair in pairs)  # Once for coming, once for going.
