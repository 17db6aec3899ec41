"""What waits to be taken on one cycle, smallest first."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

from clew.progress.topology import Location, Topology
from clew.times import Time


class Keyed(Protocol):
    """A location with the key that its times are sorted by."""

    location: Location

    def key(self, time: Time) -> tuple[Any, ...]:
        """See `Topology.sort_key`."""


S = TypeVar("S", bound=Keyed)


class Agenda(Generic[S]):
    """Pointstamps of one component; `take` gives one that nothing else here comes before.

    A heap, as long as all orders have sort keys; otherwise every pair is compared.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._entries: list[tuple[tuple[Any, ...], int, S, Time]] = []
        self._put = 0
        self._is_heap = True

    def put(self, site: S, time: Time) -> None:
        """Adds a pointstamp that is not here."""
        key = site.key(time)
        self._put += 1
        entry = (key, self._put, site, time)
        if None in key:
            self._is_heap = False
        if self._is_heap:
            heappush(self._entries, entry)
        else:
            self._entries.append(entry)

    def take(self) -> tuple[S, Time]:
        """Removes and returns a smallest pointstamp."""
        if self._is_heap:
            _, _, site, time = heappop(self._entries)
            return site, time
        number = next(n for n in range(len(self._entries)) if self._is_smallest(n))
        _, _, site, time = self._entries.pop(number)
        return site, time

    def _is_smallest(self, number: int) -> bool:
        _, _, site, time = self._entries[number]
        is_before = self._topology.is_before
        return not any(
            is_before((other.location, early), (site.location, time)) for _, _, other, early in self._entries
        )

    def __len__(self) -> int:
        return len(self._entries)
