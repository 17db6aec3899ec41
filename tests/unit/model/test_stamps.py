"""Stamps: times from a column, watermarks that only move on, late records apart; numbers; and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import BuildError, MoveError
from clew.model.stamps import EventTimes, Stamped, event_time, numbered
from clew.times.columns import BEGINNING


def batch(*times: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"t": list(times)}, pa.schema({"t": pa.int64()}))


def whole(late_by: int = 4, **options: Any) -> EventTimes:
    made = event_time("t", late_by=late_by, whole_numbers=True, **options)
    assert isinstance(made, EventTimes)
    return made


def told(stamped: Any) -> list[tuple[list[int], int, bool]]:
    return [(each.batch.column(0).to_pylist(), each.time, each.is_late) for each in stamped]


def test_an_event_is_at_its_earliest_record_and_the_source_holds_the_latest_less_what_may_be_late() -> None:
    stamped, held = whole().stamp(batch(7, 3, 9), (BEGINNING,))
    assert told(stamped) == [([7, 3, 9], 3, False)]
    assert held == (5,)


def test_late_records_are_an_event_of_their_own_at_what_is_held() -> None:
    stamped, held = whole().stamp(batch(2, 8, 4, 6), (5,))
    assert told(stamped) == [([2, 4], 5, True), ([8, 6], 6, False)]
    assert held == (5,)


def test_all_records_may_be_late() -> None:
    stamped, held = whole().stamp(batch(2, 4), (5,))
    assert (told(stamped), held) == ([([2, 4], 5, True)], (5,))


def test_an_event_without_records_is_at_what_is_held() -> None:
    stamped, held = whole().stamp(batch(), (5,))
    assert (told(stamped), held) == ([([], 5, False)], (5,))


def test_times_are_rounded_down_to_the_resolution_but_never_below_what_is_held() -> None:
    stamped, held = whole(resolution=10).stamp(batch(17, 48), (15,))
    assert (told(stamped), held) == ([([17, 48], 15, False)], (40,))


def test_moments_are_microseconds_in_greenwich_whatever_their_unit_and_zone() -> None:
    stamps = event_time("ts", late_by=timedelta(seconds=1), resolution=0.001)
    moment = datetime(2025, 2, 25, 15, tzinfo=UTC)
    for kind in (pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("ms", "UTC"), pa.timestamp("us")):
        values = [moment if kind.tz else moment.replace(tzinfo=None)]
        [stamped], held = stamps.stamp(pa.RecordBatch.from_pydict({"ts": pa.array(values, kind)}), (BEGINNING,))
        assert stamped.time == 1_740_495_600_000_000
        assert held == (1_740_495_599_000_000,)


@given(
    st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=5), max_size=8), st.integers(0, 9), st.integers(1, 7)
)
def test_nothing_is_sent_before_what_is_held_and_nothing_is_lost(script: Any, late_by: int, resolution: int) -> None:
    stamps = whole(late_by, resolution=resolution)
    held: tuple[int, ...] = (BEGINNING,)
    latest = BEGINNING
    for times in script:
        stamped, after = stamps.stamp(batch(*times), held)
        assert sorted(times) == sorted(time for each in stamped for time in each.batch.column(0).to_pylist())
        for each in stamped:
            own = each.batch.column(0).to_pylist()
            assert each.time >= held[0]
            assert all(time < held[0] for time in own) if each.is_late else min(own) >= each.time
        latest = max(latest, *times)
        assert held[0] <= after[0] <= max(held[0], latest - late_by)
        held = after


def test_numbered_events_are_at_0_1_2() -> None:
    stamps = numbered()
    held = stamps.start
    for number in range(3):
        stamped, held = stamps.stamp(batch(9), held)
        assert stamped == (Stamped(batch(9), number),)
    assert held == (3,)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array(["a"]), "has the type string; expected a timestamp"),
        (pa.array([None], pa.timestamp("us")), "has 1 empty values among 1"),
        (pa.array([1]), "holds whole numbers (int64); expected the other kind"),
    ],
)
def test_a_column_that_holds_no_times_is_named(column: pa.Array, words: str) -> None:
    with pytest.raises(MoveError) as caught:
        event_time("ts").stamp(pa.RecordBatch.from_pydict({"ts": column}), (BEGINNING,))
    assert words in str(caught.value)


def test_moments_where_whole_numbers_are_expected() -> None:
    moments = pa.RecordBatch.from_pydict({"t": pa.array([0], pa.timestamp("us"))})
    with pytest.raises(MoveError, match="leave out whole_numbers=True"):
        whole().stamp(moments, (BEGINNING,))


def test_a_column_that_is_missing_is_named_with_those_that_are_there() -> None:
    with pytest.raises(MoveError, match=r"no column 'ts'.*their columns are t"):
        event_time("ts").stamp(batch(1), (BEGINNING,))


@pytest.mark.parametrize(
    "options",
    [{"late_by": -1}, {"late_by": float("nan")}, {"resolution": 0}, {"idle_after_s": 0}, {"late_by": 1e15}],
    ids=str,
)
def test_bad_settings_are_refused(options: Any) -> None:
    with pytest.raises(BuildError, match=next(iter(options))):
        event_time("ts", **options)


def test_a_column_without_a_name_is_refused() -> None:
    with pytest.raises(BuildError, match="expected the name of a column"):
        event_time("")
