"""Laws of the time-aware operators: they do what the seed's definitions do, and have its four properties."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import time_aware_seed as seed

from clew.testing.time_batch_specifications import (
    BatchSpecification,
    IncrementalBatchesSpecification,
    IncrementalSpecification,
)
from clew.testing.time_properties import check_equivalent, check_time_properties, first_broken
from clew.testing.time_specifications import (
    FlattenSpecification,
    HistogramSpecification,
    JoinSpecification,
    MapSpecification,
    Specification,
    UnionSpecification,
)
from clew.testing.time_streams import made_monotone, monotone_streams, random_streams
from clew.times import Changes, Disjoint, Integers, Order, Poset, Product
from clew.times.algebra import (
    DT,
    WM,
    Batch,
    Bulk,
    Cyclic,
    Flatten,
    Incremental,
    Logic,
    Map,
    TotalHistogram,
    Union,
    first_late,
    first_unfinished,
    histogram,
    incremental_batches,
    is_monotone,
    join,
    produce,
)
from clew.times.algebra.shelf import Shelf

DIAMOND = Poset(["bot", "l", "r", "top"], [("bot", "l"), ("bot", "r"), ("l", "top"), ("r", "top")])
NESTED = Product(Integers(), Product(Integers(), DIAMOND))


class Divides(Order):
    """An order of a user, who says nothing beyond `leq`."""

    def leq(self, one: Any, other: Any) -> bool:
        return bool(other % one == 0)


ORDERS: dict[str, tuple[Order, list[Any]]] = {
    "integers": (Integers(), list(range(4))),
    "product": (Product(Integers(), Integers()), [(x, y) for x in range(3) for y in range(3)]),
    "poset": (DIAMOND, list(DIAMOND.elements)),
    "nested": (NESTED, [(x, (y, z)) for x in range(2) for y in range(2) for z in ("bot", "l", "r")]),
    "divides": (Divides(), [1, 2, 3, 4, 6, 12]),
}


@st.composite
def posets(draw: st.DrawFn) -> tuple[Order, list[Any]]:
    elements = [f"p{n}" for n in range(draw(st.integers(1, 5)))]
    upwards = [(one, two) for n, one in enumerate(elements) for two in elements[n + 1 :]]
    pairs = draw(st.lists(st.sampled_from(upwards), max_size=6)) if upwards else []
    return Poset(elements, pairs), elements


orders = st.one_of(st.sampled_from(list(ORDERS.values())), posets())
letters = st.sampled_from("abc")
items = st.tuples(st.sampled_from("kl"), st.integers(1, 3))


def streams(times: list[Any], data: st.SearchStrategy[Any], length: int = 14) -> st.SearchStrategy[list[Any]]:
    """Any streams, monotone or not."""
    moments = st.sampled_from(times)
    return st.lists(st.one_of(st.builds(DT, moments, data), st.builds(WM, moments)), max_size=length)


def pairs(times: list[Any], data: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.tuples(st.sampled_from(times), data), max_size=4)


def both_sides(times: list[Any]) -> list[Any]:
    return [(side, time) for time in times for side in "LR"]


def by_key(left: Any, right: Any) -> Any:
    return (*left, right[1]) if left[0] == right[0] else None


def plain(found: Any) -> Any:
    """Events as the seed's definitions write them here, and all lists as tuples."""
    match found:
        case WM(time):
            return ("WM", time)
        case DT(time, data):
            return ("DT", time, plain(data))
        case Changes():
            return tuple(sorted(one for one, count in found.items() for _ in range(count)))
        case str():
            return found
        case Sequence():
            return tuple(map(plain, found))
    return found


def agree(operator: Logic, op: seed.Op, stream: list[Any]) -> None:
    for exit in (True, False):
        came = produce(operator, stream, exit=exit)
        assert list(map(plain, came)) == list(map(plain, seed.produce(op, list(map(plain, stream)), exit)))


