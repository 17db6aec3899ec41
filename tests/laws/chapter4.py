"""Chapter 4 of the progress thesis as it stands: configurations, and the two actions as Figures 4.1 and 4.3 have them.

One step at a time, every multiset a plain dictionary, infima worked out anew each time. Which of the allowed steps is
taken is up to the caller; a step that is not allowed is an AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Bag = dict[Any, int]


def plus(one: Mapping[Any, int], other: Mapping[Any, int]) -> Bag:
    total = {element: one.get(element, 0) + other.get(element, 0) for element in {**one, **other}}
    return {element: count for element, count in total.items() if count}


class Configuration:
    def __init__(
        self,
        leq: Mapping[Any, Callable[[Any, Any], bool]],
        edges: list[tuple[Any, Any, Callable[[Any], Any]]],
        initial: Mapping[Any, Bag],
    ) -> None:
        self.leq, self.edges = leq, edges
        self.pointstamps: dict[Any, Bag] = {location: dict(initial.get(location, {})) for location in leq}
        self.implications: dict[Any, Bag] = {location: {} for location in leq}
        self.worklist = {location: self.infimum(location, self.pointstamps[location]) for location in leq}

    def infimum(self, location: Any, bag: Mapping[Any, int]) -> Bag:
        times = [time for time, count in bag.items() if count > 0]
        leq = self.leq[location]
        return {time: 1 for time in times if not any(early != time and leq(early, time) for early in times)}

    def frontiers(self) -> dict[Any, set[Any]]:
        return {location: set(self.infimum(location, bag)) for location, bag in self.implications.items()}

    def change_multiplicity(self, location: Any, time: Any, count: int) -> None:
        assert count != 0
        assert any(self.leq[location](early, time) for early in self.frontiers()[location])
        old = self.pointstamps[location]
        new = plus(old, {time: count})
        self.pointstamps[location] = new
        self.worklist[location] = plus(self.worklist[location], self._infimum_changes(location, new, old))

    def waiting(self) -> list[tuple[Any, Any]]:
        return [(location, time) for location, bag in self.worklist.items() for time in bag]

    def is_smallest(self, location: Any, time: Any) -> bool:
        """No smaller time waits anywhere; all locations have one order."""
        leq = self.leq[location]
        return not any(other != time and leq(other, time) for _, other in self.waiting())

    def propagate(self, location: Any, time: Any, *, is_any: bool = False) -> None:
        assert time in self.worklist[location]
        assert is_any or self.is_smallest(location, time)
        old = self.implications[location]
        new = plus(old, {time: self.worklist[location].pop(time)})
        self.implications[location] = new
        changes = self._infimum_changes(location, new, old)
        for source, target, move in self.edges:
            if source == location:
                for early, count in changes.items():
                    self.worklist[target] = plus(self.worklist[target], {move(early): count})

    def _infimum_changes(self, location: Any, new: Bag, old: Bag) -> Bag:
        return plus(self.infimum(location, new), dict.fromkeys(self.infimum(location, old), -1))
