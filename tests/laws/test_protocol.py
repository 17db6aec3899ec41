"""Laws of the protocol's parts and of a whole kernel, under random scripts: whatever happens, in whatever order.

A script is a list of numbers; each picks one of the things that can happen next. So a failing script shrinks, and the
same numbers give the same run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.protocol.stage import (
    ALSO,
    CHOICES,
    IN,
    MORE,
    OP,
    OUT,
    answered,
    changed,
    end,
    event,
    fired,
    generated,
    node,
    output,
)

from clew.log.memory import MemoryStore
from clew.model.connection import Kind, WriteAction
from clew.model.event import as_batch
from clew.model.graph import Capture
from clew.model.history import Output, Transaction
from clew.model.names import Channel
from clew.model.ranges import IdSet
from clew.model.values import decode, encode
from clew.protocol import decisions as did
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Effect, Session
from clew.protocol.inbound import InChannel
from clew.protocol.logio import OperatorKernel
from clew.protocol.outbound import OutChannel, OutPort
from clew.protocol.settings import Settings
from clew.protocol.writes import Writer
from clew.verify.outside import System

SCRIPT = st.lists(st.integers(0, 1 << 16), min_size=60, max_size=250)
SIZES = st.integers(1, 5)
LAW = settings(max_examples=120, deadline=None)
Choice = tuple[str, Callable[[], None]]


# Output ports


class Receiver:
    """What a receiver's log says, and what the session that it asked for has brought."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.session = Session(1, 0)
        self.assigned = 0
        self.got = 0
        """The last event that came, or that need not come."""

    def take(self, sent: does.Send) -> None:
        assert sent.session == self.session
        assert sent.event.id == self.got + 1, "events of a session come in order, without gaps"
        self.got += 1


class Sending:
    """One port, its log and two receivers."""

    def __init__(self, window: int, cache_max: int) -> None:
        sizes = Settings(window=window, cache_max=cache_max)
        self.window = window
        self.receivers = {channel: Receiver(channel) for channel in (OUT, ALSO)}
        self.port = OutPort("out", [OutChannel(channel) for channel in self.receivers], sizes)
        self.log: dict[int, Output] = {}
        self.gone = 0
        self.writes = 0
        self.fetches: deque[does.Fetch] = deque()

    def choices(self, number: int) -> list[Choice]:
        found: list[Choice] = [("make", lambda: self.make(number)), ("write", self.write)]
        if self.fetches:
            found.append(("fetch", self.fetch))
        for receiver in self.receivers.values():
            found.append(("connect", lambda receiver=receiver: self.connect(receiver)))
            found.append(("late", lambda receiver=receiver: self.late(receiver, number)))
            if receiver.assigned < receiver.got:
                found.append(("ack", lambda receiver=receiver: self.ack(receiver, number)))
        return found

    def make(self, number: int) -> None:
        made = output(len(self.log) + 1, requires=(("db", self.writes + 1),) if number % 3 == 0 else ())
        self.log[made.event.id] = made
        self.port.last = made.event.id
        self.port.became_durable(made)

    def write(self) -> None:
        self.writes += 1

    def connect(self, receiver: Receiver) -> None:
        receiver.session = Session(1, receiver.session.number + 1)
        receiver.got = receiver.assigned
        self.port.connected(receiver.channel, receiver.session, receiver.assigned)

    def late(self, receiver: Receiver, number: int) -> None:
        """A message of an earlier session comes when nobody expects it any more."""
        if receiver.session.number > 1:
            old = Session(1, 1 + number % (receiver.session.number - 1))
            self.port.connected(receiver.channel, old, number % (receiver.assigned + 1))

    def ack(self, receiver: Receiver, number: int) -> None:
        receiver.assigned += 1 + number % (receiver.got - receiver.assigned)
        released = IdSet(number % (receiver.assigned + 1))
        self.port.acked(receiver.channel, receiver.session, receiver.assigned, released, 0)
        for _, first, last in self.port.forgettable():
            for each in range(first, last + 1):
                assert all(each <= other.assigned for other in self.receivers.values())
                self.log[each] = None  # type: ignore[assignment]

    def fetch(self) -> None:
        wanted = self.fetches.popleft()
        found = [self.log[each] for each in range(wanted.first, wanted.first + wanted.limit) if self.log.get(each)]
        self.port.fetched(tuple(found), wanted.first)

    def pump(self) -> None:
        effects: list[Effect] = []
        self.port.pump(lambda requires: all(number <= self.writes for _, number in requires), effects)
        self.port.check()
        for effect in effects:
            if isinstance(effect, does.Fetch):
                assert not self.fetches
                self.fetches.append(effect)
                continue
            assert isinstance(effect, does.Send)
            receiver = self.receivers[effect.channel]
            logged = self.log[effect.event.id]
            assert logged is not None, "what is sent is in the log"
            assert logged.event is effect.event
            assert all(number <= self.writes for _, number in logged.requires)
            assert effect.event.id - receiver.assigned <= self.window
            receiver.take(effect)
        assert len(self.port.cache) <= self.port.settings.cache_max + 3 * self.window


