"""A long run has a bounded log, and what a lineage scope promises to keep stays answerable."""

from __future__ import annotations

from typing import Any

import pytest

import clew
from clew.log.memory import MemoryStore, Rows
from clew.model.names import Replica
from clew.protocol.settings import Settings
from clew.testing import Outside, scripted
from clew.verify.parts import Parts
from clew.verify.schedule import Schedule
from clew.verify.world import World

SMALL = Parts(settings=Settings(window=16, commit_max=8, survey_every=8, backlog_max=32))


def build(events: int, keep_s: float | None, *, has_scope: bool) -> clew.Pipeline:
    pipeline = clew.Pipeline("long")
    numbers = pipeline.source("numbers", scripted([[{"x": number}] for number in range(events)]))
    threes = numbers.batch(3, name="threes")
    threes.map(lambda table: table, name="same").write("save", Outside("store").writer())
    if has_scope:
        pipeline.lineage("numbers.out", "same.out", keep_s=keep_s)
    return pipeline


def finished(pipeline: clew.Pipeline, schedule: Schedule) -> tuple[World, dict[str, Rows]]:
    world = World(pipeline.build(), schedule, SMALL)
    world.run(10_000_000)
    store = world.store
    assert isinstance(store, MemoryStore)
    return world, {str(replica): rows for replica, rows in store.logs.items()}


def row_count(rows: Rows) -> int:
    tables: list[Any] = [*rows.outputs.values(), *rows.pairs.values(), rows.open_sets, rows.closed_sets]
    tables += [rows.lineage, rows.state_versions, rows.uses, rows.reads, *rows.stored.values(), rows.state]
    return sum(len(table) for table in tables)


@pytest.mark.parametrize(("has_scope", "keep_s", "most"), [(False, None, 120), (True, 0.05, 600)])
def test_a_long_run_has_a_bounded_log(has_scope: bool, keep_s: float | None, most: int) -> None:
    for events in (300, 3000):
        _, logs = finished(build(events, keep_s, has_scope=has_scope), Schedule(3))
        counts = {name: row_count(rows) for name, rows in logs.items()}
        assert max(counts.values()) < most, counts


def test_without_a_retention_time_lineage_stays() -> None:
    _, logs = finished(build(300, None, has_scope=True), Schedule(3))
    assert len(logs["numbers"].outputs["out"]) >= 300
    assert len(logs["threes"].lineage) == 100


@pytest.mark.parametrize("seed", range(20))
def test_lineage_within_the_retention_time_is_complete_down_to_the_source(seed: int) -> None:
    keep_s = 0.03
    schedule = Schedule.chance(seed, 2500, 4)
    world, logs = finished(build(240, keep_s, has_scope=True), schedule)
    made = world.archive[Replica("same")].outputs["out"]
    recent = [output for output in made if output.created >= world.now - keep_s and not output.event.is_end]
    for output in recent:
        number = output.event.id
        assert number in logs["same"].outputs["out"], f"{output.event} is gone; replay: {schedule}"
        origins = [origin for middle in inputs_of(logs["same"], number) for origin in inputs_of(logs["threes"], middle)]
        bodies = [logs["numbers"].output("out", origin) for origin in origins]
        assert all(body is not None for body in bodies), f"replay: {schedule}"
        rows = [row for body in bodies if body is not None for row in body.event.rows]
        assert rows == output.event.rows, f"replay: {schedule}"


def inputs_of(rows: Rows, number: int) -> list[int]:
    serials = rows.lineage["out", number]
    return [pair.event for serial in serials for _, pair in sorted(rows.pairs[serial].items())]
