"""A host: one process that runs the replicas of a group, connected to all others and to the coordinator.

It lives inside a Spark task (or, for operators that need the driver, in a thread of the driver). It ends when the
coordinator says so, when one of its replicas cannot go on, or when it has heard nothing from the coordinator.
"""

from __future__ import annotations

import gc
import os
import queue
import resource
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from clew.errors import BadFrame, ClewError, Fenced, LogError, NotAuthentic, RunError
from clew.log.contract import LogReader, ReplicaLog, Store
from clew.log.processes import Process
from clew.log.snapshots import SnapshotLog
from clew.model.driver import InDriver
from clew.model.graph import Graph
from clew.model.names import Channel, Replica, parse_replica
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.barriers import Epochs
from clew.runtime import control, server
from clew.runtime.announcing import Announcing
from clew.runtime.control import Address, message
from clew.runtime.counts import Counts
from clew.runtime.dialing import Dialer
from clew.runtime.link import Link
from clew.runtime.loop import Loop
from clew.runtime.replica import RunningReplica
from clew.runtime.server import Server
from clew.runtime.spec import HostSpec
from clew.runtime.turns import Turn
from clew.runtime.ways import LinkWay, LocalWay
from clew.trace.records import LOG, SNAPSHOT, Names
from clew.trace.writer import Tracer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TICK_S = 0.05
_FULL_TICK_EVERY = 10
_AGAIN_S = 0.2
"""How long to wait before the coordinator is called again."""


