"""Every pipeline of the catalog under every single crash, and in small under every pair of crashes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from tests.simulation.pipelines import LONG, PIPELINES, POINTS_LONG, POINTS_SMALL, SLOW, TIMED
from tests.simulation.replay import check, command, main
from tests.simulation.sweep_summary import lines

from clew.protocol import inputs as was
from clew.protocol.effects import Effect
from clew.protocol.logio import OperatorKernel
from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.simulator import simulate
from clew.verify.sweep import one_crash, try_all, two_crashes
from clew.verify.world import World

ROOT = Path(__file__).parents[2]
PAUSE_POINTS = 10

pipelines = pytest.mark.parametrize("name", PIPELINES)


def one_fault(points: int, seed: int = 0) -> Iterator[Schedule]:
    """At every point: a crash before and after, one of all processes, a broken connection, a pause."""
    yield from one_crash(points, seed, [FaultKind.CRASH, FaultKind.AFTER, FaultKind.POWER, FaultKind.BREAK])
    for at in range(1, points + 1):
        yield Schedule(seed, (Fault(FaultKind.PAUSE, at, PAUSE_POINTS),))


@pipelines
def test_one_fault_at_every_point(name: str, counted: Callable[..., None]) -> None:
    """Every second fault is tried here, of pipelines that take long every third; all in the soak."""
    one_fault_sweep(name, "middle", counted, every=3 if name in (*TIMED, *SLOW) else 2)


@pipelines
def test_one_fault_at_every_point_with_no_room_to_spare(name: str, counted: Callable[..., None]) -> None:
    one_fault_sweep(name, "tight", counted, every=3 if name in TIMED else 1)


@pytest.mark.soak
@pytest.mark.parametrize("size", ["middle", "tight"])
@pipelines
def test_one_fault_at_truly_every_point(name: str, size: str, counted: Callable[..., None]) -> None:
    one_fault_sweep(name, size, counted)


def one_fault_sweep(name: str, size: str, counted: Callable[..., None], every: int = 1) -> None:
    case = PIPELINES[name]
    tally = try_all(
        name, case.graph(size), lambda points, _: islice(one_fault(points), 0, None, every), parts=case.parts(size)
    )
    check(name, size, tally)
    which = "" if size == "middle" else f" ({size})"
    counted(name, **{f"points{which}": tally.points, f"one-crash runs{which}": tally.runs})


@pipelines
def test_two_crashes_at_every_pair_of_points(name: str, counted: Callable[..., None]) -> None:
    """Before an effect is nearly the same as after the one before it: here in turns, in the soak both.

    Of pipelines with times only some pairs are tried here.
    """
    kind = (FaultKind.CRASH, FaultKind.AFTER)[list(PIPELINES).index(name) % 2]
    two_crash_sweep(name, [kind], counted, every=16 if name in LONG else 8 if name in TIMED else 1)


@pytest.mark.soak
@pipelines
def test_two_crashes_of_both_kinds_at_every_pair_of_points(name: str, counted: Callable[..., None]) -> None:
    two_crash_sweep(name, [FaultKind.CRASH, FaultKind.AFTER], counted)


def two_crash_sweep(name: str, kinds: list[FaultKind], counted: Callable[..., None], every: int = 1) -> None:
    case = PIPELINES[name]
    runs = points = 0
    for kind in kinds:
        tally = try_all(
            name,
            case.graph("small"),
            lambda points, run, kind=kind: islice(two_crashes(points, run, kind=kind), 0, None, every),
            parts=case.parts("small"),
        )
        check(name, "small", tally)
        runs, points = runs + tally.runs, tally.points
    assert points <= (POINTS_LONG if name in LONG else POINTS_SMALL)
    counted(name, **{"points (small)": points, "two-crash runs": runs})


@pipelines
def test_the_same_schedule_gives_the_same_run(name: str) -> None:
    case = PIPELINES[name]
    schedule = Schedule.parse("3:crash@20,pause@40+15,after@60,power@90")
    one, other = (
        simulate(case.graph("middle"), schedule, parts=case.parts("middle"), is_tracing=True) for _ in range(2)
    )
    assert one == other
    assert one.trace == other.trace
    assert len(one.struck) == 4


@pipelines
def test_a_finished_pipeline_that_is_run_again_on_its_log_does_nothing(name: str) -> None:
    case = PIPELINES[name]
    graph = case.graph("middle")
    store = case.special.store(graph)
    parts = replace(case.parts("middle"), store=lambda _: store)
    counters = []
    for schedule in ("2:after@30,crash@80", "3"):
        world = World(graph, Schedule.parse(schedule), parts, is_checking=False)
        world.run(steps_max=100_000)
        counters.append({replica: store.reader().rows(replica).counters for replica in graph.replicas})
    assert counters[0] == counters[1]
    assert not any(world.outside.written(node.name, to) for node in graph.nodes.values() for to in node.writes)


def test_the_same_schedule_gives_the_same_run_whatever_the_hash_seed() -> None:
    code = (
        "import hashlib\n"
        "from clew.verify.schedule import Schedule\n"
        "from clew.verify.simulator import simulate\n"
        "from tests.simulation.pipelines import PIPELINES\n"
        "for name, case in PIPELINES.items():\n"
        "    schedule = Schedule.parse('5:crash@25,pause@50+20,after@70')\n"
        "    report = simulate(case.graph('middle'), schedule, parts=case.parts('middle'), is_tracing=True)\n"
        "    print(name, report, hashlib.sha256('\\n'.join(report.trace).encode()).hexdigest())\n"
    )
    outputs = []
    for seed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout)
    assert len(outputs[0].splitlines()) == len(PIPELINES)
    assert outputs[1] == outputs[0]
    assert outputs[2] == outputs[0]


def test_a_run_can_be_repeated_from_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    schedule = Schedule.parse("0:crash@12")
    words = command("linear", "small", schedule).split()
    assert words[:3] == [".venv/bin/python", "-m", "tests.simulation.replay"]
    assert main(words[3:]) == 0
    shown = capsys.readouterr().out
    assert "** crash at its effect" in shown
    assert shown.endswith("every guarantee held\n")


def test_the_table_has_a_line_for_each_pipeline_and_sums_below() -> None:
    assert lines({"linear": {"points": 72, "runs": 144}, "sales": {"runs": 10, "minutes": 0.25}}) == [
        "pipeline  points  runs  minutes",
        "linear        72   144         ",
        "sales               10      0.2",
        "all           72   154      0.2",
    ]


class Forgetting(OperatorKernel):
    """Broken on purpose: timers are not restored after a crash."""

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        given.recovered.timers.clear()
        super().on_started(given, effects)


def test_a_violation_is_reported_with_the_shortest_schedule_and_the_command_that_repeats_it() -> None:
    case = PIPELINES["timers"]
    parts = replace(case.parts("middle"), operator=Forgetting)
    tally = try_all("timers", case.graph("middle"), lambda points, _: one_fault(points), parts=parts)
    assert tally.failed is not None
    with pytest.raises(AssertionError) as caught:
        check("timers", "middle", tally)
    said = str(caught.value)
    assert f"pipeline 'timers' (middle) violates a guarantee: {tally.failed.violation}" in said
    assert f"schedule: {tally.failed.schedule}\n" in said
    assert said.endswith(f"replay: {command('timers', 'middle', tally.failed.schedule)}")
