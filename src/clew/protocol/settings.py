"""Settings: the sizes that a replica's kernel works with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes; none of them changes what is computed."""

    window: int = 64
    """How many events a channel may have under way without acknowledgement."""
    commit_max: int = 128
    """How many moves a commit holds at most."""
    cache_max: int = 128
    """How many outputs of a port are kept in memory; the rest is read from the log."""
    read_max: int = 16
    """How many batches a source reads at once."""
    backlog_max: int = 256
    """At how many unacknowledged events a source stops reading."""
    pull_max: int = 64
    """How many undone events are read at once during recovery."""
    survey_every: int = 64
    """After how many closed Input Sets an operator with captured lineage looks for what it can remove."""


DEFAULT = Settings()
