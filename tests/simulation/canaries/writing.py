"""Canaries of write actions: each exactly once, one at a time, in order."""

from __future__ import annotations

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import checkable, idempotent, pairs, shop

from clew.model.history import Output
from clew.protocol import inputs as was
from clew.protocol.effects import Effect, Write
from clew.protocol.logio import OperatorKernel
from clew.protocol.writes import Writer

OUTSIDE = r"outside, connection 'to' has the actions \[.*\]; expected 1 to \d+, each once and in order"


@canary("write action not checked", checkable, OUTSIDE)
class NotChecked(Writer):
    """A write that a predecessor may have executed is executed again without asking, so that it is in twice."""

    __slots__ = ()

    def _begin(self, number: int, output: Output) -> Effect:
        return Write(self.name, number, output)


@canary("unknown write repeated", checkable, OUTSIDE)
class RepeatsUnknown(Writer):
    """A write whose answer was lost is executed again without asking, so that it is in twice."""

    __slots__ = ()

    def unknown(self, number: int, effects: list[Effect]) -> None:
        if number == self.done + 1 and self.is_under_way:
            effects.append(Write(self.name, number, self.cache[number]))


@canary("unknown write taken for done", checkable, OUTSIDE + r"|is complete before write to/\d+ is done")
class UnknownIsDone(OperatorKernel):
    """A write whose answer was lost is taken for executed, so that it is lost if the request never arrived."""

    def on_write_unknown(self, given: was.WriteUnknown, effects: list[Effect]) -> None:
        self.on_written(was.Written(given.connection, given.number), effects)


@canary("pending writes taken for done", pairs, OUTSIDE + r"|is complete before write to/\d+ is done")
class RestoresAsDone(Writer):
    """A restart takes every logged write action for executed, so that those of a crashed predecessor are lost."""

    __slots__ = ()

    def restore(self, last: int, done: int, is_predecessor_dead: bool) -> None:
        super().restore(last, last, is_predecessor_dead)


@canary("second write in flight", checkable, r"a second write on 'to' is begun while one is under way")
class SecondInFlight(Writer):
    """The next write begins before the last has been acknowledged, so that they can take effect in the wrong order."""

    __slots__ = ()

    def pump(self, effects: list[Effect]) -> None:
        super().pump(effects)
        following = self.cache.get(self.done + 2)
        if self.is_under_way and following is not None:
            effects.append(Write(self.name, self.done + 2, following))


@canary("idempotent write before the last one is marked", idempotent, OUTSIDE)
class HurriesOn(Writer):
    """The next idempotent write does not wait for the durable mark of the last, so that a crash repeats both."""

    __slots__ = ()

    def pump(self, effects: list[Effect]) -> None:
        durable, self.done_durable = self.done_durable, self.done
        super().pump(effects)
        self.done_durable = durable


@canary("predecessor not waited for (checkable)", checkable, OUTSIDE)
class ChecksTooSoon(Writer):
    """A successor checks and writes while its predecessor may still be writing, so that both writes are in."""

    __slots__ = ()

    def restore(self, last: int, done: int, is_predecessor_dead: bool) -> None:
        super().restore(last, done, True)


@canary("predecessor not waited for (idempotent)", idempotent, OUTSIDE)
class RepeatsTooSoon(Writer):
    """A successor goes on while its predecessor may still be writing, so that an old write follows a newer one."""

    __slots__ = ()

    def restore(self, last: int, done: int, is_predecessor_dead: bool) -> None:
        super().restore(last, done, True)


@canary("output sent before its required write", shop, r"orders\.out/\d+ is sent before write shop/\d+ is done")
class SendsBeforeWrite(OperatorKernel):
    """An output that promises a write downstream leaves before that write is done, so that a reader misses it."""

    def _is_allowed(self, requires: tuple[tuple[str, int], ...]) -> bool:
        return True
