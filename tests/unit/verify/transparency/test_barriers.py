"""Barrier snapshots: failure transparency with any number of failures, and the variants that break it."""

from __future__ import annotations

import pytest

from clew.verify.semantics import Rules
from clew.verify.semantics.exploration import explore
from clew.verify.semantics.graphs import GRAPHS
from clew.verify.semantics.variants import VARIANTS
from clew.verify.transparency import (
    Explained,
    Refuted,
    Why,
    check_explainability,
    check_monotone,
    check_transparency,
    failure_free,
)
from clew.verify.transparency.barriers import OUT, all_messages, barriers, observation
from clew.verify.transparency.catalog import barrier_verdicts
from clew.verify.transparency.storing import Place, completed, is_stored, storing


@pytest.mark.parametrize("name", GRAPHS)
def test_every_model_is_explained_and_lemmas_agree_with_direct_checks(name: str) -> None:
    verdicts = list(barrier_verdicts(name, None))
    assert len(verdicts) == 5
    for verdict in verdicts:
        assert isinstance(verdict, Explained), str(verdict)
        if verdict.because != "checked":
            claim = verdict.claim
            direct = check_explainability(
                claim.low,
                claim.high,
                claim.low_observation,
                claim.high_observation,
                claim.translation,
                failures_max=None,
            )
            assert isinstance(direct, Explained), str(direct)


@pytest.mark.parametrize("name", GRAPHS)
def test_an_exploration_that_shares_no_code_agrees(name: str) -> None:
    program = GRAPHS[name]()
    verdict = check_transparency(barriers(name, program), OUT, failures_max=2)
    other = explore(program, 2)
    assert isinstance(verdict, Explained)
    assert other.is_transparent
    assert (verdict.counts.configurations, verdict.counts.histories) == (other.configurations, other.histories)


@pytest.mark.parametrize("name", GRAPHS)
def test_who_sees_all_messages_sees_failures(name: str) -> None:
    program = GRAPHS[name]()
    found = check_monotone(barriers(name, program), all_messages(program), failures_max=1)
    assert found is not None
    assert [str(label).split()[0] for label in found.execution.labels] == ["I-EVENT", "F-FAIL", "F-RECOVER"]
    verdict = check_transparency(barriers(name, program), all_messages(program), failures_max=1)
    assert isinstance(verdict, Refuted)
    assert verdict.why is Why.NOT_MONOTONE


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: str(variant.name))
def test_every_broken_variant_is_caught_by_both_explorations(variant: Rules) -> None:
    caught = []
    for name in ("chain", "two sources", "average"):
        program = GRAPHS[name]()
        good = failure_free(barriers(name, program))
        same = [(good.initial[0], good.initial[0])]
        broken = barriers(name, program, variant)
        verdict = check_explainability(broken, good, observation(variant), OUT, same, failures_max=1, ends=False)
        other = explore(program, 1, variant)
        assert verdict.is_explained == other.is_transparent, name
        if isinstance(verdict, Refuted):
            assert other.unexplained is not None
            assert len(verdict.execution.labels) == len(other.unexplained)
            caught.append(name)
    assert caught, f"{variant.name}: explained on all graphs"


def is_captured(place: Place, epoch: int) -> bool:
    """A coordinator that does not wait for the store."""
    is_held = place.working is not None and any(known == epoch for known, _ in place.working.captured)
    return is_held or is_stored(place, epoch)


def test_an_epoch_that_is_completed_before_it_is_stored_is_caught() -> None:
    program = GRAPHS["chain"]()
    good = failure_free(barriers("chain", program))
    hasty = storing("chain", program, is_captured)
    verdict = check_explainability(
        hasty, good, completed(program), OUT, [(good.initial[0], hasty.initial[0])], failures_max=1
    )
    assert isinstance(verdict, Refuted)
    assert verdict.why is Why.ENDED_EARLY
    assert "COMPLETE 1" in verdict.execution.labels
