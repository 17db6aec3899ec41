"""Random files of the format `abs/1`, worked out by the naive oracle: runs with explanations, and what has none."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.laws.naive_abs import Naive, failure_free_schedule, random_program


def random_document(seed: int, *, runs: int = 4, broken: int = 2, tasks: int = 2) -> dict[str, Any]:
    """A file; the same for the same seed."""
    random = Random(seed)
    found = [random_run(random, tasks=tasks) for _ in range(runs)]
    unexplained: list[Any] = []
    for _ in range(20 * broken):
        if len(unexplained) < broken:
            run = random_run(random, tasks=2, events=1)  # To know that nothing explains it, all must be tried.
            observations = spoiled(random, [frozenset(tuple(m) for m in one) for one in run["outs"]])
            if failure_free_schedule(run["program"], observations) is None:
                written_ones = [written(one) for one in observations]
                unexplained.append({"program": run["program"], "observations": written_ones, "variant": "spoiled"})
    return {"format": "abs/1", "functions": {}, "random": found, "unexplainable": unexplained}


def random_run(random: Random, *, failures: int = 2, **sizes: int) -> dict[str, Any]:
    """A program and a run of it; `sizes` are those of the program."""
    program = random_program(random, **sizes)
    now = Naive(program)
    schedule: list[Any] = []
    seen, epochs = [now.out()], [now.gce()]
    while len(schedule) < 60:
        steps = now.enabled(failures=failures > 0 and random.random() < 0.15)
        if not steps:
            break
        step = random.choice(steps)
        failures -= step[0] == "fail"
        now.take(step)
        schedule.append(step)
        seen.append(now.out())
        epochs.append(now.gce())
    explanation = failure_free_schedule(program, seen)
    assert explanation is not None, (program, schedule)
    shown = [Naive(program).out()]
    now = Naive(program)
    for step in explanation:
        now.take(step)
        shown.append(now.out())
    outs = sorted(set(seen), key=len)
    return {
        "program": program,
        "schedule": schedule,
        "gce": epochs,
        "outs": [written(one) for one in outs],
        "expected_out": [outs.index(one) for one in seen],
        "explanation": explanation,
        "mapping": [shown.index(one) for one in seen],
    }


def spoiled(random: Random, outs: list[frozenset[Any]]) -> list[frozenset[Any]]:
    """The outputs with one message of the last left out, put in or changed; perhaps explainable all the same."""
    last = set(outs[-1])
    if not last:
        return [*outs, frozenset({("s0", 0, 1, "BD", None)})]
    message = random.choice(sorted(last, key=repr))
    last.discard(message)
    stream, number, epoch, kind, value = message
    changes = [
        (stream, number, epoch, "EV", 7),
        (stream, number + 1, epoch, kind, value),
        (stream, number, epoch + 1, kind, value),
        None,
    ]
    change = random.choice(changes)
    return [*outs[:-1], frozenset(last | ({change} if change else set()))]


def written(out: frozenset[Any]) -> list[list[Any]]:
    return sorted((list(message) for message in out), key=repr)
