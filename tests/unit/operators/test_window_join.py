"""Joins by time windows: the pairs of a batch computation, in one order, however the records of both sides arrive."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operators import timed_script as play
from tests.unit.operators.timed_script import Script

from clew.errors import BuildError, MoveError
from clew.model.operator import Context
from clew.operators.timed import join
from clew.operators.window_join import Pairs
from clew.operators.windowed import Windowed
from clew.operators.windows import session, sliding, tumbling
from clew.testing import Alone

PORTS = ("left", "right")
HOWS = ["inner", "left", "right", "full"]


def paired(script: Script, how: str) -> list[tuple[Any, ...]]:
    """Start, key and ids of both sides of all pairs, by nested loops."""
    found = []
    windows, _ = play.by_window(script, 10, 10)
    for start, rows in windows.items():
        left = [row for row in rows if row["port"] == "left"]
        right = [row for row in rows if row["port"] == "right"]
        partners = set()
        for one in left:
            mine = [other for other in right if one["item"] is not None and one["item"] == other["item"]]
            partners.update(other["id"] for other in mine)
            found += [(start, one["item"], one["id"], other["id"]) for other in mine]
            if not mine and how in ("left", "full"):
                found.append((start, one["item"], one["id"], None))
        if how in ("right", "full"):
            found += [(start, each["item"], None, each["id"]) for each in right if each["id"] not in partners]
    return found


def check_join(operator: Windowed, script: Script, how: str, *, looks_inside: bool = True) -> None:
    done: list[Any] = []

    def frees(alone: Alone, step: Any) -> None:
        done.append(step)
        found, _ = play.by_window(done, 10, 10)
        has_open = {start for start in found if start + 10 > play.frontier(done, PORTS)}
        inner: Any = alone._operator
        assert set(alone.open_sets) == set(inner._kept) == set(inner._starts) == has_open

    renamed = [
        play.Send(step.port, step.time, [{**play.without(row, "id"), step.port: row["id"]} for row in step.rows])
        if isinstance(step, play.Send)
        else step
        for step in script
    ]
    outcome = play.play(operator, renamed, frees if looks_inside else None)
    seen = [(row["window_start"], row["item"], row.get("left"), row.get("right")) for row in outcome.rows]
    assert seen == paired(script, how)


@pytest.mark.parametrize("how", HOWS)
def test_pairs_are_those_of_a_batch_computation(how: str) -> None:
    operator: Any = join("item", tumbling(10), how=how, bounds=True)
    play.law(play.scripts(PORTS), lambda script: check_join(operator, script, how), 40)()


class LeftOnly(Windowed):
    """Waits for one side only."""

    def complete(self, ctx: Context) -> Any:
        left: Any = play.Elsewhere(ctx, lambda ctx: ctx.frontier("left"))
        return super().complete(left)


def test_a_join_that_does_not_wait_for_both_sides_is_caught() -> None:
    operator = LeftOnly(Pairs("item"), tumbling(10))
    with pytest.raises(AssertionError):
        play.law(play.scripts(PORTS), lambda script: check_join(operator, script, "inner"), 500, is_canary=True)()
    script = play.at_the_last_moment(10, 9, PORTS)
    check_join(Windowed(Pairs("item"), tumbling(10)), script, "inner", looks_inside=False)
    with pytest.raises(AssertionError):
        check_join(operator, script, "inner", looks_inside=False)


def test_it_closes_when_both_sides_have_passed_its_end() -> None:
    alone = Alone(join(["id"], tumbling(10)))
    alone.send([{"id": 1, "ts": 3, "a": "x"}], "left", time=0)
    alone.send([{"id": 1, "ts": 9, "b": "y"}, {"id": 2, "ts": 9, "b": "z"}], "right", time=0)
    assert alone.advance(10, "left") == []
    assert alone.advance(9, "right") == []
    alone.restart()
    assert alone.advance(10, "right") == [("out", [{"id": 1, "ts": 3, "a": "x", "ts_right": 9, "b": "y"}])]
    assert alone.open_sets == []
    assert alone.sent[0].time == 9


def test_an_empty_side_gives_nothing() -> None:
    alone = Alone(join("id", tumbling(10)))
    alone.send([{"id": 1, "ts": 3}], "left", time=0)
    assert alone.advance(None) == []


def test_columns_of_time_may_differ_and_late_records_say_from_which_side() -> None:
    alone = Alone(join("id", tumbling(10), ("ordered", "paid"), late="port"))
    alone.send([{"id": 1, "ordered": 12}], "left", time=10)
    assert alone.send([{"id": 1, "paid": 19}, {"id": 1, "paid": 2}], "right", time=10) == [
        ("late", [{"id": 1, "paid": 2}])
    ]
    assert alone.sent[0].attributes == {"input": "right"}
    assert alone.end() == [("out", [{"id": 1, "ordered": 12, "paid": 19}])]


def test_keys_of_different_numbers_and_columns_of_any_type() -> None:
    alone = Alone(join("id", tumbling(10)))
    alone.send([{"id": 1, "ts": 1, "tags": ["a", "b"]}], "left", time=0)
    alone.send([{"id": 1.0, "ts": 2, "place": {"x": 1}}], "right", time=0)
    assert alone.advance(None) == [
        ("out", [{"id": 1.0, "ts": 1, "tags": ["a", "b"], "ts_right": 2, "place": {"x": 1}}])
    ]


def test_a_suffix_that_does_not_help() -> None:
    alone = Alone(join("id", tumbling(10), suffix=""))
    alone.send([{"id": 1, "ts": 1}], "left", time=0)
    alone.send([{"id": 1, "ts": 1}], "right", time=0)
    with pytest.raises(MoveError, match=r"two columns named 'ts'; the columns of its left side are id, ts, .* suffix"):
        alone.advance(None)


@pytest.mark.parametrize("within", [sliding(10, 5), session(10), 10])
def test_windows_that_overlap(within: Any) -> None:
    with pytest.raises(
        BuildError, match=r"join was given .*; expected time windows that do not overlap. Pass clew.tum"
    ):
        join("id", within)


def test_bad_arguments() -> None:
    with pytest.raises(BuildError, match=r"how='cross'; expected one of inner, left, right, full"):
        join("id", tumbling(10), how="cross")
    with pytest.raises(BuildError, match=r"join was given no columns to join on"):
        join([], tumbling(10))
    with pytest.raises(BuildError, match=r"by=\('a',\) .* left and right; expected a name or a pair of names"):
        join("id", tumbling(10), ("a",))  # type: ignore[arg-type]
