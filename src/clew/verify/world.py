"""The simulated world: processes, disk, network, clock and supervision, stepped by one seeded scheduler.

A run is a sequence of points: something a process is about to do. A fault strikes at a point. Everything that can
happen next is an actor in one list, and the seed picks the next; so a schedule says all, and any run can be repeated.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from clew.errors import Fenced, LogDamaged, MoveError, Violation
from clew.log.contract import ReplicaLog
from clew.model.connection import Kind
from clew.model.event import Event
from clew.model.graph import Graph
from clew.model.history import Output, Transaction
from clew.model.names import Channel, Replica
from clew.model.values import decode
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.frontiers import frontiers_of
from clew.verify.actor import Actor
from clew.verify.archive import Archive, Shelf
from clew.verify.arrivals import Arrivals
from clew.verify.brief import brief
from clew.verify.failures import Failures
from clew.verify.invariants import Invariants
from clew.verify.outside import Outside
from clew.verify.parts import HEALTHY, Parts, small_sizes
from clew.verify.process import Notice, Process, Request, Restart
from clew.verify.schedule import Fault, FaultKind, Schedule
from clew.verify.tracking import Tracking

__all__ = ["Parts", "World"]

_EPOCH = 1_700_000_000.0
_NEVER = 1 << 60


class World:
    """One simulated run of a pipeline."""

    def __init__(
        self,
        graph: Graph,
        schedule: Schedule,
        parts: Parts = HEALTHY,
        is_checking: bool = True,
        is_tracing: bool = False,
        crash_points: Iterable[tuple[str, int]] = (),
    ) -> None:
        self.graph = graph
        self.schedule = schedule
        self.parts = parts
        self.trace: list[str] | None = [] if is_tracing else None
        self.chance = random.Random(schedule.seed)
        self.crash_points = set(crash_points)
        """Operators, or replicas such as `slow/1`, that die when they are about to take an event of this id, once."""
        sizes = parts.settings or small_sizes(random.Random(f"sizes {schedule.seed}"))
        spare = len(schedule.faults) + len(self.crash_points)  # Each may hit the same input, which is not to blame.
        self.settings = replace(sizes, tries=sizes.tries + spare)
        self.failures = Failures(self.settings.tries)
        self.deaths: dict[Replica, str | None] = {}
        """What each replica's last process died of: an error, or nothing; None if it was not even at work."""
        self.wariness = random.Random(f"wariness {schedule.seed}")
        self.store = parts.store(graph)
        self.reader = self.store.reader()
        self.outside = Outside(graph)
        self.archive: Archive = {replica: Shelf() for replica in graph.replicas}
        self.invariants = Invariants(graph, self.archive, self.outside, self.store.log_id) if is_checking else None
        self.tracking = self._tracking()
        self.arrivals = Arrivals(graph) if is_checking and self.tracking is not None else None
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
        self.announcing: list[Process] = []
        """Processes that may have announced what nobody has heard yet."""
        self.restarts = 0
        self.is_settled = False
        self._begin()

    def _begin(self) -> None:
        for replica in self.graph.replicas:
            self.enable(Restart(replica))

    def _tracking(self) -> Tracking | None:
        frontiers = frontiers_of(self.graph)
        return None if frontiers is None else Tracking(frontiers)

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
                if self.is_settled:
                    return
                self._settle()
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
        if self.arrivals is not None:
            if self._log_frontiers():
                return True
            self.arrivals.on_rest()
        is_over = all(self._is_complete(replica) for replica in self.graph.replicas)
        if is_over:
            return False
        self._check_alarms()
        at = self._next_alarm()
        if at is None:
            raise Violation(f"stuck: nothing can happen any more; {self._unfinished()}")
        self.now = max(self.now, at)
        self._tick()
        return True

    def _next_alarm(self) -> float | None:
        return min((at for at, _ in self.alarms), default=None)

    def _log_frontiers(self) -> bool:
        """Lets those look at the clock that have been shown a frontier and have not logged it yet."""
        for process in list(self.current.values()):
            if process.kernel.times is not None and process.kernel.times.is_prunable:
                process.take(was.Ticked(self.now))
        return bool(self.ready)

    def _check_alarms(self) -> None:
        """When nothing but time can bring the run on, whoever has a timer waits for it or for something before it."""
        for replica, process in self.current.items():
            timers = self._timers(replica, process)
            if timers and process.is_running:
                name, at = min(timers.items(), key=lambda timer: timer[1])
                if at > self.now and not any(alarm <= at for alarm, owner in self.alarms if owner is process):
                    raise Violation(f"{replica}: timer {decode(name)!r} is set for {at}, and nothing will ring it")

    def _timers(self, replica: Replica, process: Process) -> Mapping[bytes, float]:
        return self.reader.rows(replica).timers

    def _settle(self) -> None:
        """All have finished: everyone looks at the clock once more and forgets what it can."""
        self.is_settled = True
        for process in list(self.current.values()):
            process.take(was.Ticked(self.now))

    def expire(self, steps_max: int) -> None:
        """Lets all retention times pass after the end, and everyone forget what it can, hop by hop."""
        self.now += 1.0 + max((scope.keep_s or 0.0 for scope in self.graph.scopes), default=0.0)
        is_calm = False
        while not is_calm:
            restarts = self.restarts
            for _ in self.graph.replicas:
                self.is_settled = False
                self.run(steps_max)
            is_calm = self.restarts == restarts

    def _is_complete(self, replica: Replica) -> bool:
        process = self.current.get(replica)
        return process is not None and process.is_complete

    def _unfinished(self) -> str:
        waiting = [str(replica) for replica in self.graph.replicas if not self._is_complete(replica)]
        return f"not finished: {', '.join(waiting)}" if waiting else "all have finished"

    # Processes

    def start(self, replica: Replica) -> None:
        """Begins the next incarnation of a replica."""
        self.is_settled = False
        log = self._open(replica)
        if self.invariants is not None:
            self.invariants.on_start(replica, log.incarnation)
        process = Process(self, replica, log)
        self.current[replica] = process
        self.announcing = [each for each in self.announcing if each.is_alive or each.announcements.messages]
        self.announcing.append(process)
        if self.trace is not None:
            self.note(process, f"begins as incarnation {log.incarnation}")
        try:
            process.moves.open()
        except MoveError as error:
            raise Violation(str(error)) from error
        is_dead = not any(zombie.replica == replica for zombie in self.zombies)
        cause = self.deaths.get(replica)
        process.take(was.Started(log.recover(), self.now, is_dead, self._is_cautious(replica), cause or ""))

    def _open(self, replica: Replica) -> ReplicaLog:
        return self.store.open(replica)

    def _is_cautious(self, replica: Replica) -> bool:
        return replica in self.deaths and (self.deaths[replica] is not None or self.wariness.random() < 0.5)

    def _lost(self, replica: Replica) -> None:
        """A replica has no process any more."""
        del self.current[replica]
        self.restarts += 1
        self.enable(Restart(replica))

    def fail(self, process: Process, move: does.Move, error: str) -> None:
        """A move failed, and its process with it; unless a successor has taken over, whose state it may have seen."""
        if self.commit(process, Transaction()):
            self.failures.add(process.replica, move, error)
            self.crash(process, error)

    def crash(self, process: Process, error: str | None = None) -> None:
        """A process dies, with all it had in memory; what it had under way may or may not happen."""
        process.is_alive = False
        if self.current.get(process.replica) in (process, None):
            is_moving = bool(process.effects) and isinstance(process.effects[0], does.MOVES)
            self.deaths[process.replica] = "" if error is None and is_moving else error
        self.disable(process)
        self.disable(process.answers)
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
            self._silence(process)
        if process in self.zombies:
            self.zombies.remove(process)
        self.wakes = [wake for wake in self.wakes if wake[1] is not process]
        if self.trace is not None:
            self.note(process, "died")
        if self.current.get(process.replica) is process:
            self._lost(process.replica)
        else:
            successor = self.current.get(process.replica)
            if successor is not None and not any(each.replica == process.replica for each in self.zombies):
                successor.take(was.Buried())

    def _silence(self, process: Process) -> None:
        """What a process has announced and nobody has heard is lost."""
        process.announcements.messages.clear()
        self.disable(process.announcements)

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
        self.disable(process.answers)
        self.zombies.append(process)
        self.wakes.append((self.points + length, process))
        if self.trace is not None:
            self.note(process, "is paused and taken for dead")
        if self.current.get(process.replica) is process:
            self.deaths[process.replica] = None
            self._lost(process.replica)

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
            if process.answers.inputs:
                self.enable(process.answers)
            for request in process.requests.values():
                self.enable(request)

    # Faults

    def point(self, process: Process, what: str) -> FaultKind | None:
        """Counts a point; strikes if a fault is due here."""
        self.points += 1
        return self.strike(process, what) if self.points >= self.strike_at else None

    def strike(self, process: Process, what: str) -> FaultKind | None:
        """The fault that is due strikes; tells the caller whether to go on and what to do afterwards."""
        due = (each for each in self.faults if each.at <= self.points)
        fault = next((each for each in due if each.kind is not FaultKind.LOSE or what == "write"), None)
        if fault is None:
            return None  # Losing a write waits for a write.
        self.faults.remove(fault)
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
                self.power()
                return FaultKind.CRASH
            case FaultKind.PAUSE:
                self.pause(process, fault.length)
                return FaultKind.CRASH  # It does not go on now.
            case FaultKind.BREAK:
                self._break(process)
                return None
        return fault.kind

    def strikes_all(self, kinds: Iterable[FaultKind]) -> bool:
        """Whether a fault strikes whoever coordinates; here nobody does."""
        return False

    def power(self) -> None:
        """Everything that runs dies at once."""
        for each in [*self.zombies, *self.current.values()]:
            self.crash(each)
        self._forget_frontiers()
        if self.arrivals is not None:
            self.arrivals.on_power()

    def _forget_frontiers(self) -> None:
        """The tracker dies, and another begins."""
        if self.tracking is not None:
            for each in self.announcing:
                self._silence(each)
            self.tracking.stop(self)
            self.tracking = self._tracking()

    def _break(self, process: Process) -> None:
        """A connection is lost: what was under way is gone, and its ends hear of it, each at its own time."""
        channels = [*self.graph.inbound(process.replica), *self.graph.outbound(process.replica)]
        if not channels:
            return
        channel = self.chance.choice(channels)
        sender, receiver = self.current.get(channel.sender), self.current.get(channel.receiver)
        for end, peer in ((sender, receiver), (receiver, sender)):
            if end is None:
                continue
            for is_forward in (True, False):
                link = end.links.get((channel, is_forward))
                if link is not None:
                    link.messages.clear()
                    self.disable(link)
            end.cut[channel] = peer
            self.enable(Notice(end, channel))

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
        self._committed(process, transaction)
        if self.trace is not None:
            self.note(process, f"committed {brief(transaction)}")
        return True

    def _committed(self, process: Process, transaction: Transaction) -> None:
        if self.invariants is not None:
            self.invariants.on_fence(process.replica, process.log.incarnation)
            self.invariants.on_commit(process.replica, transaction, self.now)
        self.archive[process.replica].add(transaction)
        if self.arrivals is not None:
            self.arrivals.on_commit(process.replica, transaction)

    def events(self, process: Process, channel: Channel, number: int) -> list[Event]:
        """An event that an open Input Set needs again, if it is still there."""
        return self.reader.events(channel.sender, channel.output, [number])

    def snapshot(self, process: Process, effect: does.Snapshot) -> None:
        """Captures the memory of a process."""
        raise Violation(f"{process.replica}: asks for a snapshot in a run without epochs")

    def is_heard(self, process: Process) -> bool:
        """Whether the tracker listens to what a process has announced."""
        return True

    def is_judged(self, process: Process) -> bool:
        """Whether what a process does counts."""
        return self.invariants is not None

    # The outside

    def on_done(self, process: Process) -> None:
        """A process has nothing left to do."""
        if self.invariants is not None:
            self.invariants.on_complete(process.replica)

    def begin_write(self, process: Process, effect: does.Write) -> None:
        """A write action is about to be executed."""
        if self.invariants is not None:
            self.invariants.on_write(process.replica, effect)

    def write(self, process: Process, connection: str, output: Output) -> None:
        """A write action takes effect."""
        self.outside.write(self.store.log_id, process.replica, connection, output)
        if self.trace is not None:
            self.note(process, f"wrote {connection}/{output.event.id}")

    def note(self, process: Process, what: str) -> None:
        """Adds a line to the trace."""
        assert self.trace is not None
        self.trace.append(f"{self.points:5d} {process.replica}#{process.log.incarnation} {what}")
