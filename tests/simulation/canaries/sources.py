"""Canaries of sources: what is read becomes events, once and from one execution."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import pairs, quiet, unrepeatable

from clew.log.memory import MemoryReplicaLog
from clew.model.history import ReadAction, Transaction
from clew.protocol import inputs as was
from clew.protocol.effects import Effect
from clew.protocol.source import SourceKernel


@canary("replayable source that loses its offset", pairs, r"numbers: logged offset \d+; reading gives \d+")
class LosesOffset(SourceKernel):
    """Events are committed without the offset after them, so that a restart reads and emits them again."""

    def _got_replayable(self, action: ReadAction, given: was.Got) -> None:
        super()._got_replayable(action, given)
        if self.action is not None:
            self.pending.reads.remove(self.action)


@canary("emits before the effect is stored", unrepeatable, r"numbers\.out: .* a run without failures produces")
class EmitsBeforeStored(SourceKernel):
    """Data that cannot be read again becomes events before all of it is stored; a restart mixes two readings."""

    def _got_once(self, action: ReadAction, given: was.Got) -> None:
        super()._got_once(action, given)
        for item in given.items:
            self._output(item.batch, given.now)

    def on_effect_fetched(self, given: was.EffectFetched, effects: list[Effect]) -> None:
        emitted, self._output = self._output, lambda *given: None  # type: ignore[method-assign,assignment]
        super().on_effect_fetched(given, effects)
        self._output = emitted  # type: ignore[method-assign]


@canary("stored effect of a dead reading kept", unrepeatable, r"numbers\.out: .* a run without failures produces")
class KeepsCutOffEffect(MemoryReplicaLog):
    """What a predecessor had stored of a reading that was cut off stays in front of the new reading."""

    def commit(self, transaction: Transaction) -> None:
        stored = []
        for each in transaction.stored:
            kept = len(self.rows.stored.get(each.action, ())) + sum(one.action == each.action for one in stored)
            stored.append(each._replace(index=kept))
        super().commit(replace(transaction, stored=stored, forget_effects=[]))


@canary("source forgets what it planned", unrepeatable, r"plan\(\) gave another action than in a run without failures")
class ForgetsPlan(SourceKernel):
    """The state that `plan` changed is not stored with its read action, so that a restart plans the action again."""

    def _change(self, changes: was.Changes) -> None:
        pass


@canary("pause taken for the end", quiet, r"action 1 ended before all of its effect was read")
class EndsAtPause(SourceKernel):
    """A read action that has nothing for the moment is taken for complete, so that what comes later is lost."""

    def on_got(self, given: was.Got, effects: list[Effect]) -> None:
        super().on_got(given if given.items else replace(given, is_complete=True), effects)


@canary(
    "part of a reading not stored",
    unrepeatable,
    r"numbers: action \d+ stored \d+ batches; its reading gave",
)
class DropsBatches(SourceKernel):
    """Some of the data that cannot be read again is not stored, so that it is lost without any failure."""

    def _got_once(self, action: ReadAction, given: was.Got) -> None:
        super()._got_once(action, replace(given, items=given.items[1:]))
