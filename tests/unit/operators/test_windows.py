"""Definitions of time windows, columns of times of every type, and what is said when something does not fit."""

from __future__ import annotations

import datetime
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import BuildError, MoveError
from clew.operators.timed import aggregate, histogram, join, window
from clew.operators.windows import Spans, session, sliding, tumbling
from clew.testing import Alone
from clew.times.order import EventTime, Integers, Product

NOON = datetime.datetime(2025, 2, 25, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
COUNT = {"n": "count"}


@settings(deadline=None)
@given(st.integers(-(10**15), 10**15), st.integers(1, 10**6), st.data())
def test_the_last_start_is_at_or_before_a_time(time: int, every: int, data: st.DataObject) -> None:
    offset = data.draw(st.integers(-(10**6), 10**6))
    (start,) = Spans(every, every, offset).starts(pa.array([time])).to_pylist()
    assert start <= time < start + every
    assert (start - offset) % every == 0


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("s"),
        pa.timestamp("ms", "UTC"),
        pa.timestamp("us", "Europe/Berlin"),
        pa.timestamp("ns"),
        pa.timestamp("ns", "UTC"),
    ],
)
def test_timestamps_of_every_unit_and_zone(kind: pa.TimestampType) -> None:
    alone = Alone(aggregate(tumbling(10), COUNT), order=EventTime())
    moments = [NOON, NOON + 9 * SECOND, NOON + 10 * SECOND]
    if kind.tz is None:
        moments = [each.replace(tzinfo=None) for each in moments]
    alone.send(pa.table({"ts": pa.array(moments, pa.timestamp("us", kind.tz)).cast(kind)}), time=NOON)
    ((_, rows),) = alone.advance(NOON + 10 * SECOND)
    assert rows == [{"window_start": moments[0], "window_end": moments[2], "n": 2}]
    assert alone.sent[0].time == EventTime().check(NOON + 10 * SECOND) - 1


def test_nanoseconds_are_rounded_down() -> None:
    alone = Alone(aggregate(tumbling(datetime.timedelta(microseconds=1)), COUNT), order=EventTime())
    alone.send(pa.table({"ts": pa.array([-1, 0, 999, 1000], pa.timestamp("ns"))}), time=-1)
    assert [sent[1][0]["n"] for sent in alone.advance(None)] == [1, 2, 1]


def test_dates() -> None:
    week = tumbling(datetime.timedelta(days=7), offset=datetime.timedelta(days=4))
    alone = Alone(aggregate(week, COUNT, by="day"), order=EventTime())
    monday = datetime.date(2025, 2, 24)
    alone.send([{"day": monday}, {"day": monday + datetime.timedelta(days=6)}], time=0)
    ((_, rows),) = alone.advance(None)
    assert rows[0]["window_start"] == datetime.datetime(2025, 2, 24)
    assert rows[0]["n"] == 2


def test_small_integers_and_fractions_of_seconds() -> None:
    alone = Alone(aggregate(tumbling(10), COUNT))
    alone.send(pa.table({"ts": pa.array([3, 13], pa.int8())}), time=0)
    assert [rows[0]["window_start"] for _, rows in alone.advance(None)] == [0, 10]
    timed = Alone(aggregate(sliding(0.5, 0.25), COUNT), order=EventTime())
    timed.send([{"ts": NOON}], time=NOON)
    assert [rows[0]["window_end"] - NOON for _, rows in timed.advance(None)] == [SECOND / 4, SECOND / 2]


def test_records_without_a_time() -> None:
    rows = [{"ts": 1, "x": 1}, {"ts": None, "x": 2}]
    with pytest.raises(MoveError, match=r"1 of 2 records without a value in column 'ts', .*nulls='drop'"):
        Alone(aggregate(tumbling(10), COUNT)).send(rows, time=0)
    alone = Alone(aggregate(tumbling(10), COUNT, nulls="drop"))
    alone.send(rows, time=0)
    assert alone.advance(None) == [("out", [{"window_start": 0, "window_end": 10, "n": 1}])]
    assert alone.context.counts == {"nulls": 1}
    only = Alone(aggregate(session(10), COUNT, "x", nulls="drop"))
    assert only.send(pa.table({"ts": pa.array([None], pa.int64()), "x": [1]}), time=0) == []
    assert only.open_sets == []


def test_a_column_of_another_kind() -> None:
    alone = Alone(aggregate(tumbling(10), COUNT))
    with pytest.raises(
        MoveError, match=r"has no column 'ts', from which the times of its records come; its columns are"
    ):
        alone.send([{"when": 1}], time=0)
    with pytest.raises(
        MoveError, match=r"column 'ts' of event .* has the type string; expected a timestamp, a date or w"
    ):
        alone.send([{"ts": "noon"}], time=0)
    with pytest.raises(
        MoveError, match=r"has a time by whole numbers, but .* column 'ts', are moments; .*event_time\("
    ):
        alone.send([{"ts": NOON}], time=0)
    with pytest.raises(MoveError, match=r"by moments, but .* are whole numbers; .*whole_numbers=True"):
        Alone(aggregate(tumbling(10), COUNT), order=EventTime()).send([{"ts": 1}], time=0)
    with pytest.raises(
        MoveError, match=r"has the time None; expected a whole number, .*times=clew.event_time\(column\)"
    ):
        alone.send([{"ts": 1}])
    with pytest.raises(MoveError, match=r"has no column 'item', by which it is gathered; its columns are ts"):
        Alone(aggregate(tumbling(10), COUNT, "item")).send([{"ts": 1}], time=0)


