"""Replays `progress/1` files: propagation round by round, the exchange protocol step by step, and refused steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from clew.errors import BuildError, MoveError
from clew.verify.vectors.progress_runs import PropagationRun, ProtocolRun, Run
from clew.verify.vectors.report import BadVectors, Difference, Report, reading

Replay: TypeAlias = Callable[[], Difference | None]


def check(document: Mapping[str, Any]) -> Report:
    """Replays all cases of a file."""
    sections = {"propagation": _propagation, "protocol": _protocol, "invalid": _invalid}
    replays: list[Replay] = []
    for section, read in sections.items():
        cases = document.get(section, [])
        if not isinstance(cases, list):
            raise BadVectors(f"{section}: expected a list of cases")
        for number, case in enumerate(cases):
            name = f"{section}[{number}]"
            with reading(name):
                replays.append(read(name, case))
    found = [replay() for replay in replays]
    differences = [difference for difference in found if difference is not None]
    return Report(len(found), len(found) - len(differences), differences[0] if differences else None)


def _propagation(name: str, case: Any) -> Replay:
    return _Case(name, PropagationRun(case), case).replay


def _protocol(name: str, case: Any) -> Replay:
    return _Case(name, ProtocolRun(case), case).replay


def _invalid(name: str, case: Any) -> Replay:
    try:
        run = ProtocolRun(case) if "initial_caps" in case else PropagationRun(case)
    except BadVectors as error:
        if not isinstance(error.__cause__, BuildError):
            raise
        return lambda: None  # The graph itself is refused.
    steps = case["steps"]
    if not steps:
        raise BadVectors("steps: there is no step to refuse")
    last = {"after_steps": len(steps) - 1, "step": steps[-1]}
    return _Case(name, run, {"steps": steps[:-1], "expected": [], "rejected": [last]}).replay


class _Case:
    """One case, read and ready to be replayed."""

    def __init__(self, name: str, run: Run, case: Mapping[str, Any]) -> None:
        self.name = name
        self.run = run
        self.steps: list[tuple[str, Callable[[], None]]] = []
        for number, step in enumerate(case["steps"]):
            with reading(f"steps[{number}]"):
                self.steps.append((f"step {number} {json.dumps(step)}", run.read_step(step)))
        self.rejected: dict[int, list[tuple[str, Callable[[], None]]]] = {}
        for number, entry in enumerate(case.get("rejected", ())):
            with reading(f"rejected[{number}]"):
                after = _index(entry["after_steps"], len(self.steps) + 1)
                words = f"after {after} steps {json.dumps(entry['step'])}"
                self.rejected.setdefault(after, []).append((words, run.read_step(entry["step"])))
        self.expected: dict[int, list[list[tuple[str, Any, Callable[[], Any]]]]] = {}
        for number, entry in enumerate(case.get("expected", ())):
            with reading(f"expected[{number}]"):
                after = _index(entry["after_step"], len(self.steps))
                self.expected.setdefault(after, []).append(run.read_expected(entry))
        with reading("the end"):
            self.final = run.read_final(case)

    def replay(self) -> Difference | None:
        """The first difference, if there is one."""
        for number, (words, take) in enumerate(self.steps):
            difference = self._rejections(number)
            if difference is not None:
                return difference
            try:
                take()
            except MoveError as error:
                return Difference(self.name, words, "accepted", f"refused: {error}")
            for comparisons in self.expected.get(number, ()):
                for what, expected, came in comparisons:
                    if came() != expected:
                        return self._difference(f"{words}: {what}", expected, came())
        difference = self._rejections(len(self.steps))
        if difference is not None:
            return difference
        if self.final:
            self.run.settle()
        for what, expected, came in self.final:
            if came() != expected:
                return self._difference(f"at the end: {what}", expected, came())
        return None

    def _rejections(self, number: int) -> Difference | None:
        for words, take in self.rejected.get(number, ()):
            try:
                take()
            except MoveError:
                continue
            return Difference(self.name, words, "refused", "accepted")
        return None

    def _difference(self, where: str, expected: Any, came: Any) -> Difference:
        return Difference(self.name, where, self.run.plain(expected), self.run.plain(came))


def _index(number: Any, size: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < size:
        raise BadVectors(f"{number!r} is not the number of a step; expected 0 to {size - 1}")
    return number
