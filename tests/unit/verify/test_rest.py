"""The log at rest: after a whole run, what is left over or missing is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clew import Pipeline
from clew.errors import Violation
from clew.log.contract import OutputRow, PairRow
from clew.model.graph import Graph
from clew.model.names import Replica
from clew.model.values import encode
from clew.testing import Outside, scripted
from clew.verify.rest import judge_rest
from clew.verify.schedule import Schedule
from clew.verify.world import World


def graph() -> Graph:
    pipeline = Pipeline("p")
    numbers = pipeline.source("numbers", scripted([[{"x": number}] for number in range(4)]))
    numbers.batch(2, name="twos").write("save", Outside("store").writer())
    numbers.map(lambda table: table, "kept").write("keep", Outside("other").writer())
    pipeline.lineage("numbers.out", "kept.out")
    return pipeline.build()


class Reader:
    """The rows of a whole run, some of which a test changes."""

    def __init__(self, world: World) -> None:
        self.reader = world.reader
        self.changed: dict[str, dict[str, Any]] = {}

    def rows(self, replica: Replica) -> Any:
        rows = self.reader.rows(replica)
        fields = self.changed.get(replica.operator, {})
        return rows._replace(**{name: change(getattr(rows, name)) for name, change in fields.items()})


def judged(operator: str = "", **changes: Callable[[Any], Any]) -> None:
    built = graph()
    world = World(built, Schedule(1))
    world.run(100_000)
    reader = Reader(world)
    reader.changed[operator] = changes
    judge_rest(built, reader, world.archive)  # type: ignore[arg-type]


def test_a_whole_run_leaves_nothing_that_nobody_needs() -> None:
    judged()


PAIR = PairRow(9, graph().channels[0], 4, 1, encode(1), False, None)


@pytest.mark.parametrize(
    ("operator", "changes", "words"),
    [
        ("twos", {"sets": lambda rows: [(5, encode(2), False)]}, "twos: its log still has open Input Sets after it fi"),
        ("twos", {"pairs": lambda rows: [PAIR]}, "twos: its log still has undone pairs after it finished"),
        ("twos", {"timers": lambda rows: {encode("t"): 5.0}}, "twos: its log still has timers after it finished"),
        (
            "numbers",
            {"reads": lambda rows: [(1, "in", encode(0), True, False, None, False)]},
            "numbers: its log still has unfinished read actions after it finished",
        ),
        (
            "twos",
            {"outputs": lambda rows: [OutputRow("out", 1, 0.0, False)]},
            "twos: its log still has 1 outputs that nobody needs, first OutputRow(port='out', id=1",
        ),
        ("twos", {"pairs": lambda rows: [PAIR._replace(is_done=True)]}, "twos: its log still has 1 pairs that nobody"),
        (
            "kept",
            {"outputs": lambda rows: [row for row in rows if row.id != 2]},
            "kept: kept.out/2 or its lineage is gone, although a scope keeps it",
        ),
        (
            "kept",
            {"sets": lambda rows: rows[1:]},
            "kept: kept.out/1 or its lineage is gone, although a scope keeps it",
        ),
    ],
)
def test_what_is_left_over_or_missing_is_named(operator: str, changes: Any, words: str) -> None:
    with pytest.raises(Violation) as caught:
        judged(operator, **changes)
    assert str(caught.value).startswith(words)


def test_events_that_somebody_keeps_for_lineage_stay_with_their_sender() -> None:
    judged("numbers", outputs=lambda rows: [*rows, OutputRow("out", 99, 0.0, False)])
    with pytest.raises(Violation, match=r"kept: its input numbers\.out/2 is gone, although a scope keeps it"):
        judged("numbers", outputs=lambda rows: [row for row in rows if row.id != 2])
