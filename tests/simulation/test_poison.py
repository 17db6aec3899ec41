"""Poison: inputs that always crash their operator, in each of its moves, with and without dead letters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.simulation.operators import Poisoned, PoisonedArrivals, numbers
from tests.simulation.pipelines import poison, poison_join
from tests.simulation.replay import check

import clew
from clew.errors import Violation
from clew.protocol.settings import Settings
from clew.testing import Crash, Outside, run, scripted
from clew.verify.parts import Parts
from clew.verify.schedule import Schedule
from clew.verify.simulator import simulate
from clew.verify.sweep import one_crash, random_schedules, try_all

MOVES = ("assign", "update", "refold", "generate", "on_timer", "finish")
CULPRIT = dict.fromkeys(MOVES, 2) | {"update": 3, "finish": 3}
"""A number that the move has to do with."""
FEW = Parts(settings=Settings(commit_max=4, window=4, tries=2, caution_moves=4))


def dead(pipeline: clew.Pipeline, **options: Any) -> list[tuple[list[Any], str, list[Any]]]:
    """What an operator `eat` set aside: values, move, Input Sets."""
    letters = run(pipeline, **options).dead_letters("eat")
    return [([*rows[0].values()], about["move"], about.get("input_sets", [])) for rows, about in letters]


@pytest.mark.parametrize("where", MOVES)
def test_dead_letters_and_all_else_are_exact_under_one_crash_at_every_point(where: str) -> None:
    graph = poison(where, 3, CULPRIT[where]).build()
    tally = try_all(f"poison-{where}", graph, lambda points, _: one_crash(points), parts=FEW)
    check(f"poison-{where}", "middle", tally)
    assert tally.runs > 200


@pytest.mark.parametrize("where", MOVES)
def test_dead_letters_have_lineage_under_random_schedules(where: str) -> None:
    graph = poison(where, 7, CULPRIT[where], every=3).build()
    tally = try_all(f"poison-{where}", graph, lambda points, _: random_schedules(60, points, 4))
    check(f"poison-{where}", "middle", tally)


def test_the_order_of_arrival_may_change_between_tries() -> None:
    tally = try_all("poison-join", poison_join(3).build(), lambda points, _: random_schedules(80, points, 4))
    check("poison-join", "middle", tally)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("assign", [([3], "fold", [])]),
        ("update", [([3], "fold", [])]),
        ("generate", [([3], "generate", [1]), ([4], "generate", [1])]),
        ("finish", [([number], "finish", sets) for number, sets in enumerate((["odd"], ["even"]) * 2, 1)]),
    ],
)
def test_what_is_set_aside(where: str, expected: list[Any]) -> None:
    found = dead(poison(where, 4, 3))
    assert found == expected


def test_a_timer_that_is_set_aside_is_described() -> None:
    ((rows, about),) = run(poison("on_timer", 4, 3)).dead_letters("eat")
    assert rows[0]["timer"] == "3"
    assert {name: about[name] for name in ("operator", "move", "timer")} == {
        "operator": "eat", "move": "fire", "timer": 3
    }  # fmt: skip
    assert "cannot digest [3]" in about["error"]


def test_a_pair_that_cannot_be_folded_again_leaves_the_rest_of_its_set() -> None:
    pipeline = poison("refold", 3, 1)
    assert dead(pipeline) == []  # Nothing is folded again without a crash.
    found = [dead(pipeline, crashes=[Crash("eat", 2)], seed=seed) for seed in range(8)]
    assert [([1], "refold", [0]), ([1], "refold", ["odd"])] in found
    assert all(len(letters) in (0, 2) for letters in found)  # None, if its assignment was not durable yet.


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("assign", r"assign\(\) and update\(\) for event numbers.out/2 on input port 'in' did not"),
        ("update", r"assign\(\) and update\(\) for event numbers.out/3 on input port 'in' did not"),
        ("generate", r"generate\(\) for Input Sets 0 with the events numbers.out/1, numbers.out/2 did not"),
        ("on_timer", r"on_timer\(\) for timer 2 did not"),
        ("finish", r"finish\(\) for Input Sets .* with the events numbers.out/1, numbers.out/2, numbers.out/3 did not"),
    ],
)
def test_without_dead_letters_the_run_stops_and_names_the_culprit_whatever_crashes(where: str, words: str) -> None:
    pipeline = clew.Pipeline("poison")
    stream = pipeline.source("numbers", scripted(numbers(3)))
    stream.operator("eat", Poisoned(where, [CULPRIT[where]]))
    graph = pipeline.build()
    expected = re.compile(
        f"^operator 'eat': {words} come to an end in [23] tries in a row; the last error was: .*Fault: c"
    )
    points = simulate(graph, parts=FEW).points
    for schedule in [Schedule(0), *one_crash(points)]:
        assert expected.search(simulate(graph, schedule, parts=FEW).violation or "")


def test_what_no_input_can_be_blamed_for_stops_the_run() -> None:
    class NeverReady(Poisoned):
        def ready(self, ctx: clew.Context) -> Any:
            raise ValueError("no")

    pipeline = clew.Pipeline("poison")
    stream = pipeline.source("numbers", scripted(numbers(2)))
    stream.operator("eat", NeverReady("nowhere", []), dead_letters=True)
    with pytest.raises(Violation, match=r"^operator 'eat': ready\(\) raised ValueError: no$"):
        run(pipeline)


def test_a_move_that_fails_only_once_is_told() -> None:
    failed: list[int] = []

    class Moody(PoisonedArrivals):
        def assign(self, event: clew.Event, ctx: clew.Context) -> list[Any]:
            if event.id == 2 and not failed:
                failed.append(1)
                raise ValueError("not now")
            return super().assign(event, ctx)

    pipeline = clew.Pipeline("moody")
    one, two = (pipeline.source(name, scripted(numbers(2))) for name in ("one", "two"))
    pipeline.operator("eat", Moody([]), {"one": one, "two": two})
    with pytest.raises(Violation, match=r"raised ValueError: not now; when it was tried again, it did not fail$"):
        run(pipeline)


def test_a_neighbour_that_faults_hit_again_and_again_is_not_to_blame() -> None:
    graph = poison("assign", 3, 2).build()
    for points in range(20, 140, 7):
        faults = ",".join(f"crash@{points + step}" for step in range(0, 30, 5))
        report = simulate(graph, Schedule.parse(f"1:{faults}"), parts=FEW)
        assert report.is_good, report.violation


def test_sugar_and_sinks_have_dead_letters_too() -> None:
    def halve(row: dict[str, Any]) -> dict[str, Any]:
        return {"x": 6 // (row["x"] - 2)}

    pipeline = clew.Pipeline("sugar")
    stream = pipeline.source("numbers", scripted(numbers(4)))
    halved = stream.map(halve, rows=True, dead_letters=True)
    sink = halved.write("report", Outside("report").writer(), ["y"], dead_letters=True)
    assert (halved.port, sink.port) == ("out", None)
    sink["dead"].write("aside", Outside("aside").writer())
    result = run(pipeline)
    assert result.rows("halve.dead") == [{"x": 2}]
    assert result.rows("report.to") == []
    assert result.rows("aside.to") == [{"x": -6}, {"x": 6}, {"x": 3}]  # None of them has a column y.
