"""Input Sets in the kernel: keys and serials, several sets for one event, pairs in order, done together."""

from __future__ import annotations

from tests.unit.protocol.stage import (
    IN,
    MORE,
    answered,
    commit_in,
    feed,
    folded,
    generated,
    operator,
    received,
    start,
    step,
    undone,
)

from clew.model.graph import Capture
from clew.model.ranges import IdSet
from clew.model.values import encode
from clew.protocol import inputs as was
from clew.protocol.logio import OperatorKernel

CAPTURE = Capture(frozenset({"in"}), frozenset({"out"}), {"out": None})


def begun(**parts: object) -> OperatorKernel:
    kernel = operator(**parts)
    start(kernel)
    return kernel


def take(kernel: OperatorKernel, number: int, *keys: object) -> None:
    feed(kernel, received(number), folded(*keys), answered())


def test_each_opening_of_a_key_has_a_serial_of_its_own() -> None:
    kernel = begun(capture=CAPTURE)
    feed(kernel, received(1), folded("a", "b"), answered("a"), generated(), answered())
    feed(kernel, received(2), folded("a"), answered(), was.Committed(1))
    assert kernel.committing is not None
    assert kernel.committing.opened == [(3, encode("a"))]
    assert [(pair.event, pair.serial) for pair in kernel.committing.pairs] == [(2, 3)]


def test_order_numbers_count_all_pairs_over_all_ports() -> None:
    kernel = begun(inbound=(IN, MORE), capture=CAPTURE)
    feed(kernel, received(1), folded("a", "b"), answered())
    feed(kernel, received(1, MORE), folded("b"), answered(), received(2), folded("a"), answered(), was.Committed(1))
    assert kernel.committing is not None
    pairs = [(pair.order, pair.channel.input, pair.event, pair.serial) for pair in kernel.committing.pairs]
    assert pairs == [(3, "more", 1, 2), (4, "in", 2, 1)]


def test_a_set_is_done_as_a_whole_and_its_events_are_released_with_their_last_set() -> None:
    kernel = begun()
    take(kernel, 1, "a")
    take(kernel, 2, "a", "b")
    take(kernel, 3, "b")
    feed(kernel, was.Committed(1), was.Committed(2))
    feed(kernel, received(4), folded("c"), answered("b"), generated(), answered())
    feed(kernel, was.Committed(3))
    assert kernel.inputs[IN].released == IdSet(0, [3])
    feed(kernel, received(5), folded(), answered("a"), generated(), answered())
    assert kernel.inputs[IN].released == IdSet(3, [5])


def test_without_capture_a_done_set_leaves_no_rows() -> None:
    kernel = begun()
    take(kernel, 1, "a")
    feed(kernel, was.Committed(1), received(2), folded("a"), answered("a"), generated())
    transaction = commit_in(step(kernel, answered()))
    assert transaction.forget_sets == [1]
    assert transaction.closed == []


def test_a_set_that_begins_and_ends_within_one_commit_is_never_written() -> None:
    kernel = begun()
    feed(kernel, received(1), folded("a", "b"), answered("a"), generated())
    transaction = commit_in(step(kernel, answered()))
    assert transaction.opened == [(2, encode("b"))]
    assert [(pair.event, pair.serial) for pair in transaction.pairs] == [(1, 2)]
    assert (transaction.forget_sets, transaction.closed) == ([], [])
    assert transaction.counters["serial"] == 2  # Its serial is used up all the same.


def test_with_capture_a_done_set_is_closed_and_keeps_its_rows() -> None:
    kernel = begun(capture=CAPTURE)
    feed(kernel, received(1), folded("a", "b"), answered("a"), generated("out"))
    transaction = commit_in(step(kernel, answered()))
    assert transaction.closed == [1]
    assert [(pair.event, pair.serial) for pair in transaction.pairs] == [(1, 1), (1, 2)]
    assert transaction.forget_sets == []


def test_a_set_group_is_done_together() -> None:
    kernel = begun(capture=CAPTURE)
    feed(kernel, received(1), folded("a", "b", "c"), answered("c", "a"))
    assert feed(kernel, generated("out")) == ["ask"]
    transaction = commit_in(step(kernel, answered()))
    assert transaction.closed == [3, 1]
    assert [(row.port, row.event, row.serial) for row in transaction.lineage] == [("out", 1, 3), ("out", 1, 1)]


def test_serials_and_order_numbers_go_on_after_a_crash() -> None:
    kernel = operator()
    start(kernel, 2, counters={"serial": 7, "order": 30, "position": 40})
    feed(kernel, answered(), received(1, session=kernel.inputs[IN].session), folded("a"))
    transaction = commit_in(step(kernel, answered()))
    assert transaction.opened == [(8, encode("a"))]
    assert [(pair.order, pair.serial) for pair in transaction.pairs] == [(31, 8)]
    assert transaction.counters["position"] == 41


def test_an_open_set_of_before_the_crash_goes_on_under_its_serial() -> None:
    kernel = operator()
    found = {"open_sets": [(4, encode("a"))], "undone": [undone(9, 1, "a", 4)], "counters": {"serial": 4, "order": 9}}
    start(kernel, 2, **found)
    feed(kernel, was.Pulled((received(1).event,)), was.Refolded())
    feed(kernel, received(1, session=kernel.inputs[IN].session), folded("a"))
    transaction = commit_in(step(kernel, answered()))
    assert (transaction.opened, [(pair.order, pair.serial) for pair in transaction.pairs]) == ([], [(10, 4)])
