"""A life: what one incarnation of a replica did, from its start on, as its trace tells it."""

from __future__ import annotations

from dataclasses import dataclass, field

from clew.trace.records import Completed, End, Head, Steps, Stored, Wrote

Told = Steps | Wrote | Stored | Completed | End


@dataclass(slots=True)
class Life:
    """One incarnation of a replica, or its part in one generation."""

    head: Head
    told: list[Told] = field(default_factory=list)

    @property
    def incarnation(self) -> int:
        """Its number."""
        return self.head.incarnation

    @property
    def end(self) -> End | None:
        """How it ended in order, if it did."""
        return next((each for each in reversed(self.told) if isinstance(each, End)), None)

    @property
    def last_seen(self) -> float:
        """When it wrote its last record."""
        return self.told[-1].time if self.told else self.head.time
