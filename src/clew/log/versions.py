"""A map whose rows have versions: one for each epoch that changed them, kept as the state rows of a log.

The key of a version is the key of its row and a stamp: twice the epoch, plus one if the row ends there. What a row was
at an epoch is its last version with a stamp up to that epoch. Invariant: as long as an epoch may be gone back to, the
versions that say what it was stay; a version of an epoch that was gone back from counts for nothing, and is removed
with the next epoch that is stored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_STAMP_BYTES = 8


def last_stamp(epoch: int) -> int:
    """The largest stamp of an epoch.

    >>> last_stamp(0), last_stamp(3)
    (1, 7)
    """
    return 2 * epoch + 1


def is_end(stamp: int) -> bool:
    """Whether the row ends with this version."""
    return stamp & 1 == 1


def version_key(row: bytes, stamp: int) -> bytes:
    """The key of one version of a row."""
    return row + stamp.to_bytes(_STAMP_BYTES, "big")


def split_key(key: bytes) -> tuple[bytes, int]:
    """The row and the stamp that a key is made of.

    >>> split_key(version_key(b"total", 6))
    (b'total', 6)
    """
    return key[:-_STAMP_BYTES], int.from_bytes(key[-_STAMP_BYTES:], "big")


def rows_at(items: Iterable[tuple[bytes, bytes]], epoch: int) -> dict[bytes, bytes]:
    """What all rows were at an epoch, from the state rows of a log, ordered by key.

    >>> items = [(version_key(b"a", 2), b"one"), (version_key(b"a", 4), b"two"), (version_key(b"b", 2), b"one")]
    >>> items.append((version_key(b"b", 5), b""))
    >>> rows_at(items, 1), rows_at(items, 2)
    ({b'a': b'one', b'b': b'one'}, {b'a': b'two'})
    """
    limit = last_stamp(epoch)
    rows: dict[bytes, bytes] = {}
    for key, value in items:
        row, stamp = split_key(key)
        if stamp > limit:
            continue
        if is_end(stamp):
            rows.pop(row, None)
        else:
            rows[row] = value  # Versions of one row come in the order of their stamps.
    return rows


@dataclass(slots=True)
class Plan:
    """What storing an epoch writes, and what is to be remembered once that is durable."""

    state: dict[bytes, bytes | None] = field(default_factory=dict)
    """Versions to write, and to remove (None)."""
    stamps: dict[bytes, list[int]] = field(default_factory=dict)
    """The stamps that rows then have; none: the row is gone."""


class Versions:
    """Which versions of each row are durable. Values are not kept: writing an epoch needs none of the old ones.

    >>> versions = Versions([], epoch=0)
    >>> plan = versions.plan(1, {b"a": b"one", b"never": None}, complete=0)
    >>> [(split_key(key), value) for key, value in plan.state.items()]
    [((b'a', 2), b'one')]
    >>> versions.stored(plan)
    >>> plan = versions.plan(2, {b"a": b"two"}, complete=1)
    >>> versions.stored(plan)
    >>> plan = versions.plan(3, {}, complete=2)
    >>> [(split_key(key), value) for key, value in plan.state.items()]
    [((b'a', 2), None)]
    """

    def __init__(self, keys: Iterable[bytes], epoch: int) -> None:
        """Takes the keys of all versions in order; those after the epoch are to be removed."""
        self._latest: dict[bytes, int] = {}
        self._earlier: dict[bytes, list[int]] = {}
        """Of rows with several versions all but the latest, and of each row that has ended."""
        self._stray: list[bytes] = []
        limit = last_stamp(epoch)
        for key in keys:
            row, stamp = split_key(key)
            if stamp > limit:
                self._stray.append(key)
                continue
            before = self._latest.get(row)
            if before is not None or is_end(stamp):
                self._earlier.setdefault(row, []).extend(() if before is None else (before,))
            self._latest[row] = stamp

    def __len__(self) -> int:
        """How many versions are durable, not counting those that are to be removed."""
        return len(self._latest) + sum(map(len, self._earlier.values()))

    def plan(self, epoch: int, changes: Mapping[bytes, bytes | None], complete: int) -> Plan:
        """What must be written so that the rows have these values from this epoch on; changes nothing.

        No epoch before the complete one will be gone back to: versions that only such an epoch needs are removed.
        """
        plan = Plan(dict.fromkeys(self._stray))
        for row, value in changes.items():
            stamps = self._stamps(row)
            if value is None and (not stamps or is_end(stamps[-1])):
                continue  # It began and ended within the epoch.
            stamp = 2 * epoch + (value is None)
            stamps.append(stamp)
            plan.state[version_key(row, stamp)] = value if value is not None else b""
            plan.stamps[row] = stamps
        limit = last_stamp(complete)
        for row in {**self._earlier, **plan.stamps}:
            stamps = plan.stamps.get(row) or self._stamps(row)
            needless = bisect_right(stamps, limit) - 1
            if needless >= 0 and is_end(stamps[needless]):
                needless += 1  # That there is no row needs no version.
            if needless > 0:
                for stamp in stamps[:needless]:
                    plan.state[version_key(row, stamp)] = None
                plan.stamps[row] = stamps[needless:]
        return plan

    def stored(self, plan: Plan) -> None:
        """The plan is durable."""
        self._stray.clear()
        for row, stamps in plan.stamps.items():
            if stamps:
                self._latest[row] = stamps[-1]
            else:
                self._latest.pop(row, None)
            if len(stamps) > 1:
                self._earlier[row] = stamps[:-1]
            else:
                self._earlier.pop(row, None)

    def _stamps(self, row: bytes) -> list[int]:
        latest = self._latest.get(row)
        return [] if latest is None else [*self._earlier.get(row, ()), latest]
