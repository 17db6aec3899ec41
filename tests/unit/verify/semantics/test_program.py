"""Programs: what is refused and in which words, and what the streams are."""

from __future__ import annotations

from typing import Any

import pytest

from clew.verify.semantics import BadProgram, Data, Message, Program, Task, program_of
from clew.verify.semantics.graphs import GRAPHS, count, forward


def task(inputs: str, output: str) -> Task:
    return Task(count, tuple(inputs.split()), output, 0)


@pytest.mark.parametrize(
    ("tasks", "inputs", "words"),
    [
        ([], {"a": []}, "the program has no task"),
        ([task("a", "s"), task("a", "s")], {"a": []}, "task 0: the stream 's' has 2 producers, expected one"),
        ([task("a", "a")], {"a": []}, "task 0: the stream 'a' has 2 producers, expected one"),
        ([task("a b", "s")], {"a": []}, "task 0 reads the stream 'b', which nobody produces; there are a, s"),
        ([task("", "s")], {"a": []}, "task 0 has no input stream"),
        ([task("a a", "s")], {"a": []}, "task 0 lists the input stream 'a' 2 times"),
        (
            [task("a", "s"), task("s u", "t"), task("t", "u"), task("u", "v")],
            {"a": []},
            "the tasks that produce t, u, v are in a cycle or behind one; barrier snapshots need a graph without",
        ),
    ],
)
def test_what_is_no_program(tasks: list[Task], inputs: Any, words: str) -> None:
    with pytest.raises(BadProgram, match=words):
        program_of(tasks, inputs)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([(0, 2, "EV")], "stream 'a': message 0 is of epoch 2, expected 1. Epochs count from 1, and each ends with"),
        ([(1, 1, "EV")], "stream 'a': the message numbered 1 stands where 0 must be"),
        ([(0, 1, "BD"), (1, 1, "EV")], "stream 'a': message 1 is of epoch 1, expected 2"),
        ([(0, 1, "EV"), (1, 2, "EV")], "stream 'a': message 1 is of epoch 2, expected 1"),
    ],
)
def test_inputs_that_are_not_well_formed(messages: list[tuple[int, int, str]], words: str) -> None:
    given = tuple(Message(number, "a", Data(epoch, kind)) for number, epoch, kind in messages)
    with pytest.raises(BadProgram, match=words):
        Program((task("a", "s"),), given)


def test_a_tail_of_a_stream_that_is_not_given() -> None:
    with pytest.raises(BadProgram, match="tail: 's' is no input stream of the program; those are a"):
        program_of([task("a", "s")], {"a": []}, {"s": [1]})


def test_a_program_in_two_parts() -> None:
    apart = program_of([task("a", "s"), task("b", "t")], {"a": [], "b": []})
    with pytest.raises(BadProgram, match="the program is not connected: no path joins b, t with s"):
        apart.check_connected()


@pytest.mark.parametrize("name", GRAPHS)
def test_the_small_programs_are_connected(name: str) -> None:
    GRAPHS[name]().check_connected()
    GRAPHS[name](3).check_connected()


def test_streams_and_sinks() -> None:
    tasks = [Task(forward, ("b", "a"), "s", None), task("s", "t"), task("s", "u")]
    program = program_of(tasks, {"b": [[1]], "a": [[]]})
    assert program.given == ("a", "b")
    assert program.streams == ("a", "b", "s", "t", "u")
    assert program.sinks == ("t", "u")