@LAW
@given(SCRIPT, SIZES, SIZES)
def test_a_port_sends_only_durable_events_in_order_inside_its_window_and_at_last_all_of_them(
    script: list[int], window: int, cache_max: int
) -> None:
    sending = Sending(window, cache_max)
    for number in script:
        options = sending.choices(number)
        options[number % len(options)][1]()
        sending.pump()
    sending.writes = 1 << 30
    for receiver in sending.receivers.values():
        sending.connect(receiver)
        for _ in range(4 * len(sending.log) + 4):
            sending.pump()
            if sending.fetches:
                sending.fetch()
            elif receiver.assigned < receiver.got:
                sending.ack(receiver, 0)
        assert receiver.got == len(sending.log)


# Write connections


class Writing:
    """One write connection, its log and its outside system; a predecessor may live on for a while."""

    def __init__(self, kind: Kind, cache_max: int) -> None:
        self.kind = kind
        self.sizes = Settings(window=3, cache_max=cache_max)
        self.system = System()
        self.made = 0
        self.done_durable = 0
        self.writer = Writer("db", kind, self.sizes)
        self.under_way: Effect | None = None
        self.zombie: Effect | None = None
        """What a predecessor has under way that is not known to be dead."""
        self.fetch: does.Fetch | None = None

    def choices(self) -> list[Choice]:
        found: list[Choice] = [("make", self.make), ("crash", self.crash)]
        if self.writer.done > self.done_durable:
            found.append(("mark", self.mark))
        if self.fetch is not None:
            found.append(("fetched", self.fetched))
        if self.zombie is not None:
            found += [("zombie", lambda: self.bury(True)), ("bury", lambda: self.bury(False))]
        else:
            found.append(("replace", self.replace))
        match self.under_way:
            case does.Write():
                found += [
                    ("done", self.done),
                    ("lost before", lambda: self.lose(False)),
                    ("lost", lambda: self.lose(True)),
                ]
            case does.Check():
                found.append(("checked", self.checked))
        return found

    def action(self, number: int) -> WriteAction:
        return WriteAction("log/op/0/db", number, as_batch([{"x": number}]))

    def make(self) -> None:
        self.made += 1
        self.writer.last = self.made
        self.writer.became_durable(output(self.made, "db"))

    def mark(self) -> None:
        self.done_durable = self.writer.done_durable = self.writer.done

    def fetched(self) -> None:
        assert self.fetch is not None
        numbers = range(max(self.fetch.first, self.done_durable + 1), self.made + 1)
        self.fetch = None
        self.writer.fetched(tuple(output(number, "db") for number in numbers[:3]))

    def take(self) -> int:
        assert isinstance(self.under_way, does.Write | does.Check)
        number, self.under_way = self.under_way.number, None
        return number

    def done(self) -> None:
        number = self.take()
        self.system.apply(self.kind, self.action(number))
        assert self.writer.written(number)

    def lose(self, is_applied: bool) -> None:
        number = self.take()
        if is_applied:
            self.system.apply(self.kind, self.action(number))
        effects: list[Effect] = []
        self.writer.unknown(number, effects)
        self.perform(effects)

    def checked(self) -> None:
        number = self.take()
        effects: list[Effect] = []
        self.writer.checked(number, self.system.has(self.action(number)), effects)
        self.perform(effects)

    def crash(self) -> None:
        """The process dies; what it had under way was done, or was not, by the time that this is known."""
        if isinstance(self.under_way, does.Write) and self.under_way.number % 2:
            self.system.apply(self.kind, self.action(self.under_way.number))
        self.restart(is_dead=self.zombie is None)

    def replace(self) -> None:
        """The process is taken for dead; what it has under way may still be done."""
        self.zombie = self.under_way or does.Fetch("db", 0, 0)
        self.restart(is_dead=False)

    def restart(self, *, is_dead: bool) -> None:
        self.under_way = self.fetch = None
        self.writer = Writer("db", self.kind, self.sizes)
        self.writer.restore(self.made, self.done_durable, is_dead)

    def bury(self, is_applied: bool) -> None:
        if is_applied and isinstance(self.zombie, does.Write):
            self.system.apply(self.kind, self.action(self.zombie.number))
        self.zombie = None
        self.writer.buried()

    def pump(self) -> None:
        effects: list[Effect] = []
        self.writer.pump(effects)
        self.writer.check()
        self.perform(effects)

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, does.Fetch):
                assert self.fetch is None
                self.fetch = effect
                continue
            assert isinstance(effect, does.Write | does.Check)
            assert self.under_way is None, "one action at a time"
            assert effect.number == self.writer.done + 1 <= self.made, "in order, and only what is durable"
            if self.zombie is not None:
                assert self.kind is Kind.CONDITIONAL, "others wait until every predecessor is dead"
            self.under_way = effect


