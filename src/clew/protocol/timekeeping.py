"""Keeping times: an operator's moves may hold only what they have a right to, and its outputs have times it holds.

Invariant: whatever leaves is at or after a time that an Input Set of its generation, or a name, holds (progress
thesis, section 9.2: a worker mints at or above what it owns).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clew.model.values import decode
from clew.protocol import inputs as was
from clew.protocol.effects import Effect
from clew.protocol.inbound import InputSet
from clew.protocol.replica import ReplicaKernel
from clew.times.order import Order


class Timekeeping(ReplicaKernel):
    """The part of an operator's kernel that keeps times; what it needs of the rest is declared here."""

    sets: dict[bytes, InputSet]

    def _take_time(self, port: str, time: Any, given: was.Folded, effects: list[Effect]) -> bool:
        """The event's time is held by its Input Sets from now on; False if `assign` broke a rule."""
        times = self.times
        assert times is not None
        arriving = times.arriving(port, time)
        for key, _ in given.pairs if arriving is not None else ():
            serial = self.sets[key].serial
            wanted = given.times.get(key)
            if wanted is None:
                times.hold_also(serial, arriving)
            elif not self._give_time(key, serial, wanted, arriving, effects):
                return False
        if not self._hold(given.changes, effects, arriving):
            return False
        times.took(port, time)
        return True

    def _give_time(self, key: bytes, serial: int, wanted: Any, arriving: Any, effects: list[Effect]) -> bool:
        times = self.times
        assert times is not None
        assert times.order is not None
        held, show = times.held.get(serial), times.order.show
        if held is not None:
            if held == (wanted,):
                return True
            return self._refuse(
                f"assign() gave the Input Set {decode(key)!r} the time {show(wanted)}, but it has "
                f"{_shown(times.order, held)} from an earlier event. Give all events of an Input Set the same time.",
                effects,
            )
        if not times.order.leq(arriving, wanted):
            return self._refuse(
                f"assign() gave the Input Set {decode(key)!r} the time {show(wanted)}, which is not at or after the "
                f"time {show(arriving)} of its event. Give it a later one.",
                effects,
            )
        times.hold(serial, (wanted,))
        return True

    def _hold(self, changes: was.Changes, effects: list[Effect], arriving: Any = None) -> bool:
        """Takes a move's named holds over; False if it may not hold one of them."""
        times = self.times
        if not changes.holds:
            return True
        if times is None or times.order is None:
            return self._refuse("it holds a time, but its events have none. Give its sources times.", effects)
        for name, time in changes.holds.items():
            is_after = time is None or (arriving is not None and times.order.leq(arriving, time))
            if not is_after and not times.is_held(time, list(times.held)):
                return self._refuse(
                    f"it would hold the time {times.order.show(time)} under the name {decode(name)!r}, which is not at "
                    f"or after the time of its event or one that it holds. Hold a later one.",
                    effects,
                )
        for name, time in changes.holds.items():
            times.hold(name, () if time is None else (time,))
        return True

    def _stamps(self, keys: tuple[bytes, ...], given: was.Generated, effects: list[Effect]) -> list[Any]:
        """The time of each emission: what the operator said, or the least that its Input Sets hold."""
        times = self.times
        if times is None or times.order is None:
            self._hold(given.changes, effects)
            return [None] * len(given.emissions)
        serials = [self.sets[key].serial for key in keys]
        stamps = [self._stamp(emission, serials, effects) for emission in given.emissions]
        self._hold(given.changes, effects)
        return stamps

    def _stamp(self, emission: was.Emission, serials: list[int], effects: list[Effect]) -> Any:
        times = self.times
        assert times is not None
        assert times.order is not None
        names = times.names()
        if emission.time is not None:
            if not times.is_held(emission.time, (*serials, *names)):
                self._refuse(
                    f"it yielded records at the time {times.order.show(emission.time)}, which is not at or after one "
                    f"that it holds: {_shown(times.order, times.least((*serials, *names)))}. Pass a later one to "
                    f"ctx.at().",
                    effects,
                )
            return emission.time
        if emission.destination in self.writers:
            return None
        used = serials if emission.keys is None else [self.sets[key].serial for key in emission.keys]
        least = times.least(used) or times.least(names)
        if len(least) == 1:
            return least[0]
        if not least and used:
            return None  # All its events were without a time.
        if not least:
            self._refuse(
                "it yielded records that come of no Input Set, and it holds no time for them any more. Hold one with "
                "ctx.hold(name, time) when events come, and drop it when nothing will come of it.",
                effects,
            )
        else:
            self._refuse(
                f"it yielded records for which there is no one time: it holds {_shown(times.order, least)} for them. "
                f"Say which with ctx.at(time).",
                effects,
            )
        return None

    def _refuse(self, what: str, effects: list[Effect]) -> bool:
        if self.failure is None:
            self._fail(f"operator {self.replica}: {what}", effects)
        return False


def _shown(order: Order, times: Iterable[Any]) -> str:
    return ", ".join(map(order.show, times)) or "none"
