"""Simulated processes, and what they have under way: commits, write requests, messages.

Each of them is an actor: something that can happen next. A process does what its kernel asked for, one effect at a
time; a commit, a write request or a message completes on its own, whenever the scheduler picks it.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew.errors import ClewError, MoveError, Violation
from clew.log.contract import ReplicaLog
from clew.model.graph import Node
from clew.model.history import Output, Transaction
from clew.model.names import Channel, Replica
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.replica import ReplicaKernel
from clew.verify.actor import Actor, Link
from clew.verify.brief import brief
from clew.verify.schedule import FaultKind
from clew.verify.tracking import Announcements

if TYPE_CHECKING:
    from clew.verify.world import World


class Disk(Actor):
    """The commit that a process has under way."""

    __slots__ = ("commit", "process")

    def __init__(self, process: Process) -> None:
        super().__init__()
        self.process = process
        self.commit: does.Commit | None = None

    def act(self, world: World) -> None:
        process, commit = self.process, self.commit
        assert commit is not None
        fault = world.point(process, "commit")
        if fault is FaultKind.CRASH:
            return
        self.commit = None
        world.disable(self)
        if not world.commit(process, commit.transaction):
            return
        if fault is FaultKind.AFTER:
            world.crash(process)
        else:
            process.moves.saved(commit.transaction.state)
            process.take(was.Committed(commit.number))


class Request(Actor):
    """A write action on its way to an outside system."""

    __slots__ = ("connection", "output", "process")

    def __init__(self, process: Process, connection: str, output: Output) -> None:
        super().__init__()
        self.process = process
        self.connection = connection
        self.output = output

    def act(self, world: World) -> None:
        process = self.process
        if process.is_alive:
            if process.is_paused:
                world.disable(self)
                return
            fault = world.point(process, "write")
            if fault is FaultKind.CRASH:
                return
        else:
            fault = None
        world.disable(self)
        process.requests.pop(self.connection, None)
        if fault is not FaultKind.LOSE or world.chance.random() < 0.5:
            world.write(process, self.connection, self.output)
        if fault is FaultKind.AFTER:
            world.crash(process)
        elif fault is FaultKind.LOSE and process.is_running:
            process.take(was.WriteUnknown(self.connection, self.output.event.id))
        elif process.is_running:
            process.take(was.Written(self.connection, self.output.event.id))


class Answers(Actor):
    """What a process asked its log or an outside system for, on its way back to it."""

    __slots__ = ("inputs", "process")

    def __init__(self, process: Process) -> None:
        super().__init__()
        self.process = process
        self.inputs: deque[was.Input] = deque()

    def act(self, world: World) -> None:
        given = self.inputs.popleft()
        if not self.inputs:
            world.disable(self)
        self.process.take(given)


class Notice(Actor):
    """A broken connection, on its way to become known to one of its ends; until then, what that end sends is lost."""

    __slots__ = ("channel", "process", "session")

    def __init__(self, process: Process, channel: Channel) -> None:
        super().__init__()
        self.process = process
        self.channel = channel
        self.session = process.kernel.session(channel)

    def act(self, world: World) -> None:
        world.disable(self)
        process = self.process
        if process.is_running:
            if process.replica == self.channel.receiver and process.is_cut(self.channel):
                self.session = process.kernel.session(self.channel)  # What it began meanwhile was lost as well.
            process.cut.pop(self.channel, None)
            if self.session is not None:
                process.take(was.Broken(self.channel, self.session))


class Restart(Actor):
    """A replica that has no process and will get one."""

    __slots__ = ("replica",)

    def __init__(self, replica: Replica) -> None:
        super().__init__()
        self.replica = replica

    def act(self, world: World) -> None:
        world.disable(self)
        world.start(self.replica)


class Process(Actor):
    """One incarnation of a replica: its kernel, its user code and what it was asked to do but has not begun yet."""

    __slots__ = (
        "announcements",
        "answers",
        "cut",
        "disk",
        "effects",
        "is_alive",
        "is_complete",
        "is_paused",
        "kernel",
        "links",
        "log",
        "moves",
        "replica",
        "requests",
        "world",
    )

    def __init__(self, world: World, replica: Replica, log: ReplicaLog) -> None:
        super().__init__()
        self.world = world
        self.replica = replica
        self.log = log
        self.is_alive = True
        self.is_paused = False
        self.is_complete = False
        self.effects: deque[does.Effect] = deque()
        self.disk = Disk(self)
        self.answers = Answers(self)
        self.announcements = Announcements(self)
        self.requests: dict[str, Request] = {}
        self.links: dict[tuple[Channel, bool], Link] = {}
        self.cut: dict[Channel, Process | None] = {}
        """Connections that are broken without its knowledge, and the process at the other end."""
        node = world.graph.nodes[replica.operator]
        inbound, outbound = world.graph.inbound(replica), world.graph.outbound(replica)
        self.kernel: ReplicaKernel = (
            world.parts.source(node, replica, outbound, world.settings)
            if node.is_source
            else world.parts.operator(node, replica, inbound, outbound, world.settings)
        )
        self.moves = world.parts.moves(node, _fresh(node), self)

    @property
    def is_running(self) -> bool:
        return self.is_alive and not self.is_paused

    # What its moves may look at

    def now(self) -> float:
        """The simulated clock."""
        return self.world.now

    def seed(self) -> int:
        """Chance, from the schedule's seed."""
        return self.world.chance.getrandbits(32)

    def read(self, connection: str, query: Any) -> Any:
        """A read action on a simulated outside system."""
        operator = self.replica.operator
        reader = self.world.graph.nodes[operator].reads[connection]
        return self.world.outside.read(reader, operator, connection, query)

    def backlog(self, port: str) -> int:
        """How far the slowest receiver is behind."""
        return self.kernel.ports[port].backlog()

    def state(self, key: bytes) -> bytes | None:
        """One committed state value."""
        return self.log.state(key)

    def state_items(self) -> list[tuple[bytes, bytes]]:
        """All committed state."""
        return self.log.state_items()

    # What it does

    def take(self, given: was.Input) -> None:
        """Gives the kernel an input and queues the effects."""
        world = self.world
        if world.trace is not None:
            world.note(self, f"<- {brief(given)}")
        try:
            effects = self.kernel.step(given)
            if world.invariants is not None:
                self.kernel.check()
        except AssertionError as error:
            raise Violation(f"{self.replica}: the kernel's invariant is broken: {error}") from error
        except (Violation, KeyboardInterrupt):
            raise
        except Exception as error:
            raise Violation(f"{self.replica}: the kernel raised {type(error).__name__}: {error}") from error
        if effects:
            self.effects.extend(effects)
            if self.place < 0 and not self.is_paused:
                world.enable(self)

    def act(self, world: World) -> None:
        world.points += 1
        fault = None
        if world.points >= world.strike_at:
            fault = world.strike(self, "effect")
            if fault is FaultKind.CRASH:
                return
        effect = self.effects.popleft()
        if not self.effects:
            world.disable(self)
        if world.trace is not None:
            world.note(self, f"-> {brief(effect)}")
        _PERFORM[type(effect)](self, effect)
        if fault is FaultKind.AFTER and self.is_alive:
            world.crash(self)

    def do_move(self, effect: does.Move) -> None:
        """Runs user code and hands its result over."""
        if self.world.crash_points and isinstance(effect, does.Fold):
            operator, index = self.replica
            for name in (operator, f"{operator}/{index}"):
                if (name, effect.event.id) in self.world.crash_points:
                    self.world.crash_points.remove((name, effect.event.id))
                    self.world.crash(self)
                    return
        try:
            result = self.moves.perform(effect)
        except MoveError as error:
            self.world.fail(self, effect, str(error))
            return
        if isinstance(effect, does.Read) and isinstance(result, was.Got):
            self.world.outside.gave(self.replica, effect.action, result)
        self.take(result)

    def _answer(self, given: was.Input) -> None:
        self.answers.inputs.append(given)
        self.world.enable(self.answers)

    def do_commit(self, effect: does.Commit) -> None:
        """Begins a commit; it becomes durable later, or never."""
        if self.disk.commit is not None:
            raise Violation(f"{self.replica}: a commit was begun while another was under way")
        self.log.stage(effect.transaction)
        self.disk.commit = effect
        self.world.enable(self.disk)

    def do_send(self, effect: does.Send) -> None:
        """Sends an event."""
        world = self.world
        if world.invariants is not None and world.is_judged(self):
            world.invariants.on_send(self.replica, self.log.incarnation, effect)
        self._post(effect.channel, True, was.Received(effect.channel, effect.session, effect.event))

    def do_ack(self, effect: does.Ack) -> None:
        """Sends an acknowledgement."""
        if self.world.invariants is not None and self.world.is_judged(self):
            self.world.invariants.on_ack(self.replica, effect)
        message = was.Acked(effect.channel, effect.session, effect.assigned, effect.released, effect.pressure)
        self._post(effect.channel, False, message)

    def do_hello(self, effect: does.Hello) -> None:
        """Greets a receiver."""
        self._post(effect.channel, True, was.Greeted(effect.channel, effect.incarnation))

    def do_connect(self, effect: does.Connect) -> None:
        """Asks a sender for events."""
        self._post(effect.channel, False, was.Connected(effect.channel, effect.session, effect.assigned))

    def _post(self, channel: Channel, is_forward: bool, message: was.Input) -> None:
        if self.cut and self.is_cut(channel):
            return
        link = self.links.get((channel, is_forward))
        if link is None:
            link = self.links[channel, is_forward] = Link(channel.receiver if is_forward else channel.sender)
        link.messages.append(message)
        if link.place < 0:
            self.world.enable(link)

    def is_cut(self, channel: Channel) -> bool:
        """Whether what is sent on a channel now is lost; a new process at the other end is another connection."""
        other = channel.receiver if channel.sender == self.replica else channel.sender
        return channel in self.cut and self.world.current.get(other) is self.cut[channel]

    def do_fetch(self, effect: does.Fetch) -> None:
        """Reads outputs of its own log."""
        outputs = self.log.outputs(effect.port, effect.first, effect.limit)
        self._answer(was.Fetched(effect.port, effect.first, tuple(outputs)))

    def do_fetch_effect(self, effect: does.FetchEffect) -> None:
        """Reads a stored effect of its own log."""
        stored = self.log.effect(effect.action, effect.first, effect.limit)
        self._answer(was.EffectFetched(effect.action, tuple(stored)))

    def do_pull(self, effect: does.Pull) -> None:
        """Reads events of its senders' logs."""
        events = []
        for channel, number in effect.events:
            found = self.world.events(self, channel, number)
            if not found:
                if not self.world.commit(self, Transaction()):
                    return  # A successor has finished with it; this process is fenced and has ended.
                raise Violation(f"{self.replica}: undone event {channel.sender}.{channel.output}/{number} is gone")
            events.extend(found)
        self._answer(was.Pulled(tuple(events)))

    def do_survey(self, effect: does.Survey) -> None:
        """Asks its own log what can go."""
        self._answer(was.Surveyed(self.log.expired(effect.released, effect.targets)))

    def do_write(self, effect: does.Write) -> None:
        """Sends a write action to an outside system."""
        world = self.world
        if effect.connection in self.requests:
            raise Violation(f"{self.replica}: a second write on {effect.connection!r} is begun while one is under way")
        world.begin_write(self, effect)
        request = self.requests[effect.connection] = Request(self, effect.connection, effect.output)
        world.enable(request)

    def do_check(self, effect: does.Check) -> None:
        """Asks an outside system whether a write action is in."""
        world = self.world
        is_in = world.outside.has(world.store.log_id, self.replica, effect.connection, effect.output)
        self._answer(was.Checked(effect.connection, effect.number, is_in))

    def do_announce(self, effect: does.Announce) -> None:
        """Tells the tracker what has become durable."""
        world = self.world
        if world.tracking is not None:
            self.announcements.messages.append(effect)
            world.enable(self.announcements)

    def do_snapshot(self, effect: does.Snapshot) -> None:
        """Captures what it knows."""
        self.world.snapshot(self, effect)

    def do_alarm(self, effect: does.Alarm) -> None:
        """Waits for a time."""
        self.world.alarms.append((effect.at, self))

    def do_complete(self, effect: does.Complete) -> None:
        """Has nothing left to do."""
        self.world.on_done(self)
        self.is_complete = True

    def do_fail(self, effect: does.Fail) -> None:
        """Cannot go on; unless a successor has taken over, whose state a lazy look into the log may have shown."""
        if self.world.commit(self, Transaction()):
            raise Violation(effect.message)


def _fresh(node: Node) -> Any:
    """The operator as a new process gets it."""
    try:
        return copy.deepcopy(node.definition)
    except Exception as error:
        raise ClewError(
            f"operator {node.name!r}, a {type(node.definition).__name__}, cannot be copied: {error}. Every process "
            f"begins with a copy of its operator; make what cannot be copied in open() instead of __init__()."
        ) from error


_PERFORM: dict[type, Callable[[Process, Any], None]] = {
    **dict.fromkeys(does.MOVES, Process.do_move),
    does.Commit: Process.do_commit,
    does.Send: Process.do_send,
    does.Ack: Process.do_ack,
    does.Hello: Process.do_hello,
    does.Connect: Process.do_connect,
    does.Fetch: Process.do_fetch,
    does.FetchEffect: Process.do_fetch_effect,
    does.Pull: Process.do_pull,
    does.Survey: Process.do_survey,
    does.Write: Process.do_write,
    does.Check: Process.do_check,
    does.Announce: Process.do_announce,
    does.Snapshot: Process.do_snapshot,
    does.Alarm: Process.do_alarm,
    does.Complete: Process.do_complete,
    does.Fail: Process.do_fail,
}
