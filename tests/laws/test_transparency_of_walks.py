"""LOG.io beyond what can be explored: random executions with many failures end with what plain Python works out."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.verify.logging_semantics import Configuration, Program, outside, system
from clew.verify.logging_semantics.programs import chain, choice, fan_out, two_sources
from clew.verify.logging_semantics.rules import FAIL

STEPS_MAX = 5_000


def walked(program: Program, seed: int, failures: int) -> Configuration:
    """The configuration in which a random execution with so many failures comes to rest."""
    chance = random.Random(seed)
    model = system(program)
    at = model.initial[0]
    for _ in range(STEPS_MAX):
        steps = [step for step in model.steps(at) if step[0].rule != FAIL]  # type: ignore[attr-defined]
        crashes = [step for step in model.steps(at) if step[0].rule == FAIL]  # type: ignore[attr-defined]
        if failures and crashes and (not steps or chance.random() < 0.1):
            steps, failures = crashes, failures - 1
        if not steps:
            return at
        at = chance.choice(steps)[2]
    raise AssertionError(f"{program.name}, seed {seed}: not at rest after {STEPS_MAX} steps")


@pytest.mark.parametrize("make", [chain, fan_out])
@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(0, 12))
def test_windows_of_a_single_source_come_out_once_and_in_order(make: object, seed: int, failures: int) -> None:
    assert callable(make)
    written = [values for values in outside(walked(make(4), seed, failures)) if values]
    assert written
    assert all(values == ("ab@2", "cd@4") for values in written)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(0, 12))
def test_two_sinks_see_the_same_choices(seed: int, failures: int) -> None:
    *_, one, two = outside(walked(choice(4), seed, failures))
    assert one == two
    assert [value[0] for value in one] == list("abcd")


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(0, 12))
def test_what_two_sources_sent_is_there_once_and_in_the_order_of_each(seed: int, failures: int) -> None:
    written = outside(walked(two_sources(4), seed, failures))[-1]
    values = "".join(str(value).partition("@")[0] for value in written)
    assert "".join(value for value in values if value in "abcd") == "abcd"
    assert "".join(value for value in values if value in "pqrs") == "pqrs"
