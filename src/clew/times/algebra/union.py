"""Union: two streams, given as one in the disjoint sum of their times, become one without sides (Figure 9 of the seed).

A watermark comes out as soon as the other side has one at or after it; before that, data at or before it may follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.errors import MoveError
from clew.times.algebra.logic import Logic, Machine
from clew.times.algebra.shelf import Shelf
from clew.times.algebra.stream import DT, WM, TimedEvent, no_event
from clew.times.antichain import maximal
from clew.times.order import Order

OTHER = {"L": "R", "R": "L"}


def side_and_time(found: Any, operator: str) -> tuple[str, Any]:
    """The two parts of a time in a disjoint sum."""
    match found:
        case ("L" | "R" as side, time):
            return side, time
    raise MoveError(
        f'{operator} was given the time {found!r}; it takes two inputs as one stream, whose times are ("L", t) for the '
        f'left and ("R", t) for the right one. Say from which side each event is.'
    )


@dataclass(frozen=True)
class Union(Logic):
    """Data passes without its side, a watermark once the other side has reached it; `order` is that of each side.

    When several watermarks come out at once the newest is first. `waiting` are the times (with sides) of watermarks
    that wait from before, the newest first, and `reached` those of all watermarks from before.

    >>> from clew.times.algebra.logic import produce
    >>> from clew.times.order import Integers
    >>> list(produce(Union(Integers()), [DT(("L", 1), "a"), WM(("L", 3)), WM(("R", 2)), WM(("R", 5))]))
    [DT(1, 'a'), WM(2), WM(3)]
    """

    order: Order
    waiting: Sequence[tuple[str, Any]] = ()
    reached: Iterable[tuple[str, Any]] = ()

    def begin(self) -> Machine:
        return _Union(self)


class _Union(Machine):
    """After the first watermark, none that waits is at or before one reached by the other side; so a new watermark can
    let out only itself, or some of the other side that are at or before it."""

    def __init__(self, operator: Union) -> None:
        self.order = operator.order
        self.shelves = {side: Shelf(self.order) for side in OTHER}
        self.reached: dict[str, tuple[Any, ...]] = dict.fromkeys(OTHER, ())
        self.arrived = 0
        for found in reversed(operator.waiting):
            self._wait(*self._checked(found))
        for found in operator.reached:
            self._reach(*self._checked(found))
        self.is_first = True

    def step(self, item: TimedEvent) -> Iterable[TimedEvent]:
        match item:
            case DT(found, data):
                return (DT(self._checked(found)[1], data),)
            case WM(found):
                return [WM(time) for time in self._let_out(*self._checked(found))]
        raise no_event(item, "Union")

    def _checked(self, found: Any) -> tuple[str, Any]:
        side, time = side_and_time(found, "Union")
        return side, self.order.check(time)

    def _wait(self, side: str, time: Any) -> None:
        self.shelves[side].put(time, self.arrived)
        self.arrived += 1

    def _reach(self, side: str, time: Any) -> None:
        if not any(self.order.leq(time, other) for other in self.reached[side]):
            self.reached[side] = maximal(self.order, (*self.reached[side], time))

    def _let_out(self, side: str, time: Any) -> list[Any]:
        out = self.shelves[OTHER[side]].take(time)
        if any(self.order.leq(time, bound) for bound in self.reached[OTHER[side]]):
            out.append((time, self.arrived))
            self.arrived += 1
        else:
            self._wait(side, time)
        self._reach(side, time)
        if self.is_first:  # Nobody looked at what waits from before.
            for one, opposite in OTHER.items():
                for bound in self.reached[opposite]:
                    out += self.shelves[one].take(bound)
            self.is_first = False
        return [waited for waited, number in sorted(out, key=lambda pair: pair[1], reverse=True)]
