"""Exhaustive exploration: all is explained by the thesis' rules, and each broken protocol is caught."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clew.verify.semantics import Configuration, Program, Rules, Step, initial, steps
from clew.verify.semantics.__main__ import main
from clew.verify.semantics.explainable import explanation_of
from clew.verify.semantics.exploration import Exploration, explore, explore_by_chance
from clew.verify.semantics.graphs import GRAPHS, average, chain, two_sources
from clew.verify.semantics.mapping import explain, first_unexplained
from clew.verify.semantics.rules import ABS
from clew.verify.semantics.traces import application, told
from clew.verify.semantics.variants import CAPTURED_LATE, KEPT_OUTPUT, MAXIMUM, UNALIGNED, VARIANTS

COUNTS = {
    "chain": Exploration(configurations=60, steps=295, histories=3, executions=64753),
    "two sources": Exploration(configurations=38, steps=149, histories=7, executions=388),
    "diamond": Exploration(configurations=1113, steps=6632, histories=7, executions=655858645834260),
    "fan-out": Exploration(configurations=385, steps=2200, histories=3, executions=138231001012),
    "average": Exploration(configurations=28, steps=109, histories=5, executions=381),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_execution_with_two_failures_is_explained(name: str) -> None:
    assert explore(GRAPHS[name](), 2) == COUNTS[name]


@pytest.mark.soak
@pytest.mark.parametrize("name", GRAPHS)
def test_larger_programs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = explore(GRAPHS[name](2), 2)
    assert found.is_transparent, told(found.unexplained or ())
    with capsys.disabled():
        print(f"\n{name}, two events in an epoch: {found}")


def executions(c: Configuration, failures: int, rules: Rules = ABS) -> Iterator[list[Step]]:
    """All executions that cannot go on, one by one."""
    is_end = True
    for step, _, after in steps(c, rules):
        left = failures - (step.rule == "F-FAIL")
        if left >= 0:
            is_end = False
            for rest in executions(after, left, rules):
                yield [step, *rest]
    if is_end:
        yield []


@pytest.mark.parametrize(("program", "failures"), [(chain(), 1), (two_sources(), 2), (average(), 2)])
def test_the_mapping_explains_each_execution_one_by_one(program: Program, failures: int) -> None:
    begin = initial(program)
    found = 0
    for trace in executions(begin, failures):
        found += 1
        assert first_unexplained(trace, begin, explain(trace, begin)) is None, told(trace)
    assert found == explore(program, failures).executions


@pytest.mark.parametrize("rules", VARIANTS, ids=lambda rules: rules.name.replace(" ", "-"))
def test_a_broken_protocol_is_caught(rules: Rules) -> None:
    caught = {}
    for name in ("chain", "two sources", "average"):
        found = explore(GRAPHS[name](), 1, rules)
        if found.unexplained is not None:
            caught[name] = found.unexplained
            begin = initial(GRAPHS[name]())
            seen = [rules.out(c) for c in application(found.unexplained, begin, rules)]
            assert explanation_of(begin.program, seen) is None
            assert explanation_of(begin.program, seen[:-1]) is not None  # The shortest: all before is explained.
    assert caught, f"{rules.name} was not caught"
    name, trace = min(caught.items(), key=lambda one: len(one[1]))
    print(f"{rules.name}: caught with {name}\n{told(trace)}")


@pytest.mark.parametrize(
    ("rules", "program", "words"),
    [
        (UNALIGNED, average(), "   0  I-BORDER 0 [-controls 1:BD, +averages 1:BD]"),
        (MAXIMUM, chain(), "   0  I-EVENT 0 [-in 1:EV 1, +sums 1:EV 1]\n   1  I-BORDER 0 [-in 1:BD, +sums 1:BD]"),
    ],
)
def test_the_shortest_execution_that_nothing_explains(rules: Rules, program: Program, words: str) -> None:
    assert told(explore(program, 1, rules).unexplained or ()) == words


def test_without_failures_a_late_capture_does_no_harm() -> None:
    assert explore(chain(), 0, CAPTURED_LATE).is_transparent
    assert explore(chain(), 0, KEPT_OUTPUT).is_transparent


@pytest.mark.parametrize("rules", VARIANTS, ids=lambda rules: rules.name.replace(" ", "-"))
def test_chance_catches_them_too_and_names_the_seed(rules: Rules) -> None:
    program = two_sources() if rules is not MAXIMUM else chain()
    found = explore_by_chance(program, range(200), rules)
    assert found is not None
    seed, _ = found
    assert explore_by_chance(program, range(seed), rules) is None
    assert explore_by_chance(program, range(seed, seed + 1), rules) == found


def test_the_command_prints_the_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--failures", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = "chain, at most 0 failures: 15 configurations, 20 steps, 3 histories, 14 executions: all explained"
    assert lines[0] == words
    assert sum(line.startswith("broken: ") for line in lines) == len(VARIANTS)