class Host:
    """The replicas of one group in this process."""

    def __init__(self, spec: HostSpec, spark: SparkSession | None = None, is_predecessor_dead: bool = False) -> None:
        self.spec = spec
        self.spark = spark
        """The session of the run, if this is the driver."""
        self.is_alone = is_predecessor_dead
        """Whether nothing of any host before this one can still act."""
        self.token = secrets.token_hex(8)
        self.loop = Loop(f"clew-host-{spec.name}", self._on_loop_error)
        self.server = Server(self.loop, spec.bind, spec.secret, self._on_entered)
        self.replicas: dict[Replica, RunningReplica] = {}
        self.announcing = Announcing(self._tell_progress, self.loop.after)
        self.dialers: list[Dialer] = []
        self.directory: dict[Replica, Address] = {}
        self.store: Store | None = None
        self._reader: LogReader | None = None
        self.coordinator: Link | None = None
        self.heard_at = time.monotonic()
        self._answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[tuple[str, str, str]] = queue.SimpleQueue()
        """What ends this host: `end`, `orphan`, or why a replica died; the replica; a message."""
        self._ticks = 0
        self._silent_ticks = 0
        self._is_buried = False
        """Whether the coordinator has said that all predecessors are dead."""
        self._retired: list[RunningReplica] = []
        """Replicas of earlier generations, of which something may still be under way."""
        self._left: list[RunningReplica] = []
        """Those of which only a slow move is."""
        self._counts: dict[Replica, Counts] = {}
        """What replicas have done in this process, over all generations."""
        self._goal = (0, 0)
        """The generation that counts, and the epoch that it goes on from."""
        self._generation = 0
        """The generation that was opened here."""
        self._cpu_before_s = _cpu_s()
        self._is_over = False

    # Life

    def run(self) -> tuple[str, str, str]:
        """Works until there is a reason to end, and returns it: the reason, the replica, a message."""
        self.loop.start()
        try:
            self._join()
            answer = self._answer()
            if answer["type"] != "accepted":
                return ("refused", "", str(answer.get("why", "")))
            self.loop.soon(self._beat)  # Loading an operator and taking over its log may take long.
            if answer.get("generation") != 0:  # Otherwise it is not known yet which generation begins, and where.
                self._open(answer)
            if self.spark is None:
                gc.freeze()  # What was loaded stays: whoever looks for garbage need not look at it again and again.
            self.server.start()
            self.loop.soon(self._tick)
            outcome = self._outcomes.get()
            while outcome[0] == "rewind" and self._rewind(answer):
                outcome = self._outcomes.get()
        except ClewError as error:
            outcome = (_reason(error), self.spec.name, str(error))
        except Exception as error:  # Such as a full disk. Somebody must hear of it, or nobody would take its place.
            outcome = ("error", self.spec.name, f"host {self.spec.name}: {type(error).__name__}: {error}")
        if outcome[0] == "rewind":
            why = "something of an earlier generation was still under way when the next one began, so its process ended"
            outcome = ("stuck", self.spec.name, why)
        if outcome[0] not in ("end", "orphan"):
            self._tell_coordinator(message("died", reason=outcome[0], replica=outcome[1], why=outcome[2]))
        return outcome

    def close(self) -> bool:
        """Ends everything in this process: replicas after their present move, links, threads; says whether it could."""
        self._is_over = True
        ended = [replica.end() for replica in (*self._retired, *self.replicas.values())]
        is_gone = all(ended)
        self.announcing.finish()
        self._tell_coordinator(message("beat", **self.report()) + message("bye"))
        self.loop.soon(self._close_links)
        self.loop.end()
        if self.store is not None and is_gone:
            self.store.close()
        return is_gone and not any(each.is_left_moving for each in self._left)

    def _close_links(self) -> None:
        for dialer in self.dialers:
            dialer.end()
        self.server.close()
        if self.coordinator is not None:
            self.coordinator.flush()
            self.coordinator.close()

    def _tell_coordinator(self, data: bytes) -> None:
        if self.coordinator is not None and not self.coordinator.is_closed:
            self.coordinator.send(data)

    def _tell_progress(self, announcements: Mapping[str, does.Announce]) -> bool:
        if self.coordinator is not None and self.coordinator.is_full:
            return False
        self._tell_coordinator(control.progress(announcements))
        return True

    def _on_loop_error(self, error: BaseException) -> None:
        self._outcomes.put(("error", self.spec.name, f"host {self.spec.name}: {type(error).__name__}: {error}"))

    # The coordinator

    def _join(self) -> None:
        """Registers with the coordinator, which may take a moment to know that a predecessor is gone."""
        spec = self.spec
        first = message(
            "register",
            group=spec.name,
            submission=spec.submission,
            process=list(Process.current()),
            machine=socket.gethostname(),
            port=self.server.port,
            address=spec.bind if spec.bind not in ("0.0.0.0", "::") else _own_address(spec.coordinator),
            token=self.token,
        )
        deadline = time.monotonic() + spec.timing.orphan_s
        while True:
            try:
                sock = server.call(spec.coordinator, spec.secret, first)
                break
            except (OSError, ClewError) as error:
                if time.monotonic() < deadline and not isinstance(error, NotAuthentic):
                    time.sleep(_AGAIN_S)  # A busy machine may take its time.
                    continue
                raise RunError(
                    f"host {spec.name} cannot reach its coordinator at {spec.coordinator[0]}:{spec.coordinator[1]}: "
                    f"{error}"
                ) from error
        link = self.coordinator = Link(self.loop, sock)
        link.on_frame = self._on_control
        link.on_closed = self._on_coordinator_lost
        self.loop.soon(link.start)

    def _answer(self) -> dict[str, Any]:
        """What the coordinator says to the registration; a machine that is gone says nothing, for ever."""
        try:
            return self._answers.get(timeout=self.spec.timing.orphan_s)
        except queue.Empty:
            return {"type": "lost", "why": "the coordinator does not answer"}

    def _on_coordinator_lost(self, reason: str) -> None:
        if not self._is_over:
            self._answers.put({"type": "lost", "why": reason})
            self._outcomes.put(("orphan", "", f"the coordinator is gone: {reason}"))

    def _on_control(self, kind: int, payload: bytes) -> None:
        said = control.read_message(kind, payload)
        self.heard_at = time.monotonic()
        match said["type"]:
            case "accepted":
                self._directed(said["hosts"])
                self._answers.put(said)
            case "refused":
                self._answers.put(said)
            case "directory":
                self._directed(said["hosts"])
            case "advanced":
                for name, given in control.read_advanced(said):
                    running = self.replicas.get(parse_replica(name))
                    if running is not None:  # Otherwise it is being opened, and will be told all when it has joined.
                        running.take(given)
            case "rewind":
                self._goal = (int(said["generation"]), int(said["epoch"]))
                self._retire()
                self._outcomes.put(("rewind", "", ""))
            case "mark":
                for running in self._of_generation(said["generation"]):
                    if running.node.is_source:
                        running.take(was.Marked(int(said["epoch"])))
            case "epoch":
                for running in self._of_generation(said["generation"]):
                    running.completed(int(said["epoch"]))
            case "end":
                self._outcomes.put(("end", "", ""))
            case "buried":
                self._is_buried = True  # For replicas that are being opened just now.
                for replica in list(self.replicas.values()):
                    replica.take(was.Buried())

    def _open(self, answer: dict[str, Any]) -> None:
        """Takes the logs over, which ends predecessors, and begins."""
        spec = self.spec
        graph = spec.graph()
        if self.spark is not None:
            self._lend(self.spark, graph)
        store = self.store
        if store is None:
            store = self.store = spec.place.open(spec.description if spec.place.kind == "off" else None)
        reader = self._reader = self._reader or store.reader()
        self._generation, epoch = int(answer.get("generation", 0)), int(answer.get("epoch", 0))
        logs = {replica: self._log(store, graph, replica, epoch) for replica in spec.group}
        replicas: dict[Replica, RunningReplica] = {}
        for replica in spec.group:
            node = graph.nodes[replica.operator]
            running = replicas[replica] = RunningReplica(
                graph, node, replica, logs[replica], store.log_id, reader, spec.settings, self
            )
            running.began_from = epoch
            running.counts = self._counts.setdefault(replica, running.counts)
            if spec.trace is not None:
                names = Names(replica, graph.inbound(replica), node.outputs, tuple(node.writes))
                running.tracer = Tracer(spec.trace, names, SNAPSHOT if spec.recovery == "snapshot" else LOG)
        self._connect_inside(graph.channels, replicas)
        self.replicas = replicas
        self.dialers = [
            Dialer(self.loop, channel, spec.secret, partial(self._up, replicas[channel.receiver], channel))
            for channel in graph.channels
            if channel.receiver in replicas and channel.sender not in replicas
        ]
        is_buried = self.is_alone or self._is_buried or bool(answer.get("predecessor_dead"))
        are_dead = {
            replica: is_buried or bool(getattr(log, "is_predecessor_dead", False)) for replica, log in logs.items()
        }
        self.is_alone = all(are_dead.values())
        incarnations = {str(replica): log.incarnation for replica, log in logs.items()}
        self._tell_coordinator(message("opened", incarnations=incarnations, alone=self.is_alone))
        shared = threading.Lock()
        for replica, running in replicas.items():
            running.turn = Turn(shared) if len(replicas) > 1 and spec.recovery != "snapshot" else None
            is_cautious = str(replica) in answer["cautious"]
            running.start(are_dead[replica], is_cautious, str(answer.get("last_error", "")))
        self.loop.soon(self._dial)

    def _log(self, store: Store, graph: Graph, replica: Replica, epoch: int) -> ReplicaLog:
        if self.spec.recovery != "snapshot":
            return store.open(replica)
        writes = graph.nodes[replica.operator].writes
        return SnapshotLog.of(store.open(replica), writes, self._generation, epoch)

    # Generations

    def _of_generation(self, generation: int) -> list[RunningReplica]:
        return [running for running in self.replicas.values() if running.log.incarnation == generation]

    def _retire(self) -> None:
        """From now on nothing of the present generation is heard or said; on the loop's thread."""
        dialers, self.dialers = self.dialers, []
        for dialer in dialers:
            dialer.end()
        replicas, self.replicas = self.replicas, {}
        for running in replicas.values():
            running.retire()
            for way in list(running.ways.values()):
                if isinstance(way, LinkWay):
                    way.link.close("a new generation has begun")
            self._retired.append(running)

    def _rewind(self, answer: dict[str, Any]) -> bool:
        """Begins anew in the generation that counts now; False if what is under way does not let it."""
        if self._generation == self._goal[0]:
            return True  # It was told twice before it could begin.
        has_retired = threading.Event()

        def retire() -> None:
            self._retire()  # Also what was opened while it was told.
            has_retired.set()

        self.loop.soon(retire)
        if not has_retired.wait(self.spec.timing.orphan_s):
            return False
        left = [each.leave() for each in self._retired]
        if not all(left):
            return False
        self._left = [each for each in (*self._left, *self._retired) if each.is_left_moving]
        self._retired.clear()
        self.announcing = Announcing(self._tell_progress, self.loop.after)
        generation, epoch = self._goal
        self._open({**answer, "generation": generation, "epoch": epoch})
        return True

    def _lend(self, spark: SparkSession, graph: Graph) -> None:
        spec = self.spec
        for node in graph.nodes.values():
            for part in node.parts:
                if isinstance(part, InDriver):
                    name = f"clew-{self.token}-{node.name}"
                    part.lend(spark, name, f"clew {spec.pipeline}: {node.name}")

    def _connect_inside(self, channels: tuple[Channel, ...], replicas: Mapping[Replica, RunningReplica]) -> None:
        for channel in channels:
            sender, receiver = replicas.get(channel.sender), replicas.get(channel.receiver)
            if sender is not None and receiver is not None:
                sender.ways[channel] = LocalWay(self.loop, receiver)
                receiver.ways[channel] = LocalWay(self.loop, sender)

    # Channels

    def _directed(self, hosts: dict[str, list[Any]]) -> None:
        directory: dict[Replica, Address] = {}
        for name, (host, port, token) in hosts.items():
            directory[parse_replica(name)] = Address(host, port, token)
        self.directory = directory
        self._dial()

    def _dial(self) -> None:
        """Calls the senders where they are now; there may be nobody to call yet, or no one who calls."""
        for dialer in self.dialers:
            dialer.directed(self.directory)

    def _up(self, receiver: RunningReplica, channel: Channel, link: Link) -> None:
        """As a receiver: the sender was reached, so a new session begins."""
        way = LinkWay(link, channel, receiver)
        with receiver.lock:
            receiver.ways[channel] = way
        receiver.take(was.Broken(channel))

    def _on_entered(self, connection: socket.socket, kind: int, payload: bytes) -> None:
        """As a sender: a receiver has called."""
        channel = control.read_dial(kind, payload)
        sender = self.replicas.get(channel.sender)
        if sender is None and channel.sender in self.spec.group:
            connection.close()  # It is being opened; whoever called will call again.
            return
        if sender is None or channel not in sender.outbound:
            raise BadFrame(f"channel {channel} does not begin in host {self.spec.name}")
        link = Link(self.loop, connection)
        way = LinkWay(link, channel, sender)
        link.on_closed = lambda reason: self._down(way)
        with sender.lock:
            old, sender.ways[channel] = sender.ways.get(channel), way
        if isinstance(old, LinkWay):
            old.link.close("called again")
        link.start()

    def _down(self, way: LinkWay) -> None:
        """As a sender: a receiver was lost."""
        sender = way.replica
        with sender.lock:
            if sender.ways.get(way.channel) is way:
                del sender.ways[way.channel]
        if way.session is not None:
            sender.take(was.Broken(way.channel, way.session))

    # What replicas say

    def alarm(self, replica: RunningReplica, at: float) -> None:
        """A replica wants to be told when a moment has come."""
        self.loop.after(max(0.0, at - replica.now()), lambda: replica.tick(max(at, replica.now())))

    def later(self, seconds: float, job: Callable[[], None]) -> None:
        """A replica wants to be called back."""
        self.loop.after(seconds, job)

    def resumed(self, replica: RunningReplica) -> None:
        """A replica has made its first commit."""
        self._tell_coordinator(message("resumed", replica=str(replica.replica)))

    def announce(self, replica: RunningReplica, effect: does.Announce) -> None:
        """The tracker of the run, which is in the coordinator, must hear this."""
        self.announcing.announce(str(replica.replica), effect)

    def joined(self, replica: RunningReplica) -> None:
        """A replica has begun to work in its generation."""
        name, generation = str(replica.replica), replica.log.incarnation
        is_finished = replica.kernel.is_finished
        self._tell_coordinator(message("joined", replica=name, generation=generation, is_finished=is_finished))

    def stored(self, replica: RunningReplica, epoch: int, is_final: bool) -> None:
        """A replica's snapshot is durable."""
        name, generation = str(replica.replica), replica.log.incarnation
        self._tell_coordinator(message("stored", replica=name, generation=generation, epoch=epoch, is_final=is_final))

    def completed(self, replica: RunningReplica) -> None:
        """A replica has nothing left to do; it stays for those who may need it."""
        self._tell_coordinator(message("completed", replica=str(replica.replica)))

    def died(self, replica: RunningReplica, reason: str, why: str) -> None:
        """A replica cannot go on, so neither can its group."""
        if replica.tracer is not None:
            replica.tracer.why = f"{reason}: {why}"
        if not replica.is_ended:  # Otherwise it is of an earlier generation, and nobody waits for it.
            self._outcomes.put((reason, str(replica.replica), why))

    # Time

    def _tick(self) -> None:
        if self._is_over:
            return
        self._ticks += 1
        is_full = self._ticks % _FULL_TICK_EVERY == 0
        for replica in list(self.replicas.values()):
            if is_full or replica.is_flush_due():
                replica.tick(replica.now())
        is_silent = time.monotonic() - self.heard_at > self.spec.timing.orphan_s
        self._silent_ticks = self._silent_ticks + 1 if is_silent else 0
        if self._silent_ticks > 1:  # Code that keeps the interpreter holds up this thread too, so it listens again.
            self._outcomes.put(("orphan", "", "the coordinator has fallen silent"))
        self.loop.after(_TICK_S, self._tick)

    def _beat(self) -> None:
        if self._is_over:
            return
        self._tell_coordinator(message("beat", **self.report()))
        self.loop.after(self.spec.timing.beat_s, self._beat)

    def report(self) -> dict[str, Any]:
        """What this host has done and how it is."""
        now = time.monotonic()
        return {
            "replicas": {str(name): _state_of(replica, now) for name, replica in list(self.replicas.items())},
            "cpu_s": round(_cpu_s() - self._cpu_before_s, 6),
            "rss_bytes": _resident(),
            "refused": self.server.refused,
            "threads": threading.active_count(),
        }


