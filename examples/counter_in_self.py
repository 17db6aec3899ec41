"""A mistake that `clew verify` finds: the operator counts its events in `self`, and a crash resets the count.

It is here to be caught: `clew verify examples/counter_in_self.py` ends with exit code 1. The remedy is to keep the
count in `ctx.state`.
"""

from __future__ import annotations

from typing import Any

import clew
from clew.testing import Outside, scripted


class EveryThird(clew.Operator):
    """Should collect three events at a time."""

    def open(self, ctx: clew.Context) -> None:
        self.count = 0
        self.sets: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        self.count += 1  # Lost in a crash.
        return [(self.count - 1) // 3]

    def update(self, number: int, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(number, []).extend(row["x"] for row in event.rows)

    def ready(self, ctx: clew.Context) -> list[list[int]]:
        return [[number] for number in self.sets if self.count >= 3 * (number + 1)]

    def generate(self, numbers: Any, ctx: clew.Context) -> Any:
        yield "out", [{"sum": sum(self.sets.pop(numbers[0]))}]


def build() -> clew.Pipeline:
    """Nine numbers, summed up in threes."""
    pipeline = clew.Pipeline("thirds")
    numbers = pipeline.source("numbers", scripted([[{"x": number}] for number in range(9)]))
    numbers.operator("thirds", EveryThird()).write("save", Outside("sums").writer())
    return pipeline
