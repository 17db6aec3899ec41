"""The figures of the time-aware seed, as far as their text survives: 1, 3, 4, 6 and 8."""

from __future__ import annotations

from collections import Counter
from typing import Any

from clew.times import Changes, Integers, Poset
from clew.times.algebra import (
    DT,
    WM,
    Batch,
    Cyclic,
    Incremental,
    TotalHistogram,
    first_late,
    histogram,
    incremental_batches,
    is_monotone,
    is_productive,
    path_histogram,
    produce,
)

FIGURE_1B = Poset(
    ["t0", "t1", "t2", "t3", "t4", "t5"],
    [("t0", "t1"), ("t1", "t4"), ("t0", "t2"), ("t2", "t5"), ("t0", "t3"), ("t3", "t5")],
)
STREAM_1 = [
    DT("t0", "a"),
    DT("t1", "c"),
    WM("t1"),
    DT("t2", "b"),
    DT("t3", "a"),
    DT("t5", "a"),
    DT("t4", "d"),
    DT("t5", "c"),
    WM("t5"),
    WM("t2"),
]
FIRST = (("t0", "a"), ("t0", "a"), ("t1", "c"))
SECOND = (("t2", "b"), ("t3", "a"), ("t5", "a"), ("t5", "c"))


def between_watermarks(events: Any) -> list[Any]:
    """Data between two watermarks in any order."""
    sections: list[Any] = [Counter()]
    for event in events:
        if isinstance(event, DT):
            sections[-1][event] += 1
        else:
            sections += [event, Counter()]
    return sections


def counted(letters: str) -> Changes:
    return Changes(Counter(letters))


def test_figure_1_the_example_stream_and_its_collections() -> None:
    assert is_monotone(FIGURE_1B, STREAM_1)
    collections: dict[str, list[str]] = {}
    for event in STREAM_1:
        if isinstance(event, DT):
            collections.setdefault(event.time, []).append(event.data)
    assert collections == {"t0": ["a"], "t1": ["c"], "t2": ["b"], "t3": ["a"], "t4": ["d"], "t5": ["a", "c"]}
    # It is productive as a stream that ends, and as one that goes on only if something completes t4.
    assert is_productive(FIGURE_1B, STREAM_1)
    assert not is_productive(FIGURE_1B, Cyclic(STREAM_1, [WM("t5")]))
    assert is_productive(FIGURE_1B, Cyclic(STREAM_1, [WM("t5"), WM("t4")]))


def test_figure_1_both_of_two_watermarks_that_cannot_be_compared_count() -> None:
    both = [WM("t5"), WM("t4")]
    for late in ("t2", "t3", "t1", "t0"):
        assert first_late(FIGURE_1B, [*both, DT(late, "x")]) is not None


def test_figure_3_batches() -> None:
    expected = [DT("t1", FIRST), WM("t1"), DT("t5", SECOND), WM("t5"), WM("t2")]
    batch = Batch(FIGURE_1B, [("t0", "a")])
    assert list(produce(batch, STREAM_1, exit=False)) == expected
    assert list(produce(batch, STREAM_1)) == [*expected, DT("t4", (("t4", "d"),))]


def test_figure_4_accumulated_batches() -> None:
    both = (*FIRST, *SECOND)
    expected = [DT("t0", FIRST), DT("t1", FIRST), WM("t1")]
    expected += [DT("t2", both), DT("t3", both), DT("t5", both), WM("t5"), WM("t2")]
    batch = Batch(FIGURE_1B, [("t0", "a")])
    came = list(produce(Incremental(), produce(batch, STREAM_1, exit=False)))
    assert between_watermarks(came) == between_watermarks(expected)
    assert list(produce(incremental_batches(FIGURE_1B, [("t0", "a")]), STREAM_1, exit=False)) == came


def test_figure_6_each_collection_counts_once() -> None:
    expected = [DT("t0", counted("a")), DT("t1", counted("ac")), WM("t1")]
    expected += [DT("t2", counted("ab")), DT("t3", counted("aa")), DT("t5", counted("aaabc")), WM("t5"), WM("t2")]
    expected += [DT("t4", counted("acd"))]
    came = list(produce(histogram(FIGURE_1B), STREAM_1))
    assert between_watermarks(came) == between_watermarks(expected)


def test_the_other_meaning_counts_shared_predecessors_for_each_path() -> None:
    came = {event.time: event.data for event in produce(path_histogram(FIGURE_1B), STREAM_1) if isinstance(event, DT)}
    assert came["t5"] == came["t2"] + came["t3"] + counted("ac") == counted("aaaabc")
    assert came["t4"] == counted("acd")


def test_figure_8_the_two_histograms_differ_on_a_stream_that_is_not_monotone() -> None:
    stream = [DT(1, "a"), WM(1), DT(0, "a"), WM(0)]
    assert not is_monotone(Integers(), stream)
    assert list(produce(TotalHistogram(Integers()), stream)) == [
        DT(1, counted("a")),
        WM(1),
        DT(0, counted("aa")),
        WM(0),
    ]
    assert list(produce(histogram(Integers()), stream)) == [DT(1, counted("a")), WM(1), DT(0, counted("a")), WM(0)]
