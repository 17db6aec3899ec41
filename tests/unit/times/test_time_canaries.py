"""Operators that are wrong on purpose: the checkers of clew.testing say which property each breaks, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from clew.errors import BuildError, Violation
from clew.testing.time_batch_specifications import (
    BatchSpecification,
    IncrementalBatchesSpecification,
    IncrementalSpecification,
)
from clew.testing.time_properties import (
    COMPLETENESS,
    MONOTONICITY,
    PRODUCTIVITY,
    SOUNDNESS,
    check_equivalent,
    check_time_properties,
    first_broken,
)
from clew.testing.time_specifications import (
    FlattenSpecification,
    HistogramSpecification,
    JoinSpecification,
    MapSpecification,
    Specification,
    UnionSpecification,
)
from clew.testing.time_streams import monotone_streams, random_streams
from clew.times import Changes, Disjoint, Integers, Order, Poset, Product, minimal
from clew.times.algebra import (
    DT,
    WM,
    Batch,
    CountUpTo,
    Cyclic,
    Flatten,
    Incremental,
    JoinAt,
    Logic,
    Machine,
    Map,
    TotalHistogram,
    Union,
    histogram,
    incremental_batches,
    join,
    path_histogram,
    produce,
)

DIAMOND = Poset(["bot", "l", "r", "top"], [("bot", "l"), ("bot", "r"), ("l", "top"), ("r", "top")])
PLANE = Product(Integers(), Integers())
TIMES: dict[Order, list[Any]] = {
    Integers(): list(range(4)),
    PLANE: [(x, y) for x in range(3) for y in range(3)],
    DIAMOND: list(DIAMOND.elements),
}


@dataclass(frozen=True)
class Wrong(Logic):
    """An operator made of a step, which is given a state to keep things in, and an exit."""

    step: Callable[[dict[str, Any], Any], Iterable[Any]]
    exit: Callable[[dict[str, Any]], Iterable[Any]] = lambda state: ()

    def begin(self) -> Machine:
        return _Wrong(self)


class _Wrong(Machine):
    def __init__(self, wrong: Wrong) -> None:
        self.wrong = wrong
        self.state: dict[str, Any] = {"kept": [], "marks": []}

    def step(self, item: Any) -> Iterable[Any]:
        return list(self.wrong.step(self.state, item))

    def exit(self) -> Iterable[Any]:
        return list(self.wrong.exit(self.state))


@dataclass(frozen=True)
class WithoutExit(Logic):
    inner: Logic

    def begin(self) -> Machine:
        machine = self.inner.begin()
        machine.exit = lambda: ()  # type: ignore[method-assign]
        return machine


@dataclass(frozen=True)
class Edited(Logic):
    """An operator whose output of each step is changed by a function of input and output."""

    inner: Logic
    edit: Callable[[Any, list[Any]], Iterable[Any]]

    def begin(self) -> Machine:
        machine, edit = self.inner.begin(), self.edit
        step = machine.step
        machine.step = lambda item: list(edit(item, list(step(item))))  # type: ignore[method-assign]
        return machine


def batch_step(order: Order, at_most: Callable[[Any, Any], bool], keep: bool = False) -> Any:
    def step(state: dict[str, Any], item: Any) -> Iterable[Any]:
        if isinstance(item, DT):
            state["kept"].append((item.time, item.data))
            return
        found = [pair for pair in state["kept"] if at_most(pair[0], item.time)]
        if not keep:
            state["kept"] = [pair for pair in state["kept"] if not at_most(pair[0], item.time)]
        if found:
            yield DT(item.time, tuple(found))
        yield item

    return step


def batch_exit(order: Order, choose: Callable[[Order, list[Any]], Iterable[Any]]) -> Any:
    def exit(state: dict[str, Any]) -> Iterable[Any]:
        for end in choose(order, [time for time, _ in state["kept"]]):
            yield DT(end, tuple(pair for pair in state["kept"] if order.leq(pair[0], end)))

    return exit


def as_printed_in_figure_7(item: Any, out: list[Any]) -> list[Any]:
    """A watermark that completes nothing is swallowed."""
    return [] if out == [item] and isinstance(item, WM) else out


def across_times(sided: Any, pairs: Any) -> list[Any]:
    lefts = [data for (side, _), data in pairs if side == "L"]
    rights = [data for (side, _), data in pairs if side == "R"]
    return [(left, right) for left in lefts for right in rights]


def on_one_key(sided: Any, pairs: Any) -> list[Any]:
    """Each side once: the last item of a time hides those before it."""
    of = dict(pairs)
    left, right = of.get(("L", sided[1])), of.get(("R", sided[1]))
    return [] if left is None or right is None else [(left, right)]


def pair_up(left: Any, right: Any) -> Any:
    return left, right


def early_union(state: dict[str, Any], item: Any) -> Iterable[Any]:
    return [DT(item.time[1], item.data) if isinstance(item, DT) else WM(item.time[1])]


def union_of_either_watermark(state: dict[str, Any], item: Any) -> Iterable[Any]:
    """Lets a watermark out when the other side has any watermark at all."""
    if isinstance(item, DT):
        return [DT(item.time[1], item.data)]
    state["marks"].append(item.time[0])
    return [WM(item.time[1])] if set(state["marks"]) == {"L", "R"} else []


def silent_union(state: dict[str, Any], item: Any) -> Iterable[Any]:
    return [DT(item.time[1], item.data)] if isinstance(item, DT) else []


def forgetful_incremental(state: dict[str, Any], item: Any) -> Iterable[Any]:
    return [DT(time, item.data) for time in dict(item.data)] if isinstance(item, DT) else [item]


def over(order: Order) -> Any:
    return monotone_streams(order, TIMES[order], st.sampled_from("ab"))


def over_sides(order: Order) -> Any:
    sided = [(side, time) for time in TIMES[order] for side in "LR"]
    return monotone_streams(Disjoint(order, order), sided, st.integers(1, 2))


def batches_over(order: Order) -> Any:
    return over(order).map(lambda stream: list(produce(Batch(order), stream)))


def strictly(order: Order) -> Callable[[Any, Any], bool]:
    return lambda one, other: order.less(one, other)


def exit_with(order: Order, at_most: Callable[[Any, Any], bool] | None = None, keep: bool = False) -> Any:
    return Wrong(
        batch_step(order, at_most or order.leq, keep), lambda state: Batch(order, state["kept"]).begin().exit()
    )


Z = Integers()
CANARIES: dict[str, tuple[Logic, Specification, Any, str]] = {
    "a batch whose exit is forgotten": (WithoutExit(Batch(Z)), BatchSpecification(Z), over(Z), COMPLETENESS),
    "a histogram whose exit is forgotten": (
        WithoutExit(histogram(PLANE)),
        HistogramSpecification(PLANE),
        over(PLANE),
        COMPLETENESS,
    ),
    "a batch that takes only what is before the watermark": (
        exit_with(DIAMOND, strictly(DIAMOND)),
        BatchSpecification(DIAMOND),
        over(DIAMOND),
        MONOTONICITY,
    ),
    "a batch that keeps what it has handed out": (
        exit_with(Z, keep=True),
        BatchSpecification(Z),
        over(Z),
        SOUNDNESS,
    ),
    "a batch that takes what cannot be compared": (
        exit_with(DIAMOND, lambda one, other: not DIAMOND.less(other, one)),
        BatchSpecification(DIAMOND),
        over(DIAMOND),
        SOUNDNESS,
    ),
    "a batch whose exit goes by minimal times": (
        Wrong(batch_step(DIAMOND, DIAMOND.leq), batch_exit(DIAMOND, minimal)),
        BatchSpecification(DIAMOND),
        over(DIAMOND),
        SOUNDNESS,
    ),
    "a batch that lets single items out": (
        Edited(Batch(Z), lambda item, out: [DT(item.time, ((item.time, item.data),))] if isinstance(item, DT) else out),
        BatchSpecification(Z),
        over(Z),
        SOUNDNESS,
    ),
    "a batch that swallows the watermark of its batch": (
        Edited(Batch(Z), lambda item, out: out[:1]),
        BatchSpecification(Z),
        over(Z),
        COMPLETENESS,
    ),
    "a batch behind its watermark": (
        Edited(Batch(Z), lambda item, out: out[::-1]),
        BatchSpecification(Z),
        over(Z),
        MONOTONICITY,
    ),
    "an incremental that forgets earlier batches": (
        Wrong(forgetful_incremental),
        IncrementalSpecification(Z),
        batches_over(Z),
        SOUNDNESS,
    ),
    "an incremental that hands out only the label's time": (
        Edited(Incremental(), lambda item, out: out[-1:]),
        IncrementalSpecification(PLANE),
        batches_over(PLANE),
        COMPLETENESS,
    ),
    "incremental batches that hand out only what is at the time itself": (
        incremental_batches(DIAMOND) >> Map(lambda time, pairs: tuple(pair for pair in pairs if pair[0] == time)),
        IncrementalBatchesSpecification(DIAMOND),
        over(DIAMOND),
        SOUNDNESS,
    ),
    "a histogram that counts twice what two paths lead to": (
        path_histogram(DIAMOND),
        HistogramSpecification(DIAMOND),
        over(DIAMOND),
        SOUNDNESS,
    ),
    "a histogram that counts all that is complete": (
        incremental_batches(PLANE) >> Map(lambda _, pairs: Changes([(data, 1) for _, data in pairs])),
        HistogramSpecification(PLANE),
        over(PLANE),
        SOUNDNESS,
    ),
    "a histogram that starts anew with each batch": (
        Batch(Z) >> Wrong(forgetful_incremental) >> Map(CountUpTo(Z)),
        HistogramSpecification(Z),
        over(Z),
        SOUNDNESS,
    ),
    "Figure 7 as printed, which swallows a watermark": (
        Edited(TotalHistogram(Z), as_printed_in_figure_7),
        HistogramSpecification(Z),
        over(Z),
        COMPLETENESS,
    ),
    "a map that drops data": (
        Edited(Map(lambda _, data: data), lambda item, out: [] if out == [DT(0, "a")] else out),
        MapSpecification(Z, lambda _, data: data),
        over(Z),
        COMPLETENESS,
    ),
    "a map that moves data to another time": (
        Edited(Map(lambda _, data: data), lambda item, out: [DT(0, item.data)] if isinstance(item, DT) else out),
        MapSpecification(Z, lambda _, data: data),
        over(Z),
        SOUNDNESS,
    ),
    "a flatten that gives each element once": (
        Edited(Flatten(), lambda item, out: list(dict.fromkeys(out))),
        FlattenSpecification(Z),
        monotone_streams(Z, range(4), st.lists(st.sampled_from("ab"), max_size=3)),
        COMPLETENESS,
    ),
    "a union that lets watermarks out too early": (
        Wrong(early_union),
        UnionSpecification(PLANE),
        over_sides(PLANE),
        SOUNDNESS,
    ),
    "a union that lets a watermark out when the other side has any": (
        Wrong(union_of_either_watermark),
        UnionSpecification(Z),
        over_sides(Z),
        COMPLETENESS,
    ),
    "a union without watermarks": (Wrong(silent_union), UnionSpecification(Z), over_sides(Z), PRODUCTIVITY),
    "a join across times": (
        incremental_batches(Disjoint(Z, Z)) >> Map(across_times) >> Flatten() >> Union(Z),
        JoinSpecification(Z, pair_up),
        over_sides(Z),
        SOUNDNESS,
    ),
    "a join that keeps one item per side": (
        incremental_batches(Disjoint(Z, Z)) >> Map(on_one_key) >> Flatten() >> Union(Z),
        JoinSpecification(Z, pair_up),
        over_sides(Z),
        COMPLETENESS,
    ),
    "a join that hands out each pair twice": (
        Edited(join(Z, pair_up), lambda item, out: [one for one in out for _ in range(1 + isinstance(one, DT))]),
        JoinSpecification(Z, pair_up),
        over_sides(Z),
        SOUNDNESS,
    ),
    "a join without a union's patience": (
        incremental_batches(Disjoint(DIAMOND, DIAMOND)) >> Map(JoinAt(pair_up)) >> Flatten() >> Wrong(early_union),
        JoinSpecification(DIAMOND, pair_up),
        over_sides(DIAMOND),
        SOUNDNESS,
    ),
}


@pytest.mark.parametrize("name", CANARIES)
def test_each_canary_is_caught(name: str) -> None:
    operator, specification, streams, broken = CANARIES[name]
    with pytest.raises(Violation, match=rf"^{broken} is broken: .+\n  stream:   .+\n  came out: "):
        check_time_properties(operator, specification, streams, examples=1000, seed=1)


class Silent(Specification):
    """Says nothing about what comes out, so that only the preservation of the two stream properties is judged."""

    def __init__(self, order: Order, out_order: Order | None = None) -> None:
        self.order = order
        self.out = out_order or order

    @property
    def out_order(self) -> Order:
        return self.out

    def unsound(self, stream: Any, came: Any) -> Iterable[str]:
        return ()

    def missing(self, stream: Any, came: Any) -> Iterable[str]:
        return ()

    def closing(self, stream: Any) -> list[WM]:
        if isinstance(self.order, Disjoint):
            return UnionSpecification(self.out).closing(stream)
        return super().closing(stream)


@pytest.mark.parametrize(
    ("operator", "specification", "streams", "broken"),
    [
        (Wrong(early_union), Silent(Disjoint(PLANE, PLANE), PLANE), over_sides(PLANE), MONOTONICITY),
        (Wrong(union_of_either_watermark), Silent(Disjoint(Z, Z), Z), over_sides(Z), MONOTONICITY),
        (Wrong(silent_union), Silent(Disjoint(Z, Z), Z), over_sides(Z), PRODUCTIVITY),
        (Edited(Batch(Z), lambda item, out: out[::-1]), Silent(Z), over(Z), MONOTONICITY),
        (Edited(Batch(Z), lambda item, out: out[:1]), Silent(Z), over(Z), None),
        (
            Edited(Map(lambda _, data: data), lambda item, out: [] if item == WM(2) else out),
            Silent(Z),
            over(Z),
            PRODUCTIVITY,
        ),
        (Wrong(batch_step(DIAMOND, strictly(DIAMOND))), Silent(DIAMOND), over(DIAMOND), None),
    ],
)
def test_preservation_is_judged_without_a_word_about_the_data(
    operator: Logic, specification: Specification, streams: Any, broken: str | None
) -> None:
    if broken is None:  # Wrong, but what it does break is said by the specification only.
        check_time_properties(operator, specification, streams)
        return
    with pytest.raises(Violation, match=f"^{broken} is broken"):
        check_time_properties(operator, specification, streams, examples=1000, seed=1)


def test_a_watermark_that_stays_away_in_an_endless_stream() -> None:
    endless = Cyclic([], [DT(1, "a"), DT(2, "b"), WM(1), WM(2)], shift=2)
    operator = Edited(Map(lambda _, data: data), lambda item, out: [] if item == WM(4) else out)
    specification = Silent(Z)
    assert first_broken(operator, specification, endless) is None  # WM(5) completes what WM(4) would have.
    operator = Edited(
        Map(lambda _, data: data), lambda item, out: [] if isinstance(item, WM) and item.time > 4 else out
    )
    found = first_broken(operator, specification, endless)
    assert found is not None
    assert found.property == PRODUCTIVITY
    assert "DT(5, 'a') came out, and no watermark at or after 5 came after it within 3 more repetitions" in str(found)


def test_the_witness_is_small_and_in_words() -> None:
    with pytest.raises(Violation) as caught:
        check_time_properties(WithoutExit(Batch(Z)), BatchSpecification(Z), over(Z), seed=1)
    assert str(caught.value) == (
        "completeness is broken: DT(0, 'a') is in no batch.\n  stream:   [DT(0, 'a')]\n  came out: []"
    )


def test_streams_may_also_come_from_a_seed() -> None:
    streams = random_streams(DIAMOND, TIMES[DIAMOND], "ab", seed=3)
    assert check_time_properties(histogram(DIAMOND), HistogramSpecification(DIAMOND), streams) == 200
    with pytest.raises(Violation, match="soundness is broken"):
        check_time_properties(
            path_histogram(DIAMOND),
            HistogramSpecification(DIAMOND),
            random_streams(DIAMOND, TIMES[DIAMOND], "ab", seed=3),
        )


def test_streams_that_do_not_count_are_no_proof() -> None:
    with pytest.raises(BuildError, match="no stream was judged"):
        check_time_properties(Batch(Z), BatchSpecification(Z), [[WM(1), DT(1, "late")]])


def test_operators_that_differ_are_told_apart() -> None:
    check_equivalent(histogram(Z), TotalHistogram(Z), Z, over(Z))
    with pytest.raises(Violation, match="equivalence is broken: up to WM"):
        check_equivalent(
            histogram(Z), Edited(TotalHistogram(Z), as_printed_in_figure_7), Z, over(Z), examples=1000, seed=1
        )
    with pytest.raises(Violation, match="equivalence is broken: up to 'the end'"):
        check_equivalent(histogram(Z), WithoutExit(TotalHistogram(Z)), Z, over(Z), examples=1000, seed=1)
