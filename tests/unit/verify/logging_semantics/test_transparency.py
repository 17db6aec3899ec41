"""Failure transparency of LOG.io: every program exhaustively, and every broken variant caught with its story."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.verify.logging_semantics import canaries

from clew.verify.logging_semantics import OUTSIDE, Configuration, Program, Rules, system
from clew.verify.logging_semantics.programs import chain, choice, dice, draw, fan_out, hours, two_sources
from clew.verify.transparency import (
    Explained,
    Observation,
    Refuted,
    Why,
    check_explainability,
    check_monotone,
    check_transparency,
    explain,
    failure_free,
)

SMALL = [(chain, 2), (hours, 3), (two_sources, 1), (draw, 1), (dice, 1)]
WITH_TWO_SINKS = [(fan_out, 2), (choice, 1)]


@pytest.mark.parametrize(("make", "records"), SMALL, ids=lambda given: getattr(given, "__name__", str(given)))
def test_any_number_of_failures_cannot_be_seen(make: Callable[[int], Program], records: int) -> None:
    verdict = check_transparency(system(make(records)), OUTSIDE, failures_max=None)
    assert isinstance(verdict, Explained), str(verdict)
    assert verdict.counts.left_out == 0
    assert min(verdict.counts.failures, verdict.counts.recoveries, verdict.counts.rests) > 0


@pytest.mark.parametrize(("make", "records"), WITH_TWO_SINKS, ids=lambda given: getattr(given, "__name__", str(given)))
def test_two_failures_cannot_be_seen_at_two_sinks(make: Callable[[int], Program], records: int) -> None:
    verdict = check_transparency(system(make(records)), OUTSIDE, failures_max=2)
    assert isinstance(verdict, Explained), str(verdict)
    assert min(verdict.counts.failures, verdict.counts.recoveries, verdict.counts.rests) > 0


CANARIES: list[tuple[type[Rules], Callable[[int], Program], int, Why]] = [
    (canaries.SendsBeforeCommit, draw, 1, Why.NO_EXPLANATION),
    (canaries.TakesObsolete, chain, 2, Why.NO_EXPLANATION),
    (canaries.ForgetsUndone, chain, 2, Why.ENDED_EARLY),
    (canaries.WritesWithoutId, chain, 2, Why.NO_EXPLANATION),
    (canaries.WritesBeforeCommit, dice, 1, Why.NO_EXPLANATION),
    (canaries.SplitsGenerations, chain, 2, Why.NO_EXPLANATION),
    (canaries.SplitsTheOtherWay, chain, 2, Why.ENDED_EARLY),
    (canaries.CommitsStateLater, chain, 2, Why.NO_EXPLANATION),
    (canaries.ResendsNothing, chain, 2, Why.ENDED_EARLY),
    (canaries.TriggersWhileRefolding, hours, 3, Why.NO_EXPLANATION),
]


@pytest.mark.parametrize(
    ("rules", "make", "records", "why"), CANARIES, ids=[rules.__name__ for rules, _, _, _ in CANARIES]
)
def test_every_broken_promise_is_caught(
    rules: type[Rules], make: Callable[[int], Program], records: int, why: Why
) -> None:
    program = make(records)
    broken, good = system(program, rules), failure_free(system(program))
    same = [(good.initial[0], broken.initial[0])]
    verdict = check_explainability(broken, good, OUTSIDE, OUTSIDE, same, failures_max=1)
    assert isinstance(verdict, Refuted), f"{rules.__name__} was not caught"
    assert verdict.why is why
    assert "FAIL" in str(verdict)
    if why is Why.NO_EXPLANATION:
        # A search of its own agrees, and finds an explanation of everything but the last step.
        configurations = verdict.execution.configurations
        assert explain(configurations, good, OUTSIDE, OUTSIDE) is None
        assert explain(configurations[:-1], good, OUTSIDE, OUTSIDE) is not None


def test_the_canaries_are_all_of_them() -> None:
    made = {value for value in vars(canaries).values() if isinstance(value, type) and issubclass(value, Rules)}
    assert made - {Rules} == {rules for rules, _, _, _ in CANARIES}


def test_who_looks_into_memory_sees_failures() -> None:
    def decided(configuration: Configuration) -> tuple[int, ...]:
        logs = [process.memory.log if process.memory else process.durable for process in configuration.processes]
        return tuple(len(log.outputs) for log in logs)

    inside: Observation[Configuration] = Observation(
        "decided outputs", decided, lambda a, b: all(one <= other for one, other in zip(a, b, strict=True))
    )
    found = check_monotone(system(chain(2)), inside, failures_max=1)
    assert found is not None
    assert str(found).startswith(
        "LOG.io chain, step 2 of READ source a, FAIL source: decided outputs goes from (1, 0, 0)"
    )
