"""The domains of time that vector files name, and their times, summaries and antichains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clew.times import (
    Add,
    Antichain,
    Changes,
    Componentwise,
    Integers,
    MaxPlus,
    Order,
    Poset,
    Product,
    Summary,
    Table,
)
from clew.verify.vectors.report import BadVectors


def order_of(domain: Any) -> Order:
    """The order that a domain stands for.

    >>> order_of(["prod", "int", ["poset", ["a", "b"], [["a", "b"]]]])
    Product(Integers(), Poset(['a', 'b'], [('a', 'b')]))
    """
    match domain:
        case "int" | "maxplus":
            return Integers()
        case ["prod", *parts] if parts:
            return Product(*map(order_of, parts))
        case ["poset", [*elements], [*pairs]]:
            return Poset(elements, pairs)
    raise BadVectors(f'the domain {domain!r} is not "int", "maxplus", ["prod", ...] or ["poset", [...], [...]]')


def summary_of(domain: Any, given: Any) -> Summary:
    """The summary that stands for `given` in a domain.

    >>> summary_of(["prod", "int", "maxplus"], [1, [0, 3]])
    Componentwise(Add(1), MaxPlus(0, 3))
    """
    match domain, given:
        case "int", int():
            return Add(given)
        case "maxplus", [int(a), int(b)]:
            return MaxPlus(a, b)
        case ["prod", *parts], [*components] if len(parts) == len(components):
            return Componentwise(*map(summary_of, parts, components))
        case ["poset", *_], [*images]:
            order = order_of(domain)
            assert isinstance(order, Poset)
            return Table(order, images)
    raise BadVectors(f"{given!r} is no summary of the domain {domain!r}")


def antichain_of(order: Order, times: Iterable[Any]) -> Antichain:
    """An antichain as the file lists it."""
    return Antichain(order, [order.check(time) for time in times])


def changes_of(order: Order, pairs: Iterable[Any]) -> Changes:
    """A signed multiset of times as the file lists it."""
    return Changes([(order.check(time), _number(count)) for time, count in pairs])


def plain(value: Any) -> Any:
    """What came, in the words of the files: antichains as sorted lists, multisets as lists of pairs, no tuples.

    >>> plain({"a": Antichain(Integers(), [3])}), plain(Changes({("a", 1): 2}))
    ({'a': [3]}, [[['a', 1], 2]])
    """
    match value:
        case Antichain():
            return sorted(map(plain, value), key=repr)
        case Changes():
            return sorted(([plain(element), count] for element, count in value.items()), key=repr)
        case dict():
            return {key: plain(part) for key, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
    return value


def _number(count: Any) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        raise BadVectors(f"{count!r} is no count; expected a whole number")
    return count