@LAW
@given(SCRIPT, st.sampled_from(list(Kind)), SIZES)
def test_write_actions_are_done_one_at_a_time_in_order_and_each_exactly_once(
    script: list[int], kind: Kind, cache_max: int
) -> None:
    writing = Writing(kind, cache_max)
    for number in script:
        options = writing.choices()
        options[number % len(options)][1]()
        writing.pump()
    if writing.zombie is not None:
        writing.bury(False)
    for _ in range(6 * writing.made + 6):
        writing.pump()
        wanted = [run for name, run in writing.choices() if name in ("mark", "fetched", "done", "checked")]
        if wanted:
            wanted[0]()
    assert [action.number for action in writing.system.applied] == list(range(1, writing.made + 1))
    assert writing.writer.is_settled


# Input channels


@LAW
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=40, max_size=120))
def test_a_channel_takes_each_event_once_and_in_order_whatever_comes(script: list[tuple[int, int]]) -> None:
    channel = InChannel(IN, False)
    channel.restore(1, None)
    channel.connect([])
    taken: list[int] = []
    for behind, number in script:
        session = Session(1, max(0, channel.session.number - behind))
        effects: list[Effect] = []
        before = channel.session
        if channel.accepts(session, number, effects):
            assert session == before, "only events of today's session"
            taken.append(number)
        connects = [effect for effect in effects if isinstance(effect, does.Connect)]
        assert bool(connects) == (session == before and number > len(taken) + 1), "a gap, and only a gap, begins anew"
        assert all(effect.session == channel.session > before for effect in connects)
        channel.check()
    assert taken == list(range(1, len(taken) + 1))


# A whole kernel


