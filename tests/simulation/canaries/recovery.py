"""Canaries of recovery: state, event state and timers come back as they were, each once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import arrivals, hours, pairs, quiet, windows

from clew.model.history import UndonePair
from clew.model.ranges import IdSet
from clew.model.values import decode
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Effect
from clew.protocol.logio import InputSet, OperatorKernel
from clew.protocol.moves import Moves

DIFFERS = r"event \d+ is .* a run without failures produces"


@canary("state lost between generations", pairs, r"ready\(\) answered|" + DIFFERS)
class StateWithGenerationsOnly(OperatorKernel):
    """State that `assign` changed is stored with the next generation only, so that a crash before it loses it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.unsaved: dict[bytes, bytes | None] = {}

    def _change(self, changes: was.Changes) -> None:
        self.unsaved |= changes.state

    def on_generated(self, given: was.Generated, effects: list[Effect]) -> None:
        super()._change(was.Changes(self.unsaved | given.changes.state))
        self.unsaved = {}
        super().on_generated(replace(given, changes=was.Changes({}, given.changes.timers)), effects)


@canary("state changed twice after recovery", pairs, r"ready\(\) answered|" + DIFFERS)
class AssignsAgain(Moves):
    """Folding an undone pair again also runs `assign` again, which has changed the durable state already."""

    again: was.Changes = was.NO_CHANGES

    def _refold(self, move: does.Refold) -> was.Refolded:
        list(self.definition.assign(move.event.received(move.channel.input), self.ctx))
        self.again = self.ctx.changes()
        return super()._refold(move)

    def _generate(self, move: does.Generate | does.Finish) -> was.Generated:
        generated = super()._generate(move)
        return replace(generated, changes=was.Changes(self.again.state | generated.changes.state))


@canary("event state restored for all sets of an event", windows, DIFFERS + r"|which is not open")
class RefoldsAllSets(Moves):
    """Folding an undone pair again updates every Input Set of its event, not only the pair's own."""

    def _refold(self, move: does.Refold) -> was.Refolded:
        x = int(move.event.rows[0]["x"])
        for key in (x, x + 1):
            self._update(key, move.event, None if move.note is None else decode(move.note))
        return was.Refolded()


@canary("event state restored for the wrong set", windows, DIFFERS + r"|ready\(\) answered")
class RefoldsWrongSet(OperatorKernel):
    """Undone pairs are folded again under the key of the first of them."""

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        undone = given.recovered.undone
        given.recovered.undone = [pair._replace(key=undone[0].key) for pair in undone]
        super().on_started(given, effects)


@canary("note lost on refolding", windows, DIFFERS)
class LosesNote(Moves):
    """Folding an undone pair again leaves out the note that `assign` gave for it."""

    def _refold(self, move: does.Refold) -> was.Refolded:
        return super()._refold(replace(move, note=None))


@canary("refolding in another order", arrivals, DIFFERS)
class RefoldsByChannel(OperatorKernel):
    """Undone pairs are folded channel by channel, not in the order of their assignment."""

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        given.recovered.undone.sort(key=lambda pair: (pair.channel, pair.order))
        super().on_started(given, effects)


@canary("round-robin refolding with triggers in between", hours, DIFFERS)
class RefoldsRoundRobin(OperatorKernel):
    """Undone events are folded in turns between the ports and trigger as they go, so that a set is generated twice.

    This is step 2 of the seed's Algorithm 9. Original order q1 q2 p1 p2, crash before hour 1 is generated: p1 q1 p2
    ends the hour without q2.
    """

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        by_channel: defaultdict[Any, list[UndonePair]] = defaultdict(list)
        for pair in sorted(given.recovered.undone, key=lambda pair: (pair.channel, pair.event)):
            by_channel[pair.channel].append(pair)
        turns = [(turn, pair) for pairs in by_channel.values() for turn, pair in enumerate(pairs)]
        given.recovered.undone = [pair for _, pair in sorted(turns, key=lambda each: each[0])]
        super().on_started(given, effects)
        for opened in self.sets.values():
            opened.events.clear()

    def _next_move(self, effects: list[Effect]) -> bool:
        if self.move is None and self.undone and self.pulled:
            if self.must_ask:
                return self._begin(does.Ask(self._ended()), effects)
            if self.group is not None:
                return self._begin(does.Generate(self.group), effects)
            pair = self.undone[0]
            opened = self.sets.setdefault(pair.key, InputSet(pair.serial, pair.key))
            opened.events.append((self.inputs[pair.channel], pair.event))
        return super()._next_move(effects)

    def on_refolded(self, given: was.Refolded, effects: list[Effect]) -> None:
        self.must_ask = True
        super().on_refolded(given, effects)

    def on_answered(self, given: was.Answered, effects: list[Effect]) -> None:
        journal, is_refolding = self.pending.journal, bool(self.undone)
        super().on_answered(given, effects)
        if given.group is None and is_refolding:
            journal.pop()  # It was asked in vain; what shows is what it generates.

    def check(self) -> None:
        pass  # It would see at once that `ready` is asked too early; the outcome must show it too.


@canary("undone pairs removed once they are read", windows, DIFFERS + r"|ready\(\) answered")
class ForgetsUndone(OperatorKernel):
    """Undone pairs are removed from the log when a restart has read them, so that a second crash loses them."""

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        super().on_started(given, effects)
        self.pending.forget_sets.extend(opened.serial for opened in self.sets.values())
        self.is_dirty = self.is_dirty or bool(self.sets)


@canary("released cursor lost on restart", windows, r"the cursor of numbers\.out->windows\.in goes back")
class ForgetsReleased(OperatorKernel):
    """A restart begins with nothing released, so that what was done before is never removed at its sender."""

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        for channel, cursor in given.recovered.cursors.items():
            given.recovered.cursors[channel] = cursor._replace(released=IdSet())
        super().on_started(given, effects)


@canary(
    "timers lost on restart",
    quiet,
    r"came before timer '\w+', due at [\d.]+, rang|still has timers|nothing will ring it",
)
class LosesTimers(OperatorKernel):
    """A restart does not restore timers, so that what waits for one waits until the end of input."""

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        given.recovered.timers.clear()
        super().on_started(given, effects)


@canary(
    "no alarm after a restart",
    quiet,
    r"timer '\w+' is set for [\d.]+, and nothing will ring it",
)
class SetsNoAlarm(OperatorKernel):
    """A restart restores timers and does not ask to be woken for them, so that they ring only if something comes."""

    def on_started(self, given: was.Started, effects: list[Effect]) -> None:
        super().on_started(given, effects)
        effects[:] = [effect for effect in effects if not isinstance(effect, does.Alarm)]


@canary("timer delivered before the undone pairs are folded", quiet, DIFFERS)
class RingsBeforeRefolding(OperatorKernel):
    """A timer that is due when a replica restarts is delivered at once, to a half-empty event state."""

    def _next_move(self, effects: list[Effect]) -> bool:
        for name, at in self.timers.items():
            if self.move is None and self.undone and at <= self.now:
                del self.timers[name]
                return self._begin(does.Fire(name), effects)
        return super()._next_move(effects)

    def check(self) -> None:
        pass  # It would see at once that a timer comes too early; the outcome must show it too.


@canary(
    "a kernel that raises",
    pairs,
    r"pairs: the kernel raised KeyError",
)
class Raises(OperatorKernel):
    """A kernel fails on an input that only a restart brings."""

    def on_pulled(self, given: was.Pulled, effects: list[Effect]) -> None:
        raise KeyError("undone")
