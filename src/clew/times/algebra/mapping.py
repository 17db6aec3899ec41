"""Map and flatten: change data and let times and watermarks be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from clew.times.algebra.logic import Logic, Machine
from clew.times.algebra.stream import DT, WM, TimedEvent, no_event


@dataclass(frozen=True)
class Map(Logic):
    """`DT(t, d)` becomes `DT(t, f(t, d))`; watermarks pass (section 5.1 of the seed).

    >>> from clew.times.algebra.logic import produce
    >>> list(produce(Map(lambda time, data: data * time), [DT(2, "a"), WM(2)]))
    [DT(2, 'aa'), WM(2)]
    """

    f: Callable[[Any, Any], Any]

    def begin(self) -> Machine:
        return _Map(self.f)


class _Map(Machine):
    def __init__(self, f: Callable[[Any, Any], Any]) -> None:
        self.f = f

    def step(self, item: TimedEvent) -> Iterable[TimedEvent]:
        match item:
            case WM():
                return (item,)
            case DT(time, data):
                return (DT(time, self.f(time, data)),)
        raise no_event(item, "Map")


@dataclass(frozen=True)
class Flatten(Logic):
    """`DT(t, [d1, d2, ...])` becomes `DT(t, d1)`, `DT(t, d2)`, ...; watermarks pass (Figure 9 of the seed).

    >>> from clew.times.algebra.logic import produce
    >>> list(produce(Flatten(), [DT(2, ["a", "b"]), DT(1, []), WM(2)]))
    [DT(2, 'a'), DT(2, 'b'), WM(2)]
    """

    def begin(self) -> Machine:
        return _Flatten()


class _Flatten(Machine):
    def step(self, item: TimedEvent) -> Iterable[TimedEvent]:
        match item:
            case WM():
                return (item,)
            case DT(time, data):
                return [DT(time, one) for one in data]
        raise no_event(item, "Flatten")
