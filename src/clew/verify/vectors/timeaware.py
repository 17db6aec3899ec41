"""Replays files of the format `timeaware/1`: operators on finite streams, predicates on finite and infinite ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from clew.errors import MoveError
from clew.times import Disjoint
from clew.times.algebra import DT, WM, first_late, is_monotone, is_productive, produce
from clew.verify.vectors.domains import order_of
from clew.verify.vectors.report import BadVectors, Found, Replay, Report, reading, replayed
from clew.verify.vectors.timeaware_forms import input_of, item_of, operator_of, stream_of


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
    differences = [difference for name, replay in replays for difference in replayed(name, replay)]
    return Report(len(replays), len(replays) - len(differences), differences[0] if differences else None)


def _name(section: str, number: int, case: Mapping[str, Any]) -> str:
    words = [f"{section}[{number}]"]
    words += [f"figure {case['figure']}"] if "figure" in case else []
    words += [str(case["op"]["name"])] if "op" in case else []
    words += [f"seed {case['seed']}"] if "seed" in case else []
    return ", ".join(words)


def _operator_case(case: Mapping[str, Any]) -> Replay:
    op, expected = case["op"], case["expected"]
    operator = operator_of(op)
    with reading("input"):
        stream = input_of(op, case["input"])
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
            stream = stream_of(case["stream"], order)
        except MoveError:  # Two inputs, perhaps: then the order is that of each side.
            order = Disjoint(order, order)
            stream = stream_of(case["stream"], order)
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


# How outputs are compared: between two watermarks the data in any order, everything else as it stands.


def _same(expected: Iterable[Any], came: Sequence[Any]) -> bool:
    return _sections(map(item_of, expected)) == _sections(came)


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
    wanted, found = _sections(map(item_of, expected)), _sections(came)
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
