"""Observability functions: what an observer sees of a configuration, and when one observation includes another.

Definition 5.3 of the ABS thesis asks that observations only grow along steps, in some partial order; Lemma 5.9 lets
an observer see less: an observation followed by a further function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

C = TypeVar("C", bound=Hashable)

Order = Callable[[Any, Any], bool]
"""Whether the first observation is less than or equal to the second."""


def subset(first: AbstractSet[Any], second: AbstractSet[Any]) -> bool:
    """The order of sets.

    >>> subset({1}, {1, 2}), subset({3}, {1, 2})
    (True, False)
    """
    return first <= second


def prefix(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """The order of sequences that only grow at their end.

    >>> prefix("ab", "abc"), prefix("b", "abc")
    (True, False)
    """
    return len(first) <= len(second) and first == second[: len(first)]


def prefixes(first: Sequence[Sequence[Any]], second: Sequence[Sequence[Any]]) -> bool:
    """The order of several sequences side by side, each of which only grows at its end.

    >>> prefixes(("a", ""), ("ab", "x")), prefixes(("a", "x"), ("ab", "y"))
    (True, False)
    """
    return len(first) == len(second) and all(map(prefix, first, second))


@dataclass(frozen=True, eq=False)
class Observation(Generic[C]):
    """What is seen of a configuration, with the order in which it may grow.

    >>> evens = Observation("numbers", frozenset).then("evens", lambda seen: frozenset(n for n in seen if n % 2 == 0))
    >>> evens.name, sorted(evens.of((1, 2, 4)))
    ('evens of numbers', [2, 4])
    """

    name: str
    of: Callable[[C], Hashable]
    less_equal: Order = subset

    def then(self, name: str, outer: Callable[[Any], Hashable], less_equal: Order | None = None) -> Observation[C]:
        """A further function over what is seen: O'' after O. The order stays, unless another is given."""
        inner = self.of
        return Observation(f"{name} of {self.name}", lambda c: outer(inner(c)), less_equal or self.less_equal)
