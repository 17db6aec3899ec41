"""Canaries of triggering: `ready` is asked until it is empty, timers ring when they are due, `finish` comes last."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import hours, quiet, windows

from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Effect
from clew.protocol.logio import OperatorKernel


@canary("ready asked only once", windows, r"came before ready\(\) was asked until it was empty")
class AsksOnce(OperatorKernel):
    """`ready` is not asked again after a generation, so that a second Input Set that is ready comes too late."""

    def on_generated(self, given: was.Generated, effects: list[Effect]) -> None:
        is_finish = isinstance(self.move, does.Finish)
        super().on_generated(given, effects)
        if not is_finish and isinstance(self.move, does.Ask):
            effects.remove(self.move)
            self.move = None
            self.must_ask = False
            self._proceed(effects)


@canary("finish when one of two inputs has ended", hours, r"hours: finished after \d+ of \d+ events of")
class FinishesEarly(OperatorKernel):
    """`finish` runs when the first of several inputs has ended, so that the rest of the others is lost."""

    def _take_end(self, inbound: object, number: int) -> None:
        super()._take_end(inbound, number)  # type: ignore[arg-type]
        for each in self.inputs.values():
            each.ended = True


@canary("more generated than was ready", windows, r"generated \[.*\], but ready\(\) had answered")
class GeneratesAll(OperatorKernel):
    """All open Input Sets are generated when one is ready, so that later events of the others are cut off."""

    def on_answered(self, given: was.Answered, effects: list[Effect]) -> None:
        super().on_answered(given, effects)
        if isinstance(self.move, does.Generate):
            effects.remove(self.move)
            self.move = None
            self._begin(does.Generate(tuple(self.sets)), effects)


@canary(
    "timer rings twice", quiet, r"timer '\w+' (rang at [\d.]+; it was set for None|rang before|.* nothing will ring it)"
)
class RingsTwice(OperatorKernel):
    """A timer stays in the log after its move, so that it rings again after a restart."""

    def on_fired(self, given: was.Fired, effects: list[Effect]) -> None:
        assert isinstance(self.move, does.Fire)
        name = self.move.name
        super().on_fired(given, effects)
        if self.pending.timers.get(name, 0.0) is None:
            del self.pending.timers[name]


@canary("timer rings too early", quiet, r"timer '\w+' rang at [\d.]+; it was set for [\d.]+")
class RingsEarly(OperatorKernel):
    """A timer rings at the next look at the clock, whatever it was set for."""

    def on_ticked(self, given: was.Ticked, effects: list[Effect]) -> None:
        super().on_ticked(was.Ticked(given.now + 60), effects)


@canary("timers of a generation lost", quiet, r"came before timer 'over', due at [\d.]+, rang")
class DropsTimers(OperatorKernel):
    """A timer that `generate` set is not taken over, so that it never rings."""

    def on_generated(self, given: was.Generated, effects: list[Effect]) -> None:
        super().on_generated(replace(given, changes=was.Changes(given.changes.state)), effects)
