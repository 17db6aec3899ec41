"""Makes a checked result into a further one without exploring again: composition and transitivity.

Lemma 5.9 of the ABS thesis: an observer who sees less, by a further function, is given the same explanations. Lemma
5.8: what is explained by a system that is itself explained by a third is explained by the third.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

from clew.errors import ClewError
from clew.verify.transparency.observation import Order
from clew.verify.transparency.verdict import Claim, Explained, show

C = TypeVar("C", bound=Hashable)
D = TypeVar("D", bound=Hashable)
E = TypeVar("E", bound=Hashable)


class NotCombinable(ClewError):
    """Results whose combination would claim more than was checked."""


def composed(
    result: Explained[C, D], name: str, outer: Callable[[Any], Hashable], less_equal: Order | None = None
) -> Explained[C, D]:
    """The same two systems, seen through a further function (Lemma 5.9).

    The function must keep observations growing. That is checked on every change of observation that was seen.
    """
    claim = result.claim
    low = claim.low_observation.then(name, outer, less_equal)
    high = claim.high_observation.then(name, outer, less_equal)
    seen = {(outer(before), outer(after)) for before, after in result.changes}
    for before, after in sorted(seen, key=repr):
        if not low.less_equal(before, after):
            raise NotCombinable(
                f"{low.name}, composed over {claim}: a step goes from {show(before)} to {show(after)}, which does not "
                f"include it; an observation that only grows was expected. Choose another function, or pass its "
                f"order as less_equal."
            )
    return Explained(
        replace(claim, low_observation=low, high_observation=high),
        result.counts,
        frozenset(change for change in seen if change[0] != change[1]),
        f"composition (Lemma 5.9) of [{result.because}]",
    )


def transitive(first: Explained[C, D], second: Explained[D, E]) -> Explained[C, E]:
    """The low system of the first result, explained by the high system of the second (Lemma 5.8)."""
    one, two = first.claim, second.claim
    if one.high is not two.low:
        raise NotCombinable(
            f"the first result is explained by {one.high.name!r}, the second is about {two.low.name!r}; one and the "
            f"same System object was expected. Check both with it."
        )
    if one.high_observation is not two.low_observation:
        raise NotCombinable(
            f"{one.high.name!r} is seen through {one.high_observation.name!r} in the first result and through "
            f"{two.low_observation.name!r} in the second; one and the same Observation object was expected. Check "
            f"both with it, or compose first."
        )
    if second.counts.left_out:
        raise NotCombinable(
            f"the second result is about executions of {two.low.name!r} with at most {two.failures_max} failures, but "
            f"the first may be explained by executions with more. Check the second with failures_max=None, or explain "
            f"the first by a system without failures."
        )
    translation = tuple(
        dict.fromkeys(
            (top, low) for top, middle in two.translation for between, low in one.translation if middle == between
        )
    )
    if not translation:
        raise NotCombinable(
            f"no initial configuration of {two.low.name!r} is in both translations, so nothing would be claimed. "
            f"Check both from the same initial configurations."
        )
    claim = Claim(
        one.low,
        two.high,
        one.low_observation,
        two.high_observation,
        translation,
        one.failures_max,
        one.ends and two.ends,
    )
    counts = replace(
        first.counts,
        high_configurations=second.counts.high_configurations,
        high_transitions=second.counts.high_transitions,
    )
    return Explained(
        claim,
        counts,
        first.changes | second.changes,
        f"transitivity (Lemma 5.8) of [{first.because}] and [{second.because}]",
    )
