"""The simulated world: processes, disk, network, clock and supervision, stepped by one seeded scheduler.

A run is a sequence of points: something a process is about to do. A fault strikes at a point. Everything that can
happen next is an actor in one list, and the seed picks the next; so a schedule says all, and any run can be repeated.
"""

from __future__ import annotations

import copy
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clew.errors import Fenced, LogDamaged, MoveError, Violation
from clew.log.contract import ReplicaLog, Store
from clew.log.memory import MemoryStore
from clew.model.connection import Kind
from clew.model.graph import Graph
from clew.model.history import Output, Transaction
from clew.model.names import Channel, Replica
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.logio import OperatorKernel
from clew.protocol.moves import Moves
from clew.protocol.replica import ReplicaKernel
from clew.protocol.settings import Settings
from clew.protocol.source import SourceKernel
from clew.verify.archive import Archive, Shelf
from clew.verify.invariants import Invariants
from clew.verify.outside import Outside
from clew.verify.schedule import Fault, FaultKind, Schedule

_EPOCH = 1_700_000_000.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What a world is built from; the canaries exchange one part for a broken one."""

    operator: type[OperatorKernel] = OperatorKernel
    source: type[SourceKernel] = SourceKernel
    moves: type[Moves] = Moves
    store: Callable[[Graph], Store] = field(default=lambda graph: MemoryStore(graph.describe(), "5eed"))
    settings: Settings | None = None
    """None: sizes are chosen by the seed, mostly small ones."""


class Actor:
    """Something that can happen next while it is on the list."""

    __slots__ = ("place",)

    def __init__(self) -> None:
        self.place = -1

    def act(self, world: World) -> None:
        """Makes it happen."""
        raise NotImplementedError


class Link(Actor):
    """One direction of a channel as one process uses it: messages arrive in the order sent, or not at all."""

    __slots__ = ("messages", "target")

    def __init__(self, target: Replica) -> None:
        super().__init__()
        self.target = target
        self.messages: deque[was.Input] = deque()

    def act(self, world: World) -> None:
        message = self.messages.popleft()
        if not self.messages:
            world.disable(self)
        process = world.current.get(self.target)
        if process is not None and process.is_running:
            process.take(message)


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
        world.write(process, self.connection, self.output)
        if fault is FaultKind.AFTER:
            world.crash(process)
        elif fault is FaultKind.LOSE and process.is_running:
            process.take(was.WriteUnknown(self.connection, self.output.event.id))
        elif process.is_running:
            process.take(was.Written(self.connection, self.output.event.id))


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
        "answers",
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
        self.requests: dict[str, Request] = {}
        self.links: dict[tuple[Channel, bool], Link] = {}
        node = world.graph.nodes[replica.operator]
        inbound, outbound = world.graph.inbound(replica), world.graph.outbound(replica)
        self.kernel: ReplicaKernel = (
            world.parts.source(node, replica, outbound, world.settings)
            if node.is_source
            else world.parts.operator(node, replica, inbound, outbound, world.settings)
        )
        self.moves = world.parts.moves(node, copy.deepcopy(node.definition), self)

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
            world.note(self, f"<- {_brief(given)}")
        try:
            effects = self.kernel.step(given)
            if world.invariants is not None:
                self.kernel.check()
        except AssertionError as error:
            raise Violation(f"{self.replica}: the kernel's invariant is broken: {error}") from error
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
            world.note(self, f"-> {_brief(effect)}")
        _PERFORM[type(effect)](self, effect)
        if fault is FaultKind.AFTER and self.is_alive:
            world.crash(self)

    def do_move(self, effect: does.Move) -> None:
        """Runs user code and hands its result over."""
        try:
            result = self.moves.perform(effect)
        except MoveError as error:
            raise Violation(str(error)) from error
        self.take(result)

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
        if world.invariants is not None:
            world.invariants.on_send(self.replica, effect)
        self._link(effect.channel, True).messages.append(was.Received(effect.channel, effect.session, effect.event))

    def do_ack(self, effect: does.Ack) -> None:
        """Sends an acknowledgement."""
        if self.world.invariants is not None:
            self.world.invariants.on_ack(self.replica, effect)
        message = was.Acked(effect.channel, effect.session, effect.assigned, effect.released)
        self._link(effect.channel, False).messages.append(message)

    def do_hello(self, effect: does.Hello) -> None:
        """Greets a receiver."""
        self._link(effect.channel, True).messages.append(was.Greeted(effect.channel, effect.incarnation))

    def do_connect(self, effect: does.Connect) -> None:
        """Asks a sender for events."""
        message = was.Connected(effect.channel, effect.session, effect.assigned)
        self._link(effect.channel, False).messages.append(message)

    def _link(self, channel: Channel, is_forward: bool) -> Link:
        link = self.links.get((channel, is_forward))
        if link is None:
            link = self.links[channel, is_forward] = Link(channel.receiver if is_forward else channel.sender)
        if link.place < 0:
            self.world.enable(link)
        return link

    def do_fetch(self, effect: does.Fetch) -> None:
        """Reads outputs of its own log."""
        outputs = self.log.outputs(effect.port, effect.first, effect.limit)
        self.take(was.Fetched(effect.port, effect.first, tuple(outputs)))

    def do_fetch_effect(self, effect: does.FetchEffect) -> None:
        """Reads a stored effect of its own log."""
        stored = self.log.effect(effect.action, effect.first, effect.limit)
        self.take(was.EffectFetched(effect.action, tuple(stored)))

    def do_pull(self, effect: does.Pull) -> None:
        """Reads events of its senders' logs."""
        events = []
        for channel, number in effect.events:
            found = self.world.reader.events(channel.sender, channel.output, [number])
            if not found:
                raise Violation(f"{self.replica}: undone event {channel.sender}.{channel.output}/{number} is gone")
            events.extend(found)
        self.take(was.Pulled(tuple(events)))

    def do_survey(self, effect: does.Survey) -> None:
        """Asks its own log what can go."""
        self.take(was.Surveyed(self.log.expired(effect.released, effect.targets)))

    def do_write(self, effect: does.Write) -> None:
        """Sends a write action to an outside system."""
        world = self.world
        if effect.connection in self.requests:
            raise Violation(f"{self.replica}: a second write on {effect.connection!r} was begun while one was under way")
        if world.invariants is not None:
            world.invariants.on_write(self.replica, effect)
        request = self.requests[effect.connection] = Request(self, effect.connection, effect.output)
        world.enable(request)

    def do_check(self, effect: does.Check) -> None:
        """Asks an outside system whether a write action is in."""
        world = self.world
        is_in = world.outside.has(world.store.log_id, self.replica, effect.connection, effect.output)
        self.take(was.Checked(effect.connection, effect.number, is_in))

    def do_alarm(self, effect: does.Alarm) -> None:
        """Waits for a time."""
        self.world.alarms.append((effect.at, self))

    def do_complete(self, effect: does.Complete) -> None:
        """Has nothing left to do."""
        self.is_complete = True

    def do_fail(self, effect: does.Fail) -> None:
        """Cannot go on."""
        raise Violation(effect.message)


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
    does.Alarm: Process.do_alarm,
    does.Complete: Process.do_complete,
    does.Fail: Process.do_fail,
}


