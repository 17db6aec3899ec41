"""The operators of the time-aware seed, written down as its definitions stand: slow, and without any code of Clew's.

Each is a pair of functions, `apply(state, item) -> (state, out)` and `exit(state) -> out`. Times are compared by a
function `leq`. Where ERRATA decides a doubtful point, that is taken: Figure 7 forwards every watermark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Leq = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Op:
    state: Any
    apply: Callable[[Any, Any], tuple[Any, list[Any]]]
    exit: Callable[[Any], list[Any]] = lambda state: []


def fproduce(op: Op, state: Any, items: list[Any]) -> tuple[Any, list[Any]]:
    out: list[Any] = []
    for item in items:
        state, more = op.apply(state, item)
        out = out + more
    return state, out


def produce(op: Op, items: list[Any], exit: bool = True) -> list[Any]:
    state, out = fproduce(op, op.state, items)
    return out + (op.exit(state) if exit else [])


def comp_op(one: Op, two: Op) -> Op:
    def apply(states: Any, item: Any) -> tuple[Any, list[Any]]:
        first, out = one.apply(states[0], item)
        second, out = fproduce(two, states[1], out)
        return (first, second), out

    def exit(states: Any) -> list[Any]:
        second, out = fproduce(two, states[1], one.exit(states[0]))
        return out + two.exit(second)

    return Op((one.state, two.state), apply, exit)


def skip_op(op: Op, n: int) -> Op:
    def apply(states: Any, item: Any) -> tuple[Any, list[Any]]:
        inner, left = states
        inner, out = op.apply(inner, item)
        return (inner, max(0, left - len(out))), out[left:]

    return Op((op.state, n), apply, lambda states: op.exit(states[0])[states[1] :])


def bulk_op(f: Callable[[list[Any]], list[Any]], n: int, buf: list[Any]) -> Op:
    def apply(buf: list[Any], e: Any) -> tuple[list[Any], list[Any]]:
        return ([e, *buf], []) if len([e, *buf]) < n else ([], f([e, *buf]))

    return Op(buf, apply, f)


def maximal_antichain_list(leq: Leq, times: list[Any]) -> list[Any]:
    found = []
    for n, time in enumerate(times):
        if time not in times[:n] and not any(leq(time, other) and time != other for other in times):
            found.append(time)
    return found


def remdups(items: list[Any]) -> list[Any]:
    return [item for n, item in enumerate(items) if item not in items[n + 1 :]]


def batches(leq: Leq, wms: list[Any], tds: list[Any]) -> tuple[list[Any], list[Any]]:
    out = []
    for wm in wms:
        out.append(("DT", wm, [(t, d) for t, d in tds if leq(t, wm)]))
        tds = [(t, d) for t, d in tds if not leq(t, wm)]
    return out, tds


def batch_op(leq: Leq, tds: list[Any]) -> Op:
    def apply(tds: list[Any], ev: Any) -> tuple[list[Any], list[Any]]:
        if ev[0] == "DT":
            return [*tds, (ev[1], ev[2])], []
        out, tds = batches(leq, [ev[1]], tds)
        return tds, [*(x for x in out if x[2] != []), ev]

    return Op(tds, apply, lambda tds: batches(leq, maximal_antichain_list(leq, [t for t, _ in tds]), tds)[0])


def incr_op(abs: list[Any]) -> Op:
    def apply(abs: list[Any], ev: Any) -> tuple[list[Any], list[Any]]:
        if ev[0] == "WM":
            return abs, [ev]
        abs = abs + list(ev[2])
        return abs, [("DT", t, abs) for t in remdups([t for t, _ in ev[2]])]

    return Op(abs, apply)


def map_op(f: Callable[[Any, Any], Any]) -> Op:
    return Op(None, lambda _, ev: (None, [ev if ev[0] == "WM" else ("DT", ev[1], f(ev[1], ev[2]))]))


def flatten_op() -> Op:
    return Op(None, lambda _, ev: (None, [ev] if ev[0] == "WM" else [("DT", ev[1], d) for d in ev[2]]))


def incr_batch_op(leq: Leq, tds: list[Any], abs: list[Any]) -> Op:
    return comp_op(batch_op(leq, tds), incr_op(abs))


def ihist_op(leq: Leq, tds: list[Any], abs: list[Any]) -> Op:
    s_coll = map_op(lambda t, xs: sorted(d for other, d in xs if leq(other, t)))
    return comp_op(incr_batch_op(leq, tds, abs), s_coll)


def ihist_eff_op(leq: Leq, H: list[Any], buf: list[Any]) -> Op:
    def histograms(H: list[Any], out: list[Any]) -> list[Any]:
        return [("DT", t, sorted(H + [d for o, d in out if leq(o, t)])) for t in remdups([t for t, _ in out])]

    def apply(state: Any, ev: Any) -> tuple[Any, list[Any]]:
        H, buf = state
        if ev[0] == "DT":
            return (H, [*buf, (ev[1], ev[2])]), []
        out = [(t, d) for t, d in buf if leq(t, ev[1])]
        kept = [(t, d) for t, d in buf if not leq(t, ev[1])]
        return (H + [d for _, d in out], kept), [*histograms(H, out), ev]

    return Op((H, buf), apply, lambda state: histograms(*state))


def union_op(leq: Leq, wms: list[Any], MA: list[Any]) -> Op:
    def sided(one: Any, other: Any) -> bool:
        return bool(one[0] == other[0]) and leq(one[1], other[1])

    def producible(wm: Any, MA: list[Any]) -> bool:
        return any(sided(wm, ({"L": "R", "R": "L"}[side], time)) for side, time in MA)

    def apply(state: Any, ev: Any) -> tuple[Any, list[Any]]:
        wms, MA = state
        if ev[0] == "DT":
            return state, [("DT", ev[1][1], ev[2])]
        MA = maximal_antichain_list(sided, [ev[1], *MA])
        wms = [ev[1], *wms]
        out = [wm for wm in wms if producible(wm, MA)]
        return ([wm for wm in wms if wm not in out], MA), [("WM", wm[1]) for wm in out]

    return Op((wms, MA), apply)


def join_op(leq: Leq, join: Any, tds: list[Any], abs: list[Any], wms: list[Any], MA: list[Any]) -> Op:
    def sided(one: Any, other: Any) -> bool:
        return bool(one[0] == other[0]) and leq(one[1], other[1])

    def join_list(st: Any, xs: list[Any]) -> list[Any]:
        lefts = [d for (side, t), d in xs if side == "L" and t == st[1]]
        rights = [d for (side, t), d in xs if side == "R" and t == st[1]]
        return [join(d1, d2) for d1 in lefts for d2 in rights if join(d1, d2) is not None]

    first = comp_op(incr_batch_op(sided, tds, abs), comp_op(map_op(join_list), flatten_op()))
    return comp_op(first, union_op(leq, wms, MA))
