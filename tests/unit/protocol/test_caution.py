"""Caution: after a death each move is marked before it begins, so that what kills the replica is found and given up."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.protocol.stage import (
    IN,
    MORE,
    OP,
    OUT,
    answered,
    commit_in,
    cursor,
    event,
    feed,
    fired,
    folded,
    generated,
    got,
    operator,
    planned,
    read_action,
    received,
    received_end,
    source,
    start,
    start_cautiously,
    step,
    tells,
    undone,
)

from clew.model.event import Event, as_batch
from clew.model.graph import Capture
from clew.model.history import Lineage, Pair, Transaction
from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.model.values import encode
from clew.protocol import decisions as did
from clew.protocol import inputs as was
from clew.protocol.caution import Attempt, Caution, timer_number
from clew.protocol.effects import Session
from clew.protocol.logio import OperatorKernel
from clew.protocol.settings import Settings

SECOND = Session(2, 1)


def mark(place: str, tries: int, *numbers: int) -> dict[str, int]:
    """The counters of a mark that did not end."""
    rows = {f"attempt:{place}:{index}": number for index, number in enumerate(numbers)}
    return {f"attempt:{place}": tries, f"attempt:{place}:size": len(numbers), **rows}


def marks(transaction: Transaction) -> dict[str, int]:
    """How often what is attempted in each place was, according to a commit; 0 ends a mark."""
    return {
        name.removeprefix("attempt:"): number
        for name, number in transaction.counters.items()
        if name.startswith("attempt:") and name.count(":") == 1
    }


def cautious(error: str = "", counters: dict[str, int] | None = None, **parts: Any) -> OperatorKernel:
    """An operator that starts after a death, with nothing in its log but counters."""
    kernel = operator(**parts)
    start_cautiously(kernel, error, counters=counters or {})
    return kernel


# Marks


def test_a_move_begins_when_its_mark_is_durable_and_the_mark_ends_with_its_result() -> None:
    kernel = cautious()
    effects = step(kernel, received(1, session=SECOND))
    assert tells(effects) == ["commit 1"]
    assert marks(commit_in(effects)) == {"fold/0": 1}
    assert commit_in(effects).counters["attempt:fold/0:0"] == 1
    assert feed(kernel, was.Committed(1)) == ["fold up/1"]
    effects = step(kernel, folded("a"))
    assert tells(effects) == ["commit 2"]
    assert marks(commit_in(effects)) == {"fold/0": 0}
    assert [pair.event for pair in commit_in(effects).pairs] == [1]


def test_ready_waits_until_all_before_it_is_durable_and_has_no_mark() -> None:
    kernel = cautious()
    feed(kernel, received(1, session=SECOND), was.Committed(1))
    assert feed(kernel, folded("a")) == ["commit 2"]
    assert feed(kernel, was.Committed(2)) == ["ack up 1 IdSet(0)", "ask"]
    effects = step(kernel, answered("a"))
    assert marks(commit_in(effects)) == {"generate": 1}
    assert feed(kernel, was.Committed(3)) == ["generate 'a'"]


def test_a_mark_waits_for_a_commit_that_is_under_way_and_is_not_in_it() -> None:
    kernel = cautious(settings=Settings(commit_max=1))
    feed(kernel, received(1, session=SECOND), received(2, session=SECOND), was.Committed(1))
    assert feed(kernel, folded("a")) == ["commit 2"]
    feed(kernel, was.Committed(2))
    effects = step(kernel, answered())
    assert marks(commit_in(effects)) == {"fold/0": 1}
    assert commit_in(effects).counters["attempt:fold/0:0"] == 2
    assert feed(kernel, was.Ticked(1.0)) == []
    assert feed(kernel, was.Committed(3)) == ["fold up/2"]


def test_the_same_input_is_marked_with_one_try_more_and_another_with_its_first() -> None:
    found = mark("fold/0", 2, 1)
    assert marks(commit_in(step(cautious(counters=found), received(1, session=SECOND)))) == {"fold/0": 3}
    assert marks(commit_in(step(cautious(counters=mark("fold/0", 2, 7)), received(1, session=SECOND)))) == {"fold/0": 1}


def test_an_event_of_another_channel_does_not_hide_how_often_the_suspect_failed() -> None:
    kernel = cautious(counters=mark("fold/0", 2, 1), inbound=(IN, MORE))
    effects = step(kernel, received(1, MORE, SECOND))
    assert marks(commit_in(effects)) == {"fold/1": 1}
    feed(kernel, was.Committed(1), folded(), was.Committed(2))
    feed(kernel, received(1, session=SECOND))
    assert marks(commit_in(step(kernel, answered()))) == {"fold/0": 3}


def test_a_timer_and_the_end_are_marked() -> None:
    kernel = operator()
    start_cautiously(kernel, timers={encode("t"): -1.0}, counters={"position": 1})
    effects = step(kernel, answered())
    assert marks(commit_in(effects)) == {"fire": 1}
    assert commit_in(effects).counters["attempt:fire:0"] == timer_number(encode("t"), -1.0)
    assert feed(kernel, was.Committed(1)) == ["fire 't'"]
    assert marks(commit_in(step(kernel, fired()))) == {"fire": 0}
    feed(kernel, was.Committed(2), answered(), received_end(1, session=SECOND), was.Committed(3))
    effects = step(kernel, answered())
    assert marks(commit_in(effects)) == {"finish": 1}
    assert feed(kernel, was.Committed(4)) == ["finish"]
    assert marks(commit_in(step(kernel, generated()))) == {"finish": 0}


def test_a_group_is_marked_with_all_its_serials() -> None:
    kernel = operator()
    open_sets = [(4, encode("a")), (9, encode("b"))]
    pairs = [undone(1, 1, "a", 4), undone(2, 2, "b", 9)]
    start_cautiously(kernel, open_sets=open_sets, undone=pairs, cursors={IN: cursor(2)}, counters={"position": 2})
    feed(kernel, was.Pulled((event(1), event(2))), was.Committed(1), was.Refolded(), was.Refolded(), was.Committed(2))
    counters = commit_in(step(kernel, answered("b", "a"))).counters
    assert [counters[f"attempt:generate:{index}"] for index in range(2)] == [9, 4]


def test_a_source_marks_plans_and_reads() -> None:
    kernel = source()
    assert start_cautiously(kernel) == ["hello down as 2", "commit 1"]
    assert feed(kernel, was.Committed(1)) == ["plan"]
    assert marks(commit_in(step(kernel, planned("all")))) == {"plan": 0}
    reading = commit_in(step(kernel, was.Committed(2)))
    assert marks(reading) == {"read": 1}
    assert reading.counters["attempt:read:0"] == 1
    assert feed(kernel, was.Committed(3)) == ["read 1 'all' from start x16"]
    assert marks(commit_in(step(kernel, got(1)))) == {"read": 0}


def test_caution_ends_after_so_many_moves_once_the_last_mark_has_ended() -> None:
    kernel = cautious(settings=Settings(caution_moves=2))
    feed(kernel, *(received(number, session=SECOND) for number in range(1, 6)))
    feed(kernel, was.Committed(1), folded(), was.Committed(2), answered(), was.Committed(3))
    assert feed(kernel, folded()) == ["commit 4"]
    assert kernel.caution is None
    assert feed(kernel, was.Committed(4))[-1] == "ask"
    told = feed(kernel, answered(), folded(), answered(), folded(), answered())
    assert told == ["fold up/3", "ask", "fold up/4", "ask", "fold up/5"]  # As usual: many moves, no commit.


def test_without_a_death_nothing_is_marked() -> None:
    kernel = operator()
    start(kernel, 2)
    assert feed(kernel, received(1, session=SECOND)) == ["fold up/1"]
    assert marks(commit_in([*step(kernel, folded()), *step(kernel, answered())])) == {}


def test_another_run_counts_anew_and_begins_with_care() -> None:
    kernel = operator()
    start(kernel, 2, counters=mark("fold/0", 3, 1) | mark("generate", 1, 5))
    effects = step(kernel, received(1, session=SECOND))
    assert effects == []  # The old marks are being ended.
    assert kernel.committing is not None
    assert marks(kernel.committing) == {"fold/0": 0, "generate": 0}
    assert marks(commit_in(step(kernel, was.Committed(1)))) == {"fold/0": 1}


# Refolding


UNDONE: dict[str, Any] = {
    "cursors": {IN: cursor(3)},
    "counters": {"position": 3, "order": 3, "serial": 2},
    "undone": [undone(1, 1, "a", 1), undone(2, 2, "b", 2), undone(3, 3, "a", 1, note="third")],
    "open_sets": [(1, encode("a")), (2, encode("b"))],
}
BODIES = was.Pulled((event(1), event(2), event(3)))


def with_marks(*found: dict[str, int]) -> dict[str, Any]:
    counters = dict(UNDONE["counters"])
    for each in found:
        counters |= each
    return {**UNDONE, "counters": counters}


def test_the_first_time_all_of_the_refolding_is_one_attempt() -> None:
    kernel = operator()
    start_cautiously(kernel, **UNDONE)
    effects = step(kernel, BODIES)
    assert marks(commit_in(effects)) == {"recover": 1}
    told = feed(kernel, was.Committed(1), was.Refolded(), was.Refolded())
    assert told == ["refold up/1 in 'a'", "refold up/2 in 'b'", "refold up/3 in 'a' 'third'"]
    effects = step(kernel, was.Refolded())
    assert marks(commit_in(effects)) == {"recover": 0}
    assert feed(kernel, was.Committed(2)) == ["ask"]


def test_a_thousand_pairs_need_two_commits() -> None:
    kernel = operator(settings=Settings(pull_max=1000))
    pairs = [undone(number, number, "a") for number in range(1, 1001)]
    start_cautiously(kernel, undone=pairs, open_sets=[(1, encode("a"))], cursors={IN: cursor(1000)})
    feed(kernel, was.Pulled(tuple(event(number) for number in range(1, 1001))), was.Committed(1))
    feed(kernel, *[was.Refolded()] * 1000)
    assert kernel.commits == 2


def test_after_a_death_within_it_each_pair_is_marked() -> None:
    kernel = operator()
    start_cautiously(kernel, **with_marks(mark("recover", 1)))
    effects = step(kernel, BODIES)
    assert marks(commit_in(effects)) == {"refold": 1}
    feed(kernel, was.Committed(1))
    effects = step(kernel, was.Refolded())
    assert marks(commit_in(effects)) == {"refold": 1}
    assert commit_in(effects).counters["attempt:refold:0"] == 2


def test_pairs_before_the_suspect_are_not_marked_and_the_suspect_has_one_try_more() -> None:
    kernel = operator()
    start_cautiously(kernel, **with_marks(mark("recover", 1), mark("refold", 1, 3)))
    told = feed(kernel, BODIES, was.Refolded())
    assert told == ["refold up/1 in 'a'", "refold up/2 in 'b'"]
    effects = step(kernel, was.Refolded())
    assert marks(commit_in(effects)) == {"refold": 2}


# Stopping the run


FIX = "fix the operator and run the pipeline again on the same log; or declare the operator with dead_letters=True"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            {"cursors": {IN: cursor(4)}, "counters": mark("fold/0", 3, 5)},
            "assign() and update() for event up.out/5 on input port 'in'",
        ),
        (with_marks(mark("recover", 1), mark("refold", 3, 2)), "update() for event up.out/2 in Input Set 'b'"),
        (
            with_marks(mark("generate", 3, 2, 1)),
            "generate() for Input Sets 'b', 'a' with the events up.out/1, up.out/2, up.out/3",
        ),
        (
            with_marks(mark("finish", 3)),
            "finish() for Input Sets 'a', 'b' with the events up.out/1, up.out/2, up.out/3",
        ),
        (
            {"timers": {encode("t"): 5.0}, "counters": mark("fire", 3, timer_number(encode("t"), 5.0))},
            "on_timer() for timer 't'",
        ),
    ],
)
def test_what_failed_as_often_as_it_may_stops_the_run(found: dict[str, Any], words: str) -> None:
    kernel = operator()
    said = start_cautiously(kernel, "operator 'op': something raised ValueError: no.", **found)[-1]
    assert said.startswith(f"fail operator 'op': {words} did not come to an end in 3 tries in a row; ")
    assert "; the last error was: operator 'op': something raised ValueError: no. Look at " in said
    assert FIX in said
    assert feed(kernel, received(1, session=SECOND), was.Ticked(9.0)) == []


def test_a_death_without_an_error_is_told_as_such_and_long_lists_are_short() -> None:
    pairs = [undone(number, number, "a") for number in range(1, 15)]
    found = {"undone": pairs, "open_sets": [(1, encode("a"))], "cursors": {IN: cursor(14)}}
    said = start_cautiously(operator(), counters=mark("generate", 3, 1), **found)[-1]
    assert "up.out/10 and 4 more did not come to an end in 3 tries in a row; its process died without an error." in said


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"counters": mark("plan", 3, 0)}, "source 'op': plan() for the next read action did not"),
        (
            {"counters": mark("read", 3, 2) | {"read": 2}, "reads": [read_action(2)]},
            "source 'op': read() for read action 2 ('all') did not",
        ),
    ],
)
def test_a_source_that_always_fails_stops_the_run(found: dict[str, Any], words: str) -> None:
    said = start_cautiously(source(), "no", **found)[-1]
    assert said.startswith(f"fail {words} come to an end in 3 tries in a row; the last error was: no. ")
    assert said.endswith("fix it or the source, and run the pipeline again on the same log.")


@pytest.mark.parametrize(
    "counters",
    [mark("fold/0", 3, 9), mark("refold", 3, 9), mark("generate", 3, 9), mark("fire", 3, 9)],
)
def test_a_mark_of_something_that_is_not_there_any_more_ends(counters: dict[str, int]) -> None:
    kernel = operator()
    told = start_cautiously(kernel, counters=counters)
    assert told[-1] == "commit 1"
    assert kernel.committing is not None
    assert set(marks(kernel.committing).values()) == {0}


# Dead letters


def mourning(error: str = "", *, settings: Settings | None = None, capture: Capture | None = None, **found: Any) -> Any:
    """An operator with dead letters that starts after a death: itself, and what it says."""
    dead = Channel(OP, "dead", OUT.receiver, "dead")
    kernel = operator(dead_letters=True, outbound=(OUT, dead), settings=settings, capture=capture)
    return kernel, start_cautiously(kernel, error, **found)


def letters(transaction: Transaction) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    return [
        (each.event.rows, dict(each.event.attributes))
        for each in transaction.outputs
        if each.event.port == "dead" and not each.event.is_end
    ]


def test_an_event_that_cannot_be_taken_goes_out_as_it_came_and_counts_as_taken() -> None:
    kernel, told = mourning("it broke", cursors={IN: cursor(4, 4)}, counters={"position": 4, **mark("fold/0", 3, 5)})
    assert told[-1] == "pull up/5"
    assert feed(kernel, received(5, session=SECOND), received(6, session=SECOND)) == []  # 5 is not needed again.
    body = Event(IN.sender, IN.output, 5, as_batch([{"x": 5}]), attributes={"hue": "blue"})
    effects = step(kernel, was.Pulled((body,)))
    given_up = commit_in(effects)
    about = {"operator": "op", "move": "fold", "tries": 3, "error": "it broke", "input": "in", "event": "up.out/5"}
    assert letters(given_up) == [([{"x": 5}], {**about, "attributes": {"hue": "blue"}})]
    assert given_up.cursors[IN] == cursor(5, 5)
    assert (given_up.pairs, given_up.opened) == ([], [])
    assert given_up.journal == [did.GaveUp("fold", 3, "it broke", IN, 5)]
    assert marks(given_up) == {"fold/0": 0}
    assert feed(kernel, was.Committed(1))[-1] == "ask"
    assert marks(commit_in(step(kernel, answered()))) == {"fold/0": 1}
    assert feed(kernel, was.Committed(2)) == ["fold up/6"]


def test_with_lineage_it_has_an_input_set_of_its_own() -> None:
    capture = Capture(frozenset(("in",)), frozenset(("dead",)), {"dead": None})
    found = {"cursors": {IN: cursor(4, 4)}, "counters": {"serial": 7, "order": 9, **mark("fold/0", 3, 5)}}
    kernel, _ = mourning(capture=capture, **found)
    given_up = commit_in(step(kernel, was.Pulled((event(5),))))
    assert given_up.opened == [(8, encode("dead/1"))]
    assert given_up.closed == [8]
    assert given_up.pairs == [Pair(10, IN, 5, 8, None)]
    assert given_up.lineage == [Lineage("dead", 1, 8)]
    assert given_up.cursors[IN] == cursor(5, 4)  # Its sender keeps it for as long as the lineage.


def test_a_group_is_closed_without_output_and_each_event_goes_out_once() -> None:
    pairs = [undone(1, 1, "a", 1), undone(2, 1, "b", 2), undone(3, 2, "b", 2), undone(4, 2, "c", 3)]
    found = {"undone": pairs, "open_sets": [(1, encode("a")), (2, encode("b")), (3, encode("c"))]}
    kernel, told = mourning(cursors={IN: cursor(2)}, counters=mark("generate", 3, 2, 1), **found)
    assert told[-1] == "pull up/1 up/2"
    effects = step(kernel, was.Pulled((event(1), event(2))))
    assert tells(effects) == ["commit 1", "pull up/2"]
    given_up = commit_in(effects)
    assert [(rows, about["input_sets"]) for rows, about in letters(given_up)] == [
        ([{"x": 1}], ["a", "b"]),
        ([{"x": 2}], ["b"]),
    ]
    assert given_up.forget_sets == [2, 1]
    assert given_up.cursors[IN] == cursor(2, 1)  # Event 2 is still in c.
    assert given_up.journal == [did.GaveUp("generate", 3, "", keys=(encode("b"), encode("a")))]
    feed(kernel, was.Committed(1))
    assert marks(commit_in(step(kernel, was.Pulled((event(2),))))) == {"recover": 1}
    assert feed(kernel, was.Committed(2)) == ["refold up/2 in 'c'"]


def test_bodies_are_pulled_a_few_at_a_time() -> None:
    pairs = [undone(number, number, "a") for number in range(1, 4)]
    found = {"undone": pairs, "open_sets": [(1, encode("a"))], "cursors": {IN: cursor(3)}}
    kernel, told = mourning(settings=Settings(pull_max=2), counters=mark("generate", 3, 1), **found)
    assert told[-1] == "pull up/1 up/2"
    assert feed(kernel, was.Pulled((event(1), event(2)))) == ["pull up/3"]
    assert len(letters(commit_in(step(kernel, was.Pulled((event(3),)))))) == 3


def test_of_a_pair_that_cannot_be_folded_again_only_the_event_goes_and_the_rest_of_its_set_stays() -> None:
    kernel, told = mourning(**with_marks(mark("recover", 1), mark("refold", 3, 1)))
    assert told[-1] == "pull up/1"
    given_up = commit_in(step(kernel, was.Pulled((event(1),))))
    assert [about["input_sets"] for _, about in letters(given_up)] == [["a"]]
    assert given_up.forget_sets == [1]
    assert given_up.opened == [(3, encode("a"))]
    assert given_up.pairs == [Pair(3, IN, 3, 3, encode("third"))]
    assert given_up.cursors[IN] == cursor(3, 1)
    assert given_up.journal == [did.GaveUp("refold", 3, "", IN, 1, (encode("a"),))]
    assert marks(given_up) == {"recover": 0, "refold": 0}
    feed(kernel, was.Committed(1))
    assert marks(commit_in(step(kernel, was.Pulled((event(2), event(3)))))) == {"recover": 1}
    told = feed(kernel, was.Committed(2), was.Refolded())
    assert told == ["refold up/2 in 'b'", "refold up/3 in 'a' 'third'"]


def test_a_timer_is_dropped_and_described() -> None:
    counters = {"position": 2, **mark("fire", 3, timer_number(encode("t"), -1.0))}
    kernel, told = mourning("no", timers={encode("t"): -1.0, encode("u"): 7.0}, counters=counters)
    assert told[-1] == "commit 1"
    given_up = kernel.committing
    about = {"operator": "op", "move": "fire", "tries": 3, "error": "no", "timer": "t"}
    assert letters(given_up) == [([{"timer": "t", "at": -1.0}], about)]
    assert given_up.timers == {encode("t"): None}
    assert list(kernel.timers) == [encode("u")]
    assert given_up.journal == [did.GaveUp("fire", 3, "no", timer=encode("t"))]


def test_the_end_that_cannot_be_generated_is_an_end_all_the_same() -> None:
    found = with_marks(mark("finish", 3))
    found["cursors"] = {IN: cursor(4, ended=True)}
    kernel, told = mourning(**found)
    assert told[-1] == "pull up/1 up/2 up/3"
    given_up = commit_in(step(kernel, BODIES))
    assert [rows[0]["x"] for rows, _ in letters(given_up)] == [1, 2, 3]
    assert [each.event.port for each in given_up.outputs if each.event.is_end] == ["out", "dead"]
    assert given_up.counters["finished"] == 1
    assert given_up.cursors[IN].released == IdSet(4)
    assert feed(kernel, was.Committed(1))[-1] == "complete"


def test_dead_letters_that_nobody_receives_stay_and_other_outputs_go() -> None:
    kernel = operator(dead_letters=True, outbound=())
    start(kernel, 2, counters={"out:out": 2, "out:dead": 2})
    assert kernel.pending.forget_outputs == [("out", 1, 2)]


# The marks themselves


def test_marks_are_found_again_as_they_were_written() -> None:
    written = Caution({}, Settings())
    rows: dict[str, int] = {}
    for attempt in (Attempt("fold/3", (8,)), Attempt("generate", (5, 6, 7)), Attempt("generate", (9,))):
        rows |= written.begin(attempt)
    read = Caution(rows, Settings())
    assert read.marks == {"fold/3": ((8,), 1), "generate": ((9,), 1)}
    assert read.exhausted() is None
    assert Caution(rows, Settings(tries=1)).exhausted() == (Attempt("fold/3", (8,)), 1)
