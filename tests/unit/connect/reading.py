"""Drives a source as a replica does, without a log: its actions one after another, and each from any offset."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa

from clew.model.event import as_batch
from clew.model.source import Source
from clew.model.values import decode, encode

NOW = 1_700_000_000.0


class PlanContext:
    """As much of a context as `open` and `plan` use."""

    def __init__(self, state: dict[Any, Any] | None = None) -> None:
        self.state = {} if state is None else state
        self.now = NOW


Items = list[tuple[pa.RecordBatch, Any]]


def actions_of(source: Source, state: dict[Any, Any] | None = None) -> list[tuple[Any, Items]]:
    """All actions of a source that ends, each with the events that it gives."""
    ctx: Any = PlanContext(state)
    found = []
    source = copy.deepcopy(source)
    source.open(ctx)
    while (action := source.plan(ctx)) is not None:
        action = decode(encode(action))
        found.append((action, items_of(source, action)))
    return found


def items_of(source: Source, action: Any, offset: Any = None) -> Items:
    """The events of one action from an offset on, as the log gives offsets back."""
    items = [item for item in source.read(action, decode(encode(offset))) if item is not None]
    return [(as_batch(records), decode(encode(position))) for records, position in items]


def rows_of(source: Source) -> list[dict[str, Any]]:
    """All rows that a source gives."""
    return [row for _, items in actions_of(source) for batch, _ in items for row in batch.to_pylist()]


def sizes_of(source: Source) -> list[int]:
    """How many rows each event has."""
    return [batch.num_rows for _, items in actions_of(source) for batch, _ in items]


def check_resumes(source: Source) -> None:
    """From each offset that was given, a new process gives exactly the rest: records, types and offsets."""
    for action, items in actions_of(source):
        for index, (_, offset) in enumerate(items):
            rest = items_of(copy.deepcopy(source), action, offset)
            wanted = items[index + 1 :]
            assert [position for _, position in rest] == [position for _, position in wanted]
            for (found, _), (expected, _) in zip(rest, wanted, strict=True):
                assert found.equals(expected), f"after {offset}: {found.to_pylist()} instead of {expected.to_pylist()}"
