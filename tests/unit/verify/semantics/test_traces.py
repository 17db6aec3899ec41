"""Traces and their mapping: what can be derived, what an explanation keeps, how another's explanation is judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clew.verify.semantics import ABS, Step, initial
from clew.verify.semantics.figure import figure, figure_trace
from clew.verify.semantics.graphs import average
from clew.verify.semantics.mapping import explain, first_unexplained
from clew.verify.semantics.rules import F_RECOVER
from clew.verify.semantics.traces import NotDerivable, application, is_valid, taken, told
from clew.verify.semantics.variants import KEPT_OUTPUT


def test_a_step_that_cannot_be_derived_is_named_with_what_can() -> None:
    begin, trace = figure_trace()
    with pytest.raises(NotDerivable) as found:
        application(trace[:5] + trace[6:], begin)
    assert found.value.number == 5
    assert str(found.value) == (
        "step 5 of the trace, I-EVENT 0 [-measurements 2:EV 3, +averages 2:EV 3.0], cannot be derived by the rules of "
        "ABS in <Configuration (1, 1) in epoch 2, at [1, 2, 2], snapshots {0: (0, 0), 1: (1, 1)}>; these can: "
        "F-FAIL 0, I-EVENT 0 [-controls 2:EV 'RESET'], I-EVENT 0 [-measurements 2:EV 3, +averages 2:EV 2.0]"
    )


def test_what_a_recovery_discards_can_be_left_out() -> None:
    begin, trace = figure_trace()
    assert is_valid(trace[:2] + trace[3:], begin)


def test_steps_of_no_task_and_of_no_rule() -> None:
    begin, trace = figure_trace()
    assert taken(trace[0]._replace(task=1), begin) is None
    assert taken(trace[0]._replace(task=None), begin) is None
    assert taken(trace[0]._replace(rule="I-DREAM"), begin) is None
    assert taken(F_RECOVER, begin) is None
    assert taken(trace[0]._replace(numbers=(1, 0, 0)), begin) is None


def test_the_generations_of_the_figure() -> None:
    begin, trace = figure_trace()
    explanation = explain(trace, begin)
    first, last = explanation.generations
    assert (first.begin, first.epoch, first.is_recovered, len(first.steps)) == (0, 1, True, 4)
    assert (last.begin, last.epoch, last.is_recovered, len(last.steps)) == (5, 2, False, 4)
    assert first.reordered == (*trace[:2], trace[2], trace[3])
    assert first.stripped == trace[:2]
    assert explanation.trace == (*trace[:2], *trace[5:])
    assert explanation.mapping == (0, 0, 2, 2, 2, 2, 2, 2, 2, 6)


def test_a_last_generation_without_recovery_has_its_own_epoch() -> None:
    begin, trace = figure_trace()
    explanation = explain(trace[:3], begin)
    assert explanation.trace == trace[:2]
    assert explanation.mapping == (0, 0, 2, 2)


def test_wrong_explanations_are_refused() -> None:
    begin, trace = figure_trace()
    right = explain(trace, begin)
    assert first_unexplained(trace, begin, right) is None
    assert first_unexplained(trace, begin, replace(right, mapping=(0, 0, 2, 2, 2, 2, 2, 2, 2, 5))) == 9
    assert first_unexplained(trace, begin, replace(right, mapping=(0, 1, 2, 2, 2, 0, 2, 2, 2, 6))) == 5
    assert first_unexplained(trace, begin, replace(right, mapping=(0, 1, 2))) == 3
    assert first_unexplained(trace, begin, replace(right, trace=right.trace[:-1])) == 9
    with pytest.raises(NotDerivable, match="ABS without failures"):
        first_unexplained(trace, begin, replace(right, trace=trace))


def test_the_mapping_does_not_explain_a_broken_protocol() -> None:
    """Output that is kept is seen, and no step that survives has sent it."""
    begin = initial(average())
    _, trace = figure_trace()
    explanation = explain(trace, begin, KEPT_OUTPUT)
    assert first_unexplained(trace, begin, explanation, KEPT_OUTPUT) == 9


def test_the_figure_step_by_step() -> None:
    lines = figure().splitlines()
    assert lines[10] == "  9  BD       av 4    archive {0: 0, 1: 1, 2: 4}  gce 2  explained by 6"
    assert len(lines) == 19


def test_a_trace_in_words() -> None:
    assert told((Step("F-FAIL", 2), F_RECOVER)) == "   0  F-FAIL 2\n   1  F-RECOVER"


def test_validity() -> None:
    begin, trace = figure_trace()
    assert is_valid(trace, begin)
    assert not is_valid(trace, begin, ABS.without_failures())
    assert not is_valid(trace[1:], begin)
