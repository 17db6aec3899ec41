"""Barrier snapshots once more, word for word after the definitions of the thesis, with plain sets and dictionaries.

An oracle for `clew.verify.semantics`, of which it uses nothing. Steps are written as in `abs/1` files.
"""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

RULES = {
    "absorb": lambda v, w: (v + 1, []),
    "concat": lambda v, w: (v + str(w), [v + str(w)]),
    "count": lambda v, w: (v + 1, [v + 1]),
    "drop_odd": lambda v, w: (v + 1, [w] if v % 2 == 1 else []),
    "dup": lambda v, w: (v, [w, w]),
    "id": lambda v, w: (v, [w]),
}


def random_program(random: Random, *, tasks: int = 3, events: int = 2, epochs: int = 2) -> dict[str, Any]:
    """A program as a file writes it; its streams hold numbers that are all different."""
    names = [f"in{n}" for n in range(random.randint(1, 2))]
    size = random.randint(1, epochs)
    value = 0
    inputs: dict[str, Any] = {name: [] for name in names}
    for name in names:
        for _ in range(size):
            values = list(range(value + 1, value + 1 + random.randint(0, events)))
            value += len(values)
            inputs[name].append(values)
    found, streams = [], list(names)
    for number in range(random.randint(1, tasks)):
        f = random.choice(sorted(RULES))
        chosen = random.sample(streams, random.randint(1, min(2, len(streams))))
        found.append({"f": f, "S": chosen, "o": f"s{number}", "init": "" if f == "concat" else 0})
        streams.append(f"s{number}")
    program = {"inputs": inputs, "tasks": found}
    if random.random() < 0.3:
        program["tail"] = {name: [100 + n] for n, name in enumerate(names) if random.random() < 0.7}
    return program


class Naive:
    """One configuration, which `take` changes."""

    def __init__(self, program: dict[str, Any]) -> None:
        self.tasks = program["tasks"]
        self.first: set[Any] = set()
        for stream, epochs in program["inputs"].items():
            data = []
            for epoch, values in enumerate(epochs, 1):
                data += [(epoch, "EV", value) for value in values] + [(epoch, "BD", None)]
            data += [(len(epochs) + 1, "EV", value) for value in program.get("tail", {}).get(stream, [])]
            self.first |= {(stream, number, *one) for number, one in enumerate(data)}
        self.messages = set(self.first)
        self.archives = [{0: task["init"]} for task in self.tasks]
        self.volatile: list[Any] = [(1, task["init"]) for task in self.tasks]
        self.numbers = [dict.fromkeys([*task["S"], task["o"]], 0) for task in self.tasks]

    def gce(self) -> int:
        return min(max(archive) for archive in self.archives)

    def out(self) -> frozenset[Any]:
        epoch = self.gce()
        return frozenset(message for message in self.messages if message[2] <= epoch)

    def next(self, task: int, stream: str) -> Any:
        for message in self.messages:
            if message[:2] == (stream, self.numbers[task][stream]):
                return message[2:]
        return None

    def enabled(self, *, failures: bool) -> list[list[Any]]:
        found: list[list[Any]] = []
        for p, task in enumerate(self.tasks):
            if self.volatile[p] is not None:
                epoch = self.volatile[p][0]
                offers = {stream: self.next(p, stream) for stream in task["S"]}
                found += [["event", p, s] for s, d in offers.items() if d is not None and d[:2] == (epoch, "EV")]
                if all(data == (epoch, "BD", None) for data in offers.values()):
                    found.append(["border", p])
            if failures:
                found.append(["fail", p])
        if None in self.volatile:
            found.append(["recover"])
        return found

    def take(self, step: list[Any]) -> None:
        if step == ["recover"]:
            epoch, kept = self.gce(), self.out()
            for p in range(len(self.tasks)):
                self.archives[p] = {e: v for e, v in self.archives[p].items() if e <= epoch}
                self.volatile[p] = (epoch + 1, self.archives[p][epoch])
                self.numbers[p] = {s: sum(m[0] == s for m in kept) for s in self.numbers[p]}
            self.messages = self.first | kept
            return
        kind, p = step[:2]
        task = self.tasks[p]
        if kind == "fail":
            self.volatile[p] = None
            return
        epoch, state = self.volatile[p]
        if kind == "event":
            state, sent = RULES[task["f"]](state, self.next(p, step[2])[2])
            self.numbers[p][step[2]] += 1
            for value in sent:
                self.send(p, (epoch, "EV", value))
            self.volatile[p] = (epoch, state)
        else:
            for stream in task["S"]:
                self.numbers[p][stream] += 1
            self.send(p, (epoch, "BD", None))
            self.archives[p][epoch] = state
            self.volatile[p] = (epoch + 1, state)

    def send(self, p: int, data: Any) -> None:
        stream = self.tasks[p]["o"]
        self.messages.add((stream, self.numbers[p][stream], *data))
        self.numbers[p][stream] += 1

    def after(self, step: list[Any]) -> Naive:
        other = object.__new__(Naive)
        other.tasks, other.first = self.tasks, self.first
        other.messages, other.volatile = set(self.messages), list(self.volatile)
        other.archives, other.numbers = deepcopy(self.archives), deepcopy(self.numbers)
        other.take(step)
        return other

    def key(self) -> Any:
        counts = tuple(tuple(sorted(numbers.items())) for numbers in self.numbers)
        archives = tuple(tuple(sorted(archive.items())) for archive in self.archives)
        return counts, archives, tuple(self.volatile), frozenset(self.messages)


def failure_free_schedule(program: dict[str, Any], observations: list[frozenset[Any]]) -> list[list[Any]] | None:
    """A schedule without failures that shows these outputs in this order: tries all of them, one by one."""
    begin = Naive(program)
    wanted = [one for n, one in enumerate(observations) if n == 0 or one != observations[n - 1]]
    waiting = [(begin, 0, [])]
    seen = set()
    while waiting:
        now, shown, schedule = waiting.pop()
        while shown < len(wanted) and now.out() == wanted[shown]:
            shown += 1
        if shown == len(wanted):
            return schedule
        if (now.key(), shown) not in seen:
            seen.add((now.key(), shown))
            waiting += [(now.after(step), shown, [*schedule, step]) for step in now.enabled(failures=False)]
    return None
