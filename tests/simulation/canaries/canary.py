"""A canary: one part of the protocol or of a store with one deliberate defect, and the checker that must go red."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tests.simulation.canaries.exchange import exchange
from tests.simulation.canaries.habitats import Habitat

from clew.verify.parts import Parts

_Part = TypeVar("_Part", bound=type)


@dataclass(frozen=True)
class Canary:
    """A broken part, where it lives and what its death looks like."""

    name: str
    part: type
    habitat: Habitat
    expected: re.Pattern[str]
    """What the violation must say, so that the right checker has gone red."""
    unseen: str | None = None
    """What the simulator lacks to see it; None: it is seen."""

    @property
    def parts(self) -> Parts:
        """The habitat's parts with the broken one."""
        return exchange(self.habitat.parts, self.part)


CANARIES: dict[str, Canary] = {}
"""All canaries by name."""


def canary(name: str, habitat: Habitat, expected: str, *, unseen: str | None = None) -> Callable[[_Part], _Part]:
    """Makes a canary of a broken part, whose docstring says what is broken and which promise that breaks."""

    def register(part: _Part) -> _Part:
        assert part.__doc__, f"{part.__name__} does not say what is broken"
        assert name not in CANARIES, f"two canaries are named {name!r}"
        CANARIES[name] = Canary(name, part, habitat, re.compile(expected), unseen)
        return part

    return register
