"""When a time that moves by equal steps is at or before a fixed time: exact arithmetic, no unrolling."""

from __future__ import annotations

from typing import Any, NamedTuple

from clew.errors import BuildError
from clew.times.algebra.stream import Shift
from clew.times.order import Disjoint, Integers, Order, Product


class Span(NamedTuple):
    """The step numbers from the first to the last, both included; without a last one they go on for ever."""

    first: int
    last: int | None

    def first_from(self, least: int) -> int | None:
        """The smallest number of the span that is not smaller than `least`, if any.

        >>> Span(2, 4).first_from(3), Span(2, 4).first_from(0), Span(2, 4).first_from(5)
        (3, 2, None)
        """
        found = max(self.first, least)
        return found if self.last is None or found <= self.last else None


EVER = Span(0, None)


def when_at_most(order: Order, time: Any, shift: Shift, bound: Any) -> Span | None:
    """The n >= 0 for which `time + n * shift <= bound`; None if there is none.

    They always form one span. For integers `n * shift <= bound - time` is one linear inequality, whose solutions are
    all numbers up to a quotient (shift > 0), all from a quotient on (shift < 0), or all or none (shift = 0). A product
    asks for all components at once: an intersection of spans is a span. In a disjoint sum only one side counts. In any
    other order the time must stand still, and the answer is the same for all n.

    >>> when_at_most(Integers(), 0, 3, 10), when_at_most(Integers(), 9, -2, 4), when_at_most(Integers(), 1, 1, 0)
    (Span(first=0, last=3), Span(first=3, last=None), None)
    >>> when_at_most(Product(Integers(), Integers()), (0, 9), (1, -1), (7, 4))
    Span(first=5, last=7)
    """
    if isinstance(order, Product):
        shifts = shift if isinstance(shift, tuple) else (shift,) * len(order.orders)
        if len(shifts) != len(order.orders):
            raise BuildError(
                f"the shift {shift!r} has {len(shifts)} components, and {order!r} has {len(order.orders)}. Give one "
                f"number per component."
            )
        both: Span | None = EVER
        for component, part, one, limit in zip(order.orders, time, shifts, bound, strict=True):
            both = _intersection(both, when_at_most(component, part, one, limit))
        return both
    if isinstance(order, Disjoint):
        if time[0] != bound[0]:
            return None
        return when_at_most(order.left if time[0] == "L" else order.right, time[1], shift, bound[1])
    if shift == 0:
        return EVER if order.leq(time, bound) else None
    if isinstance(order, Integers) and isinstance(shift, int):
        if shift > 0:
            last = (bound - time) // shift
            return Span(0, last) if last >= 0 else None
        return Span(max(0, -((bound - time) // -shift)), None)
    raise BuildError(
        f"times of {order!r} cannot be moved by the shift {shift!r}: only integers, event times, and products of them "
        f"move. Use the shift 0."
    )


def _intersection(one: Span | None, other: Span | None) -> Span | None:
    if one is None or other is None:
        return None
    first = max(one.first, other.first)
    ends = [span.last for span in (one, other) if span.last is not None]
    last = min(ends) if ends else None
    return Span(first, last) if last is None or first <= last else None


def backwards(shift: Shift) -> Shift:
    """The shift in the other direction."""
    return tuple(backwards(one) for one in shift) if isinstance(shift, tuple) else -shift
