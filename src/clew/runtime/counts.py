"""Counts: what a running replica has done since it began, for metrics and status."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class Counts:
    """Numbers that only grow; made by one process, gone with it."""

    moves: int = 0
    move_s: float = 0.0
    events_in: int = 0
    events_out: int = 0
    commits: int = 0
    commit_s: float = 0.0
    committed_at: float = 0.0
    outputs: int = 0
    writes: int = 0
    write_s: float = 0.0
    snapshots: int = 0
    """How many snapshots were stored."""
    snapshot_s: float = 0.0
    """How long that took, beside the work."""
    snapshot_bytes: int = 0
    """About how much of state, events and write actions had changed."""

    def as_dict(self) -> dict[str, Any]:
        """All of them by name.

        >>> Counts(moves=3).as_dict()["moves"]
        3
        """
        return asdict(self)