# Clew's operators and the definitions of the seed give the same, in the same order, on any stream, with any buffers.


@given(st.lists(st.integers()), st.integers(-1, 5), st.lists(st.integers(), max_size=6))
def test_bulk_is_as_defined(stream: list[int], n: int, buffer: list[int]) -> None:
    for f in (list, lambda found: [sum(found)], lambda found: [len(found)]):
        agree(Bulk(f, n, buffer), seed.bulk_op(f, n, buffer), stream)


@given(st.data())
def test_batches_incremental_batches_and_histograms_are_as_defined(data: st.DataObject) -> None:
    order, times = data.draw(orders)
    stream = data.draw(streams(times, letters))
    tds, abs = data.draw(pairs(times, letters)), data.draw(pairs(times, letters))
    agree(Batch(order, tds), seed.batch_op(order.leq, tds), stream)
    agree(incremental_batches(order, tds, abs), seed.incr_batch_op(order.leq, tds, abs), stream)
    agree(histogram(order, tds, abs), seed.ihist_op(order.leq, tds, abs), stream)


@given(st.data())
def test_the_histogram_of_a_total_order_is_as_defined(data: st.DataObject) -> None:
    chain = Poset("dcba", ["cd", "bc", "ab"])
    order, times = data.draw(st.sampled_from([ORDERS["integers"], (chain, list("abcd"))]))
    counted, buffer = data.draw(st.lists(letters, max_size=3)), data.draw(pairs(times, letters))
    stream = data.draw(streams(times, letters))
    agree(TotalHistogram(order, counted, buffer), seed.ihist_eff_op(order.leq, counted, buffer), stream)


@given(st.data())
def test_incremental_and_flatten_are_as_defined(data: st.DataObject) -> None:
    _, times = data.draw(orders)
    stream = data.draw(streams(times, pairs(times, letters)))
    abs = data.draw(pairs(times, letters))
    agree(Incremental(abs), seed.incr_op(abs), stream)
    agree(Flatten(), seed.flatten_op(), stream)


@given(st.data())
def test_union_and_join_are_as_defined(data: st.DataObject) -> None:
    order, times = data.draw(orders)
    sided = both_sides(times)
    stream = data.draw(streams(sided, items, 20))
    wms, reached = (data.draw(st.lists(st.sampled_from(sided), max_size=3)) for _ in range(2))
    tds, abs = data.draw(pairs(sided, items)), data.draw(pairs(sided, items))
    agree(Union(order, wms, reached), seed.union_op(order.leq, wms, reached), stream)
    for f in (by_key, lambda left, right: (left, right)):
        operator = join(order, f, tds, abs, wms, reached)
        agree(operator, seed.join_op(order.leq, f, tds, abs, wms, reached), stream)


@given(st.data())
def test_skipping_drops_what_comes_first(data: st.DataObject) -> None:
    order, times = data.draw(orders)
    stream, n = data.draw(streams(times, letters)), data.draw(st.integers(0, 8))
    operator = histogram(order)
    assert list(produce(operator.skip(n), stream)) == list(produce(operator, stream))[n:]  # (5) of the seed.
    agree(operator.skip(n), seed.skip_op(seed.ihist_op(order.leq, [], []), n), stream)


@given(st.data())
def test_composition_produces_what_one_makes_of_the_other(data: st.DataObject) -> None:
    order, times = data.draw(orders)
    stream = data.draw(streams(times, letters))
    parts = [Batch(order), Map(lambda _, item: item), Bulk(list, 3), Batch(order).skip(1), Bulk(lambda a: a[:1], 2)]
    one, two, three = (data.draw(st.sampled_from(parts)) for _ in range(3))
    expected = list(produce(three, produce(two, produce(one, stream))))  # (6) of the seed, for streams that end.
    assert list(produce((one >> two) >> three, stream)) == expected
    assert list(produce(one >> (two >> three), stream)) == expected


