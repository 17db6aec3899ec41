"""Replays files of the format `timeaware/1`: operators on finite streams, predicates on finite and infinite ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from clew.errors import ClewError, MoveError
from clew.times import Changes, Disjoint, Order
from clew.times.algebra import (
    DT,
    WM,
    Batch,
    Bulk,
    Cyclic,
    TimedEvent,
    Flatten,
    Incremental,
    Map,
    Logic,
    TotalHistogram,
    Union,
    first_late,
    histogram,
    incremental_batches,
    is_monotone,
    is_productive,
    join,
    produce,
)
from clew.verify.vectors.domains import order_of
from clew.verify.vectors.report import BadVectors, Difference, Report, reading

Found: TypeAlias = tuple[str, Any, Any]
Replay: TypeAlias = Callable[[], Found | None]


def check(document: Mapping[str, Any]) -> Report:
    """Replays all cases of a document; what cannot be read raises `BadVectors`."""
    sections: dict[str, Callable[[Any], Replay]] = {
        "figures": _operator_case,
        "operators": _operator_case,
        "predicates": _predicate_case,
    }
    replays: list[tuple[str, Replay]] = []
    for section, read in sections.items():
        cases = document.get(section, [])
        if not isinstance(cases, list):
            raise BadVectors(f"{section}: expected a list of cases")
        for number, case in enumerate(cases):
            with reading(f"{section}[{number}]"):
                replays.append((_name(section, number, case), read(case)))
    differences = [difference for name, replay in replays for difference in _replayed(name, replay)]
    return Report(len(replays), len(replays) - len(differences), differences[0] if differences else None)


def _name(section: str, number: int, case: Mapping[str, Any]) -> str:
    words = [f"{section}[{number}]"]
    words += [f"figure {case['figure']}"] if "figure" in case else []
    words += [str(case["op"]["name"])] if "op" in case else []
    words += [f"seed {case['seed']}"] if "seed" in case else []
    return ", ".join(words)


def _replayed(name: str, replay: Replay) -> list[Difference]:
    """The difference, if there is one; an error of an operator is one, too."""
    try:
        found = replay()
    except (ClewError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = "replay", "no error", f"{type(error).__name__}: {error}"
    return [] if found is None else [Difference(name, *found)]


def _operator_case(case: Mapping[str, Any]) -> Replay:
    op, expected = case["op"], case["expected"]
    operator = operator_of(op)
    with reading("input"):
        stream = _input(op, case["input"])
    also_right = case.get("expected_first_occurrence_order", expected)
    without_exit = case.get("expected_without_exit")
    for one in (expected, also_right, without_exit or []):
        if not isinstance(one, list):
            raise BadVectors(f"expected a list of what comes out, found {one!r}")

    def replay() -> Found | None:
        came = list(produce(operator, stream))
        if not _same(expected, came) and not _same(also_right, came):
            return _where("produce", expected, came)
        came = list(produce(operator, stream, exit=False))
        if without_exit is not None and not _same(without_exit, came):
            return _where("produce without exit", without_exit, came)
        return None

    return replay


def _predicate_case(case: Mapping[str, Any]) -> Replay:
    order = order_of(case["order"])
    with reading("stream"):
        try:
            stream = _stream(case["stream"], order)
        except MoveError:  # Two inputs, perhaps: then the order is that of each side.
            order = Disjoint(order, order)
            stream = _stream(case["stream"], order)
        first_late(order, stream)  # A shift that fits no time is found here.
    for name in ("mono", "prod"):
        if not isinstance(case.get(name, True), bool):
            raise BadVectors(f"{name}: expected true or false, found {case[name]!r}")

    def replay() -> Found | None:
        for name, holds in (("mono", is_monotone), ("prod", is_productive)):
            if name in case and holds(order, stream) != case[name]:
                return name, case[name], not case[name]
        return None

    return replay


# What the file says, as values of ours. JSON lists are tuples at every depth, also in data, so that all can be counted.


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


def _input(op: Mapping[str, Any], items: Any) -> list[Any]:
    """The input of an operator: any values for `bulk`, otherwise events with times of its order, if it names one."""
    if not isinstance(items, list):
        raise BadVectors(f"expected a list, found {items!r}")
    while op["name"] in ("comp", "skip"):
        op = op["first"] if op["name"] == "comp" else op["op"]
    if op["name"] == "bulk":
        return [_item(item) for item in items]
    order = _order(op) if "order" in op else None
    if order is not None and op["name"] in ("union", "join"):
        order = Disjoint(order, order)
    return [_event(item, order) for item in items]


def _item(found: Any) -> Any:
    """An event, or, for `bulk`, any other value."""
    match found:
        case ["DT", time, data]:
            return DT(_frozen(time), _frozen(data))
        case ["WM", time]:
            return WM(_frozen(time))
    return _frozen(found)


def _event(found: Any, order: Order | None) -> TimedEvent:
    event = _item(found)
    if not isinstance(event, DT | WM):
        raise BadVectors(f'{found!r} is no event; expected ["DT", time, data] or ["WM", time]')
    time = event.time if order is None else order.check(event.time)
    return DT(time, event.data) if isinstance(event, DT) else WM(time)


def _stream(found: Any, order: Order) -> Cyclic:
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


# How outputs are compared: between two watermarks the data in any order, everything else as it stands.


def _same(expected: Iterable[Any], came: Sequence[Any]) -> bool:
    return _sections(map(_item, expected)) == _sections(came)


def _sections(items: Iterable[Any]) -> list[Any]:
    """Watermarks and other values as they are, and the data between them as multisets."""
    sections: list[Any] = [Counter()]
    for item in items:
        if isinstance(item, DT):
            sections[-1][item] += 1
        else:
            sections += [item, Counter()]
    return sections


def _where(step: str, expected: list[Any], came: list[Any]) -> Found:
    """The first section that differs, named by the watermark before it."""
    wanted, found = _sections(map(_item, expected)), _sections(came)
    place = next(
        (n for n, (one, two) in enumerate(zip(wanted, found, strict=False)) if one != two), min(len(wanted), len(found))
    )
    before = next((f" after {one!r}" for one in reversed(wanted[:place]) if not isinstance(one, Counter)), "")
    return step + before, expected, [_plain(item) for item in came]


def _plain(item: Any) -> Any:
    """An output as the file would write it."""
    match item:
        case DT(time, data):
            return ["DT", _plain(time), _plain(data)]
        case WM(time):
            return ["WM", _plain(time)]
        case str() | bytes():
            return item
        case Sequence():
            return [_plain(part) for part in item]
    return item
