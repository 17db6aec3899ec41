"""Announcements that wait on their way to the tracker: two of one replica become one."""

from __future__ import annotations

from typing import Any

from clew.protocol.effects import Announce


def joined(earlier: Announce | None, later: Announce) -> Announce:
    """Two announcements of a replica as one; whoever hears it is where the two would have brought it.

    >>> one = Announce((1, 3), {("a", 0): 1, ("b.in", 0): 1})
    >>> joined(one, Announce((1, 4), {("a", 0): -1, ("b.in", 0): 1}))
    Announce(number=(1, 4), counts={('b.in', 0): 2}, is_whole=False, passed={}, is_idle=False)
    """
    if earlier is None or later.is_whole:
        return later
    counts: dict[tuple[str, Any], int] = dict(earlier.counts)
    for what, count in later.counts.items():
        total = counts.get(what, 0) + count
        if total:
            counts[what] = total
        else:
            counts.pop(what, None)
    return Announce(later.number, counts, earlier.is_whole, earlier.passed, later.is_idle)
