"""Operators, streams and predicates in small: errors in words, laziness, and no work that grows with the square."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count, islice
from typing import Any

import pytest

from clew.errors import BuildError, MoveError
from clew.times import Changes, Disjoint, EventTime, Integers, Order, Poset, Product
from clew.times.algebra import (
    DT,
    WM,
    Accumulated,
    Batch,
    Bulk,
    Cyclic,
    Flatten,
    Incremental,
    Logic,
    Map,
    TimedEvent,
    TotalHistogram,
    Union,
    first_late,
    guarded,
    histogram,
    incremental_batches,
    is_monotone,
    is_productive,
    join,
    produce,
)

Z = Integers()


class Counting(Integers):
    """Integers that count how often they are compared."""

    def __init__(self) -> None:
        self.asked = 0

    def leq(self, one: Any, other: Any) -> bool:
        self.asked += 1
        return bool(one <= other)


def same(_: Any, data: Any) -> Any:
    return data


@pytest.mark.parametrize(
    "operator", [Batch(Z), Incremental(), Map(same), Flatten(), TotalHistogram(Z), Union(Z), histogram(Z)]
)
def test_what_is_no_event_is_refused_in_words(operator: Logic) -> None:
    with pytest.raises(MoveError, match=r"was given 'x' of type str; it takes DT\(time, data\) and WM\(time\)"):
        list(produce(operator, ["x"]))


@pytest.mark.parametrize("operator", [Batch(Z), TotalHistogram(Z), join(Z, lambda left, right: None)])
def test_a_time_of_another_order_is_refused(operator: Logic) -> None:
    with pytest.raises(MoveError, match="is no time of"):
        list(produce(operator, [DT("noon", "a")]))


def test_a_union_without_sides_is_refused() -> None:
    with pytest.raises(MoveError, match=r'Union was given the time 3; .*\("L", t\) for the left and \("R", t\)'):
        list(produce(Union(Z), [DT(3, "a")]))


def test_the_histogram_of_a_total_order_refuses_a_partial_one() -> None:
    with pytest.raises(BuildError, match=r"needs a total order .* Use histogram\(order\)"):
        TotalHistogram(Product(Z, Z))
    with pytest.raises(BuildError, match="needs a total order"):
        TotalHistogram(Poset("ab"))


def test_skipping_fewer_than_none_is_refused() -> None:
    with pytest.raises(BuildError, match="n = -1"):
        Batch(Z).skip(-1)


def test_only_operators_can_be_composed() -> None:
    with pytest.raises(TypeError):
        Batch(Z) >> len  # type: ignore[operator]


def test_times_are_taken_as_their_order_writes_them() -> None:
    plane = Product(Z, Z)
    assert list(produce(Batch(plane), [DT([1, 2], "a"), WM([1, 2])])) == [DT((1, 2), (((1, 2), "a"),)), WM((1, 2))]


def test_moments_may_be_given_as_datetimes() -> None:
    noon = datetime(2025, 2, 25, 12, tzinfo=UTC)
    order = EventTime()
    came = list(produce(TotalHistogram(order), [DT(noon, "a"), WM(noon)]))
    assert came == [DT(order.check(noon), Changes({"a": 1})), WM(order.check(noon))]


def test_an_endless_stream_is_read_no_further_than_needed() -> None:
    read: list[TimedEvent] = []

    def watched() -> Iterator[TimedEvent]:
        for n in count():
            for event in (DT(n, "a"), WM(n)):
                read.append(event)
                yield event

    out = produce(histogram(Z), watched())
    assert list(islice(out, 4)) == [DT(0, Changes({"a": 1})), WM(0), DT(1, Changes({"a": 2})), WM(1)]
    assert len(read) == 4


def test_an_exit_may_itself_be_endless() -> None:
    endless = Bulk(lambda items: count() if not items else [], 1)
    assert list(islice(produce(endless >> Bulk(list, 2), [5]), 4)) == [1, 0, 3, 2]
    assert list(islice(produce(endless.skip(7), [5]), 2)) == [7, 8]


def test_guarding_lets_a_stream_pass_until_it_breaks() -> None:
    passing = guarded(Z, iter([DT(1, "a"), WM(1), DT(1, "b")]))
    assert [next(passing), next(passing)] == [DT(1, "a"), WM(1)]
    with pytest.raises(MoveError, match=r"event 2 is DT\(1, 'b'\), but WM\(1\) is event 1"):
        next(passing)


def test_watermarks_from_before_the_stream_count() -> None:
    late = first_late(Z, [DT(2, "a")], seen=[2])
    assert "WM(2) was there before the stream" in str(late)
    assert is_monotone(Z, [DT(2, "a")], seen=[1])


@pytest.mark.parametrize(
    ("order", "stream", "mono", "prod"),
    [
        # Only far out does the data fall behind the watermark, or the watermark catch up with the data.
        (Z, Cyclic([WM(0)], [DT(1_000_000, "a")], -1), False, False),
        (Z, Cyclic([DT(10**12, "a")], [WM(0)], 1), True, True),
        (Z, Cyclic([DT(10**12, "a")], [WM(0)], 0), True, False),
        (Product(Z, Z), Cyclic([DT((5, 9), "a")], [WM((0, 0))], (1, 1)), True, True),
        # The first component reaches 5 only when the second has fallen below 9.
        (Product(Z, Z), Cyclic([DT((5, 9), "a")], [WM((0, 13))], (1, -1)), True, False),
        (Product(Z, Z), Cyclic([DT((5, 9), "a")], [WM((0, 14))], (1, -1)), True, True),
        (Disjoint(Z, Z), Cyclic([DT(("L", 1), "a")], [WM(("R", 1))], 1), True, False),
        (Z, Cyclic([DT(1, "a"), WM(1), DT(1, "b")], []), False, True),
        (Z, Cyclic([DT(1, "a")], []), True, True),
    ],
)
def test_endless_streams_are_decided_however_far_the_answer_lies(
    order: Order, stream: Cyclic, mono: bool, prod: bool
) -> None:
    assert is_monotone(order, stream) is mono
    assert is_productive(order, stream) is prod


def test_a_shift_that_fits_no_time_is_refused() -> None:
    with pytest.raises(BuildError, match="cannot be moved by the shift 1"):
        is_monotone(Poset("ab"), Cyclic([], [DT("a", 1), WM("b")], 1))
    with pytest.raises(BuildError, match="has 3 components"):
        is_monotone(Product(Z, Z), Cyclic([], [WM((0, 0)), DT((0, 0), 1)], (1, 1, 1)))
    with pytest.raises(BuildError, match="cannot be moved by the shift"):
        list(islice(Cyclic([], [WM("noon")], 1), 2))


def test_accumulated_batches_share_and_stay_as_they_were() -> None:
    one = Accumulated([(1, "a")])
    two, other = one.followed_by([(1, "b")]), one.followed_by([(2, "c")])
    assert (one, two, other) == (((1, "a"),), ((1, "a"), (1, "b")), ((1, "a"), (2, "c")))
    assert [one.counts_at(1), two.counts_at(1), one.counts_at(1)] == [{"a": 1}, {"a": 1, "b": 1}, {"a": 1}]
    assert (two[-1], two[:1], len(two), hash(two)) == ((1, "b"), ((1, "a"),), 2, hash(((1, "a"), (1, "b"))))
    with pytest.raises(IndexError):
        one[1]
    assert two != [(1, "a"), (1, "b")]


@pytest.mark.parametrize("shape", ["a watermark after each item", "all watermarks at the end", "no watermark"])
@pytest.mark.parametrize("make", [Batch, incremental_batches, TotalHistogram])
def test_work_does_not_grow_with_the_square(make: Any, shape: str) -> None:
    n, order = 5_000, Counting()
    data, marks = [DT(time, "a") for time in range(n)], [WM(time) for time in range(n)]
    stream = {
        "a watermark after each item": [event for pair in zip(data, marks, strict=True) for event in pair],
        "all watermarks at the end": data[::-1] + marks,
        "no watermark": data,
    }[shape]
    assert sum(1 for _ in produce(make(order), stream)) > 0
    assert order.asked < 20 * n


def test_the_work_of_union_and_join_does_not_grow_with_the_square() -> None:
    n, order = 5_000, Counting()
    apart = [WM((side, time)) for side in "LR" for time in range(n)]
    assert list(produce(Union(order), apart)) == [WM(time) for time in range(n) for _ in range(2)]
    assert order.asked < 20 * n
    order.asked = 0
    each = [event for t in range(n) for event in (DT(("L", t), t), DT(("R", t), t), WM(("L", t)), WM(("R", t)))]
    assert sum(isinstance(event, DT) for event in produce(join(order, lambda left, right: left), each)) == n
    assert order.asked < 40 * n


@pytest.mark.soak
def test_a_hundred_thousand_events() -> None:
    n = 100_000
    stream = [event for time in range(n) for event in (DT(time, time % 7), WM(time))]
    *_, last, mark = produce(incremental_batches(Z), stream)
    assert (len(last.data), mark) == (n, WM(n - 1))
    *_, last, mark = produce(TotalHistogram(Z), stream)
    assert (sum(last.data.values()), mark) == (n, WM(n - 1))
    by_hundred = [event for time in range(100) for event in (*(DT(time, n % 7) for n in range(1000)), WM(time))]
    *_, last, mark = produce(histogram(Z), by_hundred)
    assert (sum(last.data.values()), mark) == (n, WM(99))
