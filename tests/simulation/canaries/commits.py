"""Canaries of the prefix rule: what a commit must hold, and what must wait for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import checkable, pairs, windows

from clew.model.history import Transaction
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Effect
from clew.protocol.logio import OperatorKernel


@canary("outputs sent before the commit", pairs, r"pairs\.out/\d+ is sent although it is not durable")
class SentBeforeCommit(OperatorKernel):
    """Outputs go out when their commit begins, so that an event can be received that no log will ever hold."""

    def _flush(self, effects: list[Effect]) -> None:
        if self.committing is None and self.is_dirty:
            for output in self.pending.outputs:
                if output.event.port in self.ports:
                    self.ports[output.event.port].became_durable(output)
            self._pump(effects)
        super()._flush(effects)


@canary("write begun before the commit", checkable, r"write to/\d+ is begun before it is durable")
class WrittenBeforeCommit(OperatorKernel):
    """Write actions begin when their commit begins, so that a crash leaves an outside effect that nobody knows of."""

    def _flush(self, effects: list[Effect]) -> None:
        if self.committing is None and self.is_dirty:
            for output in self.pending.outputs:
                if output.event.port in self.writers:
                    self.writers[output.event.port].became_durable(output)
            self._pump(effects)
        super()._flush(effects)


@canary("outputs and done marks in two transactions", pairs, r"event \d+ is .* a run without failures produces")
class TwoTransactions(OperatorKernel):
    """Outputs are logged first and their Input Sets marked done later, so that a crash in between generates twice."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rest: Transaction | None = None

    def _flush(self, effects: list[Effect]) -> None:
        if self.committing is not None:
            return
        if self.rest is None:
            super()._flush(effects)
            whole: Transaction | None = self.committing
            if whole is None or not whole.outputs:
                return
            names = [name for name in whole.counters if name.startswith("out:")]
            self.committing = Transaction(
                outputs=whole.outputs, counters={name: whole.counters.pop(name) for name in names}
            )
            self.rest = replace(whole, outputs=[])
            effects[-1] = does.Commit(self.commits, self.committing)
        else:
            self.committing, self.rest = self.rest, None
            self.commits += 1
            effects.append(does.Commit(self.commits, self.committing))


@canary(
    "a commit that overtakes an earlier assignment", windows, r"took event \d+ of numbers|event \d+ is .* a run without"
)
class OvertakingCommit(OperatorKernel):
    """A generation is committed without earlier assignments to other Input Sets, so that a crash takes events twice."""

    def _flush(self, effects: list[Effect]) -> None:
        commits = self.commits
        super()._flush(effects)
        if self.commits == commits or self.committing is None or not self.committing.outputs:
            return
        transaction, serials = self.committing, {opened.serial for opened in self.sets.values()}
        late = [pair for pair in transaction.pairs if pair.serial in serials]
        if late:
            transaction.pairs = [pair for pair in transaction.pairs if pair.serial not in serials]
            self.pending.pairs = late
            self.pending.opened = [row for row in transaction.opened if row[0] in serials]
            transaction.opened = [row for row in transaction.opened if row[0] not in serials]
            self.opened_pending = {serial for serial, _ in self.pending.opened}
            for channel in {pair.channel for pair in late}:
                before = min(pair.event for pair in late if pair.channel == channel) - 1
                transaction.cursors[channel] = transaction.cursors[channel]._replace(assigned=before)
                self.touched[self.inputs[channel]] = None
            self.is_dirty = True


@canary("a commit that holds half a move", pairs, r"pairs\.out: event \d+ is .* a run without failures produces")
class HalfAMove(OperatorKernel):
    """The state that a generation changed is committed before its outputs, so that a crash changes it twice."""

    def on_generated(self, given: was.Generated, effects: list[Effect]) -> None:
        self._change(given.changes)
        self.is_dirty = True
        self._flush(effects)
        super().on_generated(replace(given, changes=was.Changes({}, given.changes.timers)), effects)


@canary("acknowledgement before durability", pairs, r"acknowledges numbers\.out->pairs\.in up to \d+")
class AckedBeforeDurable(OperatorKernel):
    """An event is acknowledged once it is assigned in memory, so that its sender never sends it to a successor."""

    def on_folded(self, given: was.Folded, effects: list[Effect]) -> None:
        move = self.move
        assert isinstance(move, does.Fold)
        super().on_folded(given, effects)
        inbound = self.inputs[move.channel]
        durable = inbound.cursor()._replace(assigned=inbound.durable, released=inbound.durable_released)
        inbound.became_durable(inbound.cursor())
        inbound.acknowledge(effects)
        inbound.became_durable(durable)


@canary("a second commit under way", pairs, r"a commit was begun while another was under way")
class SecondCommit(OperatorKernel):
    """A commit begins before the one before it has ended, so that the later may be durable without the earlier."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.begun: dict[int, Transaction] = {}

    def _flush(self, effects: list[Effect]) -> None:
        if self.is_dirty:
            self.committing = None
        super()._flush(effects)
        if self.committing is not None:
            self.begun[self.commits] = self.committing

    def on_committed(self, given: was.Committed, effects: list[Effect]) -> None:
        last, self.commits, self.committing = self.commits, given.number, self.begun.pop(given.number)
        super().on_committed(given, effects)
        self.commits = max(self.commits, last)


@canary(
    "end of input taken for finished", pairs, r"stuck: .*; not finished: report$|report: the operator never finished"
)
class FinishedBeforeFinish(OperatorKernel):
    """A replica is marked finished when its input ends, so that a crash before `finish` loses the last outputs."""

    def _take_end(self, inbound: Any, number: int) -> None:
        super()._take_end(inbound, number)
        if all(each.ended for each in self.inputs.values()):
            self.pending.counters["finished"] = 1


@canary(
    "last state change not stored",
    pairs,
    r"pairs: the durable state is .*; a run without failures ends with",
)
class LosesLastState(OperatorKernel):
    """The state that `finish` changed is not stored, so that whoever goes on from this log has an old one."""

    def _generation(self, keys: tuple[bytes, ...], given: was.Generated, stamps: list[Any], is_finish: bool) -> None:
        super()._generation(keys, given, stamps, is_finish)
        if is_finish:
            self.pending.state.clear()


@canary(
    "complete before the writes are done",
    checkable,
    r"report: is complete before write to/\d+ is done",
)
class CompletesEarly(OperatorKernel):
    """A replica says that it has nothing left to do while writes are under way, so that its host may end too soon."""

    def _complete(self, effects: list[Effect]) -> None:
        if self.is_finish_durable and not self.is_complete:
            self.is_complete = True
            effects.append(does.Complete())
