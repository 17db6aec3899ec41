"""Pipelines that cannot run with snapshots are refused, in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clew
import clew.testing
from clew.errors import RunError
from clew.protocol.eligible import check_snapshots


def numbers(pipeline: clew.Pipeline) -> clew.Stream:
    return pipeline.source("numbers", clew.testing.scripted([[{"x": 1}]]))


class Pass(clew.Operator):
    """Gives out what it gets."""

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        return []

    def update(self, number: Any, event: clew.Event, note: Any = None) -> None:
        pass

    def generate(self, numbers: Any, ctx: clew.Context) -> Any:
        yield from ()


class Once(clew.Source):
    """Gives what nobody can ask for again."""

    is_replayable = False

    def read(self, action: Any, offset: Any) -> Any:
        yield [{"x": 1}], 1


def not_replayable(pipeline: clew.Pipeline) -> None:
    pipeline.source("numbers", Once())


def writes_first(pipeline: clew.Pipeline) -> None:
    writes = {"sink": clew.call(print, "idempotent")}
    pipeline.operator("pass", Pass(), {"in": numbers(pipeline)}, writes=writes, writes_first=True)


def dead_letters(pipeline: clew.Pipeline) -> None:
    numbers(pipeline).operator("pass", Pass(), dead_letters=True)


def lineage(pipeline: clew.Pipeline) -> None:
    numbers(pipeline).operator("pass", Pass())
    pipeline.lineage("numbers.out", "pass.out")


REFUSED: list[tuple[Callable[[clew.Pipeline], None], str]] = [
    (not_replayable, r"source 'numbers', a Once, is not replayable; .* Use a replayable source, or run with recovery="),
    (writes_first, r"operator 'pass' was declared with writes_first=True.*Leave out writes_first, or run with recover"),
    (dead_letters, r"operator 'pass' was declared with dead_letters=True.*Leave out dead_letters, or run with recover"),
    (lineage, r"pipeline 'small' captures lineage from numbers.out to pass.out.*lineage needs recovery='log'. Leave"),
]


@pytest.mark.parametrize(("declare", "words"), REFUSED, ids=[declare.__name__ for declare, _ in REFUSED])
def test_what_cannot_be_is_refused(declare: Callable[[clew.Pipeline], None], words: str) -> None:
    pipeline = clew.Pipeline("small")
    declare(pipeline)
    with pytest.raises(RunError, match=words):
        check_snapshots(pipeline.build())


def test_a_cycle_is_refused_and_shown() -> None:
    from examples import components

    graph = components.build(clew.testing.scripted([[{"one": 1, "other": 2}]]), clew.call(print, "idempotent")).build()
    with pytest.raises(RunError, match=r"spread -> .* -> spread is a cycle; .* Take the feedback out, or run with"):
        check_snapshots(graph)


def test_all_else_may_run() -> None:
    pipeline = clew.Pipeline("small")
    stream = numbers(pipeline)
    one, other = stream.operator("one", Pass()), stream.operator("other", Pass())
    merged = one.merge(other, name="merged")
    merged.parallel(3, key="x").batch(2, name="twos").write("sink", clew.call(print, "idempotent"))
    check_snapshots(pipeline.build())


def test_it_is_refused_before_anything_starts(tmp_path: Any) -> None:
    pipeline = clew.Pipeline("small")
    not_replayable(pipeline)
    with pytest.raises(RunError, match="is not replayable"):
        pipeline.run(log=tmp_path / "log", recovery="snapshot")
    assert not (tmp_path / "log").exists()
