"""An operator, re-executed: its committed decisions, one after another, with the oracle's own plain books."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from clew.errors import Violation
from clew.model.event import Event, as_batch, same_batch
from clew.model.graph import DEAD
from clew.model.names import Channel
from clew.model.operator import Assigned
from clew.model.values import decode, encode_key
from clew.protocol import decisions as did
from clew.protocol.inputs import Choices
from clew.times.everything import Everything
from clew.verify.brief import brief
from clew.verify.moments import Moments
from clew.verify.retelling import Run, events_words, state_words

_EARLY = Choices(0.0, 0)


class OperatorRun(Run):
    """One operator, re-executed."""

    def judge(self) -> None:
        """Walks through the committed decisions."""
        self.taken: dict[Channel, int] = dict.fromkeys(self.graph.inbound(self.replica), 0)
        self.sets: dict[Any, list[tuple[Channel, int]]] = {}
        self.pairs: list[tuple[Any, Channel, Event, Any]] = []
        """All open pairs in the order of assignment: key, channel, event and note."""
        self.must_refold = False
        self.ended: set[Channel] = set()
        self.aligned: set[Channel] = set()
        """Channels on which the border of the present epoch was taken."""
        self.must_ask = False
        self.moments = Moments(self.node)
        self.ctx.frontiers = {port: Everything(order) for port, order in self.node.input_orders.items()}
        self.is_drained = False
        self.group: list[Any] | None = None
        self.version: dict[bytes, bytes] = {}
        self.version_next = 0
        is_closed = False
        for decision in self.shelf.journal:
            self.ctx.state.settle()
            if is_closed:
                raise Violation(f"{self.replica}: {brief(decision)} was decided after the operator had finished")
            if self.must_refold and not isinstance(decision, did.GaveUp):
                self._refold()
            match decision:
                case did.Took():
                    self._expect_quiet(decision)
                    self._took(decision)
                case did.Asked():
                    self._asked(decision)
                case did.Made():
                    self._made(decision)
                case did.Ended():
                    self._expect_quiet(decision)
                    self._next(decision.channel, decision.event, is_end=True)
                    self.ended.add(decision.channel)
                    self.must_ask = True
                case did.Held():
                    self._expect_quiet(decision)
                    self._held(decision)
                case did.Bordered():
                    self._expect_quiet(decision)
                    self._bordered(decision)
                case did.Rang():
                    self._expect_quiet(decision)
                    self._rang(decision)
                case did.Moved():
                    self._expect_quiet(decision)
                    self._moved(decision)
                case did.Drained():
                    self._expect_quiet(decision)
                    self.is_drained = True
                    self._expect_ends()
                case did.Closed():
                    self._expect_quiet(decision)
                    is_closed = True
                    self._closed(decision)
                case did.GaveUp():
                    is_closed = decision.move == "finish"
                    self._gave_up(decision)
                case _:
                    raise Violation(f"{self.replica}: {brief(decision)} is no decision of an operator")
            self.moments.settle(self.ctx.holds)
            self.clock = max(self.clock, getattr(decision, "choices", _EARLY).now)
        if not is_closed:
            raise Violation(f"{self.replica}: the operator never finished")
        ends_with = self.ctx.state.encoded()
        if ends_with != self.shelf.state:
            raise Violation(
                f"{self.replica}: the durable state is {state_words(self.shelf.state)}; a run without failures ends "
                f"with {state_words(ends_with)}"
            )
        self.expect_end()

    def _expect_quiet(self, decision: object) -> None:
        if self.must_ask or self.group is not None:
            raise Violation(f"{self.replica}: {brief(decision)} came before ready() was asked until it was empty")
        if isinstance(decision, did.Rang) or getattr(decision, "timer", None) is not None:
            return
        for name, at in self.ctx.timers.items():
            if at <= self.clock:
                raise Violation(f"{self.replica}: {brief(decision)} came before timer {name!r}, due at {at}, rang")

    def _next(self, channel: Channel, number: int, is_end: bool) -> Event:
        expected = self.taken[channel] = self.taken[channel] + 1
        if number != expected:
            raise Violation(f"{self.replica}: took event {number} of {channel}; expected {expected}")
        sent = self.archive[channel.sender].outputs[channel.output]
        if number > len(sent) or sent[number - 1].event.is_end != is_end:
            raise Violation(f"{self.replica}: took event {number} of {channel}, which its sender never committed so")
        return sent[number - 1].event

    def _held(self, decision: did.Held) -> None:
        """The border of the present epoch was taken."""
        event = self._next(decision.channel, decision.event, is_end=False)
        if event.border != decision.epoch or decision.epoch != self.epoch:
            raise Violation(f"{self.replica}: took the border of epoch {event.border} as {brief(decision)}")
        self.aligned.add(decision.channel)

    def _bordered(self, decision: did.Bordered) -> None:
        """An epoch ends when its border was taken on every channel that has not ended."""
        waiting = [each for each in self.taken if each not in self.aligned and each not in self.ended]
        if waiting:
            raise Violation(f"{self.replica}: epoch {decision.epoch} ended before its border came on {waiting[0]}")
        self.aligned.clear()
        self.expect_border(decision.epoch)

    def _took(self, decision: did.Took) -> None:
        if decision.channel in self.aligned:
            raise Violation(f"{self.replica}: {brief(decision)} was decided before the epoch of its border had ended")
        event = self._next(decision.channel, decision.event, is_end=False).received(decision.channel.input)
        if event.border:
            raise Violation(f"{self.replica}: {brief(decision)} was decided for a border")
        pairs = list(self.definition.assign(event, self.ctx.given(decision.choices)))
        for each in pairs:
            key, note, time = each if isinstance(each, Assigned) else (each, None, None)
            self.moments.take(key, decision.channel.input, event.time, time)
            self.sets.setdefault(key, []).append((decision.channel, decision.event))
            self.pairs.append((key, decision.channel, event, note))
            self._update(key, event, note)
        self.must_ask = True

    def _update(self, key: Any, event: Event, note: Any) -> None:
        if note is None:
            self.definition.update(key, event)
        else:
            self.definition.update(key, event, note)

    def _asked(self, decision: did.Asked) -> None:
        self.ctx.ended = frozenset(channel.input for channel in self.ended)
        group = next(iter(self.definition.ready(self.ctx.given(decision.choices))), None)
        was = None if decision.group is None else [decode(key) for key in decision.group]
        if (None if group is None else list(group)) != was:
            raise Violation(f"{self.replica}: ready() answered {was}; in a run without failures it answers {group}")
        self.must_ask = False
        self.group = was

    def _made(self, decision: did.Made) -> None:
        group = [decode(key) for key in decision.group]
        if group != self.group:
            raise Violation(f"{self.replica}: generated {group}, but ready() had answered {self.group}")
        self.group = None
        self.must_ask = True
        self._generation(self.definition.generate, group, decision.choices)

    def _generation(self, move: Callable[..., Any], group: list[Any], choices: Choices) -> None:
        made = []
        state = self.ctx.state.encoded() if self.node.capture.is_on else {}  # Before the move changes it.
        outputs = move(group, self.ctx.given(choices))
        for port, data, *attributes in outputs or ():
            used = group if self.ctx.used is None else list(self.ctx.used)
            time = self.moments.of(port, used, self.ctx.time)
            made.append((port, as_batch(data), used, dict(attributes[0]) if attributes else {}, time))
        for port, batch, used, attributes, time in made:
            number = self.expect(port, batch, None if port in self.node.writes else time)
            if dict(self.shelf.outputs[port][number - 1].event.attributes) != attributes:
                raise Violation(f"{self.replica}.{port}: event {number} has other attributes than without failures")
            if port in self.node.capture.outputs:
                self._expect_lineage(port, number, used, choices.reads, state)
        self._close(group)

    def _close(self, group: list[Any]) -> None:
        for key in group:
            self.sets.pop(key, None)
            self.moments.close(key)
        self.pairs = [pair for pair in self.pairs if pair[0] not in group]

    def _expect_lineage(
        self, port: str, number: int, used: list[Any], reads: tuple[pa.RecordBatch, ...], state: dict[bytes, bytes]
    ) -> None:
        for serial in self._expect_origins(port, number, {event for key in used for event in self.sets.get(key, ())}):
            actions = self.shelf.reads.get(serial, [])
            if len(actions) != len(reads):
                raise Violation(
                    f"{self.replica}.{port}/{number}: {len(actions)} read actions are in its lineage; "
                    f"{len(reads)} were used"
                )
            for action, effect in zip(actions, reads, strict=True):
                if not same_batch(self.shelf.effects.get(action), effect):
                    raise Violation(
                        f"{self.replica}.{port}/{number}: another read effect is in its lineage than was used"
                    )
            if self._version(self.shelf.versions_used.get(serial, 0)) != state:
                raise Violation(f"{self.replica}.{port}/{number}: another state is in its lineage than was used")

    def _expect_origins(self, port: str, number: int, expected: set[tuple[Channel, int]]) -> list[int]:
        serials = self.shelf.lineage.get((port, number), [])
        captured = {event for serial in serials for event in self.shelf.pairs[serial]}
        if captured != expected:
            raise Violation(
                f"{self.replica}.{port}/{number}: captured lineage is {events_words(captured)}; "
                f"the inputs truly used are {events_words(expected)}"
            )
        return serials

    def _version(self, version: int) -> dict[bytes, bytes]:
        """The state as the captured versions up to this one make it."""
        versions, state = self.shelf.versions, self.version
        while self.version_next < len(versions) and versions[self.version_next][0] <= version:
            for key, value in versions[self.version_next][1].items():
                if value is None:
                    state.pop(key, None)
                else:
                    state[key] = value
            self.version_next += 1
        return state

    def _rang(self, decision: did.Rang) -> None:
        name = decode(decision.name)
        first = min(((at, encode_key(each)) for each, at in self.ctx.timers.items()), default=None)
        if first is not None and first[1] != encode_key(name):
            raise Violation(f"{self.replica}: timer {name!r} rang before {decode(first[1])!r}, which was due earlier")
        at = self.ctx.timers.pop(name, None)
        if at is None or at > decision.choices.now:
            raise Violation(f"{self.replica}: timer {name!r} rang at {decision.choices.now}; it was set for {at}")
        self.definition.on_timer(name, self.ctx.given(decision.choices))
        self.must_ask = True

    def _moved(self, decision: did.Moved) -> None:
        self.ctx.frontiers.update(decision.frontiers)
        for port, frontier in decision.frontiers.items():
            self.definition.on_frontier(port, frontier, self.ctx.given(decision.choices))
        self.must_ask = True

    def _closed(self, decision: did.Closed) -> None:
        self._expect_ended()
        group = list(self.sets)
        self._generation(self.definition.finish, group, decision.choices)
        if not self.is_drained:
            self._expect_ends()

    def _expect_ends(self) -> None:
        for port in self.node.outputs:
            self.expect(port, None)

    def _expect_ended(self) -> None:
        for channel, taken in self.taken.items():
            sent = len(self.archive[channel.sender].outputs[channel.output])
            if channel not in self.ended or taken != sent:
                raise Violation(f"{self.replica}: finished after {taken} of {sent} events of {channel}")

    # What was given up

    def _gave_up(self, decision: did.GaveUp) -> None:
        """Nothing came of it but its dead letters; a new object goes on with what is left."""
        if not self.node.dead_letters:
            raise Violation(f"{self.replica}: {brief(decision)} was decided without dead letters")
        keys = [decode(key) for key in decision.keys]
        match decision.move:
            case "fold":
                assert decision.channel is not None
                self._expect_quiet(decision)
                event = self._next(decision.channel, decision.event, is_end=False)
                time = self.moments.arriving(decision.channel.input, event.time)
                self._expect_event(decision, decision.channel, event, None, time)
            case "refold":
                self._gave_up_pair(decision, keys[0])
            case "generate":
                if keys != self.group:
                    raise Violation(f"{self.replica}: gave up {keys}, but ready() had answered {self.group}")
                self._gave_up_sets(decision, keys)
            case "finish":
                self._expect_quiet(decision)
                self._expect_ended()
                if keys != list(self.sets):
                    raise Violation(f"{self.replica}: gave up {keys} at the end; open are {list(self.sets)}")
                self._gave_up_sets(decision, keys)
                if not self.is_drained:
                    self._expect_ends()
            case "fire":
                self._gave_up_timer(decision)
        self.group = None
        self.must_ask = True
        self.must_refold = True

    def _refold(self) -> None:
        self.must_refold = False
        self.definition = copy.deepcopy(self.node.definition)
        self.definition.open(self.ctx)
        for key, _, event, note in self.pairs:
            self._update(key, event, note)

    def _gave_up_pair(self, decision: did.GaveUp, key: Any) -> None:
        place = decision.channel, decision.event
        found = [pair for pair in self.pairs if (pair[1], pair[2].id) == place and pair[0] == key]
        if len(found) != 1:
            raise Violation(f"{self.replica}: gave up {brief(decision)}, which is no open pair")
        self.pairs.remove(found[0])
        time = self.moments.of(DEAD, [key], None)
        rest = [each for each in self.sets.pop(key) if each != place]
        if rest:
            self.sets[key] = rest  # It has been opened anew, so it is the last.
        else:
            self.moments.close(key)
        self._expect_event(decision, found[0][1], found[0][2], [key], time)

    def _gave_up_sets(self, decision: did.GaveUp, keys: list[Any]) -> None:
        found: dict[tuple[Channel, int], tuple[Event, list[Any]]] = {}
        for key, channel, event, _ in self.pairs:
            if key in keys:
                found.setdefault((channel, event.id), (event, []))[1].append(key)
        for (channel, _), (event, in_sets) in found.items():
            self._expect_event(decision, channel, event, in_sets, self.moments.least(keys))
        self._close(keys)

    def _gave_up_timer(self, decision: did.GaveUp) -> None:
        self._expect_quiet(decision)
        name = decode(decision.timer or b"")
        first = min(((at, encode_key(each)) for each, at in self.ctx.timers.items()), default=None)
        at = self.ctx.timers.pop(name, None)
        if first is None or at is None or first[1] != encode_key(name):
            raise Violation(f"{self.replica}: gave up timer {name!r}, which was not the next to ring")
        self._expect_letter(decision, pa.RecordBatch.from_pylist([{"timer": str(name), "at": at}]), {"timer": name})

    def _expect_event(
        self, decision: did.GaveUp, channel: Channel, event: Event, in_sets: list[Any] | None, time: Any
    ) -> None:
        about: dict[str, Any] = {"input": channel.input, "event": f"{channel.sender}.{channel.output}/{event.id}"}
        if in_sets is not None:
            about["input_sets"] = in_sets
        if event.attributes:
            about["attributes"] = dict(event.attributes)
        number = self._expect_letter(decision, event.batch, about, time)
        if DEAD in self.node.capture.outputs:
            used = {(channel, event.id)}
            if in_sets is not None and decision.move != "refold":
                used = {each for key in in_sets for each in self.sets[key]}
            self._expect_origins(DEAD, number, used)

    def _expect_letter(
        self, decision: did.GaveUp, batch: pa.RecordBatch | None, about: dict[str, Any], time: Any = None
    ) -> int:
        number = self.expect(DEAD, batch, time)
        expected = {"operator": str(self.replica), "move": decision.move, "tries": decision.tries, **about}
        expected["error"] = decision.error
        found = dict(self.shelf.outputs[DEAD][number - 1].event.attributes)
        if found != expected:
            raise Violation(f"{self.replica}.{DEAD}/{number}: the dead letter says {found}; expected {expected}")
        return number
