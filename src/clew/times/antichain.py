"""Antichains: sets of times none of which is before another; a frontier is one.

Invariant: the elements are pairwise unordered. As a frontier, an antichain stands for all times at or after one of its
elements: these may still arrive. The empty one says that nothing can arrive any more. (Progress thesis, section 4.1.2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.times.order import Order, Time


def minimal(order: Order, elements: Iterable[Time]) -> tuple[Time, ...]:
    """The elements with none before them, each once, in the order of their first occurrence.

    >>> from clew.times.order import Integers, Product
    >>> minimal(Product(Integers(), Integers()), [(1, 2), (2, 3), (4, 1), (3, 1)])
    ((1, 2), (3, 1))
    """
    least: list[Time] = []
    for element in elements:
        if not any(order.leq(low, element) for low in least):
            least = [low for low in least if not order.leq(element, low)]
            least.append(element)
    return tuple(least)


def maximal(order: Order, elements: Iterable[Time]) -> tuple[Time, ...]:
    """The elements with none after them, each once, in the order of their first occurrence.

    >>> from clew.times.order import Integers, Product
    >>> maximal(Product(Integers(), Integers()), [(1, 2), (4, 1), (2, 3), (3, 1)])
    ((4, 1), (2, 3))
    """
    greatest: list[Time] = []
    for element in elements:
        if not any(order.leq(element, high) for high in greatest):
            greatest = [high for high in greatest if not order.leq(high, element)]
            greatest.append(element)
    return tuple(greatest)


class Antichain:
    """An immutable set of times, none before another; of those given, only the minimal ones are kept.

    >>> from clew.times.order import Integers, Product
    >>> frontier = Antichain(Product(Integers(), Integers()), [(1, 2), (2, 3), (3, 1)])
    >>> frontier
    Antichain({(1, 2), (3, 1)})
    >>> frontier.covers((1, 7)), frontier.passed((2, 1))
    (True, True)
    """

    __slots__ = ("elements", "order")

    order: Order
    elements: tuple[Time, ...]

    def __init__(self, order: Order, elements: Iterable[Time] = ()) -> None:
        self.order = order
        self.elements = minimal(order, elements)

    @classmethod
    def of_minimal(cls, order: Order, elements: tuple[Time, ...]) -> Antichain:
        """An antichain of elements that are known to be unordered already."""
        made = cls.__new__(cls)
        made.order = order
        made.elements = elements
        return made

    def covers(self, time: Time) -> bool:
        """May this time still arrive? True if some element is before or equal to it."""
        leq = self.order.leq
        for element in self.elements:  # noqa: SIM110 (quicker than any())
            if leq(element, time):
                return True
        return False

    def passed(self, time: Time) -> bool:
        """Is this time over? The opposite of `covers`."""
        return not self.covers(time)

    def is_at_most(self, other: Antichain) -> bool:
        """Is this one behind the other, or equal: may everything that the other lets arrive still arrive here?"""
        return all(self.covers(element) for element in other.elements)

    def meet(self, other: Antichain) -> Antichain:
        """The minimal elements of both together: what either may still bring.

        >>> from clew.times.order import Integers
        >>> Antichain(Integers(), [3]).meet(Antichain(Integers(), [5]))
        Antichain({3})
        """
        return Antichain(self.order, (*self.elements, *other.elements))

    def join(self, other: Antichain) -> Antichain:
        """The times that both cover; an order that does not know its upper bounds raises `MoveError`.

        >>> from clew.times.order import Integers, Product
        >>> order = Product(Integers(), Integers())
        >>> Antichain(order, [(1, 4), (3, 1)]).join(Antichain(order, [(2, 2)]))
        Antichain({(2, 4), (3, 2)})
        """
        bounds = self.order.upper_bounds
        return Antichain(
            self.order, [bound for one in self.elements for two in other.elements for bound in bounds(one, two)]
        )

    def __iter__(self) -> Iterator[Time]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __bool__(self) -> bool:
        return bool(self.elements)

    def __contains__(self, time: object) -> bool:
        return time in self.elements

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Antichain):
            return NotImplemented
        same = self.elements == other.elements or frozenset(self.elements) == frozenset(other.elements)
        return same and self.order == other.order

    def __hash__(self) -> int:
        return hash(frozenset(self.elements))

    def __repr__(self) -> str:
        return f"Antichain({{{', '.join(map(self.order.show, self.elements))}}})"