def _state_of(replica: RunningReplica, now: float) -> dict[str, Any]:
    kernel = replica.kernel
    since = replica.move_since
    tallies = dict(kernel.tallies)
    borders = (kernel.epoch - 1) * len(kernel.ports) if isinstance(kernel, Epochs) else 0
    return {
        "incarnation": kernel.incarnation,
        "position": kernel.position,
        "events": sum(port.last for port in kernel.ports.values()) - borders,
        "backlog": max((port.backlog() for port in kernel.ports.values()), default=0),
        "unwritten": sum(writer.last - writer.done for writer in kernel.writers.values()),
        "written": sum(writer.done for writer in kernel.writers.values()),
        "is_finished": kernel.is_finished,
        "is_complete": replica.is_complete,
        "move_s": 0.0 if since is None else now - since,
        "counts": replica.counts.as_dict(),
        **({"tallies": tallies} if tallies else {}),
    }


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _resident() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _own_address(coordinator: tuple[str, int]) -> str:
    """The address of this machine as the coordinator's machine sees it."""
    with socket.socket(socket.AF_INET6 if ":" in coordinator[0] else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(coordinator)
        return str(probe.getsockname()[0])


def _reason(error: ClewError) -> str:
    if isinstance(error, Fenced):
        return "fenced"
    if isinstance(error, LogError):
        return "log"
    return "fatal" if isinstance(error, RunError) else "error"
