"""Random `progress/1` files, worked out by brute force: plain dictionaries, rules written down again, nothing of Clew.

Each protocol step is drawn at random, judged by the rules here, and goes to `steps` or to `rejected`.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from tests.laws.progress_graphs import Case, random_case


def as_json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [as_json(part) for part in value]
    return value


def pairs(counts: Any) -> list[Any]:
    return [[as_json(element), count] for element, count in counts.items() if count]


def frontiers(case: Case, counts: Any) -> dict[str, Any]:
    return {place: [as_json(time) for time in times] for place, times in case.naive(dict(counts)).items()}


class Reach:
    """Could-result-in, by following every edge."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.known: dict[Any, dict[str, set[Any]]] = {}

    def leq(self, one: Any, other: Any) -> bool:
        if one not in self.known:
            self.known[one] = self.case.naive({one: 1})
        place, time = other
        return any(self.case.leq[place](early, time) for early in self.known[one][place])

    def less(self, one: Any, other: Any) -> bool:
        return bool(one != other) and self.leq(one, other)


def propagation_case(random: Random) -> dict[str, Any]:
    case = random_case(random)
    places = [str(place) for place in case.topology.locations]
    counts: Counter[Any] = Counter()
    for place in random.choices(places, k=random.randrange(5)):
        counts[place, case.draw(place)] += random.choice([-1, 1, 1, 2])
    initial = {place: [[as_json(t), n] for (p, t), n in counts.items() if p == place and n] for place in places}
    if random.random() < 0.3:
        initial = {place: found for place, found in initial.items() if found}
    steps: list[Any] = [{"op": "PR"}]
    expected: list[Any] = []

    def expect() -> None:
        stamps = {place: [[as_json(t), n] for (p, t), n in counts.items() if p == place and n] for place in places}
        expected.append({"after_step": len(steps) - 1, "frontiers": frontiers(case, counts), "pointstamps": stamps})

    expect()
    for _ in range(random.randrange(1, 5)):
        shown = case.naive(dict(counts))
        for _ in range(random.randrange(4)):
            place = random.choice(places)
            time, count = case.draw(place), random.choice([-2, -1, 1, 2])
            there = [(t, n) for (p, t), n in counts.items() if p == place and n]
            if there and random.random() < 0.5:
                time, count = random.choice(there)
                count = -count
            if any(case.leq[place](early, time) for early in shown[place]):
                counts[place, time] += count
                steps.append({"op": "CM", "loc": place, "t": as_json(time), "n": count})
        steps.append({"op": "PR"})
        expect()
    return {"graph": case.graph, "initial": initial, "steps": steps, "expected": expected}


