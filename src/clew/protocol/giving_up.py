"""Giving up: an input that was attempted as often as it may be stops the run, or is set aside as dead letters.

Invariant: what is given up joins the history in one transaction with its dead letters, at the beginning of an
incarnation and before anything is refolded; so the operator never sees it again, and nothing else is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from clew.model.event import Event
from clew.model.graph import DEAD
from clew.model.history import Lineage, Pair, UndonePair
from clew.model.names import Channel
from clew.model.values import encode
from clew.protocol import decisions as did
from clew.protocol import inputs as was
from clew.protocol.caution import FINISH, RECOVER
from clew.protocol.effects import Effect
from clew.protocol.inbound import InChannel, InputSet
from clew.protocol.timekeeping import Timekeeping
from clew.protocol.verdict import Verdict, event_letter, find_verdict, message, timer_letter

_Letters = Mapping[tuple[Channel, int], int]
"""The number of each event's dead letter."""


class GivingUp(Timekeeping):
    """The part of an operator's kernel that gives up; what it needs of the rest is declared here."""

    inputs: dict[Channel, InChannel]
    undone: deque[UndonePair]
    pulled: deque[Event]
    timers: dict[bytes, float]
    touched: dict[InChannel, None]
    opened_pending: set[int]
    order: int
    serial: int
    must_ask: bool
    verdict: Verdict | None = None
    """What is being given up, before anything else happens; its events are being read."""

    def _close(self, key: bytes, sources: set[int]) -> None:
        raise NotImplementedError

    def _finish(self, created: float) -> None:
        raise NotImplementedError

    def _judge(self, given: was.Started, effects: list[Effect]) -> None:
        """An input that was attempted often enough stops the run or is given up, before anything is refolded."""
        found = None if self.caution is None else self.caution.exhausted()
        if self.caution is None or found is None:
            return
        verdict = find_verdict(*found, given.last_error, given.recovered, self.inputs)
        if verdict is None:
            self._mark(self.caution.end(found[0].place))
        elif not self.node.dead_letters:
            self._fail(message(self.replica, verdict), effects)
        elif not verdict.events:
            self._give_up(verdict)
            self._flush(effects)
        else:
            self.verdict = verdict
            if verdict.taken is not None:
                self.inputs[verdict.taken[0]].seen = verdict.taken[1]  # It will be sent again, and is not needed.

    def _give_up(self, verdict: Verdict) -> None:
        """What was given up joins the history: its dead letters are all that comes of it."""
        assert self.caution is not None
        self.verdict = None
        letters: dict[tuple[Channel, int], int] = {}
        for (channel, number), event in zip(verdict.events, self.pulled, strict=True):
            assert (event.sender, event.port, event.id) == (channel.sender, channel.output, number), f"pulled {event}"
            time = self._letter_time(verdict, channel, event)
            letters[channel, number] = self._letter(*event_letter(self.replica, verdict, channel, event), time)
            if verdict.move == "fold" and self.times is not None:
                self.times.took(channel.input, event.time)
        self.pulled.clear()
        self._mark(self.caution.end(verdict.attempt.place))
        match verdict.move:
            case "fold":
                self._give_up_event(letters)
            case "refold":
                self._give_up_pair(verdict.pairs[0], letters)
                self._mark(self.caution.end(RECOVER))  # The rest is refolded at once again.
                self.caution.is_pairwise = False
            case "fire":
                self._letter(*timer_letter(self.replica, verdict))
                self.pending.timers[verdict.timer_name] = None
                del self.timers[verdict.timer_name]
            case _:
                self._give_up_sets(verdict, letters)
        self._decided(did.GaveUp(verdict.move, verdict.tries, verdict.error, *verdict.subject))
        self.must_ask = not self.is_finished

    def _letter(self, batch: pa.RecordBatch, attributes: Mapping[str, Any], time: Any = None) -> int:
        return self._emit(self.ports[DEAD], batch, self.now, attributes, time)

    def _letter_time(self, verdict: Verdict, channel: Channel, event: Event) -> Any:
        """A time that is still held: the event's own, or one of those that its Input Sets hold."""
        times = self.times
        if times is None or times.order is None or event.time is None:
            return None
        if verdict.move == "fold":
            return times.arriving(channel.input, event.time)
        keys = [pair.key for pair in verdict.pairs] or verdict.keys
        least = times.least(self.sets[key].serial for key in keys)
        return least[0] if least else None

    def _give_up_event(self, letters: _Letters) -> None:
        """The event is taken, and belongs to no Input Set of the user's."""
        ((channel, number),) = letters
        inbound = self.inputs[channel]
        inbound.assign(number, 1)
        self.order += 1
        self.pending.counters["order"] = self.order
        key = encode(f"{DEAD}/{letters[channel, number]}")
        self._set_aside(UndonePair(self.order, channel, number, 0, key, None), letters)

    def _give_up_pair(self, pair: UndonePair, letters: _Letters) -> None:
        """The other pairs of the Input Set stay, in another opening of it: a log removes whole Input Sets."""
        old = self.sets.pop(pair.key)
        self.pending.forget_sets.append(old.serial)
        rest = [each for each in self.undone if each.serial == old.serial and each.order != pair.order]
        if rest:
            new = self.sets[pair.key] = InputSet(self._open(pair.key), pair.key)
            if self.times is not None:
                self.times.move(old.serial, new.serial)
            new.events = [(self.inputs[each.channel], each.event) for each in rest]
            self.pending.pairs += [Pair(each.order, each.channel, each.event, new.serial, each.note) for each in rest]
            self.opened_pending.add(new.serial)
            rest = [each._replace(serial=new.serial) for each in rest]
        if self.times is not None:
            self.times.drop(old.serial)
        others = (each for each in self.undone if each.serial != old.serial)
        self.undone = deque(sorted([*others, *rest], key=lambda each: each.order))
        self._set_aside(pair, letters)

    def _set_aside(self, pair: UndonePair, letters: _Letters) -> None:
        """Releases the pair's event, or keeps it for lineage, in a closed Input Set of its own."""
        inbound = self.inputs[pair.channel]
        if self.node.capture.is_on:
            serial = self._open(pair.key)
            self.pending.pairs.append(Pair(pair.order, pair.channel, pair.event, serial, pair.note))
            self.pending.closed.append(serial)
            self.closed_since_survey += 1
            if DEAD in self.node.capture.outputs:
                self.pending.lineage.append(Lineage(DEAD, letters[pair.channel, pair.event], serial))
        inbound.let_go(pair.event)
        self.touched[inbound] = None

    def _open(self, key: bytes) -> int:
        self.serial += 1
        self.pending.opened.append((self.serial, key))
        self.pending.counters["serial"] = self.serial
        return self.serial

    def _give_up_sets(self, verdict: Verdict, letters: _Letters) -> None:
        """The Input Sets are done and nothing was made of them; if it was the end, the operator has finished."""
        serials = {key: self.sets[key].serial for key in verdict.keys}
        gone = set(serials.values())
        self.undone = deque(pair for pair in self.undone if pair.serial not in gone)
        if DEAD in self.node.capture.outputs:
            rows = ((letters[place], key) for place, keys in verdict.events.items() for key in keys)
            self.pending.lineage.extend(Lineage(DEAD, letter, serials[key]) for letter, key in rows)
        if verdict.move == FINISH:
            self._finish(self.now)
        for key in verdict.keys:
            self._close(key, gone)