@given(st.data())
def test_a_composition_is_silent_only_if_its_second_part_is(data: st.DataObject) -> None:
    order, times = data.draw(orders)  # (7) of the seed.
    stream = data.draw(streams(times, letters, 6))
    one, two = Batch(order), Bulk(list, 3)
    if not list(produce(one >> two, stream, exit=False)):
        assert not list(produce(two, produce(one, stream, exit=False), exit=False))


# The four properties of each operator, over every order.

MakeCase = Callable[[Order, list[Any]], tuple[Logic, Specification, st.SearchStrategy[Any]]]


def with_letters(order: Order, times: list[Any]) -> st.SearchStrategy[Any]:
    return monotone_streams(order, times, letters)


def with_sides(order: Order, times: list[Any]) -> st.SearchStrategy[Any]:
    return monotone_streams(Disjoint(order, order), both_sides(times), items)


def batched(order: Order, times: list[Any]) -> st.SearchStrategy[Any]:
    """Streams of batches: some from Batch, some with batches of other labels and times."""
    real = with_letters(order, times).map(lambda stream: list(produce(Batch(order), stream)))
    return st.one_of(
        real, monotone_streams(order, times, st.lists(st.tuples(st.sampled_from(times), letters), max_size=2))
    )


def upper(_: Any, data: Any) -> Any:
    return data.upper()


CASES: dict[str, MakeCase] = {
    "batch": lambda o, t: (Batch(o), BatchSpecification(o), with_letters(o, t)),
    "batch with a buffer": lambda o, t: (
        Batch(o, [(t[0], "x"), (t[-1], "y")]),
        BatchSpecification(o, [(t[0], "x"), (t[-1], "y")]),
        with_letters(o, t),
    ),
    "incremental": lambda o, t: (
        Incremental([(t[0], "x")]),
        IncrementalSpecification(o, [(t[0], "x")]),
        batched(o, t),
    ),
    "incremental batches": lambda o, t: (
        incremental_batches(o, [(t[-1], "x")], [(t[0], "y")]),
        IncrementalBatchesSpecification(o, [(t[-1], "x")], [(t[0], "y")]),
        with_letters(o, t),
    ),
    "map": lambda o, t: (Map(upper), MapSpecification(o, upper), with_letters(o, t)),
    "flatten": lambda o, t: (
        Flatten(),
        FlattenSpecification(o),
        monotone_streams(o, t, st.lists(letters, max_size=3)),
    ),
    "histogram": lambda o, t: (
        histogram(o, [(t[0], "a")], [(t[0], "b")]),
        HistogramSpecification(o, [(t[0], "a")], [(t[0], "b")]),
        with_letters(o, t),
    ),
    "union": lambda o, t: (Union(o), UnionSpecification(o), with_sides(o, t)),
    "join": lambda o, t: (join(o, by_key), JoinSpecification(o, by_key), with_sides(o, t)),
}


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
@settings(max_examples=60)
def test_the_four_properties(name: str, data: st.DataObject) -> None:
    order, times = data.draw(orders)
    operator, specification, some = CASES[name](order, times)
    stream = data.draw(some)
    assert first_broken(operator, specification, stream) is None


@given(stream=monotone_streams(Integers(), range(4), letters), counted=st.lists(letters, max_size=3))
def test_the_four_properties_of_the_histogram_of_a_total_order(stream: Any, counted: list[str]) -> None:
    specification = HistogramSpecification(Integers(), [(1, "b")], counted=counted)
    assert first_broken(TotalHistogram(Integers(), counted, [(1, "b")]), specification, stream) is None


def test_the_two_histograms_are_equivalent_in_a_total_order() -> None:
    # (24) of the seed: what was counted before is complete, what waits is not.
    modular, optimised = histogram(Integers(), [(2, "a")], [(0, "b")]), TotalHistogram(Integers(), ["b"], [(2, "a")])
    check_equivalent(modular, optimised, Integers(), monotone_streams(Integers(), range(1, 5), letters))


