"""Turns what real Timely did (one record: a graph and its rounds) into a `propagation` case of a vector file.

A record is a JSON object that the Rust program of this folder writes: `graph` as in vector files, `rounds` with the
`changes`, `frontiers` and `pointstamps` of each round, and `observed`, the frontiers that running operators saw.
The first round is the initial state, every other one a list of `CM` steps and a `PR`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

FORMAT = "progress/1"


def title(record: Json) -> str:
    """A name for people: the program or the seed, and for a program its worker and its scope."""
    if record["mode"] == "tracker":
        return str(record["name"])
    scope = ".".join(str(index) for index in record["scope"]["address"])
    return f"{record['name']} seed {record['seed']}, worker {record['worker']} of {record['workers']}, scope {scope}"


def counted(changes: Iterable[list[Any]]) -> dict[str, list[list[Any]]]:
    """The counts that the changes add up to, per location.

    >>> counted([["a", 3, 1], ["a", 3, 1], ["b", [0, 1], 1], ["b", [0, 1], -1]])
    {'a': [[3, 2]], 'b': []}
    """
    counts: dict[str, dict[str, int]] = {}
    for location, time, count in changes:
        at = counts.setdefault(location, {})
        key = json.dumps(time)
        at[key] = at.get(key, 0) + count
    return {place: [[json.loads(key), n] for key, n in at.items() if n] for place, at in counts.items()}


def case(record: Json) -> Json:
    """One `propagation` case."""
    initial, *later = record["rounds"]
    steps: list[Json] = [{"op": "PR"}]
    expected = [_expected(0, initial)]
    for round_ in later:
        steps += ({"op": "CM", "loc": place, "t": time, "n": count} for place, time, count in round_["changes"])
        steps.append({"op": "PR"})
        expected.append(_expected(len(steps) - 1, round_))
    return {
        "kind": "propagation",
        "name": title(record),
        "graph": record["graph"],
        "initial": counted(initial["changes"]),
        "steps": steps,
        "expected": expected,
    }


def _expected(step: int, round_: Json) -> Json:
    return {"after_step": step, "frontiers": round_["frontiers"], "pointstamps": round_["pointstamps"]}
