"""The simulated world of a run with snapshots: memory instead of logs, and one failure sends everyone back.

What a process commits counts for as long as its generation does; at a rewind the archive is cut back to the epoch
that all go on from, so the oracle judges what was kept, and nothing of what was thrown away.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from clew.errors import Fenced, Violation
from clew.log.contract import ReplicaLog
from clew.log.epochs import EPOCHS, complete_epoch
from clew.log.snapshots import SnapshotLog
from clew.log.versions import split_key
from clew.model.event import Event
from clew.model.history import Output, Transaction
from clew.model.names import Channel, Replica
from clew.protocol import effects as does
from clew.protocol import epochs
from clew.verify.archive import Shelf
from clew.verify.arrivals import Arrivals
from clew.verify.coordination import Coordination, Loss, Report, Storing
from clew.verify.process import Process, Restart
from clew.verify.schedule import FaultKind
from clew.verify.world import World

_VERSIONS_MAX = 3
"""Of the last complete epoch, of the one after it, and of one that was complete when that was stored."""


class SnapshotWorld(World):
    """One simulated run of a pipeline with barrier snapshots."""

    def _begin(self) -> None:
        self.generation = 0
        self.epoch = 0
        self.history: dict[Replica, list[Transaction]] = {replica: [] for replica in self.graph.replicas}
        """What each replica has committed in this generation, and before it up to the epoch it went on from."""
        self.complete: dict[Replica, dict[str, list[Output]]] = {}
        """By replica and connection: the write actions of complete epochs."""
        self.restarting: dict[Replica, Restart] = {}
        self.storing: dict[Process, Storing] = {}
        chance = random.Random(f"epochs {self.schedule.seed}")
        every_s = chance.choice([0.0, 0.002, 0.005, 0.02])
        self.every_s = every_s if self.parts.every_s is None else self.parts.every_s
        self.loss = Loss(self)
        self.coordination = self._coordinate()

    def _coordinate(self) -> Coordination:
        log = self.parts.epoch_log(self.store.open(EPOCHS))
        assert self.parts.epochs is not None
        found = Coordination(self, log, self.parts.epochs(self.graph.replicas, self.every_s, log.epoch))
        found.take(epochs.Ticked(self.now))
        found.take(epochs.Lost())
        return found

    # Generations

    def rewind(self, generation: int, epoch: int) -> None:
        """Everyone is to begin anew from an epoch; each does so at its own time."""
        self.generation, self.epoch = generation, epoch
        for replica, history in self.history.items():
            kept = _until(history, epoch)
            self.history[replica] = kept
            shelf = self.archive[replica] = Shelf()
            for transaction in kept:
                shelf.add(transaction)
        self._forget_frontiers()
        if self.arrivals is not None:
            self.arrivals = Arrivals(self.graph)
            for replica, history in self.history.items():
                for transaction in history:
                    self.arrivals.on_commit(replica, transaction)
        for replica in self.graph.replicas:
            if replica not in self.restarting:
                self.restarting[replica] = Restart(replica)
                self.enable(self.restarting[replica])

    def start(self, replica: Replica) -> None:
        """Begins a replica anew in the present generation; whatever worked for it before is gone."""
        del self.restarting[replica]
        old = self.current.get(replica)
        if old is not None:
            self._retire(old)
        super().start(replica)
        process = self.current[replica]
        report = Report(self)
        self.storing[process] = Storing(process, report)
        report.say(epochs.Joined(replica, self.generation, process.kernel.is_finished))

    def _open(self, replica: Replica) -> ReplicaLog:
        writes = self.graph.nodes[replica.operator].writes
        return self.parts.snapshots.of(self.store.open(replica), writes, self.generation, self.epoch)

    def _retire(self, process: Process) -> None:
        """A process of an earlier generation hears that it is over."""
        del self.current[process.replica]
        self.crash(process)

    def crash(self, process: Process, error: str | None = None) -> None:
        """What the process was storing may or may not be stored."""
        storing = self.storing.pop(process, None)
        super().crash(process, error)
        if storing is not None:
            self.disable(storing)
            if storing.captures and self.chance.random() < 0.5:
                storing.store(self)
            if self.chance.random() < 0.5:
                storing.report.messages.clear()
                self.disable(storing.report)

    def _lost(self, replica: Replica) -> None:
        del self.current[replica]
        self.restarts += 1
        self.enable(self.loss)

    def _resume(self, process: Process) -> None:
        super()._resume(process)
        storing = self.storing.get(process)
        if storing is not None and storing.captures and process.is_running:
            self.enable(storing)

    def _is_cautious(self, replica: Replica) -> bool:
        return False

    def power(self) -> None:
        """The coordinator dies too; another begins with what is durable."""
        self.coordination.stop()
        super().power()
        self.disable(self.loss)
        for restart in self.restarting.values():
            self.disable(restart)
        self.restarting.clear()
        self.coordination = self._coordinate()

    def strikes_all(self, kinds: Iterable[FaultKind]) -> bool:
        """A deadly fault that is due strikes the coordinator, and with it everyone."""
        fault = next((each for each in self.faults if each.at <= self.points and each.kind in kinds), None)
        if fault is None:
            return False
        self.faults.remove(fault)
        self.strike_at = self.faults[0].at if self.faults else 1 << 60
        self.fault_log.append((self.points, str(fault.kind), None))
        self.power()
        return True

    # Memory and snapshots

    def _committed(self, process: Process, transaction: Transaction) -> None:
        if self._counts(process):
            super()._committed(process, transaction)
            self.history[process.replica].append(transaction)

    def _counts(self, process: Process) -> bool:
        return process.log.incarnation == self.generation

    def is_heard(self, process: Process) -> bool:
        """The tracker of a generation listens to nobody else."""
        return self._counts(process)

    def is_judged(self, process: Process) -> bool:
        """What an earlier generation sends is refused, so it does not matter what it is."""
        return self.invariants is not None and self._counts(process)

    def events(self, process: Process, channel: Channel, number: int) -> list[Event]:
        """An event that an open Input Set needs again, from the process's own snapshot."""
        assert isinstance(process.log, SnapshotLog)
        return process.log.events([(channel, number)])

    def snapshot(self, process: Process, effect: does.Snapshot) -> None:
        """Captures the memory of a process; it is stored later, or never."""
        assert isinstance(process.log, SnapshotLog)
        storing = self.storing.get(process)
        if storing is not None:
            try:
                storing.add(self, process.log.capture(effect.epoch, effect.is_final))
            except AssertionError as error:
                raise Violation(str(error)) from error

    def on_complete(self, epoch: int) -> None:
        """From now on nothing up to this epoch can be lost, so it may be written."""
        for replica, history in self.history.items():
            writes = self.complete[replica] = defaultdict(list)
            for transaction in _until(history, epoch):
                for output in transaction.outputs:
                    writes[output.event.port].append(output)

    def on_done(self, process: Process) -> None:
        """Who has nothing left to do can be gone back from no more."""
        if not self._counts(process):
            return
        super().on_done(process)
        kept = _until(self.history[process.replica], self.coordination.log.epoch)
        if not any(each.counters.get("finished") for each in kept):
            raise Violation(f"{process.replica}: has nothing left to do before its last epoch is complete")

    def begin_write(self, process: Process, effect: does.Write) -> None:
        """Whoever writes, and whenever: only what is complete is written."""
        complete = self.complete.get(process.replica, {}).get(effect.connection, [])
        if effect.number > len(complete) or not complete[effect.number - 1].event.same(effect.output.event):
            raise Violation(
                f"{process.replica}: write {effect.connection}/{effect.number} is begun before its epoch is complete"
            )

    # Time

    def _tick(self) -> None:
        at = self.coordination.kernel.next_at
        if at is not None and self.now >= at:
            self.coordination.take(epochs.Ticked(self.now))
        super()._tick()

    def _next_alarm(self) -> float | None:
        found = [at for at in (super()._next_alarm(), self.coordination.kernel.next_at) if at is not None]
        return min(found, default=None)

    def _timers(self, replica: Replica, process: Process) -> Mapping[bytes, float]:
        return process.log.recover().timers

    # The end

    def judge_rest(self) -> None:
        """When all have finished, the last snapshots hold no open work, and a further run has nothing to do."""
        told, self.epoch = self.coordination.log.epoch, complete_epoch(self.reader)
        if told != self.epoch:
            raise Violation(f"epoch {told} was told to be complete, the log says {self.epoch}")
        for replica in self.graph.replicas:
            rows = Counter(split_key(key)[0] for key, _ in self.reader.rows(replica).state)
            if max(rows.values(), default=0) > _VERSIONS_MAX:
                raise Violation(f"{replica}: its log has {max(rows.values())} versions of one row")
            try:
                found = self._open(replica).recover()
            except Fenced as error:
                raise Violation(str(error)) from error
            for what, left in (
                ("open Input Sets", found.open_sets),
                ("undone pairs", found.undone),
                ("timers", list(found.timers)),
                ("unfinished read actions", found.reads),
                ("rows of time", [row for row in found.progress if row[0] == "hold"]),
            ):
                if left:
                    raise Violation(f"{replica}: its last snapshot has {what} after it finished: {left[:3]}")
            for connection in self.graph.nodes[replica.operator].writes:
                last, done = (found.counters.get(f"{kind}:{connection}", 0) for kind in ("out", "written"))
                if last != done:
                    raise Violation(
                        f"{replica}: {last} writes on {connection!r} are stored and {done} are known as done"
                    )


def _until(history: list[Transaction], epoch: int) -> list[Transaction]:
    """The part of a history that the snapshot of an epoch holds; who has finished in it or before needs no border."""
    kept, reached = 0, 0
    for index, transaction in enumerate(history, 1):
        ended = transaction.counters.get("epoch")
        if ended is not None and ended <= epoch:
            kept, reached = index, ended
        elif transaction.counters.get("finished") and reached < epoch:
            kept = index
    return history[:kept]
