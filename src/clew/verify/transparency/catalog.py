"""The models that come with Clew and what is checked of them: LOG.io, barrier snapshots, and models around these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from clew.verify.logging_semantics import OUTSIDE, programs, system
from clew.verify.logging_semantics.program import Program as LoggingProgram
from clew.verify.semantics.graphs import GRAPHS
from clew.verify.transparency.barriers import OUT, barriers, of_sinks, of_values
from clew.verify.transparency.combining import composed, transitive
from clew.verify.transparency.explainability import check_explainability, check_transparency
from clew.verify.transparency.ideal import ideal, produced
from clew.verify.transparency.storing import completed, storing
from clew.verify.transparency.verdict import Explained, Verdict

AnyVerdict = Verdict[Any, Any]

SMALL: tuple[Callable[[], LoggingProgram], ...] = (
    partial(programs.chain, 2),
    partial(programs.hours, 3),
    partial(programs.two_sources, 1),
    partial(programs.fan_out, 2),
    partial(programs.choice, 1),
    partial(programs.draw, 1),
    partial(programs.dice, 1),
)
LARGE: tuple[Callable[[], LoggingProgram], ...] = (
    partial(programs.chain, 4),
    partial(programs.hours, 4),
    partial(programs.two_sources, 2),
    partial(programs.draw, 2),
    partial(programs.dice, 2),
)
"""Programs with more records. Some need minutes and a few gigabytes."""


def verdicts(failures_max: int | None, *, is_large: bool = False) -> Iterator[AnyVerdict]:
    """The verdict on each model, one after the other."""
    yield from logging_verdicts(failures_max, LARGE if is_large else SMALL)
    for name in GRAPHS:
        yield from barrier_verdicts(name, failures_max, events=2 if is_large else 1)


def logging_verdicts(
    failures_max: int | None, chosen: tuple[Callable[[], LoggingProgram], ...] = SMALL
) -> Iterator[AnyVerdict]:
    """LOG.io on each program: failure transparency, seen from outside."""
    for make in chosen:
        yield check_transparency(system(make()), OUTSIDE, failures_max=failures_max)


def barrier_verdicts(name: str, failures_max: int | None, events: int = 1) -> Iterator[AnyVerdict]:
    """Barrier snapshots on one graph, in five steps.

    Failure transparency of the thesis' rules; the same seen at sinks only, by composition; runs with stores and a
    coordinator, explained by the failure-free rules; these, explained by the ideal dataflow; and, by transitivity, such
    runs explained by the ideal dataflow.
    """
    program = GRAPHS[name](events)
    transparent = check_transparency(barriers(name, program), OUT, failures_max=failures_max)
    yield transparent
    if not isinstance(transparent, Explained):
        return
    yield composed(transparent, "sinks", of_sinks(program))
    failure_free = transparent.claim.high
    real = storing(name, program)
    same = [(failure_free.initial[0], real.initial[0])]
    stored = check_explainability(real, failure_free, completed(program), OUT, same, failures_max=failures_max)
    yield stored
    if not isinstance(stored, Explained):
        return
    hidden = composed(stored, "values", of_values(program))
    above = ideal(name, program)
    start = [(above.initial[0], failure_free.initial[0])]
    seen = hidden.claim.high_observation
    cleaner = check_explainability(failure_free, above, seen, produced(program), start, failures_max=failures_max)
    yield cleaner
    if isinstance(cleaner, Explained):
        yield transitive(hidden, cleaner)
