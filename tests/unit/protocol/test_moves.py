"""Moves: user code runs with a context of its own, hands over all it did or nothing, and is told what it did wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.protocol.stage import IN, event

from clew.errors import MoveError
from clew.model.connection import Kind
from clew.model.graph import Node
from clew.model.operator import Assigned, Operator
from clew.model.source import Source
from clew.model.values import decode, encode
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.moves import Moves
from clew.testing import Outside


class Around:
    """Surroundings that a test sets; every look at them is counted."""

    def __init__(self, **state: Any) -> None:
        self.clock = 100.0
        self.pace = 1.0
        self.seeds = 0
        self.committed = {encode(key): encode(value) for key, value in state.items()}
        self.answers: Callable[[Any], Any] = lambda query: [{"answer": query}]

    def now(self) -> float:
        self.clock += self.pace
        return self.clock

    def seed(self) -> int:
        self.seeds += 1
        return self.seeds

    def read(self, connection: str, query: Any) -> Any:
        return self.answers(query)

    def backlog(self, port: str) -> int:
        return {"out": 7}[port]

    def state(self, key: bytes) -> bytes | None:
        return self.committed.get(key)

    def state_items(self) -> list[tuple[bytes, bytes]]:
        return sorted(self.committed.items())


class Plain(Operator):
    """Does nothing of itself: a test overrides one move."""

    def assign(self, event: Any, ctx: Any) -> Any:
        return []

    def update(self, input_set: Any, event: Any, note: Any = None) -> None:
        pass

    def generate(self, input_sets: Any, ctx: Any) -> Any:
        return ()


def moves_of(definition: Operator | Source | None = None, around: Around | None = None, **moves: Any) -> Moves:
    """An operator named op with an output, a write connection and a read connection, opened; moves are replaced."""
    definition = definition or Plain()
    for name, move in moves.items():
        setattr(definition, name, move)
    node = Node(
        "op",
        definition,
        ("in",) if isinstance(definition, Operator) else (),
        ("out",),
        {"db": Outside("db").writer(Kind.CONDITIONAL)},
        {"lookup": Outside("db").reader()},
    )
    if around is None:
        around = Around()
        around.pace = 1.0 if isinstance(definition, Operator) else 0.0  # A source is quick, unless a test says so.
    opened = Moves(node, definition, around)
    opened.open()
    return opened


FOLD = does.Fold(IN, event(3))
ASK = does.Ask(frozenset())


def generate(*keys: Any) -> does.Generate:
    return does.Generate(tuple(encode(key) for key in keys))


def finish(*keys: Any) -> does.Finish:
    return does.Finish(tuple(encode(key) for key in keys))


def pairs(result: was.MoveResult) -> list[tuple[Any, Any]]:
    assert isinstance(result, was.Folded)
    return [(decode(key), None if note is None else decode(note)) for key, note in result.pairs]


def emitted(result: was.MoveResult) -> list[tuple[Any, ...]]:
    """Destination, rows and, where said, the Input Sets."""
    assert isinstance(result, was.Generated)
    return [
        (each.destination, each.batch.to_pylist(), *(() if each.keys is None else (list(map(decode, each.keys)),)))
        for each in result.emissions
    ]


def state_of(changes: was.Changes) -> dict[Any, Any]:
    return {decode(key): None if value is None else decode(value) for key, value in changes.state.items()}


def raising(error: Exception) -> Callable[..., Any]:
    def move(*_: Any) -> Any:
        raise error

    return move


# Open


def test_open_is_called_with_a_context_that_may_be_looked_at() -> None:
    seen: list[Any] = []
    moves_of(around=Around(a=1), open=lambda ctx: seen.append((ctx.state["a"], ctx.now, ctx.random.random())))
    assert seen[0][:2] == (1, 101.0)


@pytest.mark.parametrize(
    "change",
    [lambda ctx: ctx.state.update(a=1), lambda ctx: ctx.timer("t", 1.0), lambda ctx: ctx.state["seen"].append(1)],
)
def test_open_must_not_change_state_or_timers(change: Callable[[Any], None]) -> None:
    with pytest.raises(MoveError) as caught:
        moves_of(around=Around(seen=[]), open=change)
    assert str(caught.value) == (
        "operator 'op': open() changed state or timers; it is called again after every crash, so it may only prepare "
        "event state. Change state in assign() or generate()."
    )


def test_open_that_raises_is_named() -> None:
    with pytest.raises(MoveError, match=r"operator 'op': open\(\) raised ValueError: no"):
        moves_of(open=raising(ValueError("no")))


# Assign and update


def test_an_event_is_assigned_then_folded_into_each_of_its_sets() -> None:
    folded: list[Any] = []
    moves = moves_of(
        assign=lambda event, ctx: [event.rows[0]["x"], Assigned("b", {"since": 5})],
        update=lambda *given: folded.append((given[0], given[1].id, given[1].input, *given[2:])),
    )
    assert pairs(moves.perform(FOLD)) == [(3, None), ("b", {"since": 5})]
    assert folded == [(3, 3, "in"), ("b", 3, "in", {"since": 5})]


def test_an_empty_note_is_no_note() -> None:
    given: list[Any] = []
    moves = moves_of(assign=lambda event, ctx: [Assigned("a", None)], update=lambda *each: given.append(len(each)))
    (pair,) = moves.perform(FOLD).pairs  # type: ignore[union-attr]
    moves.perform(does.Refold(IN, event(3), *pair))
    assert given == [2, 2]


def test_a_refolded_pair_gets_its_event_key_and_note_again() -> None:
    folded: list[Any] = []
    moves = moves_of(update=lambda *given: folded.append((given[0], given[1].rows, given[1].input, *given[2:])))
    result = moves.perform(does.Refold(IN, event(3), encode(("h", 1)), encode([1, 2])))
    assert result == was.Refolded()
    assert folded == [(("h", 1), [{"x": 3}], "in", [1, 2])]


def test_assign_may_change_the_state_and_timers_and_hands_them_over_once() -> None:
    def assign(event: Any, ctx: Any) -> list[Any]:
        ctx.state["count"] = ctx.state.get("count", 0) + 1
        ctx.timer(("hour", 1), 50)
        ctx.timer("gone", 5)
        ctx.cancel("gone")
        return []

    moves = moves_of(assign=assign)
    first = moves.perform(FOLD)
    assert isinstance(first, was.Folded)
    assert state_of(first.changes) == {"count": 1}
    assert first.changes.timers == {encode(("hour", 1)): 50.0, encode("gone"): None}
    second = moves.perform(FOLD)
    assert isinstance(second, was.Folded)
    assert state_of(second.changes) == {"count": 2}  # From memory: the commit may not have answered yet.


def test_the_same_input_set_twice_is_refused() -> None:
    with pytest.raises(MoveError, match=r"assign\(\) returned the same Input Set twice for event up.out/3; expected"):
        moves_of(assign=lambda event, ctx: ["a", Assigned("a", 1)]).perform(FOLD)


def test_an_assign_that_raises_is_named_with_its_event() -> None:
    with pytest.raises(MoveError, match=r"operator 'op': assign\(\) for up.out/3 raised KeyError: 'x'"):
        moves_of(assign=raising(KeyError("x"))).perform(FOLD)


def test_an_assign_that_returns_nothing_is_named() -> None:
    with pytest.raises(MoveError, match=r"assign\(\) for up.out/3 raised TypeError: 'NoneType' object is not iterable"):
        moves_of(assign=lambda event, ctx: None).perform(FOLD)


def test_a_key_that_cannot_be_stored_is_named() -> None:
    with pytest.raises(MoveError, match=r"assign\(\) for up.out/3 raised ValueNotStorable: cannot store a value of ty"):
        moves_of(assign=lambda event, ctx: [object()]).perform(FOLD)


def test_equal_keys_are_one_input_set() -> None:
    with pytest.raises(MoveError, match="the same Input Set twice"):
        moves_of(assign=lambda event, ctx: [5, 5.0]).perform(FOLD)
    assert pairs(moves_of(assign=lambda event, ctx: [True]).perform(FOLD)) == [(1, None)]


def test_a_state_that_cannot_be_stored_is_named() -> None:
    def assign(event: Any, ctx: Any) -> list[Any]:
        ctx.state["x"] = object()
        return []

    with pytest.raises(
        MoveError, match=r"operator 'op': the result of assign\(\) and update\(\) cannot be used: "
    ) as it:
        moves_of(assign=assign).perform(FOLD)
    assert "cannot store a value of type object" in str(it.value)


@pytest.mark.parametrize("move", [FOLD, does.Refold(IN, event(3), encode("a"), None)])
def test_an_update_that_raises_is_named_with_set_and_event(move: does.Move) -> None:
    moves = moves_of(assign=lambda event, ctx: ["a"], update=raising(ZeroDivisionError("by zero")))
    with pytest.raises(MoveError, match=r"update\('a'\) for event up.out/3 raised ZeroDivisionError: by zero"):
        moves.perform(move)


def test_a_move_that_raises_hands_over_nothing() -> None:
    """Its replica ends, and no result exists that could join the history."""

    def assign(event: Any, ctx: Any) -> list[Any]:
        ctx.state["half"] = True
        raise RuntimeError("stop")

    moves = moves_of(assign=assign)
    with pytest.raises(MoveError, match="stop") as caught:
        moves.perform(FOLD)
    assert isinstance(caught.value.__cause__, RuntimeError)


# Ready


def test_the_first_group_is_the_answer() -> None:
    moves = moves_of(ready=lambda ctx: iter([("b", "a"), ["c"]]))
    assert moves.perform(ASK).group == (encode("b"), encode("a"))  # type: ignore[union-attr]


def test_no_group_is_an_answer_too() -> None:
    assert moves_of().perform(ASK).group is None  # type: ignore[union-attr]


def test_ready_sees_what_has_ended() -> None:
    moves = moves_of(ready=lambda ctx: [["a"]] if "in" in ctx.ended else [])
    assert moves.perform(ASK).group is None  # type: ignore[union-attr]
    assert moves.perform(does.Ask(frozenset({"in"}))).group == (encode("a"),)  # type: ignore[union-attr]


@pytest.mark.parametrize("change", [lambda ctx: ctx.state.update(a=1), lambda ctx: ctx.timer("t", 1.0)])
def test_ready_may_only_look(change: Callable[[Any], None]) -> None:
    def ready(ctx: Any) -> list[Any]:
        change(ctx)
        return []

    with pytest.raises(MoveError) as caught:
        moves_of(ready=ready).perform(ASK)
    assert str(caught.value) == (
        "operator 'op': ready() changed state, timers, holds or counts; it may only look. "
        "Change them in assign(), on_frontier(), on_timer() or generate()."
    )


@pytest.mark.parametrize("group", ["a", 1, [], (), ["a", "a"], {"a"}])
def test_a_group_is_a_list_of_different_keys(group: Any) -> None:
    with pytest.raises(MoveError) as caught:
        moves_of(ready=lambda ctx: [group]).perform(ASK)
    assert str(caught.value) == (
        f"operator 'op': ready() answered with the group {group!r}; expected a list of one or more different Input "
        f"Set keys, such as [[key]]."
    )


def test_a_group_with_a_key_that_cannot_be_stored_is_named() -> None:
    with pytest.raises(MoveError, match=r"the result of ready\(\) cannot be used: ValueNotStorable"):
        moves_of(ready=lambda ctx: [[object()]]).perform(ASK)


def test_a_ready_that_raises_is_named() -> None:
    with pytest.raises(MoveError, match=r"operator 'op': ready\(\) raised OSError: gone"):
        moves_of(ready=raising(OSError("gone"))).perform(ASK)


# Generate and finish


def test_outputs_and_write_actions_in_any_shape_of_records() -> None:
    def make(sets: Any, ctx: Any) -> Iterator[Any]:
        yield "out", [{"sets": sets}]
        yield "db", {"x": [1, 2]}
        yield "out", pa.table({"x": [3]}), {"late": True}

    result = moves_of(generate=make).perform(generate("a", "b"))
    assert emitted(result) == [
        ("out", [{"sets": ["a", "b"]}]),
        ("db", [{"x": 1}, {"x": 2}]),
        ("out", [{"x": 3}]),
    ]
    assert [dict(each.attributes) for each in result.emissions] == [{}, {}, {"late": True}]  # type: ignore[union-attr]


def test_attributes_are_as_they_were_when_they_were_yielded() -> None:
    def make(sets: Any, ctx: Any) -> Iterator[Any]:
        attributes = {"number": 1}
        yield "out", [{"x": 1}], attributes
        attributes["number"] = 2
        yield "out", [{"x": 2}], attributes

    result = moves_of(generate=make).perform(generate("a"))
    assert [each.attributes["number"] for each in result.emissions] == [1, 2]  # type: ignore[union-attr]


def test_a_generation_may_give_nothing() -> None:
    assert emitted(moves_of(generate=lambda sets, ctx: None).perform(generate("a"))) == []


def test_uses_says_where_the_rest_comes_from() -> None:
    def make(sets: Any, ctx: Any) -> Iterator[Any]:
        yield "out", [{"x": 0}]
        ctx.uses("b", "b")
        yield "out", [{"x": 1}]
        ctx.uses("a", "b")
        yield "out", [{"x": 2}]
        ctx.uses()
        yield "out", [{"x": 3}]

    moves = moves_of(generate=make)
    expected = [
        ("out", [{"x": 0}]),
        ("out", [{"x": 1}], ["b"]),
        ("out", [{"x": 2}], ["a", "b"]),
        ("out", [{"x": 3}], []),
    ]
    assert emitted(moves.perform(generate("a", "b"))) == expected
    assert emitted(moves.perform(generate("a", "b"))) == expected  # The next generation begins with the whole group.


def test_uses_in_another_move_means_nothing_for_a_generation() -> None:
    moves = moves_of(assign=lambda event, ctx: ctx.uses("a") or [], generate=lambda sets, ctx: [("out", [{"x": 1}])])
    moves.perform(FOLD)
    assert emitted(moves.perform(generate("b"))) == [("out", [{"x": 1}])]


def test_uses_names_only_sets_of_the_group() -> None:
    def make(sets: Any, ctx: Any) -> Iterator[Any]:
        ctx.uses("a", "z")
        yield "out", [{"x": 1}]

    with pytest.raises(
        MoveError, match=r"records come from Input Sets that are not being generated; pass only keys of"
    ):
        moves_of(generate=make).perform(generate("a"))


def test_finish_generates_every_open_set_by_itself_unless_overridden() -> None:
    moves = moves_of(generate=lambda sets, ctx: [("out", [{"set": sets[0]}])])
    assert emitted(moves.perform(finish("a", "b"))) == [
        ("out", [{"set": "a"}], ["a"]),
        ("out", [{"set": "b"}], ["b"]),
    ]
    assert emitted(moves_of(finish=lambda sets, ctx: ()).perform(finish("a"))) == []


def test_a_generation_may_change_state_and_timers_and_read() -> None:
    def make(sets: Any, ctx: Any) -> Iterator[Any]:
        ctx.state["last"] = sets[0]
        ctx.timer("again", 9)
        yield "out", ctx.read("lookup", {"q": 1})

    around = Around()
    around.answers = lambda query: [{"answer": query["q"]}]
    result = moves_of(around=around, generate=make).perform(generate("a"))
    assert isinstance(result, was.Generated)
    assert emitted(result) == [("out", [{"answer": 1}])]
    assert state_of(result.changes) == {"last": "a"}
    assert result.changes.timers == {encode("again"): 9.0}
    (read,) = result.reads
    assert (read.connection, decode(read.description)) == ("lookup", {"q": 1})
    assert result.choices.reads == (read.effect,)


def test_reads_belong_to_the_generation_that_issued_them() -> None:
    moves = moves_of(generate=lambda sets, ctx: [("out", ctx.read("lookup"))], finish=lambda sets, ctx: ())
    assert len(moves.perform(generate("a")).reads) == 1  # type: ignore[union-attr]
    result = moves.perform(finish("b"))
    assert isinstance(result, was.Generated)
    assert (result.reads, result.choices.reads) == ((), ())


@pytest.mark.parametrize(
    ("move", "run"),
    [
        ("assign", FOLD),
        ("ready", ASK),
        ("on_timer", does.Fire(encode("t"))),
    ],
)
def test_reads_are_allowed_in_generations_only(move: str, run: does.Move) -> None:
    with pytest.raises(MoveError, match=r"operator 'op' reads from 'lookup' outside generate\(\) and finish\(\)"):
        moves_of(**{move: lambda *given: given[-1].read("lookup")}).perform(run)


def test_a_generation_that_is_over_may_not_read_any_more() -> None:
    kept: list[Any] = []
    moves = moves_of(generate=lambda sets, ctx: kept.append(ctx) or ())
    moves.perform(generate("a"))
    with pytest.raises(MoveError, match="outside"):
        kept[0].read("lookup")


def test_an_unknown_read_connection_is_named() -> None:
    with pytest.raises(MoveError) as caught:
        moves_of(generate=lambda sets, ctx: ctx.read("lookap")).perform(generate("a"))
    assert str(caught.value) == ("operator 'op' has no read connection 'lookap'; it has lookup. Declare it in `reads`.")


def test_an_outside_system_that_fails_fails_the_generation() -> None:
    around = Around()
    around.answers = raising(ConnectionError("refused"))
    with pytest.raises(MoveError, match=r"generate\(\) for \['a'\] raised ConnectionError: refused"):
        moves_of(around=around, generate=lambda sets, ctx: [("out", ctx.read("lookup"))]).perform(generate("a"))


@pytest.mark.parametrize("output", ["out", ("out",), ["out", []], ("out", [], {}, 1), None])
def test_what_is_yielded_is_a_pair(output: Any) -> None:
    with pytest.raises(MoveError) as caught:
        moves_of(generate=lambda sets, ctx: [output]).perform(generate("a"))
    assert str(caught.value) == (
        f"operator 'op' yielded {output!r}; expected a pair of an output port or write connection and records, such "
        f"as ('out', table), and perhaps a dictionary of attributes."
    )


def test_what_is_yielded_goes_to_a_port_or_connection_that_exists() -> None:
    with pytest.raises(MoveError) as caught:
        moves_of(generate=lambda sets, ctx: [("uot", [{"x": 1}])]).perform(generate("a"))
    assert str(caught.value) == (
        "operator 'op' yielded records for 'uot'; its output ports are out, its write connections db. "
        "Yield to one of these."
    )


def test_records_of_no_known_shape_are_named() -> None:
    with pytest.raises(MoveError, match="an operator yielded a int as the records of an event; expected an Arrow"):
        moves_of(generate=lambda sets, ctx: [("out", 3)]).perform(generate("a"))


def test_attributes_that_cannot_be_stored_fail_in_the_move_and_not_in_the_commit() -> None:
    with pytest.raises(MoveError, match=r"generate\(\) for \['a'\] raised ValueNotStorable"):
        moves_of(generate=lambda sets, ctx: [("out", [{"x": 1}], {"y": object()})]).perform(generate("a"))


@pytest.mark.parametrize(("run", "word"), [(generate("a"), "generate"), (finish("a"), "finish")])
def test_a_generation_that_raises_is_named_with_its_sets(run: does.Move, word: str) -> None:
    def make(sets: Any, ctx: Any) -> Iterator[Any]:
        yield "out", [{"x": 1}]
        raise ValueError("half way")

    with pytest.raises(MoveError, match=rf"operator 'op': {word}\(\) for \['a'\] raised ValueError: half way"):
        moves_of(generate=make, finish=make).perform(run)


# Timers


def test_a_timers_move_may_change_state_and_timers() -> None:
    def on_timer(name: Any, ctx: Any) -> None:
        ctx.state["rang"] = name
        ctx.timer(name, 77)

    result = moves_of(on_timer=on_timer).perform(does.Fire(encode(("t", 1))))
    assert isinstance(result, was.Fired)
    assert state_of(result.changes) == {"rang": ("t", 1)}
    assert result.changes.timers == {encode(("t", 1)): 77.0}


def test_a_timers_move_that_raises_is_named() -> None:
    with pytest.raises(MoveError, match=r"operator 'op': on_timer\(\) for 't' raised ValueError: no"):
        moves_of(on_timer=raising(ValueError("no"))).perform(does.Fire(encode("t")))


# Clock, chance and backlog


def test_the_clock_stands_still_within_a_move_and_is_read_anew_for_the_next() -> None:
    seen: list[Any] = []
    moves = moves_of(assign=lambda event, ctx: seen.extend((ctx.now, ctx.now)) or [])
    one, two = moves.perform(FOLD), moves.perform(FOLD)
    assert seen[0] == seen[1] < seen[2] == seen[3]
    assert (one.choices.now, two.choices.now) == (seen[0], seen[2])  # type: ignore[union-attr]


def test_chance_can_be_repeated_from_the_seed_that_was_handed_over() -> None:
    import random

    drawn: list[float] = []
    moves = moves_of(assign=lambda event, ctx: drawn.extend((ctx.random.random(), ctx.random.random())) or [])
    results = [moves.perform(FOLD), moves.perform(FOLD)]
    for result, numbers in zip(results, (drawn[:2], drawn[2:]), strict=True):
        chance = random.Random(result.choices.seed)  # type: ignore[union-attr]
        assert [chance.random(), chance.random()] == numbers


def test_backlogs_are_choices() -> None:
    moves = moves_of(generate=lambda sets, ctx: [("out", [{"behind": ctx.backlog("out")}])])
    result = moves.perform(generate("a"))
    assert emitted(result) == [("out", [{"behind": 7}])]
    assert result.choices.backlogs == (7,)  # type: ignore[union-attr]
    assert moves.perform(ASK).choices.backlogs == ()  # type: ignore[union-attr]


# Sources


class Numbers(Source):
    """Gives 1 to 5, with a pause after 2; counts its executions."""

    executions = 0

    def read(self, action: Any, offset: Any) -> Iterator[Any]:
        self.executions += 1
        for number in range((offset or 0) + 1, 6):
            yield [{"x": number, "action": action}], number
            if number == 2:
                yield None


def read(offset: int | None, limit: int, action: int = 1) -> does.Read:
    return does.Read(action, encode("all"), None if offset is None else encode(offset), limit)


def read_in(result: was.MoveResult) -> tuple[list[int], bool, int]:
    assert isinstance(result, was.Got)
    return [decode(item.offset) for item in result.items], result.is_complete, result.execution


def test_a_plan_is_the_next_action_or_the_end() -> None:
    moves = moves_of(Numbers())
    first = moves.perform(does.Plan())
    assert isinstance(first, was.Planned)
    assert (decode(first.description or b""), state_of(first.changes)) == ("all", {"planned": True})
    assert moves.perform(does.Plan()).description is None  # type: ignore[union-attr]


def test_a_source_has_no_timers() -> None:
    with pytest.raises(MoveError, match=r"source 'op': plan\(\) set a timer; sources have none. Use poll_s instead."):
        moves_of(Numbers(), plan=lambda ctx: ctx.timer("t", 1.0)).perform(does.Plan())


def test_an_event_that_could_not_be_sent_is_refused_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.model.event.EVENT_BYTES_MAX", 4096 + 300)
    large = [{"x": "y" * 400}]
    words = r"an event of 1 records would have \d+ bytes; expected less than 4396. Yield its records as several events."
    with pytest.raises(MoveError, match=words):
        moves_of(generate=lambda keys, ctx: [("out", large)]).perform(does.Generate((encode(1),)))
    with pytest.raises(MoveError, match=words):
        moves_of(Numbers(), read=lambda action, offset: iter([(large, 1)])).perform(read(None, 1))


def test_what_a_slow_source_gave_does_not_wait_for_the_rest() -> None:
    moves = moves_of(Numbers(), Around())
    assert read_in(moves.perform(read(None, 4))) == ([1], False, 1)
    assert read_in(moves.perform(read(1, 4))) == ([2], False, 1)


def test_a_read_goes_on_where_it_stopped() -> None:
    source = Numbers()
    moves = moves_of(source)
    assert read_in(moves.perform(read(None, 1))) == ([1], False, 1)
    assert read_in(moves.perform(read(1, 4))) == ([2], False, 1)  # Nothing more for the moment.
    assert read_in(moves.perform(read(2, 2))) == ([3, 4], False, 1)
    assert read_in(moves.perform(read(4, 2))) == ([5], True, 1)
    assert source.executions == 1


def test_a_replayable_read_begins_anew_at_any_offset() -> None:
    moves = moves_of(Numbers())
    moves.perform(read(None, 4))
    assert read_in(moves.perform(read(3, 9))) == ([4, 5], True, 2)


def test_another_action_is_another_execution() -> None:
    moves = moves_of(Numbers())
    moves.perform(read(None, 2))
    result = moves.perform(read(None, 1, action=2))
    assert read_in(result) == ([1], False, 2)
    assert result.items[0][0].to_pylist() == [{"x": 1, "action": "all"}]  # type: ignore[union-attr]


def test_an_effect_that_is_not_replayable_is_read_in_one_execution() -> None:
    source = Numbers()
    source.is_replayable = False
    moves = moves_of(source)
    assert read_in(moves.perform(read(None, 2))) == ([1, 2], False, 1)
    assert read_in(moves.perform(read(None, 9))) == ([], False, 1)
    assert read_in(moves.perform(read(None, 9))) == ([3, 4, 5], True, 1)


@pytest.mark.parametrize(("move", "run"), [("plan", does.Plan()), ("read", read(None, 1))])
def test_a_source_that_raises_is_named(move: str, run: does.Move) -> None:
    with pytest.raises(MoveError, match=rf"operator 'op': {move}\(\) raised OSError: gone"):
        moves_of(Numbers(), **{move: raising(OSError("gone"))}).perform(run)


def test_a_source_that_fails_while_reading_is_named() -> None:
    def broken(action: Any, offset: Any) -> Iterator[Any]:
        yield [{"x": 1}], 1
        raise OSError("gone")

    with pytest.raises(MoveError, match=r"operator 'op': read\(\) raised OSError: gone"):
        moves_of(Numbers(), read=broken).perform(read(None, 2))


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ([{"x": 1}], "ValueError: not enough values to unpack"),
        (([{"x": 1}], object()), "ValueNotStorable: cannot store a value of type object"),
        (7, "TypeError: cannot unpack non-iterable int"),
    ],
)
def test_a_source_that_gives_something_else_than_records_and_offset_is_named(item: Any, words: str) -> None:
    with pytest.raises(MoveError, match=rf"operator 'op': the result of read\(\) cannot be used: {words}"):
        moves_of(Numbers(), read=lambda action, offset: [item]).perform(read(None, 2))


def test_a_plan_that_cannot_be_stored_is_named() -> None:
    with pytest.raises(MoveError, match=r"operator 'op': the result of plan\(\) cannot be used: ValueNotStorable"):
        moves_of(Numbers(), plan=lambda ctx: object()).perform(does.Plan())
