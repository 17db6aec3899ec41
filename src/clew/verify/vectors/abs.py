"""Replays files of the format `abs/1`: schedules with failures, their explanations, and what nothing explains."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from clew.verify.semantics.configuration import Configuration, initial
from clew.verify.semantics.explainable import explanation_of
from clew.verify.semantics.mapping import explain
from clew.verify.semantics.program import Message, Program
from clew.verify.semantics.rules import ABS, Rules, Step
from clew.verify.semantics.traces import application
from clew.verify.vectors.abs_forms import Move, move_in, output_in, plain, program_in
from clew.verify.vectors.report import BadVectors, Found, Replay, Report, reading, replayed

Output: TypeAlias = frozenset[Message]

NO_FAILURES = ABS.without_failures()


def check(document: Mapping[str, Any]) -> Report:
    """Replays all cases of a file; what cannot be read raises `BadVectors`."""
    replays: list[tuple[str, Replay]] = []
    for name, case in _cases(document):
        with reading(name):
            try:
                replays.append((_titled(name, case), _unexplainable(case) if "observations" in case else _run(case)))
            except RecursionError as error:
                raise BadVectors("a value is nested too deeply to be read") from error
    differences = [difference for name, replay in replays for difference in replayed(name, replay)]
    return Report(len(replays), len(replays) - len(differences), differences[0] if differences else None)


def _cases(document: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The cases by name: every object with a program, alone or in a list; other keys are for information."""
    found: list[tuple[str, Any]] = []
    for section, given in document.items():
        if section in ("random", "unexplainable") and not isinstance(given, list):
            raise BadVectors(f"{section}: expected a list of cases")
        if section.startswith("figure") or (isinstance(given, dict) and "program" in given):
            found.append((section, given))
        elif isinstance(given, list):
            is_known = section in ("random", "unexplainable") or any("program" in c for c in given if type(c) is dict)
            found += [(f"{section}[{number}]", case) for number, case in enumerate(given) if is_known]
    for name, case in found:
        if not isinstance(case, dict):
            raise BadVectors(f"{name}: expected an object with a program, found {case!r}")
        if name.startswith("unexplainable[") and "observations" not in case:
            raise BadVectors(f"{name}: 'observations' is missing")
    return found


def _titled(name: str, case: Mapping[str, Any]) -> str:
    words = [f"{key} {case[key]}" for key in ("variant", "seed") if key in case]
    return ", ".join([name, *words])


# A run: a schedule with failures, what is observed after each step, and an explanation of it.


def _run(case: Mapping[str, Any]) -> Replay:
    with reading("program"):
        program = program_in(case["program"])
    schedule = _schedule(case, "schedule", program)
    size = len(schedule) + 1
    outs = []
    for number, given in enumerate(case["outs"]):
        with reading(f"outs[{number}]"):
            outs.append(output_in(given))
    epochs = _numbers(case, "gce", size)
    expected = _numbers(case, "expected_out", size)
    for number, place in enumerate(expected):
        if not 0 <= place < len(outs):
            raise BadVectors(f"expected_out[{number}]: {place} is not the number of one of the {len(outs)} outs")
    explanation = _schedule(case, "explanation", program)
    mapping = _numbers(case, "mapping", size)

    def replay() -> Found | None:
        seen: list[Output] = []
        trace: list[Step] = []
        for number, (words, c) in enumerate(_walk(program, schedule, trace, ABS)):
            if c is None:
                return words, "accepted", "refused: no rule allows it here"
            if ABS.gce(c) != epochs[number]:
                return f"{words}: gce", epochs[number], ABS.gce(c)
            seen.append(ABS.out(c))
            if seen[-1] != outs[expected[number]]:
                return f"{words}: out", plain(outs[expected[number]]), plain(seen[-1])
        return _judged("explanation", program, explanation, mapping, seen) or _own(program, trace, seen)

    return replay


def _walk(
    program: Program, schedule: Sequence[tuple[str, Move]], trace: list[Step], rules: Rules
) -> list[tuple[str, Configuration | None]]:
    """The configurations of a schedule, each with the words for where it is; None after a step that is refused."""
    c = initial(program)
    found: list[tuple[str, Configuration | None]] = [("before the first step", c)]
    for words, move in schedule:
        taken = move.taken(c, rules)
        if taken is None:
            found.append((words, None))
            break
        step, c = taken
        trace.append(step)
        found.append((words, c))
    return found


def _judged(
    what: str, program: Program, schedule: Sequence[tuple[str, Move]], mapping: Sequence[int], seen: Sequence[Output]
) -> Found | None:
    """Is the schedule failure-free and allowed, and does it show what was seen, in the same order?"""
    shown: list[Output] = []
    for words, c in _walk(program, schedule, [], NO_FAILURES):
        if c is None:
            return f"{what}: {words}", "accepted", "refused: no rule without failures allows it here"
        shown.append(ABS.out(c))
    return _compared(what, shown, mapping, seen)


def _own(program: Program, trace: Sequence[Step], seen: Sequence[Output]) -> Found | None:
    """Does the trace mapping find an explanation?"""
    ours = explain(trace, initial(program))
    shown = [ABS.out(c) for c in application(ours.trace, initial(program), NO_FAILURES)]
    return _compared("trace mapping", shown, ours.mapping, seen)


def _compared(what: str, shown: Sequence[Output], mapping: Sequence[int], seen: Sequence[Output]) -> Found | None:
    last = 0
    for number, (by, output) in enumerate(zip(mapping, seen, strict=True)):
        where = f"{what}: mapping[{number}]"
        if not last <= by < len(shown):
            return where, f"a number from {last} to {len(shown) - 1}", by
        if shown[by] != output:
            return where, plain(output), plain(shown[by])
        last = by
    return None


# Observations of a broken protocol.


def _unexplainable(case: Mapping[str, Any]) -> Replay:
    with reading("program"):
        program = program_in(case["program"])
    observations = []
    for number, given in enumerate(case["observations"]):
        with reading(f"observations[{number}]"):
            observations.append(output_in(given))
    if not observations:
        raise BadVectors("observations: there is none to explain")

    def replay() -> Found | None:
        found = explanation_of(program, observations)
        return None if found is None else ("observations", "no explanation", [str(step) for step in found.trace])

    return replay


def _schedule(case: Mapping[str, Any], key: str, program: Program) -> list[tuple[str, Move]]:
    found = []
    given = case[key]
    if not isinstance(given, list):
        raise BadVectors(f"{key}: expected a list of steps, found {given!r}")
    for number, step in enumerate(given):
        with reading(f"{key}[{number}]"):
            found.append((f"step {number} {json.dumps(step)}", move_in(step, program)))
    return found


def _numbers(case: Mapping[str, Any], key: str, size: int) -> list[int]:
    """A number for each configuration of the schedule."""
    given = case[key]
    if not isinstance(given, list) or len(given) != size or any(type(one) is not int for one in given):
        raise BadVectors(f"{key}: expected {size} numbers, one for each configuration of the schedule, found {given!r}")
    return given
