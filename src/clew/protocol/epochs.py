"""The coordinator of snapshots: when an epoch ends, when it is complete, and where everyone goes on after a failure.

Invariants: an epoch is complete when every replica of one generation has stored it or began from it (the greatest
common epoch, seed 000, Definition 4.2), or has finished in it or before; complete is said only once the word is
durable; after a loss nothing of the present generation counts any more, and all begin again from the last complete
epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clew.model.names import Replica

_FOR_EVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Joined:
    """A replica has begun to work in this generation; perhaps it had finished before."""

    replica: Replica
    generation: int
    is_finished: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """A replica's snapshot is durable."""

    replica: Replica
    generation: int
    epoch: int
    is_final: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """The word that an epoch is complete is durable."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Lost:
    """A replica's process is gone, or must be taken for gone."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A new generation's number is durable."""

    generation: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """It is now this late."""

    now: float


Input = Joined | Stored | Recorded | Lost | Opened | Ticked


@dataclass(frozen=True, slots=True)
class Open:
    """Make the next generation's number durable; answered by `Opened`."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """Let every replica begin anew, in this generation, from this epoch; answered by a `Joined` from each."""

    generation: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Tell every source to end this epoch; those that have finished do not, and nobody waits for them."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Record:
    """Make it durable that an epoch is complete; answered by `Recorded`."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell every replica that an epoch is complete."""

    epoch: int


Effect = Open | Rewind | Mark | Record | Tell


class EpochKernel:
    """Decides about epochs; `step` is the only way in."""

    def __init__(self, replicas: Iterable[Replica], every_s: float, epoch: int = 0) -> None:
        self.replicas = frozenset(replicas)
        self.every_s = every_s
        self.now = 0.0
        self.generation = 0
        self.epoch = epoch
        """The last complete epoch."""
        self.marked = epoch
        self.recording: int | None = None
        self.is_opening = False
        self.joined: set[Replica] = set()
        self.stored: dict[Replica, int] = {}
        """The last epoch that each replica has stored in this generation."""
        self.final: dict[Replica, int] = {}
        """The epoch in which each replica that has finished did so, as far as it is stored."""
        self.mark_at = 0.0

    def step(self, given: Input) -> list[Effect]:
        """Takes one input; returns the effects to begin, in this order."""
        effects: list[Effect] = []
        match given:
            case Lost():
                self._open(effects)
            case Opened():
                self._opened(given, effects)
            case Joined() if given.generation == self.generation and not self.is_opening:
                self._joined(given, effects)
            case Stored() if given.generation == self.generation and not self.is_opening:
                self._stored(given, effects)
            case Recorded():
                self._recorded(given, effects)
            case Ticked():
                self.now = max(self.now, given.now)
                self._mark(effects)
        return effects

    @property
    def next_at(self) -> float | None:
        """When a tick is wanted; None: not before something else happens."""
        is_waiting = self.marked == self.epoch and self.joined == self.replicas and len(self.final) < len(self.replicas)
        return self.mark_at if is_waiting and not self.is_opening else None

    def _open(self, effects: list[Effect]) -> None:
        """Whatever is on its way to be recorded may still be: then all go on from there."""
        if not self.is_opening:
            self.is_opening = True
            if self.recording is None:
                effects.append(Open())

    def _opened(self, given: Opened, effects: list[Effect]) -> None:
        self.is_opening = False
        self.generation = given.generation
        self.marked = self.epoch
        self.joined.clear()
        self.stored.clear()
        self.final.clear()
        effects.append(Rewind(self.generation, self.epoch))

    def _joined(self, given: Joined, effects: list[Effect]) -> None:
        self.joined.add(given.replica)
        self.stored[given.replica] = self.epoch
        if given.is_finished:
            self.final[given.replica] = self.epoch
        if self.joined == self.replicas:
            self.mark_at = self.now + self.every_s
            self._record(effects)  # Whoever finished meanwhile was not counted yet.

    def _mark(self, effects: list[Effect]) -> None:
        at = self.next_at
        if at is not None and self.now >= at:
            self.marked = self.epoch + 1
            effects.append(Mark(self.marked))

    def _stored(self, given: Stored, effects: list[Effect]) -> None:
        self.stored[given.replica] = given.epoch
        if given.is_final:
            self.final[given.replica] = given.epoch
        self._record(effects)

    def common(self) -> int:
        """The greatest epoch that every replica has stored; when all have finished, the last in which one did."""
        if self.joined != self.replicas:
            return self.epoch
        if len(self.final) == len(self.replicas):
            return max(self.final.values())
        return min(_FOR_EVER if each in self.final else self.stored[each] for each in self.replicas)

    def _record(self, effects: list[Effect]) -> None:
        found = self.common()
        if found > self.epoch and self.recording is None:
            self.recording = found
            effects.append(Record(found))

    def _recorded(self, given: Recorded, effects: list[Effect]) -> None:
        self.recording = None
        self.epoch = given.epoch
        if self.is_opening:
            effects.append(Open())
            return
        self.marked = max(self.marked, self.epoch)
        self.mark_at = self.now + self.every_s
        effects.append(Tell(self.epoch))
        self._record(effects)

    def check(self) -> None:
        """Raises when an invariant is broken."""
        assert self.epoch <= self.marked or len(self.final) == len(self.replicas), f"{self.epoch} after {self.marked}"
        behind = [each for each, epoch in self.stored.items() if epoch < self.epoch and each not in self.final]
        assert not behind, f"epoch {self.epoch} is complete, and {behind[0]} has not stored it"
