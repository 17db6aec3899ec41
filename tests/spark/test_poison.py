"""An input that always crashes its operator: the run stops and names it, or it is set aside and all else is exact."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark import pipelines
from tests.spark.harness import BRISK, Watch
from tests.spark.running import rows_of

import clew
from clew.errors import RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COUNT, BAD = 90, 41
"""How many events there are; which of them is bad: `numbers.out/42` carries the number 41."""


class Fragile(clew.Operator):
    """Doubles numbers, and does not survive one of them, in one of its moves."""

    def __init__(self, move: str, how: str) -> None:
        self.move = move
        self.how = how

    def open(self, ctx: clew.Context) -> None:
        self.rows: dict[int, list[dict[str, Any]]] = {}

    def stumble(self, move: str, rows: list[dict[str, Any]]) -> None:
        if move == self.move and any(row["x"] == BAD for row in rows):
            if self.how == "exits":
                os._exit(3)
            raise ValueError("this number again")

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        self.stumble("assign", event.rows)
        ctx.state["seen"] = ctx.state.get("seen", 0) + 1
        return [event.id]

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        self.stumble("update", event.rows)
        self.rows[number] = event.rows

    def ready(self, ctx: clew.Context) -> list[list[int]]:
        return [[number] for number in sorted(self.rows)]

    def generate(self, numbers: Sequence[int], ctx: clew.Context) -> Any:
        rows = [row for number in numbers for row in self.rows[number]]
        self.stumble("generate", rows)
        for number in numbers:
            del self.rows[number]
        yield "out", [{"x": row["x"], "doubled": 2 * row["x"]} for row in rows]


def number_rows(number: int) -> list[dict[str, Any]]:
    return [{"x": number}]


def build(directory: Path, operator: Fragile, dead_letters: bool) -> clew.Pipeline:
    pipeline = clew.Pipeline("poison")
    gate = pipelines.gate_of(directory)
    gate.touch()
    numbers = pipeline.source("numbers", pipelines.Steady(COUNT, 1000.0, gate, number_rows))
    fragile = numbers.operator("fragile", operator, dead_letters=dead_letters)
    fragile.write("report", clew.sqlite(directory / "out.db", "doubled", create=True))
    if dead_letters:
        fragile["dead"].write("dead-letters", clew.sqlite(directory / "out.db", "dead", create=True))
    return pipeline


@pytest.mark.parametrize(("move", "how"), [("assign", "exits"), ("generate", "raises")])
def test_without_dead_letters_the_run_stops_and_names_operator_and_event(
    spark: SparkSession, tmp_path: Path, move: str, how: str
) -> None:
    pipeline = build(tmp_path, Fragile(move, how), dead_letters=False)
    words = "its process died without an error" if how == "exits" else "ValueError: this number again"
    with Watch(pipeline.run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)) as watch:
        with pytest.raises(RunFailed, match=rf"'fragile': {move}.*numbers\.out/42\b.* 3 tries in a row.*{words}"):
            watch.finish()
        assert watch.run.state == "failed"
        assert watch.run.error is not None
        assert "numbers.out/41" not in watch.run.error
    before = rows_of(tmp_path / "out.db", "doubled")
    assert before == [(x, 2 * x) for x in range(len(before))]
    assert len(before) <= BAD

    mended = build(tmp_path, Fragile("", ""), dead_letters=False)
    mended.run(spark, log=tmp_path / "log")
    assert rows_of(tmp_path / "out.db", "doubled") == [(x, 2 * x) for x in range(COUNT)]


@pytest.mark.parametrize(
    ("move", "how"), [("assign", "raises"), ("assign", "exits"), ("update", "exits"), ("generate", "exits")]
)
def test_with_dead_letters_it_is_set_aside_and_the_rest_is_exact(
    spark: SparkSession, tmp_path: Path, move: str, how: str
) -> None:
    pipeline = build(tmp_path, Fragile(move, how), dead_letters=True)
    with Watch(pipeline.run(spark, log=tmp_path / "log", blocking=False, tuning=BRISK)) as watch:
        assert watch.finish().state == "completed"
    assert rows_of(tmp_path / "out.db", "doubled") == [(x, 2 * x) for x in range(COUNT) if x != BAD]
    assert rows_of(tmp_path / "out.db", "dead") == [(BAD,)]
