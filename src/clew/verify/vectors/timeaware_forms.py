"""Operators, events and streams as files of the format `timeaware/1` write them.

JSON lists are tuples at every depth, also in data, so that all values can be counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clew.times import Changes, Disjoint, Order
from clew.times.algebra import (
    DT,
    WM,
    Batch,
    Bulk,
    Cyclic,
    Flatten,
    Incremental,
    Logic,
    Map,
    TimedEvent,
    TotalHistogram,
    Union,
    histogram,
    incremental_batches,
    join,
)
from clew.verify.vectors.domains import order_of
from clew.verify.vectors.report import BadVectors


def operator_of(op: Mapping[str, Any]) -> Logic:
    """The operator that an `op` describes; initial buffers are empty where not given."""
    name = op["name"]
    if name not in _OPERATORS:
        raise BadVectors(f"{name!r} is no operator of this format; it has {', '.join(sorted(_OPERATORS))}")
    return _OPERATORS[name](op)


def _order(op: Mapping[str, Any]) -> Order:
    return order_of(op["order"])


def _buffer(op: Mapping[str, Any], *keys: str) -> Sequence[Any]:
    return next((_frozen(op[key]) for key in keys if op.get(key)), ())


def _total(op: Mapping[str, Any]) -> Logic:
    return TotalHistogram(_order(op), _buffer(op, "H"), _buffer(op, "tds", "buf")) >> Map(_sorted)


def _join(op: Mapping[str, Any]) -> Logic:
    buffers = (_buffer(op, key) for key in ("tds", "abs", "wms", "ma"))
    return join(_order(op), _JOINS[op["join"]], *buffers)


_OPERATORS: dict[str, Callable[[Mapping[str, Any]], Logic]] = {
    "bulk": lambda op: Bulk(_BULKS[op["f"]], op["n"], _buffer(op, "buf")),
    "batch": lambda op: Batch(_order(op), _buffer(op, "tds")),
    "incr": lambda op: Incremental(_buffer(op, "abs")),
    "incr_batch": lambda op: incremental_batches(_order(op), _buffer(op, "tds"), _buffer(op, "abs")),
    "ihist": lambda op: histogram(_order(op), _buffer(op, "tds"), _buffer(op, "abs")) >> Map(_sorted),
    "ihist_eff": _total,
    "flatten": lambda op: Flatten(),
    "union": lambda op: Union(_order(op), _buffer(op, "wms"), _buffer(op, "ma")),
    "join": _join,
    "map_len": lambda op: Map(lambda _, data: len(data)),
    "comp": lambda op: operator_of(op["first"]) >> operator_of(op["second"]),
    "skip": lambda op: operator_of(op["op"]).skip(op["n"]),
}

_BULKS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "sum": lambda items: [sum(items)],
    "count": lambda items: [len(items)],
    "identity": list,
}

_JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "key": lambda left, right: (left[0], left[1], right[1]) if left[0] == right[0] else None,
    "cross": lambda left, right: (left, right),
}


def _sorted(_: Any, counts: Changes) -> tuple[Any, ...]:
    """A histogram as a sorted list; elements that Python cannot sort are sorted by how they are written."""
    elements = [element for element, count in counts.items() for _ in range(count)]
    try:
        return tuple(sorted(elements))
    except TypeError:
        return tuple(sorted(elements, key=repr))


def input_of(op: Mapping[str, Any], items: Any) -> list[Any]:
    """The input of an operator: any values for `bulk`, otherwise events, with times of its order if it uses one."""
    if not isinstance(items, list):
        raise BadVectors(f"expected a list, found {items!r}")
    while op["name"] in ("comp", "skip"):
        op = op["first"] if op["name"] == "comp" else op["op"]
    if op["name"] == "bulk":
        return [item_of(item) for item in items]
    if op["name"] in ("flatten", "incr", "map_len"):
        return [_event(item, None) for item in items]
    order = _order(op)
    if op["name"] in ("union", "join"):
        order = Disjoint(order, order)
    return [_event(item, order) for item in items]


def item_of(found: Any) -> Any:
    """An event, or, for `bulk`, any other value."""
    match found:
        case ["DT", time, data]:
            return DT(_frozen(time), _frozen(data))
        case ["WM", time]:
            return WM(_frozen(time))
    return _frozen(found)


def _event(found: Any, order: Order | None) -> TimedEvent:
    event = item_of(found)
    if not isinstance(event, DT | WM):
        raise BadVectors(f'{found!r} is no event; expected ["DT", time, data] or ["WM", time]')
    time = event.time if order is None else order.check(event.time)
    return DT(time, event.data) if isinstance(event, DT) else WM(time)


def stream_of(found: Any, order: Order) -> Cyclic:
    """A stream of a predicate; a list is one without a cycle, which ends."""
    if isinstance(found, list):
        found = {"prefix": found, "cycle": []}
    prefix, cycle = ([_event(item, order) for item in found[part]] for part in ("prefix", "cycle"))
    return Cyclic(prefix, cycle, _frozen(found.get("shift", 0)))


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(part) for part in value)
    if isinstance(value, dict):
        return tuple(sorted((key, _frozen(part)) for key, part in value.items()))
    return value
