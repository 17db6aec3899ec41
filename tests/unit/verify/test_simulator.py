"""The simulator: a schedule decides everything, faults strike whom they should, stuck and endless are violations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clew import Operator, Pipeline, Source
from clew.errors import BuildError
from clew.model.graph import Graph
from clew.protocol.logio import OperatorKernel
from clew.testing import Outside, scripted
from clew.verify.parts import Parts
from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.simulator import Report, simulate


def graph(source: Source | None = None) -> Graph:
    pipeline = Pipeline("p")
    numbers = pipeline.source("numbers", source or scripted([[{"x": number}] for number in range(6)]))
    numbers.batch(2, name="twos").write("save", Outside("store").writer("checkable"))
    return pipeline.build()


class Passes(Operator):
    """Sends what it gets, and closes a cycle."""

    inputs = ("in", "back")
    is_feedback = True

    def assign(self, event: Any, ctx: Any) -> list[int]:
        return []

    def update(self, input_set: Any, event: Any, note: Any = None) -> None:
        pass

    def generate(self, input_sets: Any, ctx: Any) -> Iterator[Any]:
        yield from ()


def test_a_cycle_without_times_is_refused_with_a_reason() -> None:
    pipeline = Pipeline("loop")
    numbers = pipeline.source("numbers", scripted([[{"x": 1}]]))
    rounds = numbers.operator("rounds", Passes(), {"back": "rounds.out"})
    rounds.write("save", Outside("store").writer())
    with pytest.raises(BuildError) as caught:
        pipeline.build()
    assert str(caught.value) == (
        "operator 'rounds' closes a cycle in which events have no times, so nobody could know when the cycle is over. "
        "Give all sources before it times, such as pipeline.source(name, source, times=clew.numbered())."
    )


def test_a_calm_run_is_good_and_says_how_long_it_was() -> None:
    report = simulate(graph())
    assert report.is_good
    assert (report.restarts, report.struck, report.trace) == (0, (), ())
    assert 0 < report.points <= report.steps


def test_the_same_schedule_gives_the_same_run() -> None:
    schedule = Schedule.chance(11, 60, 4)
    one, other = (simulate(graph(), schedule, is_tracing=True) for _ in range(2))
    assert one == other
    assert one.trace
    assert one.trace != simulate(graph(), Schedule.chance(12, 60, 4), is_tracing=True).trace


def test_checking_does_not_change_the_run() -> None:
    schedule = Schedule.chance(11, 60, 4)
    assert simulate(graph(), schedule, is_checking=True) == simulate(graph(), schedule, is_checking=False)


@pytest.mark.parametrize("kind", list(FaultKind), ids=str)
def test_every_kind_of_fault_strikes_and_is_survived(kind: FaultKind) -> None:
    for at in range(1, 60, 7):
        report = simulate(graph(), Schedule(2, (Fault(kind, at, 20 if kind is FaultKind.PAUSE else 0),)))
        assert report.is_good, report
        assert [what for _, what, _ in report.struck] == [str(kind)]
        assert (report.restarts > 0) == (kind not in (FaultKind.LOSE, FaultKind.BREAK))  # Nobody dies of these.


def test_a_trace_tells_of_births_inputs_effects_commits_and_deaths() -> None:
    trace = "\n".join(simulate(graph(), Schedule.parse("2:crash@40"), is_tracing=True).trace)
    for words in ("begins as incarnation 1", "<- Started(", "-> Fold(", "committed [", "** crash at its", " died"):
        assert words in trace
    assert "begins as incarnation 2" in trace


def test_stuck_is_a_violation() -> None:
    class Deaf(OperatorKernel):
        def on_received(self, given: Any, effects: Any) -> None:
            pass

    report = simulate(graph(), parts=Parts(operator=Deaf))
    assert report.violation == "stuck: nothing can happen any more; not finished: twos, save"


def test_a_run_without_end_is_a_violation() -> None:
    report = simulate(graph(), steps_max=30)
    assert report.violation == "no end after 30 steps: not finished: numbers, twos, save"


def test_a_broken_invariant_of_a_kernel_is_a_violation() -> None:
    class Hasty(OperatorKernel):
        def on_received(self, given: Any, effects: Any) -> None:
            super().on_received(given, effects)
            self.inputs[given.channel].assigned += 2

    violation = simulate(graph(), parts=Parts(operator=Hasty)).violation or ""
    assert violation.startswith("twos: the kernel's invariant is broken: numbers.out->twos.in")


@pytest.mark.parametrize(
    ("move", "words"),
    [
        ("open", "operator 'twos': open() raised ValueError: broken"),
        ("plan", "operator 'numbers': plan() raised ValueError: broken"),
        ("generate", "operator 'twos': generate() for [1] raised ValueError: broken"),
    ],
)
def test_a_users_move_that_raises_is_a_violation_that_names_it(move: str, words: str) -> None:
    built = graph()
    definition: Any = built.nodes["numbers" if move == "plan" else "twos"].definition

    def broken(*_: Any) -> Any:
        raise ValueError("broken")

    setattr(definition, move, broken)
    assert words in (simulate(built).violation or "")


def test_a_report_tells_what_struck_whom() -> None:
    report = simulate(graph(), Schedule.parse("2:crash@10,after@25"))
    assert [(point, kind) for point, kind, _ in report.struck] == [(10, "crash"), (25, "after")]
    assert {replica for *_, replica in report.struck} <= {"numbers", "twos", "save"}
    assert isinstance(report, Report)