@given(stream=monotone_streams(Integers(), range(4), letters))
def test_the_two_histograms_go_step_by_step(stream: Any) -> None:
    one, two = histogram(Integers()).begin(), TotalHistogram(Integers()).begin()  # (26), (27) of the seed.
    for n, event in enumerate(stream):
        assert list(one.step(event)) == list(two.step(event))
        left, right = (
            list(produce(each, stream[: n + 1])) for each in (histogram(Integers()), TotalHistogram(Integers()))
        )
        assert left == right


@given(st.data())
def test_monotonicity_is_kept_after_watermarks_of_before(data: st.DataObject) -> None:
    order, times = data.draw(orders)  # (12), (18) of the seed.
    seen = data.draw(st.lists(st.sampled_from(times), max_size=2))
    marks = [WM(time) for time in seen]
    stream = made_monotone(order, [*marks, *data.draw(streams(times, letters))])[len(marks) :]
    waiting = [pair for pair in data.draw(pairs(times, letters)) if not any(order.leq(pair[0], time) for time in seen)]
    for operator in (Batch(order, waiting), incremental_batches(order, waiting), histogram(order, waiting)):
        assert is_monotone(order, list(produce(operator, stream)), seen)


@pytest.mark.parametrize("name", ["batch", "histogram", "incremental batches"])
def test_properties_on_streams_that_never_end(name: str) -> None:
    order = Product(Integers(), Integers())
    cycle = [DT((1, 0), "a"), DT((0, 1), "b"), WM((1, 0)), DT((1, 1), "c"), WM((1, 1)), WM((0, 2))]
    endless = Cyclic([DT((0, 0), "z")], cycle, (2, 2))
    assert is_monotone(order, endless)
    operator, specification, _ = CASES[name](order, [(0, 0), (1, 0)])
    assert check_time_properties(operator, specification, [endless]) == 1


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("over", ORDERS)
def test_the_four_properties_on_many_streams(name: str, over: str) -> None:
    order, times = ORDERS[over]
    operator, specification, some = CASES[name](order, times)
    assert check_time_properties(operator, specification, some, examples=1000) > 100


# Monotone and productive, decided against the plain meaning.


def late_by_meaning(order: Order, events: list[Any]) -> int | None:
    for at, event in enumerate(events):
        if isinstance(event, DT) and any(
            isinstance(mark, WM) and order.leq(event.time, mark.time) for mark in events[:at]
        ):
            return at
    return None


@st.composite
def cyclic_streams(draw: st.DrawFn) -> tuple[Order, Cyclic]:
    number = st.integers(-3, 3)
    kind = draw(st.sampled_from(["integers", "product", "poset", "mixed", "sides"]))
    if kind == "poset":
        order, times = draw(posets())
        moments, shift = st.sampled_from(times), st.just(0)
    elif kind == "integers":
        order, moments, shift = Integers(), number, number
    elif kind == "sides":
        order, shift = Disjoint(Integers(), Integers()), number
        moments = st.tuples(st.sampled_from("LR"), number)
    elif kind == "product":
        order, shift = Product(Integers(), Integers()), st.one_of(number, st.tuples(number, number))
        moments = st.tuples(number, number)
    else:
        order, shift = (
            Product(Integers(), Product(DIAMOND, Integers())),
            st.tuples(number, st.tuples(st.just(0), number)),
        )
        moments = st.tuples(number, st.tuples(st.sampled_from(DIAMOND.elements), number))
    events = st.one_of(st.builds(DT, moments, letters), st.builds(WM, moments))
    some = st.lists(events, max_size=4)
    return order, Cyclic(draw(some), draw(some), draw(shift))


