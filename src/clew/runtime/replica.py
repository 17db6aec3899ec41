"""A running replica: its kernel, the threads that do what it asks for, and its log.

Every input is a step of the kernel under one lock, and what the step asks for is begun under the same lock, so the
order of effects is the order of steps. Moves run on the mover's thread, which also commits, as long as no move is
under way; during a slow move the loop steps the kernel, and commits are done by a thread of their own.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from clew.errors import ClewError, CommitUnknown, Fenced, LogError, MoveError
from clew.log.contract import LogReader, ReplicaLog
from clew.log.snapshots import Capture, SnapshotLog
from clew.model.driver import InDriver
from clew.model.event import Event
from clew.model.graph import Graph, Node
from clew.model.history import Output, Transaction
from clew.model.names import Channel, Replica
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.moves import Moves
from clew.protocol.replica import ReplicaKernel
from clew.protocol.settings import Settings
from clew.runtime.clock import Clock
from clew.runtime.counts import Counts
from clew.runtime.kernels import kernel_of
from clew.runtime.outside import OutsideWorld
from clew.runtime.threads import Worker
from clew.runtime.turns import Turn
from clew.trace.writer import Tracer

_PATIENCE_S = 30.0
_PATIENCE_WITH_MOVES_S = 1.0
"""How long a successor in the same process waits for a move before it begins beside it."""
SLOW_COMMIT_S = 0.004
"""Commits that take longer than this are worth a thread of their own while there is something else to do."""


SURVEY_S = 1.0
"""How often retention looks for what can go."""
_PULL_BYTES = 16 << 20


class Way(Protocol):
    """One end of a channel, as a replica uses it."""

    def say(self, effect: does.Send | does.Ack | does.Hello | does.Connect) -> None:
        """Queues a message for the other end."""

    def flush(self) -> None:
        """Sends what is queued."""


class Surrounding(Protocol):
    """What a running replica tells its host."""

    def alarm(self, replica: RunningReplica, at: float) -> None:
        """Asks for a tick at a moment of the wall clock."""

    def later(self, seconds: float, job: Callable[[], None]) -> None:
        """Calls back when so much time has passed."""

    def resumed(self, replica: RunningReplica) -> None:
        """The replica has made its first commit."""

    def announce(self, replica: RunningReplica, effect: does.Announce) -> None:
        """The tracker of the run must hear this."""

    def joined(self, replica: RunningReplica) -> None:
        """With snapshots: the replica has begun to work in its generation."""

    def stored(self, replica: RunningReplica, epoch: int, is_final: bool) -> None:
        """With snapshots: the replica's snapshot of an epoch is durable."""

    def completed(self, replica: RunningReplica) -> None:
        """The replica has nothing left to do."""

    def died(self, replica: RunningReplica, reason: str, message: str) -> None:
        """The replica cannot go on. The reason is `fenced`, `unknown`, `move`, `failed` or `error`."""


