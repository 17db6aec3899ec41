"""Partial orders of times: what it means that one time is before or equal to another.

A time is a plain hashable value: a number, a word, a tuple of times. An order says which of two times comes first, if
either does; Python's own `<` is never asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, TypeAlias

from clew.errors import BuildError, MoveError

Time: TypeAlias = Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Order(ABC):
    """A partial order of times. A subclass needs `leq`; the other methods say more, where more is known.

    `leq` is reflexive, antisymmetric and transitive; `clew.times.check_order` tries that on samples.
    """

    is_total: bool = False
    has_upper_bounds: bool = False

    @abstractmethod
    def leq(self, one: Time, other: Time) -> bool:
        """Is `one` before or equal to `other`?"""

    def less(self, one: Time, other: Time) -> bool:
        """Is `one` before `other`?"""
        return bool(one != other) and self.leq(one, other)

    def check(self, time: Time) -> Time:
        """The time as this order writes it (lists become tuples), or an error that says what was expected."""
        time = as_tuples(time)
        if not isinstance(time, Hashable):
            raise MoveError(f"{time!r} is no time: a time is hashable, such as a number, a word or a tuple of times")
        return time

    def show(self, time: Time) -> str:
        """The time, for people."""
        return repr(time)

    def upper_bounds(self, one: Time, other: Time) -> tuple[Time, ...]:
        """The least times that are at or after both, none of them before another; none if there is no such time."""
        if self.leq(one, other):
            return (other,)
        if self.leq(other, one):
            return (one,)
        raise MoveError(
            f"{self!r} does not say which times are after both {self.show(one)} and {self.show(other)}. "
            f"Define upper_bounds() in {type(self).__name__} and set has_upper_bounds to True."
        )

    def sort_key(self, time: Time) -> Any:
        """Something to sort by that puts a time after all that are before it, or None where no such key is known."""
        return None

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and vars(self) == vars(other))

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def as_tuples(time: Time) -> Time:
    """Lists become tuples at every depth; everything else stays as it is.

    >>> as_tuples([1, [2, "a"]])
    (1, (2, 'a'))
    """
    if isinstance(time, list | tuple):
        return tuple(as_tuples(part) for part in time)
    return time


class Integers(Order):
    """Whole numbers in their usual order.

    >>> Integers().leq(2, 3), Integers().upper_bounds(2, 3)
    (True, (3,))
    """

    is_total = True
    has_upper_bounds = True

    def leq(self, one: Time, other: Time) -> bool:
        return bool(one <= other)

    def less(self, one: Time, other: Time) -> bool:
        return bool(one < other)

    def check(self, time: Time) -> Time:
        if isinstance(time, bool) or not isinstance(time, int):
            raise MoveError(f"{time!r} is no time of {self!r}: expected a whole number, found {_kind(time)}")
        return time

    def show(self, time: Time) -> str:
        return str(time)

    def upper_bounds(self, one: Time, other: Time) -> tuple[Time, ...]:
        return (one if other <= one else other,)

    def sort_key(self, time: Time) -> Any:
        return time


class EventTime(Integers):
    """Moments: whole microseconds since 1970 began in Greenwich; a `datetime` with a time zone is taken, too.

    >>> order = EventTime()
    >>> order.check(datetime(2025, 2, 25, 15, tzinfo=UTC))
    1740495600000000
    >>> order.show(1740495600000000)
    '2025-02-25T15:00:00+00:00'
    """

    def check(self, time: Time) -> Time:
        if isinstance(time, datetime):
            if time.tzinfo is None:
                raise MoveError(
                    f"{time!r} is no moment: it has no time zone. Say which one, as in "
                    f"datetime(..., tzinfo=timezone.utc), or give whole microseconds since 1970."
                )
            return int((time - _EPOCH) // _MICROSECOND)
        if isinstance(time, bool) or not isinstance(time, int):
            raise MoveError(
                f"{time!r} is no time of {self!r}: expected whole microseconds since 1970 or a datetime with a time "
                f"zone, found {_kind(time)}"
            )
        return time

    def show(self, time: Time) -> str:
        try:
            return str((_EPOCH + time * _MICROSECOND).isoformat())
        except OverflowError:  # Beyond the years that a calendar has.
            return f"{time} µs"


class Product(Order):
    """Tuples of times, component by component: (1, 5) and (3, 2) are not ordered.

    >>> order = Product(Integers(), Integers())
    >>> order.leq((1, 2), (3, 2)), order.leq((1, 5), (3, 2)), order.upper_bounds((1, 5), (3, 2))
    (True, False, ((3, 5),))
    """

    def __init__(self, *orders: Order) -> None:
        if not orders:
            raise BuildError("a Product needs at least one order, as in Product(Integers(), Integers())")
        for order in orders:
            if not isinstance(order, Order):
                raise BuildError(
                    f"a Product is made of orders, not of {order!r}; write Product(Integers(), Integers())"
                )
        self.orders = orders
        self.is_total = len(orders) == 1 and orders[0].is_total
        self.has_upper_bounds = all(order.has_upper_bounds for order in orders)

    def leq(self, one: Time, other: Time) -> bool:
        for order, left, right in zip(self.orders, one, other, strict=True):  # noqa: SIM110 (quicker than all())
            if not order.leq(left, right):
                return False
        return True

    def check(self, time: Time) -> Time:
        if not isinstance(time, list | tuple) or len(time) != len(self.orders):
            raise MoveError(f"{time!r} is no time of {self!r}: expected a tuple of {len(self.orders)} times")
        return tuple(order.check(part) for order, part in zip(self.orders, time, strict=True))

    def show(self, time: Time) -> str:
        return f"({', '.join(order.show(part) for order, part in zip(self.orders, time, strict=True))})"

    def upper_bounds(self, one: Time, other: Time) -> tuple[Time, ...]:
        parts = (order.upper_bounds(left, right) for order, left, right in zip(self.orders, one, other, strict=True))
        return tuple(product(*parts))

    def sort_key(self, time: Time) -> Any:
        keys = tuple(order.sort_key(part) for order, part in zip(self.orders, time, strict=True))
        return None if None in keys else keys

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.orders))})"


class Disjoint(Order):
    """The times of two sides, `("L", t)` and `("R", t)`; no time of one side is ordered with one of the other.

    >>> order = Disjoint(Integers(), Integers())
    >>> order.leq(("L", 1), ("L", 2)), order.leq(("L", 1), ("R", 2)), order.upper_bounds(("L", 1), ("R", 2))
    (True, False, ())
    """

    def __init__(self, left: Order, right: Order) -> None:
        self.left = left
        self.right = right
        self.has_upper_bounds = left.has_upper_bounds and right.has_upper_bounds

    def leq(self, one: Time, other: Time) -> bool:
        return bool(one[0] == other[0]) and self._side(one).leq(one[1], other[1])

    def check(self, time: Time) -> Time:
        if not isinstance(time, list | tuple) or len(time) != 2 or time[0] not in ("L", "R"):
            raise MoveError(f'{time!r} is no time of {self!r}: expected ("L", time) or ("R", time)')
        return (time[0], self._side(time).check(time[1]))

    def show(self, time: Time) -> str:
        return f"{time[0]} {self._side(time).show(time[1])}"

    def upper_bounds(self, one: Time, other: Time) -> tuple[Time, ...]:
        if one[0] != other[0]:
            return ()
        return tuple((one[0], bound) for bound in self._side(one).upper_bounds(one[1], other[1]))

    def sort_key(self, time: Time) -> Any:
        key = self._side(time).sort_key(time[1])
        return None if key is None else (time[0], key)

    def _side(self, time: Time) -> Order:
        return self.left if time[0] == "L" else self.right

    def __repr__(self) -> str:
        return f"Disjoint({self.left!r}, {self.right!r})"


class Poset(Order):
    """Finitely many elements, ordered by pairs (smaller, greater) and whatever follows from them.

    >>> order = Poset("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    >>> order.leq("a", "d"), order.leq("b", "c"), order.upper_bounds("b", "c")
    (True, False, ('d',))
    """

    has_upper_bounds = True

    def __init__(self, elements: Iterable[Time], pairs: Iterable[Sequence[Time]] = ()) -> None:
        self.elements = tuple(dict.fromkeys(as_tuples(element) for element in elements))
        self.pairs = tuple((as_tuples(small), as_tuples(great)) for small, great in pairs)
        unknown = {element for pair in self.pairs for element in pair}.difference(self.elements)
        if unknown:
            raise BuildError(
                f"pairs of a Poset name {_listed(unknown)}, which is not among its elements; add it to them"
            )
        self._above = _closure(self.elements, self.pairs)
        # Whoever has more elements above it is not after one with fewer, so this sorts along the order.
        self._keys = {element: (-len(self._above[element]), n) for n, element in enumerate(self.elements)}

    def leq(self, one: Time, other: Time) -> bool:
        return other in self._above[one]

    def check(self, time: Time) -> Time:
        time = as_tuples(time)
        if not isinstance(time, Hashable) or time not in self._above:
            raise MoveError(f"{time!r} is no time of this Poset: expected one of {_listed(self.elements)}")
        return time

    def upper_bounds(self, one: Time, other: Time) -> tuple[Time, ...]:
        common = self._above[one] & self._above[other]
        return tuple(
            bound for bound in self.elements if bound in common and not any(self.less(low, bound) for low in common)
        )

    def sort_key(self, time: Time) -> Any:
        return self._keys[time]

    def __repr__(self) -> str:
        return f"Poset({list(self.elements)!r}, {list(self.pairs)!r})"


def _closure(elements: tuple[Time, ...], pairs: tuple[tuple[Time, Time], ...]) -> dict[Time, frozenset[Time]]:
    """Each element with those at or after it; a cycle is an error."""
    after: dict[Time, list[Time]] = {element: [] for element in elements}
    for small, great in pairs:
        after[small].append(great)
    above = {}
    for element in elements:
        found, waiting = {element}, [element]
        while waiting:
            for great in after[waiting.pop()]:
                if great not in found:
                    found.add(great)
                    waiting.append(great)
        above[element] = frozenset(found)
    for small, great in pairs:
        if small != great and small in above[great]:
            raise BuildError(
                f"the pairs of a Poset put {small!r} before {great!r} and {great!r} before {small!r}; "
                f"an order has no cycles, so remove one of the pairs between them"
            )
    return above


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"


def _listed(elements: Iterable[Time]) -> str:
    return ", ".join(sorted(map(repr, elements)))
