"""Whether a summary can stand on an edge between locations of given orders."""

from __future__ import annotations

from clew.times import Add, Componentwise, Enter, Leave, MaxPlus, Order, Poset, Product, Summary, Table
from clew.times.summary import Identity


def misfit(summary: Summary, source: Order, target: Order) -> str | None:
    """What is wrong with this summary between these orders; None if nothing is known to be.

    >>> from clew.times import Integers
    >>> misfit(Enter(), Integers(), Product(Integers(), Integers()))
    >>> misfit(Add(1), Product(Integers(), Integers()), Product(Integers(), Integers()))
    'it adds to whole numbers, and the times are of Product(Integers(), Integers())'
    """
    match summary:
        case Enter():
            if not isinstance(target, Product) or len(target.orders) != 2 or target.orders[0] != source:
                return f"inside, times must be of Product({source!r}, ...), found {target!r}"
            return None
        case Leave():
            if not isinstance(source, Product) or len(source.orders) != 2 or source.orders[0] != target:
                return f"inside, times must be of Product({target!r}, ...), found {source!r}"
            return None
        case Identity() | Add() | MaxPlus() | Componentwise() | Table() if source != target:
            return f"it stays in one order of times, and the edge leads from {source!r} to {target!r}"
        case Add() | MaxPlus() if isinstance(source, Product | Poset):
            return f"it adds to whole numbers, and the times are of {source!r}"
        case Componentwise(parts=parts):
            if not isinstance(source, Product) or len(source.orders) != len(parts):
                return f"it has {len(parts)} components, and the times are of {source!r}"
            found = (misfit(part, order, order) for part, order in zip(parts, source.orders, strict=True))
            return next((problem for problem in found if problem is not None), None)
        case Table(poset=poset) if poset != source:
            return f"it is a table of {poset!r}, and the times are of {source!r}"
    return None
