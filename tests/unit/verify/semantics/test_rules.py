"""The rules, one by one: when they may be taken, what they do, what they leave alone."""

from __future__ import annotations

from clew.verify.semantics import (
    ABS,
    Configuration,
    Data,
    Message,
    Program,
    Step,
    Task,
    gce,
    initial,
    lcs,
    out,
    program_of,
    steps,
)
from clew.verify.semantics.actions import applied, consume, produce
from clew.verify.semantics.configuration import Normal, State
from clew.verify.semantics.graphs import join_text, running_sum
from clew.verify.semantics.rules import F_FAIL, F_RECOVER, I_BORDER, I_EVENT


def two_inputs() -> Program:
    return program_of([Task(join_text, ("a", "b"), "s", "")], {"a": [["x"], []], "b": [[], ["y"]]})


def go(c: Configuration, *wanted: str) -> Configuration:
    """Takes the steps whose words begin so."""
    for words in wanted:
        (c,) = [after for step, _, after in steps(c) if str(step).startswith(words)]
    return c


def enabled(c: Configuration) -> list[str]:
    return [str(step) for step, _, _ in steps(c)]


def test_the_initial_configuration() -> None:
    c = initial(two_inputs())
    assert c.states == (State(archive=((0, ""),), volatile=Normal(epoch=1, value="")),)
    assert c.numbers == ((0, 0, 0),)
    assert c.stream("a") == tuple(m for m in c.program.initial_messages if m.stream == "a")
    assert c.stream("s") == ()
    assert (gce(c), out(c)) == (0, frozenset())


def test_an_event_is_taken_and_its_result_sent_with_its_epoch() -> None:
    c = initial(two_inputs())
    assert enabled(c) == ["I-EVENT 0 [-a 1:EV 'x', +s 1:EV 'x']", "F-FAIL 0"]
    after = go(c, "I-EVENT")
    assert after.states[0].volatile == Normal(1, "x")
    assert after.numbers == ((1, 0, 1),)
    assert after.stream("s") == (Message(0, "s", Data(1, "EV", "x")),)
    assert c.stream("s") == ()  # The one before is as it was.


def test_a_border_waits_for_all_inputs() -> None:
    c = initial(two_inputs())
    assert not I_BORDER.is_enabled(c, 0)  # b is at its border, a is not.
    after = go(c, "I-EVENT", "I-BORDER")
    assert after.states == (State(((0, ""), (1, "x")), Normal(2, "x")),)
    assert after.numbers == ((2, 1, 2),)
    assert after.stream("s")[-1] == Message(1, "s", Data(1, "BD"))
    assert gce(after) == 1


def test_an_event_of_a_later_epoch_is_blocked_by_the_border() -> None:
    c = go(initial(two_inputs()), "I-EVENT")
    assert [str(step) for step, _ in I_EVENT.steps(c, 0)] == []
    assert I_EVENT.is_enabled(go(c, "I-BORDER"), 0)


def test_a_failed_task_only_fails_again_or_is_recovered() -> None:
    c = go(initial(two_inputs()), "F-FAIL")
    assert c.states[0].volatile is None
    assert enabled(c) == ["F-FAIL 0", "F-RECOVER"]
    assert F_FAIL.is_enabled(c, 0)
    assert repr(c).startswith("<Configuration failed, at [0, 0, 0]")
    assert go(c, "F-FAIL") == c


def test_there_is_no_recovery_without_a_failure() -> None:
    assert not ABS.can_recover(initial(two_inputs()))


def test_a_recovery_takes_all_tasks_back_to_the_common_epoch() -> None:
    tasks = [Task(running_sum, ("in",), "s", 0), Task(running_sum, ("s",), "t", 0)]
    c = initial(program_of(tasks, {"in": [[1], [2], [3]]}))
    first = go(c, "I-EVENT 0", "I-BORDER 0", "I-EVENT 1", "I-BORDER 1")
    later = go(first, "I-EVENT 0", "I-BORDER 0", "I-EVENT 0", "I-EVENT 1", "F-FAIL 1")
    assert (later.states[0].latest, later.states[1].latest, gce(later)) == (2, 1, 1)
    assert go(later, "F-RECOVER") == lcs(later) == first
    assert out(later) == out(first)


def test_failure_rules_are_marked() -> None:
    c = go(initial(two_inputs()), "F-FAIL")
    assert [is_failure for _, is_failure, _ in steps(c)] == [True, True]
    assert list(steps(c, ABS.without_failures())) == [(F_RECOVER, True, lcs(c))]
    assert [is_failure for _, is_failure, _ in steps(initial(two_inputs()))] == [False, True]


def test_actions_that_cannot_be_applied() -> None:
    c = initial(two_inputs())
    task, numbers = c.program.tasks[0], c.numbers[0]
    event = Data(1, "EV", "x")
    assert applied((consume("a", event),), c.program, task, numbers, c.messages) == ((1, 0, 0), c.messages)
    assert applied((consume("b", event),), c.program, task, numbers, c.messages) is None
    assert applied((consume("a", event), consume("a", event)), c.program, task, numbers, c.messages) is None
    assert applied((consume("s", event),), c.program, task, numbers, c.messages) is None
    assert applied((), c.program, task, numbers, c.messages) == (numbers, c.messages)


def test_messages_are_a_set() -> None:
    c = go(initial(two_inputs()), "I-EVENT")
    task = c.program.tasks[0]
    same, other = produce("s", Data(1, "EV", "x")), produce("s", Data(1, "EV", "z"))
    assert applied((same,), c.program, task, (0, 0, 0), c.messages) == ((0, 0, 1), c.messages)
    twice = applied((other,), c.program, task, (0, 0, 0), c.messages)
    assert twice is not None
    assert len(twice[1][c.program.place["s"]][0]) == 2
    assert applied((same,), c.program, task, (0, 0, 5), c.messages) is None


def test_the_epoch_of_a_step() -> None:
    assert (Step("F-FAIL", 0).epoch, F_RECOVER.epoch) == (None, None)
    assert next(I_EVENT.steps(initial(two_inputs()), 0))[0].epoch == 1
