"""Scripted sources."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clew.errors import BuildError
from clew.model.source import Source
from clew.operators.merge import Merge
from clew.testing import Alone, scripted
from clew.testing.alone import AloneContext


def context(seed: int = 0) -> AloneContext:
    return Alone(Merge(1), seed=seed).context


def drain(source: Source, action: Any, offset: Any = None) -> list[Any]:
    return [item and (item[0].to_pylist(), item[1]) for item in source.read(action, offset)]


def planned(source: Source) -> list[Any]:
    ctx, actions = context(), []
    while (action := source.plan(ctx)) is not None:
        actions.append(action)
    return actions


def test_events_in_one_action() -> None:
    source = scripted([[{"x": 1}], {"x": [2, 3]}])
    assert source.is_replayable
    assert planned(source) == [0]
    assert drain(source, 0) == [([{"x": 1}], 1), ([{"x": 2}, {"x": 3}], 2)]


def test_a_replayable_source_begins_again_at_any_offset() -> None:
    source = scripted([[{"x": number}] for number in range(5)])
    whole = drain(source, 0)
    for _, offset in whole:
        assert drain(source, 0, offset) == whole[offset:]


def test_events_divided_over_actions() -> None:
    source = scripted([[{"x": number}] for number in range(5)], actions=3)
    assert planned(source) == [0, 1, 2]
    assert [[rows[0]["x"] for rows, _ in drain(source, action)] for action in planned(source)] == [[0, 1], [2, 3], [4]]


def test_more_actions_than_events() -> None:
    source = scripted([[{"x": 1}]], actions=3)
    assert [len(drain(source, action)) for action in planned(source)] == [1, 0, 0]


def test_no_events() -> None:
    source = scripted([])
    assert planned(source) == [0]
    assert drain(source, 0) == []


def test_a_moment_without_events_comes_once() -> None:
    source = scripted([[{"x": 1}], None, [{"x": 2}]])
    source.open(context())
    assert drain(source, 0) == [([{"x": 1}], 1), None, ([{"x": 2}], 3)]
    assert drain(source, 0, 1) == [([{"x": 2}], 3)]


def test_a_source_that_is_not_replayable_gives_other_data_each_time() -> None:
    source = scripted([[{"x": 1}], [{"x": 2}]], replayable=False)
    assert not source.is_replayable
    source.open(context())
    first, second = drain(source, 0), drain(source, 0)
    assert [rows[0]["x"] for rows, _ in first] == [rows[0]["x"] for rows, _ in second] == [1, 2]
    readings = [{rows[0]["reading"] for rows, _ in execution} for execution in (first, second)]
    assert len(readings[0]) == len(readings[1]) == 1
    assert readings[0] != readings[1]


def test_a_successor_reads_other_data() -> None:
    definition = scripted([[{"x": 1}]], replayable=False)
    first, second = copy.deepcopy(definition), copy.deepcopy(definition)
    first.open(context(seed=1))
    second.open(context(seed=2))
    assert drain(first, 0) != drain(second, 0)


def test_how_the_data_change_can_be_chosen() -> None:
    source = scripted(
        [[{"x": 1}]],
        replayable=False,
        change=lambda batch, reading: [{"x": row["x"], "odd": reading % 2} for row in batch.to_pylist()],
    )
    source.open(context())
    assert {drain(source, 0)[0][0][0]["odd"] for _ in range(2)} == {0, 1}


@pytest.mark.parametrize("actions", [0, -1, 1.5, None])
def test_a_number_of_actions_is_needed(actions: Any) -> None:
    with pytest.raises(BuildError, match=r"over .* read actions; expected a whole number from 1 up"):
        scripted([], actions=actions)


def test_copies_share_the_script_and_nothing_else() -> None:
    source = scripted([[{"x": 1}], None])
    twin = copy.deepcopy(source)
    twin.open(context())
    drain(twin, 0)
    source.open(context())
    assert drain(source, 0) == [([{"x": 1}], 1), None]
    assert next(iter(twin.read(0, None)))[0] is next(iter(source.read(0, None)))[0]  # type: ignore[index]