class Play:
    """One operator with two inputs, an output and a write connection, over a real log; anything may happen next.

    What its moves return is chosen by the script: a kernel must hold whatever users write.
    """

    def __init__(self, kind: Kind, sizes: Settings, *, is_captured: bool, writes_first: bool) -> None:
        captured = Capture(frozenset({"in"}), frozenset({"out"}), {"out": 5.0}) if is_captured else Capture()
        self.node = node(inputs=("in", "more"), writes={"db": kind}, writes_first=writes_first, capture=captured)
        self.sizes = sizes
        self.kind = kind
        self.store = MemoryStore({}, "log")
        self.system = System()
        self.streams = {
            IN: [*(event(number) for number in range(1, 6)), end(6)],
            MORE: [*(event(number, MORE) for number in range(1, 4)), end(4, MORE)],
        }
        self.down = 0
        """How far the receiver is, durably."""
        self.session = Session(1, 0)
        self.durable: dict[str, dict[int, Output]] = {"out": {}, "db": {}}
        self.cursors: dict[Channel, Any] = {}
        self.journal: list[Any] = []
        self.commits = 0
        self.now = 0.0
        self.start()

    def start(self) -> None:
        """The next incarnation; its predecessor is dead."""
        self.log = self.store.open(OP)
        self.kernel = OperatorKernel(self.node, OP, (IN, MORE), (OUT,), self.sizes)
        self.commit: does.Commit | None = None
        self.commit_number = 0
        self.move: Effect | None = None
        self.requests: deque[Effect] = deque()
        self.write: Effect | None = None
        self.sessions = {channel: Session(0, 0) for channel in self.streams}
        self.next = dict.fromkeys(self.streams, 1)
        self.undone = deque(self.log.recover().undone)
        self.folded = {
            channel: self.cursors[channel].assigned if channel in self.cursors else 0 for channel in self.streams
        }
        self.is_complete = False
        self.give(was.Started(self.log.recover(), self.now, True))

    # What can happen

    def choices(self, number: int) -> list[Choice]:
        found: list[Choice] = [("tick", self.tick)]
        if number >> 8 & 7 == 0 or not self.session.number:  # Rare, or nothing would get on between them.
            broken = (IN, OUT)[number >> 4 & 1]
            found += [("connect", self.connect), ("break", lambda: self.give(was.Broken(broken)))]
            found += [("crash", lambda: self.crash(number))] * 2
        if self.commit is not None:
            found += [("commit", self.committed)] * 2
        if self.move is not None:
            found += [("move", lambda: self.moved(number))] * 3
        if self.requests:
            found += [("answer", self.answer)] * 2
        if self.write is not None:
            found.append(("write", lambda: self.written(number)))
        for channel, stream in self.streams.items():
            if self.sessions[channel].number and self.next[channel] <= len(stream):
                found += [("deliver", lambda channel=channel: self.deliver(channel))] * 2
        if self.session.number and self.down < len(self.durable["out"]):
            found.append(("ack", lambda: self.ack(number)))
        return found

    def tick(self) -> None:
        self.now += 1.0
        self.give(was.Ticked(self.now))

    def crash(self, number: int) -> None:
        if self.commit is not None and number % 2:
            self.keep(self.commit.transaction)
        if isinstance(self.write, does.Write) and number % 3:
            self.apply(self.write)
        self.start()

    def connect(self) -> None:
        self.session = Session(1, self.session.number + 1)
        self.give(was.Connected(OUT, self.session, self.down))

    def ack(self, number: int) -> None:
        self.down += 1 + number % (len(self.durable["out"]) - self.down)
        self.give(was.Acked(OUT, self.session, self.down, IdSet(number % (self.down + 1)), 0))

    def committed(self) -> None:
        assert self.commit is not None
        commit, self.commit = self.commit, None
        self.keep(commit.transaction)
        self.give(was.Committed(commit.number))

    def keep(self, transaction: Transaction) -> None:
        self.log.commit(transaction)
        self.journal.extend(transaction.journal)
        self.cursors.update(transaction.cursors)
        for made in transaction.outputs:
            known = self.durable[made.event.port]
            assert made.event.id == len(known) + 1, "ids have no gaps"
            known[made.event.id] = made

    def deliver(self, channel: Channel) -> None:
        self.next[channel] += 1
        self.give(was.Received(channel, self.sessions[channel], self.streams[channel][self.next[channel] - 2]))

    def apply(self, write: does.Write) -> None:
        self.system.apply(self.kind, self.action(write))

    def action(self, write: does.Write | does.Check) -> WriteAction:
        return WriteAction("log/op/0/db", write.number, write.output.event.batch)

    def written(self, number: int) -> None:
        write, self.write = self.write, None
        if isinstance(write, does.Check):
            self.give(was.Checked("db", write.number, self.system.has(self.action(write))))
            return
        assert isinstance(write, does.Write)
        if number % 4:
            self.apply(write)
        self.give(was.Written("db", write.number) if number % 4 > 1 else was.WriteUnknown("db", write.number))

    def answer(self) -> None:
        match self.requests.popleft():
            case does.Fetch() as wanted:
                found = self.log.outputs(wanted.port, wanted.first, wanted.limit)
                self.give(was.Fetched(wanted.port, wanted.first, tuple(found)))
            case does.Pull() as wanted:
                self.give(was.Pulled(tuple(self.streams[channel][number - 1] for channel, number in wanted.events)))
            case does.Survey() as wanted:
                self.give(was.Surveyed(self.log.expired(wanted.released, wanted.targets)))

    def moved(self, number: int) -> None:
        move, self.move = self.move, None
        opened = list(self.kernel.sets)
        match move:
            case does.Fold():
                keys = [encode(key) for key in ("a", "b", "c")[: number % 4]]
                timers = {"t": self.now + 2} if number % 5 == 0 else {}
                changes = changed(state={"n": number}, timers=timers)
                self.give(was.Folded(tuple((key, None) for key in keys), changes, CHOICES))
            case does.Refold():
                self.give(was.Refolded())
            case does.Ask():
                group = opened[: number % 3] if number % 2 else []
                self.give(answered(*map(decode, group)))
            case does.Generate() | does.Finish():
                self.give(generated(*("out", "db", "out")[: number % 4]))
            case does.Fire():
                self.give(fired())

    # What must hold

    def give(self, given: was.Input) -> None:
        for effect in self.kernel.step(given):
            self.see(effect)
        self.kernel.check()

    def see(self, effect: Effect) -> None:
        match effect:
            case does.Commit():
                assert self.commit is None, "one commit at a time"
                assert effect.number == self.commit_number + 1
                self.commit_number += 1
                self.log.stage(effect.transaction)
                self.commit = effect
            case does.Send():
                logged = self.durable["out"].get(effect.event.id)
                assert logged is not None, "what is sent is committed"
                assert logged.event.same(effect.event)
                for _, number in logged.requires:
                    assert self.system.has(WriteAction("log/op/0/db", number, as_batch([]))), "after its writes"
            case does.Ack():
                cursor = self.cursors.get(effect.channel)
                assigned, released = (0, IdSet()) if cursor is None else (cursor.assigned, cursor.released)
                assert effect.assigned <= assigned, "what is acknowledged is committed"
                assert not effect.released.minus(released), "what is released is committed"
            case does.Write() | does.Check():
                assert effect.number in self.durable["db"], "what is written is committed"
                assert self.write is None, "one write at a time"
                self.write = effect
            case does.Connect():
                assert effect.assigned == (
                    self.cursors[effect.channel].assigned if effect.channel in self.cursors else 0
                )
                self.sessions[effect.channel] = effect.session
                self.next[effect.channel] = effect.assigned + 1
            case does.Fetch() | does.Pull() | does.Survey():
                self.requests.append(effect)
            case does.Complete():
                self.is_complete = True
            case does.Fail():
                raise AssertionError(effect.message)
            case does.Hello() | does.Alarm():
                pass
            case _:
                self.begin(effect)

    def begin(self, move: Effect) -> None:
        assert self.move is None, "one move at a time"
        self.move = move
        if self.undone:
            assert isinstance(move, does.Refold), "nothing before the last undone pair is folded"
            pair = self.undone.popleft()
            assert (move.channel, move.event.id, move.key) == (pair.channel, pair.event, pair.key)
        else:
            assert not isinstance(move, does.Refold)
        if isinstance(move, does.Fold):
            self.folded[move.channel] += 1
            assert move.event.id == self.folded[move.channel], "each event once, in order"

    def finish(self) -> None:
        """Nothing goes wrong any more."""
        self.connect()
        for number in range(2000):
            wanted = [
                choice
                for choice in self.choices(7)
                if choice[0] in ("commit", "move", "answer", "write", "deliver", "ack", "tick")
            ]
            if self.is_complete and self.down == len(self.durable["out"]):
                return
            name, run = wanted[number % len(wanted)]
            if name == "move":
                self.moved(6)  # `ready` answers nothing; a generation gives three outputs.
            else:
                run()
        raise AssertionError("stuck")


@settings(max_examples=150, deadline=None)
@given(
    script=SCRIPT,
    kind=st.sampled_from(list(Kind)),
    sizes=st.builds(
        Settings, window=SIZES, commit_max=SIZES, cache_max=SIZES, pull_max=SIZES, survey_every=SIZES, backlog_max=SIZES
    ),
    is_captured=st.booleans(),
    writes_first=st.booleans(),
)
def test_only_the_answer_of_a_commit_allows_anything_to_leave(
    script: list[int], kind: Kind, sizes: Settings, is_captured: bool, writes_first: bool
) -> None:
    play = Play(kind, sizes, is_captured=is_captured, writes_first=writes_first)
    for number in script:
        options = play.choices(number)
        options[number % len(options)][1]()
    play.finish()
    for channel, stream in play.streams.items():
        taken = [each.event for each in play.journal if isinstance(each, did.Took) and each.channel == channel]
        assert taken == list(range(1, len(stream))), "every event joined the history once, in order"
    assert sum(isinstance(each, did.Closed) for each in play.journal) == 1
    assert [action.number for action in play.system.applied] == list(range(1, len(play.durable["db"]) + 1))
    assert play.log.recover().undone == []
    assert play.durable["out"][len(play.durable["out"])].event.is_end