class Protocol:
    """The state of the exchange protocol, and its rules."""

    def __init__(self, random: Random, mode: str) -> None:
        self.random, self.mode = random, mode
        self.case = random_case(random, locations_max=4)
        self.reach = Reach(self.case)
        self.places = [str(place) for place in self.case.topology.locations]
        self.names = [f"w{n}" for n in range(random.randrange(1, 4))]
        self.caps = {name: Counter(self.anything()) for name in self.names}
        self.truth: Counter[Any] = sum(self.caps.values(), Counter())
        self.glob = {name: Counter(self.truth) for name in self.names}
        self.temp: dict[str, Counter[Any]] = {name: Counter() for name in self.names}
        self.queues: dict[Any, list[Any]] = {(p, q): [] for p in self.names for q in self.names}
        self.data: Counter[Any] = Counter()
        self.is_initialised = dict.fromkeys(self.names, False)

    def anything(self) -> list[Any]:
        places = self.random.choices(self.places, k=self.random.randrange(4))
        return [(place, self.case.draw(place)) for place in places]

    def draw(self) -> list[Any]:
        """Some step, legal or not."""
        random = self.random
        name, other = random.choice(self.names), random.choice(self.names)
        kind = random.randrange(10)
        if kind < 3 and self.mode == "abadi":
            there = list(self.truth.elements())
            return ["performop", name, random.sample(there, min(len(there), random.randrange(3))), self.anything()[:2]]
        if kind < 3:
            owned = list(self.caps[name].elements())
            drop = random.sample(owned, min(len(owned), random.randrange(3)))
            mint = random.choice([[], self.anything()[:2], drop])
            if random.random() < 0.1:
                drop = self.anything()[:1]
            sends = [[random.choice(self.names), pointstamp] for pointstamp in self.anything()[:1]]
            return ["performop_caps", name, drop, mint, random.choice([[], sends])]
        if kind < 5:
            pending = [element for element, count in self.temp[name].items() if count]
            return ["send_update", name, random.sample(pending, random.randrange(len(pending) + 1))]
        if kind < 8:
            return ["recv_update", name, other]
        if kind < 9 and self.mode == "caps":
            waiting = [pointstamp for (receiver, pointstamp), n in self.data.items() if n and receiver == name]
            return [
                "recv_cap",
                name,
                random.choice(waiting or self.anything() or [(self.places[0], self.case.draw("l0"))]),
            ]
        return ["propagate", name]

    def is_upright(self, delta: Any, owned: Any = ()) -> bool:
        less = self.reach.less
        return all(
            any(n < 0 and less(low, element) for low, n in delta.items())
            or any(owned[low] > 0 and less(low, element) for low in owned)
            or (bool(owned) and owned[element] > count)
            for element, count in delta.items()
            if count > 0
        )

    def take(self, step: list[Any]) -> bool:
        """Takes the step if the rules allow it."""
        kind, name, *rest = step
        if kind == "propagate":
            self.is_initialised[name] = True
        elif kind == "performop":
            minus, plus = map(Counter, rest)
            delta = Counter(plus)
            delta.subtract(minus)
            if any(n > self.truth[element] for element, n in minus.items()) or not self.is_upright(delta):
                return False
            self.truth.update(delta)
            self.temp[name].update(delta)
        elif kind == "performop_caps":
            drop, mint, sent = Counter(rest[0]), Counter(rest[1]), Counter(p for _, p in rest[2])
            owned = +self.caps[name]
            if (not sent and drop == mint) or any(n > owned[element] for element, n in drop.items()):
                return False
            if not all(any(self.reach.leq(low, element) for low in owned) for element in mint):
                return False
            if not all(any(self.reach.less(low, element) for low in owned) for element in sent):
                return False
            delta = mint + sent
            delta.subtract(drop)
            self.caps[name] = owned + mint - drop
            self.truth.update(delta)
            self.temp[name].update(delta)
            self.data.update((receiver, pointstamp) for receiver, pointstamp in rest[2])
        elif kind == "recv_cap":
            if self.data[name, rest[0]] <= 0:
                return False
            self.data[name, rest[0]] -= 1
            self.caps[name][rest[0]] += 1
        elif kind == "send_update":
            update = {element: n for element, n in self.temp[name].items() if n and element in rest[0]}
            left = Counter({element: n for element, n in self.temp[name].items() if n and element not in rest[0]})
            owned = +self.caps[name] if self.mode == "caps" else Counter()
            if not update or not self.is_upright(left, owned):
                return False
            self.temp[name] = left
            for receiver in self.names:
                self.queues[name, receiver].append(update)
        elif kind == "recv_update":
            if not self.is_initialised[rest[0]] or not self.queues[name, rest[0]]:
                return False
            self.glob[rest[0]].update(self.queues[name, rest[0]].pop(0))
        return True


def protocol_case(random: Random, mode: str, size: int = 40) -> dict[str, Any]:
    protocol = Protocol(random, mode)
    steps: list[Any] = []
    expected: list[Any] = []
    rejected: list[Any] = []
    initial = {name: pairs(counts) for name, counts in protocol.caps.items()}

    def take(step: list[Any]) -> None:
        if not protocol.take(step):
            rejected.append({"after_steps": len(steps), "step": as_json(step)})
            return
        steps.append(as_json(step))
        if step[0] == "propagate":
            glob = protocol.glob[step[1]]
            shown = frontiers(protocol.case, glob)
            expected.append({"after_step": len(steps) - 1, "worker": step[1], "frontiers": shown, "glob": pairs(glob)})

    for _ in range(size):
        take(protocol.draw())
    for name in protocol.names:
        pending = [element for element, count in protocol.temp[name].items() if count]
        if pending:
            take(["send_update", name, pending])
    is_ended = random.random() < 0.5
    if is_ended:
        for name in protocol.names:
            take(["propagate", name])
        for (sender, receiver), queue in protocol.queues.items():
            for _ in list(queue):
                take(["recv_update", sender, receiver])
        for name in protocol.names:
            take(["propagate", name])
    return {
        "graph": protocol.case.graph,
        "mode": mode,
        "workers": protocol.names,
        "initial_caps": initial,
        "steps": steps,
        "expected": expected,
        "rejected": rejected,
        "final_frontiers": frontiers(protocol.case, protocol.truth),
        "final_nrec": pairs(protocol.truth),
    }


def random_document(seed: int, cases: int = 3) -> dict[str, Any]:
    random = Random(seed)
    return {
        "format": "progress/1",
        "propagation": [propagation_case(random) for _ in range(cases)],
        "protocol": [protocol_case(random, mode) for mode in ("abadi", "caps") for _ in range(cases)],
    }
