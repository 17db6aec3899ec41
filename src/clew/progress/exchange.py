"""Exchange: what one worker knows, owns and still has to tell the others about pointstamps.

Every worker has a *view* of all pointstamps in the system, which lags behind. What a worker does is at first only
*pending* with it; an update tells all workers, itself included; updates of one sender arrive in the order sent.
Invariant: no view is ever ahead of the truth. (Progress thesis, chapter 6, Appendix B, section 9.2.)

There are two modes. In `abadi` mode (Appendix B) a worker may consume any pointstamp of the system, and produces only
after what it consumes. In `caps` mode (section 9.2) each worker owns capabilities, drops only its own, and makes new
ones after those, for itself or for another worker with a data message. A refused step raises `Refused` and changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from clew.errors import MoveError
from clew.progress.propagation import Propagation
from clew.progress.topology import Pointstamp, Topology
from clew.times import Antichain, Changes

Mode = Literal["abadi", "caps"]


class Refused(MoveError):
    """A step that the protocol does not allow; `rule` names the rule that it breaks."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{message} (rule: {rule})")
        self.rule = rule


class Worker:
    """One worker; it is told what happens and returns what to send, and it sends nothing itself."""

    def __init__(self, name: Any, topology: Topology, view: Changes, owned: Changes, mode: Mode) -> None:
        self.name = name
        self.topology = topology
        self.mode = mode
        self.view = view
        self.owned = owned
        self.pending = Changes()
        self.is_initialised = False
        self.propagation = Propagation(topology, by_location(view))

    def perform(self, minus: Changes, plus: Changes, outstanding: Changes) -> Changes:
        """Consumes and produces pointstamps (`abadi`); `outstanding` is the true multiset. Returns the change to it."""
        self._only("abadi", "perform")
        for pointstamp, count in minus.items():
            if count > outstanding.count(pointstamp):
                raise Refused(
                    "consume what is there",
                    f"{self.name} cannot consume {count} of {self._show(pointstamp)}: "
                    f"there are {outstanding.count(pointstamp)} in the system",
                )
        change = plus - minus
        found = self._unjustified(change, Changes())
        if found is not None:
            raise Refused(
                "upright",
                f"{self.name} cannot produce {self._show(found)}: it consumes nothing that is strictly before it",
            )
        self.pending += change
        return change

    def perform_caps(self, drop: Changes, mint: Changes, send: Changes) -> Changes:
        """Drops own capabilities, mints some for itself, sends some with data messages (`caps`). Returns the change."""
        self._only("caps", "perform_caps")
        if not send and mint == drop:
            raise Refused("do something", f"{self.name} sends nothing and mints exactly what it drops: this is no step")
        for pointstamp, count in drop.items():
            if count > self.owned.count(pointstamp):
                raise Refused(
                    "drop what you own",
                    f"{self.name} cannot drop {count} of {self._show(pointstamp)}: "
                    f"it owns {self.owned.count(pointstamp)}",
                )
        for pointstamp in mint:
            if not self._has_before(self.owned, pointstamp, strictly=False):
                raise Refused(
                    "mint at or after what you own",
                    f"{self.name} cannot mint {self._show(pointstamp)}: it owns nothing at or before it",
                )
        for pointstamp in send:
            if not self._has_before(self.owned, pointstamp, strictly=True):
                raise Refused(
                    "send after what you own",
                    f"{self.name} cannot send {self._show(pointstamp)}: it owns nothing strictly before it",
                )
        self.owned = self.owned - drop + mint
        change = mint + send - drop
        self.pending += change
        return change

    def receive_cap(self, pointstamp: Pointstamp) -> None:
        """Takes a data message, and owns the capability that it carries from now on (`caps`)."""
        self._only("caps", "receive_cap")
        self.owned += Changes({pointstamp: 1})

    def send_update(self, pointstamps: Iterable[Pointstamp]) -> Changes:
        """Returns the pending changes of these pointstamps, for all workers; they are pending no more."""
        chosen = set(pointstamps)
        update = Changes({pointstamp: n for pointstamp, n in self.pending.items() if pointstamp in chosen})
        if not update:
            raise Refused("say something", f"{self.name} has nothing pending of what it is to send")
        rest = self.pending - update
        found = self._unjustified(rest, self.owned if self.mode == "caps" else Changes())
        if found is not None:
            raise Refused(
                "hold back only what is justified",
                f"{self.name} cannot hold back {self._show(found)}: nothing strictly before it would be known to "
                f"exist, so the others could believe that its time is over",
            )
        self.pending = rest
        return update

    def receive_update(self, update: Changes) -> None:
        """Takes the oldest update of some worker into the view."""
        self.must_be_initialised()
        for pointstamp in update:
            location, time = pointstamp
            if self.propagation.frontier(location).passed(time):
                raise Refused(
                    "change what is not over",
                    f"{self.name} cannot take a change of {self._show(pointstamp)}: the frontier there, "
                    f"{self.propagation.frontier(location)}, has passed it",
                )
        self.view += update
        for location, counts in by_location(update).items():
            self.propagation.add(location, counts.items())

    def propagate(self) -> dict[Any, Antichain]:
        """One complete round of propagation over the view; returns the frontiers that it has changed."""
        self.is_initialised = True
        return self.propagation.propagate()

    def must_be_initialised(self) -> None:
        """Refuses to take updates before the first round of propagation."""
        if not self.is_initialised:
            raise Refused(
                "propagate first", f"{self.name} has not completed its first round, so it cannot take updates yet"
            )

    def _unjustified(self, changes: Changes, owned: Changes) -> Pointstamp | None:
        """An element of which more are made than its worker accounts for; None if there is none.

        An element with a positive count needs a strictly smaller one with a negative count, or one that the worker
        owns; or the worker owns more of the element than are in `changes`.
        """
        gone = changes.negative()
        for pointstamp, count in changes.positive().items():
            if not (
                owned.count(pointstamp) > count
                or self._has_before(gone, pointstamp, strictly=True)
                or self._has_before(owned, pointstamp, strictly=True)
            ):
                found: Pointstamp = pointstamp
                return found
        return None

    def _has_before(self, pointstamps: Mapping[Pointstamp, int], later: Pointstamp, *, strictly: bool) -> bool:
        could_result_in = self.topology.could_result_in
        return any(
            (not strictly or pointstamp != later) and could_result_in(pointstamp, later) for pointstamp in pointstamps
        )

    def _only(self, mode: Mode, step: str) -> None:
        if self.mode != mode:
            raise Refused("one mode", f"{self.name} is in mode {self.mode!r}; {step} is a step of mode {mode!r}")

    def _show(self, pointstamp: Pointstamp) -> str:
        location, time = pointstamp
        return f"({location}, {self.topology.orders[location].show(time)})"


def by_location(pointstamps: Mapping[Any, int]) -> dict[Any, Changes]:
    """Counts of pointstamps, sorted by location.

    >>> by_location(Changes({("a", 1): 2, ("a", 3): -1}))
    {'a': Changes({1: 2, 3: -1})}
    """
    found: dict[Any, dict[Any, int]] = {}
    for (location, time), count in pointstamps.items():
        found.setdefault(location, {})[time] = count
    return {location: Changes(counts) for location, counts in found.items()}
