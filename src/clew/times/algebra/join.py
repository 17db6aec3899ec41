"""Join: pairs data of two inputs that have the same time, once both sides completed it (section 5.2 of the seed)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.times.algebra.accumulated import Accumulated
from clew.times.algebra.incremental import incremental_batches
from clew.times.algebra.logic import Logic
from clew.times.algebra.mapping import Flatten, Map
from clew.times.algebra.union import Union, side_and_time
from clew.times.order import Disjoint, Order


def join(
    order: Order,
    f: Callable[[Any, Any], Any],
    waiting: Sequence[tuple[Any, Any]] = (),
    before: Sequence[tuple[Any, Any]] = (),
    waiting_watermarks: Sequence[tuple[str, Any]] = (),
    reached: Iterable[tuple[str, Any]] = (),
) -> Logic:
    """Two inputs as one stream with times `("L", t)` and `("R", t)`; `order` is that of t.

    For each two data items, one from the left and one from the right, of the same time, `f(left, right)` comes out at
    that time, unless it is None. `waiting` and `before` are buffers of the batches, the last two of the union.

    >>> from clew.times.algebra.logic import produce
    >>> from clew.times.algebra.stream import DT, WM
    >>> from clew.times.order import Integers
    >>> pair = join(Integers(), lambda left, right: (left, right))
    >>> stream = [DT(("L", 1), "a"), DT(("R", 1), "b"), DT(("R", 2), "c"), WM(("L", 2)), WM(("R", 1))]
    >>> list(produce(pair, stream))
    [DT(1, ('a', 'b')), WM(1)]
    """
    batches = incremental_batches(Disjoint(order, order), waiting, before)
    return batches >> (Map(JoinAt(f)) >> Flatten()) >> Union(order, waiting_watermarks, reached)


@dataclass(frozen=True)
class JoinAt:
    """The function from a time and the accumulated batch to the list of all that can be joined at that time."""

    f: Callable[[Any, Any], Any]

    def __call__(self, sided: Any, pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
        found = pairs if isinstance(pairs, Accumulated) else Accumulated(pairs)
        time = side_and_time(sided, "join")[1]
        lefts, rights = found.at(("L", time)), found.at(("R", time))
        joined = (self.f(left, right) for left in lefts for right in rights)
        return [one for one in joined if one is not None]
