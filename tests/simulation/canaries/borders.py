"""Canaries of snapshots: borders, alignment, capture, epochs, generations, and writes that must wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import epochs_idempotent, epochs_moments, epochs_pairs, epochs_two
from tests.simulation.pacing import Paced

from clew.log.epochs import EpochLog
from clew.log.snapshots import SnapshotLog
from clew.model.event import Event
from clew.model.history import Output, Transaction
from clew.model.names import Channel
from clew.protocol import effects as does
from clew.protocol import epochs
from clew.protocol import inputs as was
from clew.protocol.barriers import Epochs, SnapshotOperator
from clew.protocol.effects import Effect
from clew.protocol.inbound import InChannel
from clew.protocol.replica import ReplicaKernel

NOT_COMPLETE = "is begun before its epoch is complete"
STUCK = "stuck: nothing can happen"
CUT = (
    "logged offset|decided for a border|acknowledges .*; durable are|never committed so|a run without failures|"
    "expected|is missing|before the epoch of its border"
)
"""What a snapshot that is no consistent cut leads to."""


@canary("no alignment", epochs_two, "before the epoch of its border had ended|ended before its border came")
class Unaligned(SnapshotOperator):
    """Events behind a border are taken before the epoch has ended, so that a snapshot holds some of the next epoch."""

    def _next_event(self, effects: list[Effect]) -> tuple[InChannel, Event] | None:
        while (found := super()._next_event(effects)) is None and self.early and self.committing is None:
            return self.early.popleft()
        return found


@canary("a border passed on before the state was captured", epochs_two, CUT)
class PassesEarly(SnapshotOperator):
    """The memory is captured with the next commit, when it holds some of the next epoch already."""

    late: does.Snapshot | None = None

    def _durable(self, transaction: Transaction, effects: list[Effect]) -> None:
        late, self.late = self.late, None
        if late is not None:
            effects.append(late)
        begin = len(effects)
        super()._durable(transaction, effects)
        found = next((each for each in effects[begin:] if isinstance(each, does.Snapshot)), None)
        if found is not None and not found.is_final:
            effects.remove(found)
            self.late = found


@canary("recovery that keeps uncommitted output", epochs_two, f"{CUT}|kernel raised|invariant is broken|{STUCK}")
class ServesOthers(Paced):
    """A source of an earlier generation sends to receivers of the next, which have gone back, and it has not."""

    def on_connected(self, given: was.Connected, effects: list[Effect]) -> None:
        super(Epochs, self).on_connected(given, effects)


@canary("the greatest epoch instead of the greatest common one", epochs_two, f"{CUT}|{NOT_COMPLETE}|{STUCK}")
class GreatestEpoch(epochs.EpochKernel):
    """An epoch counts as complete when one replica has stored it."""

    def check(self) -> None:
        pass

    def common(self) -> int:
        return max((*self.stored.values(), *self.final.values()), default=self.epoch)


@canary("complete before it is durable", epochs_pairs, NOT_COMPLETE)
class TellsEarly(epochs.EpochKernel):
    """Replicas hear that an epoch is complete before that is durable, so a crash takes it back."""

    def _record(self, effects: list[epochs.Effect]) -> None:
        found = self.common()
        if found > self.epoch and self.recording is None:
            effects.append(epochs.Tell(found))
        super()._record(effects)


@canary("a snapshot of an earlier generation counted", epochs_two, f"{CUT}|{NOT_COMPLETE}|{STUCK}")
class CountsOthers(epochs.EpochKernel):
    """What a replica stored before all went back counts as stored after it."""

    def step(self, given: epochs.Input) -> list[epochs.Effect]:
        if isinstance(given, epochs.Stored):
            given = epochs.Stored(given.replica, self.generation, given.epoch, given.is_final)
        return super().step(given)


@canary("sources not rewound", epochs_pairs, CUT)
class NotRewound(Paced):
    """After a failure a source goes on behind what it had read last, and not where the snapshot was."""

    furthest: ClassVar[dict[Any, tuple[int, bytes]]] = {}

    def on_got(self, given: was.Got, effects: list[Effect]) -> None:
        super().on_got(given, effects)
        if self.action is not None and self.action.offset is not None:
            type(self).furthest[self.times, self.replica] = (self.action.number, self.action.offset)

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        if self.position == 0 and given.recovered.incarnation <= 1:
            type(self).furthest.clear()
        rows = given.recovered.reads
        found = self.furthest.get((self.times, self.replica))
        if rows and found is not None and rows[-1].number == found[0]:
            rows[-1] = rows[-1]._replace(offset=found[1])
        super().on_started(given, effects)


@canary("events doubled after recovery", epochs_pairs, CUT)
class ReadsTwice(Paced):
    """After a failure a source reads its action from the beginning."""

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        rows = given.recovered.reads
        if rows:
            rows[-1] = rows[-1]._replace(offset=None)
        super().on_started(given, effects)


@canary("a write of an epoch that is not complete", epochs_pairs, NOT_COMPLETE)
class WritesAtOnce(SnapshotOperator):
    """A write action is executed when it is in memory."""

    def _writable(self, output: Output) -> None:
        ReplicaKernel._writable(self, output)


@canary("undone events without their bodies", epochs_pairs, "undone event .* is gone")
class KeepsNoBodies(SnapshotOperator):
    """What an open Input Set needs again is stored by nobody."""

    def _needs(self, channel: Channel, event: Event) -> None:
        pass


@canary("an ended input that is waited for", epochs_two, STUCK)
class WaitsForEnded(SnapshotOperator):
    """A border waits for one on a channel that has ended."""

    def _next_event(self, effects: list[Effect]) -> tuple[InChannel, Event] | None:
        ended = [each for each in self.inputs.values() if each.ended]
        for each in ended:
            each.ended = not self.aligned
        try:
            return super()._next_event(effects)
        finally:
            for each in ended:
                each.ended = True


@canary("no final epoch", epochs_pairs, STUCK)
class NeverFinal(SnapshotOperator):
    """Who has finished stores nothing any more, so its last writes wait for ever."""

    def _durable(self, transaction: Transaction, effects: list[Effect]) -> None:
        super()._durable(transaction, effects)
        effects[:] = [each for each in effects if not (isinstance(each, does.Snapshot) and each.is_final)]


@canary("done writes that a rewind forgets", epochs_idempotent, "each once and in order")
class ForgetsDone(SnapshotLog):
    """That an idempotent write is done is durable with its epoch only, so later ones are overwritten by it."""

    def _settle_marks(self, counters: Mapping[str, int]) -> None:
        if self._memory.counters.get("finished"):
            super()._settle_marks(counters)


@canary("times announced across a border", epochs_moments, "can still arrive|had passed|goes back")
class AnnouncesAcross(Paced):
    """What a source holds in the next epoch moves a frontier that a snapshot of this one holds."""

    def _announce(self, announcement: does.Announce, effects: list[Effect]) -> None:
        effects.append(announcement)


@canary("epochs that never end", epochs_pairs, STUCK)
class NeverMarks(epochs.EpochKernel):
    """No epoch ends before the input does, so a failure costs all the work."""

    @property
    def next_at(self) -> float | None:
        return None


@canary("epochs that are never complete", epochs_pairs, STUCK)
class LosesWork(epochs.EpochKernel):
    """An epoch counts only when all have finished."""

    def common(self) -> int:
        return super().common() if len(self.final) == len(self.replicas) else self.epoch


@canary("nothing left to do before the last epoch is complete", epochs_pairs, "before its last epoch is complete")
class CompleteEarly(SnapshotOperator):
    """Says that it is done although its last snapshot can still be gone back from."""

    def _complete(self, effects: list[Effect]) -> None:
        super(Epochs, self)._complete(effects)


@canary("a complete epoch that is not durable", epochs_pairs, "was told to be complete, the log says")
class ForgetfulEpochs(EpochLog):
    """That an epoch is complete is remembered, and not written."""

    def complete(self, epoch: int) -> None:
        self.epoch = epoch


@canary("who had finished is waited for", epochs_two, STUCK)
class ForgetsFinished(epochs.EpochKernel):
    """After a rewind nobody knows that a replica had finished, and it will not store an epoch again."""

    def step(self, given: epochs.Input) -> list[epochs.Effect]:
        if isinstance(given, epochs.Joined):
            given = epochs.Joined(given.replica, given.generation, False)
        return super().step(given)


@canary("acknowledgements of another generation", epochs_two, f"{CUT}|kernel raised|invariant is broken|{STUCK}")
class HearsOthersAcks(Paced):
    """What another generation has taken counts as taken."""

    def on_acked(self, given: was.Acked, effects: list[Effect]) -> None:
        super(Epochs, self).on_acked(given, effects)


@canary("versions that are never removed", epochs_pairs, "versions of one row")
class NeverForgets(SnapshotLog):
    """What only earlier epochs need stays for ever."""

    def completed(self, epoch: int) -> None:
        pass

    def _begin(self, generation: int, epoch: int) -> None:
        super()._begin(generation, epoch)
        self._complete = 0