@pytest.mark.parametrize("size", [1.5, datetime.timedelta(seconds=1)])
def test_sizes_for_whole_numbers_are_whole_numbers(size: Any) -> None:
    with pytest.raises(
        MoveError, match=r"the size of time windows is .*, but the times in their column are whole numbers"
    ):
        Alone(aggregate(tumbling(size), COUNT)).send([{"ts": 1}], time=0)


def test_a_size_below_the_resolution() -> None:
    with pytest.raises(MoveError, match=r"the size 1e-09 of time windows is less than a microsecond"):
        Alone(aggregate(tumbling(1e-9), COUNT), order=EventTime()).send([{"ts": NOON}], time=NOON)


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf"), True, "1h", None, datetime.timedelta()])
def test_lengths_are_more_than_nothing(size: Any) -> None:
    with pytest.raises(
        BuildError, match=r"the (size|gap) of time windows is .*; expected more than 0: seconds, a timed"
    ):
        tumbling(size)
    with pytest.raises(BuildError, match=r"the gap of time windows is"):
        session(size)


def test_windows_with_gaps_or_of_two_minds() -> None:
    with pytest.raises(BuildError, match=r"size 10, one every 20, leave gaps; expected one at least every 10"):
        sliding(10, 20)
    with pytest.raises(BuildError, match=r"expected both as a timedelta, or both as a number"):
        sliding(SECOND, 1)


def test_late_errors_name_the_record() -> None:
    alone = Alone(aggregate(tumbling(10), COUNT, late="error"), order=EventTime())
    rows = [{"ts": NOON, "x": 7}, {"ts": NOON + 10 * SECOND, "x": 8}]
    with pytest.raises(
        MoveError,
        match=r"sender.in/1 has 1 late records of 2; the first is .*'x': 7.*, at 2025-02-25T12:00:00\+00:00 by column "
        r"'ts', while its event is at 2025-02-25T12:00:10\+00:00, where all its time windows have ended. Let the",
    ):
        alone.send(rows, time=NOON + 10 * SECOND)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(BuildError, match=r"late='ignore'; expected 'drop' .*, 'port' .*, or 'error'"):
        aggregate(tumbling(10), COUNT, late="ignore")
    with pytest.raises(BuildError, match=r"nulls='keep' was passed"):
        aggregate(tumbling(10), COUNT, nulls="keep")
    with pytest.raises(
        BuildError, match=r"window was given 10 as time windows; expected clew.tumbling\(size\), clew.sl"
    ):
        window(10, len)  # type: ignore[arg-type]
    with pytest.raises(BuildError, match=r"by=None is to name the column of times of the input in; expected a name"):
        aggregate(tumbling(10), COUNT, by=None)  # type: ignore[arg-type]
    with pytest.raises(
        BuildError, match=r"a running histogram was given .*; expected time windows that do not overlap"
    ):
        histogram("x", sliding(10, 5), running=True)
    with pytest.raises(BuildError, match=r"histogram was given the column 'x' and the keys \['x'\]"):
        histogram("x", tumbling(10), keys="x")
    with pytest.raises(BuildError, match=r"window was given the keys \['x', 'x'\]; expected the name of a column, or"):
        window(tumbling(10), len, keys=["x", "x"])
    with pytest.raises(BuildError, match=r"window was given a int where it expected a function"):
        window(tumbling(10), 5)  # type: ignore[arg-type]


def test_a_result_that_has_bounds_already() -> None:
    alone = Alone(window(tumbling(10), lambda table: [{"window_start": 1}]))
    alone.send([{"ts": 1}], time=0)
    with pytest.raises(MoveError, match=r"have a column 'window_start' already.* Pass bounds=False"):
        alone.advance(None)


def test_times_are_moments_or_whole_numbers() -> None:
    operator = join("id", tumbling(10))
    assert operator.order({"left": Integers(), "right": Integers()}) == Integers()
    with pytest.raises(
        BuildError, match=r"gathers records by time, so it expects moments or whole numbers, but has Prod"
    ):
        operator.order({"left": Product(Integers(), Integers()), "right": Product(Integers(), Integers())})
    with pytest.raises(BuildError, match=r"times of different orders"):
        operator.order({"left": Integers(), "right": EventTime()})


def test_they_can_be_pickled() -> None:
    for operator in (
        aggregate(tumbling(10), COUNT, "x"),
        histogram("x", sliding(10, 5)),
        histogram("x", tumbling(10), running=True),
        window(session(SECOND), len),
        join("x", tumbling(10)),
    ):
        assert type(pickle.loads(pickle.dumps(operator))) is type(operator)  # noqa: S301