# Times lie in -3 ... 3, so the bound of each inequality is at most 6 and no span starts after repetition 6 (7 where it
# must be later than the other event). Here, and only here, sixteen repetitions show all there is to see.
ENOUGH = 16


@given(cyclic_streams())
@settings(max_examples=400)
def test_the_first_late_item_of_an_endless_stream_is_found_exactly(case: tuple[Order, Cyclic]) -> None:
    order, stream = case
    events = stream.unrolled(ENOUGH)
    late = first_late(order, stream)
    assert (None if late is None else late.at) == late_by_meaning(order, events)
    if late is not None:
        assert events[late.at] == late.data
        assert events[late.watermark_at] == late.watermark
        assert late.watermark_at < late.at
        assert order.leq(late.data.time, late.watermark.time)


@given(cyclic_streams())
@settings(max_examples=400)
def test_the_first_unfinished_item_of_an_endless_stream_is_found_exactly(case: tuple[Order, Cyclic]) -> None:
    order, stream = case
    events = stream.unrolled(ENOUGH)
    unfinished = first_unfinished(order, stream)
    if stream.is_finite:
        assert unfinished is None
        return
    open_ones = [
        at
        for at, event in enumerate(events[: len(stream.prefix) + len(stream.cycle)])
        if isinstance(event, DT)
        and not any(isinstance(mark, WM) and order.leq(event.time, mark.time) for mark in events[at + 1 :])
    ]
    assert (None if unfinished is None else unfinished.at) == (open_ones[0] if open_ones else None)


@given(st.data())
def test_finite_streams_are_judged_by_the_plain_meaning(data: st.DataObject) -> None:
    order, times = data.draw(orders)
    stream = data.draw(streams(times, letters))
    late = first_late(order, stream)
    assert (None if late is None else late.at) == late_by_meaning(order, stream)
    assert late_by_meaning(order, made_monotone(order, stream)) is None
    assert first_unfinished(order, stream) is None


# Small laws.


@given(st.data())
def test_a_shelf_hands_out_what_a_list_would(data: st.DataObject) -> None:
    order, times = data.draw(orders)
    shelf, kept = Shelf(order), list[Any]()
    for n in range(data.draw(st.integers(0, 20))):
        time = data.draw(st.sampled_from(times))
        if data.draw(st.booleans()):
            shelf.put(time, n)
            kept.append((time, n))
        else:
            assert shelf.take(time) == [pair for pair in kept if order.leq(pair[0], time)]
            kept = [pair for pair in kept if not order.leq(pair[0], time)]
        assert list(shelf.maximal()) == seed.maximal_antichain_list(order.leq, [other for other, _ in kept])


@given(st.data())
def test_production_is_lazy_and_can_be_cut_anywhere(data: st.DataObject) -> None:
    order, times = data.draw(orders)
    stream = data.draw(streams(times, letters))
    endless = Cyclic(stream, [DT(times[0], "z"), WM(times[0])])
    whole = list(produce(histogram(order), endless.unrolled(5), exit=False))
    assert list(islice(produce(histogram(order), endless), len(whole))) == whole


@given(st.data())
def test_operators_are_values(data: st.DataObject) -> None:
    order, times = data.draw(orders)
    operator = histogram(order, [(times[0], "a")]) >> Map(len_of) >> Batch(order).skip(1)
    stream = data.draw(streams(times, letters))
    assert list(produce(operator, stream)) == list(produce(operator, stream))
    assert operator == histogram(order, [(times[0], "a")]) >> Map(len_of) >> Batch(order).skip(1)
    assert isinstance(order, Divides) or pickle.dumps(operator)


def len_of(_: Any, data: Any) -> int:
    return len(data)


def test_random_streams_are_the_same_for_the_same_seed() -> None:
    order, times = ORDERS["product"]
    one, two, three = (list(random_streams(order, times, "ab", seed=n)) for n in (1, 1, 2))
    assert one == two != three
    assert all(is_monotone(order, stream) for stream in one)
