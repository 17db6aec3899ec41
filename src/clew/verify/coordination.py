"""The simulated coordinator of snapshots, and what is on its way to it and from it.

It has no process of its own that could die alone: whoever coordinates is in the driver, and with the driver all die.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from clew.errors import Fenced, Violation
from clew.log.epochs import EpochLog
from clew.log.snapshots import Capture, SnapshotLog
from clew.model.names import Replica
from clew.protocol import epochs
from clew.protocol import inputs as was
from clew.verify.actor import Actor
from clew.verify.brief import brief
from clew.verify.schedule import FaultKind

if TYPE_CHECKING:
    from clew.verify.process import Process
    from clew.verify.snapshot_world import SnapshotWorld
    from clew.verify.world import World

_DEADLY = (FaultKind.CRASH, FaultKind.AFTER, FaultKind.POWER)


class Coordination(Actor):
    """The coordinator: does what its kernel asked for, one effect at a time."""

    __slots__ = ("clock", "effects", "kernel", "log", "words", "world")

    def __init__(self, world: SnapshotWorld, log: EpochLog, kernel: epochs.EpochKernel) -> None:
        super().__init__()
        self.world = world
        self.log = log
        self.kernel = kernel
        self.effects: deque[epochs.Effect] = deque()
        self.words: dict[Replica, Word] = {}
        self.clock = Clock(self)

    def take(self, given: epochs.Input) -> None:
        """Gives the kernel an input and queues the effects."""
        world = self.world
        if world.trace is not None:
            world.trace.append(f"{world.points:5d} coordinator <- {brief(given)}")
        effects = self.kernel.step(given)
        try:
            self.kernel.check()
        except AssertionError as error:
            raise Violation(f"the coordinator's invariant is broken: {error}") from error
        if effects:
            self.effects.extend(effects)
            world.enable(self)
        if self.is_due():
            world.enable(self.clock)

    def is_due(self) -> bool:
        """Whether it is time to look at the clock."""
        at = self.kernel.next_at
        return at is not None and at <= self.world.now

    def act(self, world: World) -> None:
        world.points += 1
        if world.points >= world.strike_at and world.strikes_all(_DEADLY):
            return
        effect = self.effects.popleft()
        if not self.effects:
            world.disable(self)
        if world.trace is not None:
            world.trace.append(f"{world.points:5d} coordinator -> {brief(effect)}")
        here = self.world
        match effect:
            case epochs.Open():
                self.take(epochs.Opened(self.log.begin_generation()))
            case epochs.Rewind():
                here.rewind(effect.generation, effect.epoch)
            case epochs.Record():
                self.log.complete(effect.epoch)
                here.on_complete(effect.epoch)
                self.take(epochs.Recorded(effect.epoch))
            case epochs.Mark():
                self._tell(was.Marked(effect.epoch), sources_only=True)
            case epochs.Tell():
                self._tell(was.Completed(effect.epoch), sources_only=False)

    def _tell(self, given: was.Marked | was.Completed, sources_only: bool) -> None:
        world = self.world
        for replica in world.graph.replicas:
            if not sources_only or world.graph.nodes[replica.operator].is_source:
                word = self.words.get(replica)
                if word is None:
                    word = self.words[replica] = Word(replica)
                word.messages.append((self.kernel.generation, given))
                world.enable(word)

    def stop(self) -> None:
        """It dies, with all that it was about to do or say."""
        self.world.disable(self)
        self.world.disable(self.clock)
        for word in self.words.values():
            self.world.disable(word)


class Clock(Actor):
    """The coordinator's look at the clock, when an epoch is due to end."""

    __slots__ = ("coordination",)

    def __init__(self, coordination: Coordination) -> None:
        super().__init__()
        self.coordination = coordination

    def act(self, world: World) -> None:
        world.disable(self)
        self.coordination.take(epochs.Ticked(world.now))


class Word(Actor):
    """What the coordinator tells one replica, on its way, in order."""

    __slots__ = ("messages", "replica")

    def __init__(self, replica: Replica) -> None:
        super().__init__()
        self.replica = replica
        self.messages: deque[tuple[int, was.Marked | was.Completed]] = deque()

    def act(self, world: World) -> None:
        generation, given = self.messages.popleft()
        if not self.messages:
            world.disable(self)
        process = world.current.get(self.replica)
        if process is not None and process.is_running and process.log.incarnation == generation:
            if isinstance(given, was.Completed):
                assert isinstance(process.log, SnapshotLog)
                process.log.completed(given.epoch)
            process.take(given)


class Report(Actor):
    """What one process tells the coordinator, whoever that is by then, on its way, in order."""

    __slots__ = ("messages", "world")

    def __init__(self, world: SnapshotWorld) -> None:
        super().__init__()
        self.world = world
        self.messages: deque[epochs.Joined | epochs.Stored] = deque()

    def say(self, given: epochs.Joined | epochs.Stored) -> None:
        """Puts a message on its way."""
        self.messages.append(given)
        self.world.enable(self)

    def act(self, world: World) -> None:
        given = self.messages.popleft()
        if not self.messages:
            world.disable(self)
        self.world.coordination.take(given)


class Loss(Actor):
    """The news that a process is gone, on its way to the coordinator, whoever that is by then."""

    __slots__ = ("world",)

    def __init__(self, world: SnapshotWorld) -> None:
        super().__init__()
        self.world = world

    def act(self, world: World) -> None:
        world.disable(self)
        self.world.coordination.take(epochs.Lost())


class Storing(Actor):
    """The snapshots that a process has captured and not stored yet."""

    __slots__ = ("captures", "process", "report")

    def __init__(self, process: Process, report: Report) -> None:
        super().__init__()
        self.process = process
        self.report = report
        self.captures: deque[Capture] = deque()

    def add(self, world: World, capture: Capture) -> None:
        """One more is to be stored."""
        self.captures.append(capture)
        if not self.process.is_paused:
            world.enable(self)

    def act(self, world: World) -> None:
        process = self.process
        if process.is_paused:
            world.disable(self)
            return
        fault = world.point(process, "store")
        if fault is FaultKind.CRASH:
            return
        if self.store(world) and fault is FaultKind.AFTER:
            world.crash(process)

    def store(self, world: World) -> bool:
        """Stores the oldest; False when the process turned out to be fenced."""
        process, capture = self.process, self.captures.popleft()
        if not self.captures:
            world.disable(self)
        log = process.log
        assert isinstance(log, SnapshotLog)
        try:
            log.store(capture)
        except Fenced:
            self.captures.clear()
            if world.trace is not None:
                world.note(process, "is fenced")
            if process.is_alive:
                world.crash(process)
            return False
        if world.trace is not None:
            world.note(process, f"stored epoch {capture.epoch}{', final' if capture.is_final else ''}")
        if process.is_alive:
            stored = epochs.Stored(process.replica, log.incarnation, capture.epoch, capture.is_final)
            self.report.say(stored)
        return True
