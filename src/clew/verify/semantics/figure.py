"""Figure 5.1 of the ABS thesis: the incremental average with a failure, step by step, and its explanation."""

from __future__ import annotations

from collections.abc import Sequence

from clew.verify.semantics.configuration import Configuration, initial
from clew.verify.semantics.graphs import average
from clew.verify.semantics.mapping import explain
from clew.verify.semantics.rules import ABS, Step, steps
from clew.verify.semantics.traces import Trace, application

EVENTS = ("1", "BD", "3", "fail", "recover", "RESET", "3", "5", "BD")
"""What the task of the figure goes through."""


def figure_trace() -> tuple[Configuration, Trace]:
    """The configuration that the figure starts from, and the trace of its upper half."""
    begin = c = initial(average())
    trace: list[Step] = []
    for event in EVENTS:
        step, c = next((step, after) for step, _, after in steps(c) if _said(step) == event)
        trace.append(step)
    return begin, tuple(trace)


def figure() -> str:
    """Both halves of the figure, with the configuration of the lower half that explains each of the upper.

    The figure archives averages; a task needs sum and count, so these are what its snapshots hold.

    >>> print(figure())
    an execution with a failure
      0           av 0    archive {0: 0}              gce 0  explained by 0
      1  1        av 1    archive {0: 0}              gce 0  explained by 0
      2  BD       av 1    archive {0: 0, 1: 1}        gce 1  explained by 2
      3  3        av 2    archive {0: 0, 1: 1}        gce 1  explained by 2
      4  fail     failed  archive {0: 0, 1: 1}        gce 1  explained by 2
      5  recover  av 1    archive {0: 0, 1: 1}        gce 1  explained by 2
      6  RESET    av 0    archive {0: 0, 1: 1}        gce 1  explained by 2
      7  3        av 3    archive {0: 0, 1: 1}        gce 1  explained by 2
      8  5        av 4    archive {0: 0, 1: 1}        gce 1  explained by 2
      9  BD       av 4    archive {0: 0, 1: 1, 2: 4}  gce 2  explained by 6
    its failure-free explanation
      0           av 0    archive {0: 0}              gce 0
      1  1        av 1    archive {0: 0}              gce 0
      2  BD       av 1    archive {0: 0, 1: 1}        gce 1
      3  RESET    av 0    archive {0: 0, 1: 1}        gce 1
      4  3        av 3    archive {0: 0, 1: 1}        gce 1
      5  5        av 4    archive {0: 0, 1: 1}        gce 1
      6  BD       av 4    archive {0: 0, 1: 1, 2: 4}  gce 2
    """
    begin, trace = figure_trace()
    explanation = explain(trace, begin)
    upper = _lines(trace, application(trace, begin))
    lower = _lines(explanation.trace, application(explanation.trace, begin, ABS.without_failures()))
    explained = [f"{line}  explained by {by}" for line, by in zip(upper, explanation.mapping, strict=True)]
    return "\n".join(["an execution with a failure", *explained, "its failure-free explanation", *lower])


def _lines(trace: Sequence[Step], execution: Sequence[Configuration]) -> list[str]:
    lines = []
    for number, (event, c) in enumerate(zip(["", *map(_said, trace)], execution, strict=True)):
        (state,) = c.states
        now = "failed" if state.volatile is None else f"av {_average(state.volatile.value):g}"
        archive = ", ".join(f"{epoch}: {_average(value):g}" for epoch, value in state.archive)
        lines.append(f"{number:3}  {event:7}  {now:6}  archive {'{' + archive + '}':18}  gce {ABS.gce(c)}")
    return lines


def _average(state: tuple[float, int]) -> float:
    return state[0] / state[1] if state[1] else 0


def _said(step: Step) -> str:
    if step.rule == "I-EVENT":
        return str(step.actions[0].data.value)
    return {"I-BORDER": "BD", "F-FAIL": "fail", "F-RECOVER": "recover"}[step.rule]