class World:
    """One simulated run of a pipeline."""

    def __init__(
        self, graph: Graph, schedule: Schedule, parts: Parts = Parts(), is_checking: bool = True, is_tracing: bool = False
    ) -> None:
        self.graph = graph
        self.schedule = schedule
        self.parts = parts
        self.trace: list[str] | None = [] if is_tracing else None
        self.chance = random.Random(schedule.seed)
        self.user_chance = random.Random(schedule.seed + 1)
        self.settings = parts.settings or _sizes(random.Random(f"sizes {schedule.seed}"))
        self.store = parts.store(graph)
        self.reader = self.store.reader()
        self.outside = Outside(graph)
        self.archive: Archive = {replica: Shelf() for replica in graph.replicas}
        self.invariants = (
            Invariants(graph, self.archive, self.outside, self.store.log_id) if is_checking else None
        )
        self.now = _EPOCH
        self.points = 0
        self.steps = 0
        self.fault_log: list[tuple[int, str, Replica | None]] = []
        self.faults: deque[Fault] = deque(sorted(schedule.faults, key=lambda fault: fault.at))
        self.strike_at = self.faults[0].at if self.faults else _NEVER
        self.wakes: list[tuple[int, Process]] = []
        self.ready: list[Actor] = []
        self.alarms: list[tuple[float, Process]] = []
        self.current: dict[Replica, Process] = {}
        self.zombies: list[Process] = []
        self.restarts = 0
        for replica in graph.replicas:
            self.enable(Restart(replica))

    # The list of what can happen next

    def enable(self, actor: Actor) -> None:
        """Puts an actor on the list."""
        if actor.place < 0:
            actor.place = len(self.ready)
            self.ready.append(actor)

    def disable(self, actor: Actor) -> None:
        """Takes an actor off the list."""
        place = actor.place
        if place >= 0:
            last = self.ready.pop()
            if last is not actor:
                self.ready[place] = last
                last.place = place
            actor.place = -1

    def run(self, steps_max: int) -> None:
        """Runs to the end; raises a violation when it is stuck or does not come to an end."""
        pick = self.chance.random
        ready = self.ready
        while True:
            self.steps += 1
            if self.steps > steps_max:
                raise Violation(f"no end after {steps_max} steps: {self._unfinished()}")
            if self.wakes:
                self._wake()
            if not ready and not self._idle():
                return
            self.now += 0.0001
            if self.steps % 64 == 0:
                self._tick()
            if ready:
                ready[int(pick() * len(ready))].act(self)

    def _tick(self) -> None:
        """Lets a process look at the clock; those whose alarm is due come first."""
        due = [process for at, process in self.alarms if at <= self.now]
        if due:
            self.alarms = [alarm for alarm in self.alarms if alarm[0] > self.now]
        elif self.current:
            due = [self.chance.choice(list(self.current.values()))]
        for process in due:
            if process.is_running:
                process.take(was.Ticked(self.now))

    def _idle(self) -> bool:
        """Nothing can happen now: time goes on, sleepers wake up; False when the run is over."""
        if self.zombies:
            for process in list(self.zombies):
                self._resume(process)
                if not self.ready:
                    self.crash(process)
            return True
        self.alarms = [alarm for alarm in self.alarms if alarm[1].is_running]
        is_over = all(self._is_complete(replica) for replica in self.graph.replicas)
        if is_over:
            return False
        if not self.alarms:
            raise Violation(f"stuck: nothing can happen any more; {self._unfinished()}")
        self.now = max(self.now, min(at for at, _ in self.alarms))
        self._tick()
        return True

    def _is_complete(self, replica: Replica) -> bool:
        process = self.current.get(replica)
        return process is not None and process.is_complete

    def _unfinished(self) -> str:
        waiting = [str(replica) for replica in self.graph.replicas if not self._is_complete(replica)]
        return f"not finished: {', '.join(waiting)}" if waiting else "all have finished"

    # Processes

    def start(self, replica: Replica) -> None:
        """Begins the next incarnation of a replica."""
        log = self.store.open(replica)
        process = Process(self, replica, log)
        self.current[replica] = process
        if self.trace is not None:
            self.note(process, f"begins as incarnation {log.incarnation}")
        try:
            process.moves.open()
        except MoveError as error:
            raise Violation(str(error)) from error
        is_dead = not any(zombie.replica == replica for zombie in self.zombies)
        process.take(was.Started(log.recover(), self.now, is_dead))

    def crash(self, process: Process) -> None:
        """A process dies, with all it had in memory; what it had under way may or may not happen."""
        process.is_alive = False
        self.disable(process)
        process.effects.clear()
        disk = process.disk
        if disk.commit is not None:
            transaction, disk.commit = disk.commit.transaction, None
            self.disable(disk)
            if self.chance.random() < 0.5:
                self.commit(process, transaction)
        for connection, request in list(process.requests.items()):
            self._abandon(process, connection, request)
        if self.chance.random() < 0.5:
            for link in process.links.values():
                link.messages.clear()
                self.disable(link)
        if process in self.zombies:
            self.zombies.remove(process)
        self.wakes = [wake for wake in self.wakes if wake[1] is not process]
        if self.trace is not None:
            self.note(process, "died")
        if self.current.get(process.replica) is process:
            del self.current[process.replica]
            self.restarts += 1
            self.enable(Restart(process.replica))
        else:
            successor = self.current.get(process.replica)
            if successor is not None and not any(each.replica == process.replica for each in self.zombies):
                successor.take(was.Buried())

    def _abandon(self, process: Process, connection: str, request: Request) -> None:
        """A request under way when its process died: done, lost, or, where that is safe, done much later."""
        fate = self.chance.random()
        kind = Kind(self.graph.nodes[process.replica.operator].writes[connection].kind or "")
        if fate < 0.4:
            self.write(process, connection, request.output)
        elif fate < 0.6 and kind is Kind.CONDITIONAL:
            return
        process.requests.pop(connection)
        self.disable(request)

    def pause(self, process: Process, length: int) -> None:
        """A process stops and is taken for dead; it will wake up later."""
        process.is_paused = True
        self.disable(process)
        self.disable(process.disk)
        self.zombies.append(process)
        self.wakes.append((self.points + length, process))
        if self.trace is not None:
            self.note(process, "is paused and taken for dead")
        if self.current.get(process.replica) is process:
            del self.current[process.replica]
            self.restarts += 1
            self.enable(Restart(process.replica))

    def _wake(self) -> None:
        for at, process in list(self.wakes):
            if self.points >= at:
                self._resume(process)

    def _resume(self, process: Process) -> None:
        self.wakes = [wake for wake in self.wakes if wake[1] is not process]
        if process.is_alive and process.is_paused:
            process.is_paused = False
            if self.trace is not None:
                self.note(process, "wakes up")
            if process.effects:
                self.enable(process)
            if process.disk.commit is not None:
                self.enable(process.disk)
            for request in process.requests.values():
                self.enable(request)

    # Faults

    def point(self, process: Process, what: str) -> FaultKind | None:
        """Counts a point; strikes if a fault is due here."""
        self.points += 1
        return self.strike(process, what) if self.points >= self.strike_at else None

    def strike(self, process: Process, what: str) -> FaultKind | None:
        """The fault that is due strikes; tells the caller whether to go on and what to do afterwards."""
        fault = self.faults.popleft()
        self.strike_at = self.faults[0].at if self.faults else _NEVER
        self.fault_log.append((self.points, str(fault.kind), process.replica))
        if self.trace is not None:
            self.note(process, f"** {fault.kind} at its {what}")
        match fault.kind:
            case FaultKind.CRASH:
                if what == "commit":
                    self._lose_commit(process)
                self.crash(process)
                return FaultKind.CRASH
            case FaultKind.POWER:
                for each in [*self.zombies, *self.current.values()]:
                    self.crash(each)
                return FaultKind.CRASH
            case FaultKind.PAUSE:
                self.pause(process, fault.length)
                return FaultKind.CRASH  # It does not go on now.
        return fault.kind

    # The disk

    def _lose_commit(self, process: Process) -> None:
        process.disk.commit = None
        self.disable(process.disk)

    def commit(self, process: Process, transaction: Transaction) -> bool:
        """Makes a transaction durable; False when the process turned out to be fenced and ended."""
        try:
            process.log.commit(transaction)
        except Fenced:
            if self.trace is not None:
                self.note(process, "is fenced")
            if process.is_alive:
                self.crash(process)
            return False
        except LogDamaged as error:
            raise Violation(f"{process.replica}: {error}") from error
        if self.invariants is not None:
            self.invariants.on_commit(process.replica, transaction)
        self.archive[process.replica].add(transaction)
        if self.trace is not None:
            self.note(process, f"committed {_brief(transaction)}")
        return True

    # The outside

    def write(self, process: Process, connection: str, output: Output) -> None:
        """A write action takes effect."""
        self.outside.write(self.store.log_id, process.replica, connection, output)
        if self.trace is not None:
            self.note(process, f"wrote {connection}/{output.event.id}")

    def note(self, process: Process, what: str) -> None:
        """Adds a line to the trace."""
        assert self.trace is not None
        self.trace.append(f"{self.points:5d} {process.replica}#{process.log.incarnation} {what}")


_NEVER = 1 << 60


def _sizes(chance: random.Random) -> Settings:
    """Small sizes find more than large ones."""
    return Settings(
        window=chance.choice([1, 2, 4, 16, 64]),
        commit_max=chance.choice([1, 2, 8, 128]),
        cache_max=chance.choice([1, 4, 128]),
        read_max=chance.choice([1, 3, 16]),
        backlog_max=chance.choice([4, 32, 256]),
        pull_max=chance.choice([1, 5, 64]),
        survey_every=chance.choice([1, 4, 64]),
    )


def _brief(value: Any) -> str:
    """One line about an input, an effect or a transaction."""
    match value:
        case does.Commit():
            return f"Commit {_brief(value.transaction)}"
        case was.Started():
            return f"Started({len(value.recovered.undone)} undone pairs)"
        case Transaction():
            parts = [f"{output.event.port}/{output.event.id}" for output in value.outputs]
            parts += [f"{cursor.channel.input}<{cursor.event}" for cursor in value.pairs]
            parts += [f"{name}={number}" for name, number in value.counters.items() if name.startswith("written")]
            return "[" + ", ".join(parts) + "]"
    text = repr(value)
    return text if len(text) <= 160 else text[:157] + "..."
