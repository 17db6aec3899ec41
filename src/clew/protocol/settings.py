"""Settings: the sizes that a replica's kernel works with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes; none of them changes what is computed, except `tries` for an input that always fails."""

    window: int = 64
    """How many events a channel may have under way without acknowledgement."""
    window_bytes: int = 16 << 20
    """How many bytes of records a channel may have under way; one event may always be."""
    commit_max: int = 128
    """How many moves a commit holds at most."""
    commit_bytes: int = 32 << 20
    """About how many bytes of records a commit holds at most; one move may always be in it."""
    cache_max: int = 128
    """How many outputs of a port are kept in memory; the rest is read from the log."""
    cache_bytes: int = 32 << 20
    """About how many bytes of records of a port are kept in memory."""
    read_max: int = 16
    """How many batches a source reads at once."""
    backlog_max: int = 256
    """At how many unacknowledged events a source stops reading."""
    pull_max: int = 64
    """How many undone events are read at once during recovery."""
    survey_every: int = 64
    """After how many closed Input Sets an operator with captured lineage looks for what it can remove."""
    tries: int = 3
    """How often an input is attempted, marked, before it is given up."""
    caution_moves: int = 256
    """How many moves a replica marks after an unexplained death: all that its predecessor had not made durable."""


DEFAULT = Settings()
