"""Connected components of a growing graph, kept up to date by a loop: every new edge goes round until nothing changes.

    clew run examples/components.py

Each event of the source is a batch of edges, and its number is their time. Inside the loop a time is the batch and the
round; the smallest name of a component spreads by one edge in every round. A round of a batch is worked on when it is
known to be complete and all earlier batches are done, so what leaves the loop for a batch are exactly the nodes whose
component has changed with it, whatever crashed meanwhile.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import clew


class Spread(clew.Operator):
    """One round: takes over smaller names from neighbours, and passes on those that are new."""

    inputs = ("in", "back")
    outputs = ("again", "out")
    is_timely = True

    def open(self, ctx: clew.Context) -> None:
        self.waiting: dict[tuple[int, int], list[tuple[str, list[dict[str, Any]]]]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[tuple[int, int]]:
        return [event.time]

    def update(self, time: tuple[int, int], event: clew.Event, note: Any = None) -> None:
        self.waiting.setdefault(time, []).append((event.input, event.rows))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[tuple[int, int]]]:
        """The first round of which all has come, when no earlier batch can come round any more."""
        frontier = ctx.frontier()
        batch = min(self.waiting, default=(0, 0))[0]
        if self.waiting and all(other >= batch for other, _ in frontier):
            return [[time] for time in sorted(self.waiting) if time[0] == batch and frontier.passed(time)]
        return []

    def generate(self, times: Sequence[tuple[int, int]], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        offers: dict[int, int] = {}
        new: set[int] = set()
        for port, rows in self.waiting.pop(times[0]):
            for row in rows:
                if port == "in":
                    new.update(self.connect(row["one"], row["other"], offers, ctx))
                else:
                    offers[row["node"]] = min(row["name"], offers.get(row["node"], row["name"]))
        changed = {node: ctx.state["name", node] for node in new}
        for node, name in offers.items():
            if name < ctx.state["name", node]:
                changed[node] = ctx.state["name", node] = name
        if changed:
            yield "out", [{"node": node, "name": name} for node, name in sorted(changed.items())]
            near = [(other, name) for node, name in sorted(changed.items()) for other in ctx.state["near", node]]
            again = [{"node": other, "name": name} for other, name in near if name < ctx.state["name", other]]
            if again:
                yield "again", again

    def connect(self, one: int, other: int, offers: dict[int, int], ctx: clew.Context) -> Iterator[int]:
        """Adds an edge; yields the nodes that were not there before."""
        for node in (one, other):
            if ("name", node) not in ctx.state:
                ctx.state["name", node] = node
                ctx.state["near", node] = []
                yield node
        if other not in ctx.state["near", one]:
            ctx.state["near", one].append(other)
            ctx.state["near", other].append(one)
        name = min(ctx.state["name", one], ctx.state["name", other])
        for node in (one, other):
            offers[node] = min(name, offers.get(node, name))


class Latest(clew.Operator):
    """What a batch has changed in the end: names only get smaller, so the smallest is the last."""

    is_timely = True

    def open(self, ctx: clew.Context) -> None:
        self.batches: dict[int, dict[int, int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        return [event.time]

    def update(self, batch: int, event: clew.Event, note: Any = None) -> None:
        names = self.batches.setdefault(batch, {})
        for row in event.rows:
            names[row["node"]] = min(row["name"], names.get(row["node"], row["name"]))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        frontier = ctx.frontier()
        return [[batch] for batch in sorted(self.batches) if frontier.passed(batch)]

    def generate(self, batches: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        for batch in batches:
            names = self.batches.pop(batch)
            yield "out", [{"batch": batch, "node": node, "component": names[node]} for node in sorted(names)]


def edges(batches: int, size: int, nodes: int, seed: int = 7) -> list[list[dict[str, int]]]:
    """Random edges between so many nodes."""
    chance = random.Random(seed)
    return [
        [{"one": chance.randrange(nodes), "other": chance.randrange(nodes)} for _ in range(size)]
        for _ in range(batches)
    ]


def build(source: clew.Source, report: clew.WriteConnection) -> clew.Pipeline:
    """The pipeline, from a source of edges to wherever the components go."""
    pipeline = clew.Pipeline("components")
    batches = pipeline.source("edges", source, times=clew.numbered())

    def body(entered: clew.Stream, back: clew.Stream) -> tuple[clew.Stream, clew.Stream]:
        spread = entered.operator("spread", Spread(), {"back": back})
        return spread["again"], spread["out"]

    batches.iterate("round", body).operator("latest", Latest()).write("report", report)
    return pipeline


def some_edges(offset: int | None) -> Iterator[tuple[list[dict[str, int]], int]]:
    """Forty batches of five edges, from any batch on."""
    for number, batch in enumerate(edges(40, 5, 200), 1):
        if number > (offset or 0):
            yield batch, number


pipeline = build(clew.generator(some_edges), clew.jsonl("components"))


def main() -> None:
    """Runs the pipeline and says how many components there are."""
    pipeline.run(log="components.log")
    names: dict[int, int] = {}
    for part in sorted(Path("components").glob("*.jsonl")):
        for line in part.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            names[row["node"]] = row["component"]
    sys.stdout.write(f"{len(names)} nodes in {len(set(names.values()))} components\n")


if __name__ == "__main__":
    main()
