"""Idle sources: what they say while a commit is under way, and when they are not idle although nothing comes."""

from __future__ import annotations

import pytest
from tests.simulation import timed

import clew
from clew.model.history import Transaction
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.source import SourceKernel


@pytest.fixture
def waiting() -> SourceKernel:
    """A source that has waited for something to read since second 0, with its third commit under way."""
    pipeline = clew.Pipeline("p")
    timed.source(pipeline, "moments", [[1]], idle_after_s=5.0).map(lambda table: table, name="same")
    graph = pipeline.build()
    (replica,) = graph.replicas_named("moments")
    kernel = SourceKernel(graph.nodes["moments"], replica, graph.outbound(replica))
    kernel.incarnation, kernel.commits, kernel.committing = 2, 3, Transaction()
    kernel.poll_at = 1000.0
    return kernel


def announced(kernel: SourceKernel, now: float) -> list[does.Announce]:
    return [effect for effect in kernel.step(was.Ticked(now)) if isinstance(effect, does.Announce)]


def test_that_it_is_idle_is_said_with_the_number_of_what_is_durable(waiting: SourceKernel) -> None:
    """With the number of the commit under way, its counts would be taken for known when they come."""
    assert announced(waiting, 4.0) == []
    assert announced(waiting, 5.0) == [does.Announce((2, 2), {}, is_idle=True)]
    assert announced(waiting, 6.0) == []


def test_a_source_that_may_not_read_is_not_idle(waiting: SourceKernel) -> None:
    waiting._is_throttled = lambda: True  # type: ignore[method-assign]
    assert announced(waiting, 50.0) == []
    waiting._is_throttled = lambda: False  # type: ignore[method-assign]
    assert announced(waiting, 54.0) == []
    assert announced(waiting, 55.0) == [does.Announce((2, 2), {}, is_idle=True)]