class RunningReplica:
    """One incarnation of a replica in a host."""

    def __init__(
        self,
        graph: Graph,
        node: Node,
        replica: Replica,
        log: ReplicaLog,
        log_id: str,
        reader: LogReader,
        settings: Settings,
        host: Surrounding,
    ) -> None:
        self.replica = replica
        self.node = node
        self.log = log
        self.reader = reader
        self.host = host
        self.counts = Counts()
        self.began_from = 0
        """With snapshots: the epoch that it goes on from."""
        inbound, outbound = graph.inbound(replica), graph.outbound(replica)
        self.outbound = frozenset(outbound)
        self.snapshots = log if isinstance(log, SnapshotLog) else None
        """The log again, if it is one whose contents become durable by epochs."""
        kind = kernel_of(node, has_epochs=self.snapshots is not None)
        self.kernel: ReplicaKernel = kind(node, replica, inbound, outbound, settings)
        self.moves = Moves(node, node.definition, self)
        self.outside = OutsideWorld(node, replica, log_id)
        self.ways: dict[Channel, Way] = {}
        """The channels that are connected now."""
        self.lock = threading.Lock()
        self._early: list[was.Input] | None = []
        """What was heard before the log was read: the kernel hears it after that."""
        self._touched: dict[Way, None] = {}
        self._work = threading.Condition(self.lock)
        self._jobs: deque[does.Effect] = deque()
        self._saved: deque[Mapping[bytes, bytes | None]] = deque()
        self._commit_lock = threading.Lock()
        self._commit_s = 0.0
        self._surveyed_at = 0.0
        self.tracer: Tracer | None = None
        self.turn: Turn | None = None
        """Shared with the other cautious replicas of the host, if there are any."""
        self.move_since: float | None = None
        """Since when a move is under way, by the monotonic clock."""
        self.is_ended = False
        self.is_complete = False
        self._has_resumed = False
        self._mover = threading.Thread(target=self._run, name=f"clew-{replica}", daemon=True)
        self._committer = Worker(f"clew-{replica}-commit", self._on_error)
        self._log_reader = Worker(f"clew-{replica}-log", self._on_error)
        self._storer = Worker(f"clew-{replica}-store", self._on_error)
        self._writers: dict[str, Worker] = {}
        self._clock = Clock()
        self._chance = random.Random(int.from_bytes(os.urandom(8), "big"))

    # Beginning and end

    def start(self, is_predecessor_dead: bool, is_cautious: bool, last_error: str = "") -> None:
        """Opens the operator, recovers from the log and begins to work."""
        self._opening = (is_predecessor_dead, is_cautious, last_error)
        self._mover.start()

    def _begin(self) -> None:
        is_predecessor_dead, is_cautious, last_error = self._opening
        self.move_since = time.monotonic()
        self.moves.open()
        recovered = self.log.recover()
        with self.lock:
            early, self._early = self._early or [], None
            if not self.is_ended:
                if self.tracer is not None:
                    self.tracer.start(recovered, self.began_from)
                started = was.Started(recovered, self.now(), is_predecessor_dead, is_cautious, last_error)
                for given in (started, *early):
                    self._perform(self.kernel.step(given), is_last=False)
                    if given is started and self.snapshots is not None:
                        self.host.joined(self)
                self._flush()

    def end(self) -> bool:
        """Stops working after the move under way, and lets go of the log; nothing uncommitted is kept.

        False if something did not end in time: then the log is not let go of, since what is left may still act.
        """
        self.retire()
        is_gone = self._has_mover_ended()
        is_gone = self._have_workers_ended() and is_gone
        if is_gone:
            self.outside.close()  # A write that hangs would not let go of its connection.
            with self._commit_lock, contextlib.suppress(LogError):
                self.log.close()
            if self.tracer is not None:
                self.tracer.close(self.is_complete)
        return is_gone

    def retire(self) -> None:
        """Hears and says nothing any more; what is under way goes on until it ends."""
        with self.lock:
            self.is_ended = True
            self._work.notify_all()

    def leave(self) -> bool:
        """Makes room for a successor in the same process; False if that is not possible.

        A slow move cannot be ended. It may go on, since nobody takes its result; but nothing may be left that writes,
        to an outside system or to the log.
        """
        self.retire()
        has_mover_ended = self._has_mover_ended(_PATIENCE_WITH_MOVES_S)
        if not self._have_workers_ended() or not self._commit_lock.acquire(timeout=_PATIENCE_WITH_MOVES_S):
            return False
        try:
            if has_mover_ended:
                self.outside.close()
            with contextlib.suppress(LogError):
                self.log.close()
            if self.tracer is not None:
                self.tracer.close(self.is_complete)
        finally:
            self._commit_lock.release()
        return True

    @property
    def is_left_moving(self) -> bool:
        """Whether a move is still under way although the replica has ended."""
        return self.is_ended and self._mover.is_alive()

    def _have_workers_ended(self) -> bool:
        workers = (self._committer, self._log_reader, self._storer, *self._writers.values())
        ended = [worker.end() for worker in workers]
        return all(ended)

    def _has_mover_ended(self, patience_s: float = _PATIENCE_S) -> bool:
        mover, deadline = self._mover, time.monotonic() + patience_s
        parts = [part for part in self.node.parts if isinstance(part, InDriver)]
        while mover.is_alive() and mover is not threading.current_thread() and time.monotonic() < deadline:
            for part in parts:
                part.interrupt()
            mover.join(0.2 if parts else patience_s)
        for part in parts:
            part.interrupt()  # Writes have threads of their own.
        return not mover.is_alive()

    # Steps

    def take(self, given: was.Input) -> None:
        """Gives the kernel an input and begins what it asks for."""
        with self.lock:
            if self._early is not None:
                self._early.append(given)
            elif not self.is_ended:
                self._perform(self.kernel.step(given))

    def take_all(self, inputs: list[was.Input]) -> None:
        """The same for several inputs that came together."""
        with self.lock:
            if self._early is not None:
                self._early += inputs
            elif not self.is_ended:
                for given in inputs:
                    self._perform(self.kernel.step(given), is_last=False)
                self._flush()

    def tick(self, now: float) -> None:
        """It is this late."""
        if self._early is None:
            self.take(was.Ticked(now))

    def is_flush_due(self) -> bool:
        """Whether something decided waits beside a slow move."""
        since = self.move_since
        return since is not None and self.kernel.is_dirty and time.monotonic() - since > 0.01

    def _perform(self, effects: list[does.Effect], is_last: bool = True) -> None:
        """Begins what the kernel asked for, in its order; under the lock."""
        for effect in effects:
            _BEGIN[type(effect)](self, effect)
        if is_last:
            self._flush()

    def _flush(self) -> None:
        if self._touched:
            for way in self._touched:
                way.flush()
            self._touched.clear()

    def _say(self, effect: does.Send | does.Ack | does.Hello | does.Connect) -> None:
        way = self.ways.get(effect.channel)
        if way is not None:  # Otherwise a new session will begin with the next connection.
            way.say(effect)
            self._touched[way] = None

    def _send(self, effect: does.Send) -> None:
        self.counts.events_out += 1
        self._say(effect)

    def _job(self, effect: does.Effect) -> None:
        self._jobs.append(effect)
        if threading.current_thread() is not self._mover:
            self._work.notify()

    def _commit_soon(self, effect: does.Commit) -> None:
        if threading.current_thread() is not self._mover and self.move_since is not None:
            self._committer.do(lambda: self._commit_apart(effect))
        else:
            self._job(effect)

    def _alarm(self, effect: does.Alarm) -> None:
        self.host.alarm(self, effect.at)

    def _announce(self, effect: does.Announce) -> None:
        self.host.announce(self, effect)

    def _complete(self, effect: does.Complete) -> None:
        self.is_complete = True
        self.host.completed(self)

    def _fail(self, effect: does.Fail) -> None:
        self._log_reader.do(lambda: self._blame("failed", effect.message))

    def _write(self, effect: does.Write | does.Check) -> None:
        worker = self._writers.get(effect.connection)
        if worker is None:
            worker = Worker(f"clew-{self.replica}-{effect.connection}", self._on_error)
            self._writers[effect.connection] = worker
        worker.do(lambda: self._write_now(effect))

    def _write_now(self, effect: does.Write | does.Check) -> None:
        begin = time.monotonic()
        answer = self.outside.write(effect) if isinstance(effect, does.Write) else self.outside.check(effect)
        self.counts.write_s += time.monotonic() - begin
        self.counts.writes += isinstance(answer, was.Written)
        is_done = isinstance(answer, was.Written) or (isinstance(answer, was.Checked) and answer.is_in)
        if is_done and self.tracer is not None:
            self.tracer.wrote(effect.connection, effect.number)
        self.take(answer)

    def _fetch(self, effect: does.Fetch) -> None:
        self._log_reader.do(lambda: self._fetch_now(effect))

    def _fetch_now(self, effect: does.Fetch) -> None:
        """Reads outputs: the first, then as many as memory should hold, since nobody knows yet how large they are."""
        outputs: list[Output] = []
        first, limit, count, size = effect.first, effect.limit, 1, 0
        while len(outputs) < limit and size < _PULL_BYTES:
            found = self.log.outputs(effect.port, first, min(count, limit - len(outputs)))
            outputs += found
            if len(found) < count:
                break
            size += sum(output.event.size for output in found)
            first = found[-1].event.id + 1
            count = max(1, min(8 * count, (_PULL_BYTES - size) * len(outputs) // max(1, size)))
        self.take(was.Fetched(effect.port, effect.first, tuple(outputs)))

    def _fetch_effect(self, effect: does.FetchEffect) -> None:
        self._log_reader.do(
            lambda: self.take(
                was.EffectFetched(effect.action, tuple(self.log.effect(effect.action, effect.first, effect.limit)))
            )
        )

    def _survey(self, effect: does.Survey) -> None:
        """What can be removed is looked for once in a while; meanwhile it only waits."""
        pause_s = max(0.0, self._surveyed_at + SURVEY_S - time.monotonic())
        self.host.later(pause_s, lambda: self._log_reader.do(lambda: self._survey_now(effect)))

    def _survey_now(self, effect: does.Survey) -> None:
        self._surveyed_at = time.monotonic()
        self.take(was.Surveyed(self.log.expired(effect.released, effect.targets)))

    def _pull(self, effect: does.Pull) -> None:
        self._log_reader.do(lambda: self._pull_now(effect))

    def _pull_now(self, effect: does.Pull) -> None:
        """Reads undone events from their senders' logs: at least one, and not more than memory should hold."""
        events: list[Event] = []
        size = 0
        for channel, number in effect.events:
            if self.snapshots is not None:
                found = self.snapshots.events([(channel, number)])
            else:
                found = self.reader.events(channel.sender, channel.output, [number])
            if not found:
                where = "its sender's log" if self.snapshots is None else "its own snapshot"
                self._blame(
                    "error",
                    f"operator {self.replica}: event {channel.sender}.{channel.output}/{number} is assigned but not "
                    f"finished with, and {where} does not have it any more. The log is damaged; restore it from a "
                    f"copy.",
                )
                return
            events += found
            size += found[0].size
            if size > _PULL_BYTES:
                break
        self.take(was.Pulled(tuple(events)))

    # Snapshots

    def _snapshot(self, effect: does.Snapshot) -> None:
        """Captures what memory holds now; no commit is under way. Storing it takes as long as it takes."""
        assert self.snapshots is not None
        capture = self.snapshots.capture(effect.epoch, effect.is_final)
        self._storer.do(lambda: self._store(capture))

    def _store(self, capture: Capture) -> None:
        assert self.snapshots is not None
        if self.is_ended:
            return
        begin = time.monotonic()
        self.snapshots.store(capture)
        self.counts.snapshots += 1
        self.counts.snapshot_bytes += _size_of(capture)
        self.counts.snapshot_s += time.monotonic() - begin
        if self.tracer is not None:
            self.tracer.stored(capture.epoch, capture.is_final)
        self.host.stored(self, capture.epoch, capture.is_final)

    def completed(self, epoch: int) -> None:
        """Every replica's snapshot of this epoch is durable."""
        assert self.snapshots is not None
        self.snapshots.completed(epoch)
        if self.tracer is not None:
            self.tracer.completed(epoch)
        self.take(was.Completed(epoch))

    # The mover

    def _run(self) -> None:
        try:
            self._begin()
            given: was.Input | None = None
            while True:
                job = self._next_job(given)
                if job is None:
                    return
                given = self._commit(job) if type(job) is does.Commit else self._move(job)
        except BaseException as error:
            self._on_error(error)

    def _next_job(self, given: was.Input | None) -> does.Effect | None:
        with self.lock:
            self.move_since = None
            if given is not None and not self.is_ended:
                self._perform(self.kernel.step(given))
            while not self._jobs or self.is_ended:
                if self.is_ended:
                    return None
                self._work.wait()
            job = self._jobs.popleft()
            if type(job) is does.Commit and self._jobs and self._commit_s > SLOW_COMMIT_S:
                slow, job = job, self._jobs.popleft()
                self._committer.do(lambda: self._commit_apart(slow))
            if type(job) is not does.Commit:
                self.move_since = time.monotonic()
                if self._jobs and isinstance(late := self._jobs[0], does.Commit):  # It must not wait for a slow move.
                    self._jobs.popleft()
                    self._committer.do(partial(self._commit_apart, late))
            return job

    def _move(self, move: Any) -> was.MoveResult:
        while self._saved:
            self.moves.saved(self._saved.popleft())
        result = self.moves.perform(move)
        since = self.move_since
        if since is not None:
            self.counts.moves += 1
            self.counts.move_s += time.monotonic() - since
        return result

    def _commit(self, commit: does.Commit) -> was.Committed:
        transaction = commit.transaction
        if self.turn is not None:
            self.turn.before(transaction.counters, lambda: self.is_ended)
        begin = time.monotonic()
        with self._commit_lock:
            self.log.stage(transaction)
            if self.tracer is not None:  # Before the commit, so that a death in between loses nothing of the trace.
                self.tracer.steps(commit.number, transaction)
            self.log.commit(transaction)
        if self.turn is not None:
            self.turn.after()
        seconds = time.monotonic() - begin
        self._commit_s += (seconds - self._commit_s) / 8
        self.counts.commits += 1
        if not self._has_resumed:
            self._has_resumed = True
            self.host.resumed(self)
        self.counts.commit_s += seconds
        self.counts.committed_at = time.time()
        self.counts.outputs += len(transaction.outputs)
        if transaction.state:
            self._saved.append(transaction.state)
        return was.Committed(commit.number)

    def _commit_apart(self, commit: does.Commit) -> None:
        self.take(self._commit(commit))

    # The end of it

    def _on_error(self, error: BaseException) -> None:
        if self.is_ended:
            return
        if isinstance(error, Fenced):
            self.host.died(self, "fenced", str(error))
        elif isinstance(error, CommitUnknown):
            self.host.died(self, "unknown", str(error))
        elif isinstance(error, MoveError):
            self._blame("move", str(error), error)
        elif isinstance(error, ClewError):
            self._blame("error", str(error), error)
        else:
            self._blame("error", f"operator {self.replica}: {type(error).__name__}: {error}", error)

    def _blame(self, reason: str, message: str, error: BaseException | None = None) -> None:
        """Something failed here; unless a successor has taken over, then nothing that is seen here counts."""
        try:
            with self._commit_lock:
                self.log.commit(Transaction())
        except Fenced as fenced:
            reason, message = "fenced", str(fenced)
        except Exception:
            pass  # The log is what failed; the message says so.
        self.host.died(self, reason, message)

    # What its moves may look at

    def now(self) -> float:
        """The clock."""
        return self._clock.now()

    def seed(self) -> int:
        """Chance."""
        return self._chance.getrandbits(63)

    def read(self, connection: str, query: Any) -> Any:
        """A read action on an outside system."""
        return self.outside.read(connection, query)

    def backlog(self, port: str) -> int:
        """How far the slowest receiver is behind."""
        return self.kernel.ports[port].backlog()

    def state(self, key: bytes) -> bytes | None:
        """One committed state value."""
        return self.log.state(key)

    def state_items(self) -> list[tuple[bytes, bytes]]:
        """All committed state."""
        return self.log.state_items()


def _size_of(capture: Capture) -> int:
    """About how many bytes a snapshot holds: of state, of events that are needed again, of write actions."""
    changes = capture.changes
    kept = [event for events in changes.events.values() for event in events.values() if event is not None]
    kept += [output.event for output in changes.writes.values() if output is not None]
    state = sum(len(key) + len(value or b"") for key, value in changes.state.items())
    return state + sum(event.size for event in kept)


_BEGIN: dict[type, Callable[[RunningReplica, Any], None]] = {
    **dict.fromkeys(does.MOVES, RunningReplica._job),
    does.Commit: RunningReplica._commit_soon,
    does.Send: RunningReplica._send,
    does.Ack: RunningReplica._say,
    does.Hello: RunningReplica._say,
    does.Connect: RunningReplica._say,
    does.Fetch: RunningReplica._fetch,
    does.FetchEffect: RunningReplica._fetch_effect,
    does.Pull: RunningReplica._pull,
    does.Survey: RunningReplica._survey,
    does.Write: RunningReplica._write,
    does.Check: RunningReplica._write,
    does.Announce: RunningReplica._announce,
    does.Snapshot: RunningReplica._snapshot,
    does.Alarm: RunningReplica._alarm,
    does.Complete: RunningReplica._complete,
    does.Fail: RunningReplica._fail,
}
