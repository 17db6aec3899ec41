"""Laws of the tracker: what it shows is never ahead of the truth, never goes back, and arrives at the truth."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.members import Model

from clew.errors import Violation
from clew.progress.tracker import Tracker
from clew.times import Antichain


def drive(seed: int, make_tracker: Any = Tracker, steps: int = 120) -> None:
    model = Model(Random(seed), make_tracker)
    for _ in range(steps):
        model.step()
    model.settle()
    model.restart()
    model.settle()


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_frontiers_are_safe_and_arrive_at_the_truth(seed: int) -> None:
    drive(seed)


@pytest.mark.soak
def test_many_pipelines(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(2000):
        try:
            drive(seed, steps=300)
        except BaseException:
            print(f"repeat with drive({seed}, steps=300) of {__name__}")
            raise
    with capsys.disabled():
        print("\n2000 random pipelines of 300 steps: frontiers safe after each step, exact at the end")


class Hasty(Tracker):
    """Does not wait for everybody."""

    def advance(self) -> dict[Any, Antichain]:
        self._waiting.clear()
        return super().advance()


class Credulous(Tracker):
    """Counts also at times that have passed."""

    def _add(self, member: Any, location: Any, changes: Any) -> None:
        facts, self._passed[location] = self._passed[location], []
        super()._add(member, location, changes)
        self._passed[location] = facts


class Forgetful(Tracker):
    """Adds the sums of whoever joins again to what it knew of it."""

    def joined(self, member: Any, number: Any, sums: Any, passed: Any) -> None:
        for counts in self._sums.values():
            counts.pop(member, None)
        super().joined(member, number, sums, passed)


class Doubting(Tracker):
    """Believes no frontier that a member has logged."""

    def joined(self, member: Any, number: Any, sums: Any, passed: Any) -> None:
        super().joined(member, number, sums, {})


class Repeating(Tracker):
    """Takes changes that it has taken already."""

    def changed(self, member: Any, number: Any, changes: Any) -> None:
        self._numbers[member] = number - 1
        super().changed(member, number, changes)


@pytest.mark.parametrize("broken", [Hasty, Credulous, Forgetful, Doubting, Repeating])
def test_a_broken_tracker_is_caught(broken: type[Tracker]) -> None:
    with pytest.raises((Violation, AssertionError)):
        [drive(seed, broken) for seed in range(300)]


def test_the_real_one_passes_what_they_are_caught_by() -> None:
    for seed in range(15):
        drive(seed)
