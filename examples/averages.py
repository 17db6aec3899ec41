"""The average of a stream of measurements, which a second stream resets: small enough to follow by eye.

    clew run examples/averages.py --recovery snapshot --snapshot-every 1 --log averages.log
    clew explain averages.log

Kill any of its processes while it runs (`clew status averages.log` names them): every replica goes back to the last
complete epoch, and `clew explain` shows what was thrown away, and the run without failures that explains the rest.
Without `--recovery snapshot` the one operator recovers alone, from its log, and is explained just as well. (Its sources
take their time, in the simulator too: for `clew verify`, give `build` others, as its test does.)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import clew

RESET_EVERY = 25
Rows = list[dict[str, Any]]


class Averages(clew.Operator):
    """After each measurement the average since the last reset."""

    inputs = ("measurements", "controls")

    def open(self, ctx: clew.Context) -> None:
        self.waiting: dict[int, float] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[clew.Assigned]:
        if event.input == "controls":
            ctx.state["sum"], ctx.state["count"] = 0.0, 0
            return []
        (row,) = event.rows
        ctx.state["sum"] = ctx.state.get("sum", 0.0) + row["value"]
        ctx.state["count"] = ctx.state.get("count", 0) + 1
        return [clew.Assigned(row["number"], note=ctx.state["sum"] / ctx.state["count"])]

    def update(self, input_set: int, event: clew.Event, note: float = 0.0) -> None:
        self.waiting[input_set] = note

    def ready(self, ctx: clew.Context) -> list[list[int]]:
        return [[number] for number in self.waiting]

    def generate(self, input_sets: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Rows]]:
        for number in input_sets:
            yield "out", [{"number": number, "average": self.waiting.pop(number)}]


def measurements(count: int, pause_s: float) -> Callable[[int | None], Iterator[tuple[Rows, int]]]:
    """So many numbers, one after the other; the same again from any of them on."""

    def read(offset: int | None) -> Iterator[tuple[Rows, int]]:
        for number in range((offset or 0) + 1, count + 1):
            time.sleep(pause_s)
            yield [{"number": number, "value": float(number % 10)}], number

    return read


def controls(count: int, pause_s: float) -> Callable[[int | None], Iterator[tuple[Rows, int]]]:
    """A reset now and then."""

    def read(offset: int | None) -> Iterator[tuple[Rows, int]]:
        for number in range((offset or 0) + 1, count // RESET_EVERY + 1):
            time.sleep(pause_s * RESET_EVERY)
            yield [{"reset": number}], number

    return read


def build(measured: clew.Source, controlled: clew.Source, to: clew.WriteConnection) -> clew.Pipeline:
    """The pipeline, from two sources to wherever the averages go."""
    pipeline = clew.Pipeline("averages")
    inputs = {
        "measurements": pipeline.source("measurements", measured),
        "controls": pipeline.source("controls", controlled),
    }
    pipeline.operator("averages", Averages(), inputs).write("results", to)
    return pipeline


pipeline = build(
    clew.generator(measurements(1000, 0.01)), clew.generator(controls(1000, 0.01)), clew.jsonl("averages/results")
)

if __name__ == "__main__":
    run = pipeline.run(log="averages.log", recovery="snapshot", snapshot_every_s=1.0)
    print(run, file=sys.stderr)
