"""The coordinator: knows every host of a run, starts the missing ones, tells them of each other, and ends them.

It lives in the driver. It decides nothing about data: who may act is settled by the logs' incarnations, so a mistake
here costs time, never correctness.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from clew.errors import BadFrame
from clew.log.epochs import EpochLog
from clew.log.processes import Process, is_alive, is_here, is_stopped, ticks_used
from clew.protocol.frontiers import Frontiers
from clew.runtime import control
from clew.runtime.control import Address, message
from clew.runtime.generations import Generations
from clew.runtime.groups import Group, Loss
from clew.runtime.link import Link
from clew.runtime.loop import Loop
from clew.runtime.server import Server
from clew.runtime.spec import Timing
from clew.runtime.tracking import Tracking

_WATCH_S = 0.25
_LAST_WORDS_S = 1.0
_FATAL = {"fatal", "failed"}
"""Reasons that no restart can help."""
_IDLE_S = 2.0
"""A silent host on this machine that has used nothing of the processor for so long is in no move."""
_BEFORE = Process(0, 0, "", "")
"""Whoever worked on the log before this run; a host that finds all its predecessors dead says so."""

Launch = Callable[[Group], None]
Cancel = Callable[[Group, int], None]


class Coordinator:
    """Keeps the groups of one run alive until every replica is complete."""

    def __init__(
        self,
        groups: list[Group],
        secret: bytes,
        bind: str,
        timing: Timing,
        restarts_max: int,
        is_protected: bool,
        frontiers: Frontiers | None = None,
    ) -> None:
        self.groups = {group.name: group for group in groups}
        for group in groups:
            group.unburied.append((_BEFORE, "", time.monotonic()))
        self.timing = timing
        self.restarts_max = restarts_max
        self.is_protected = is_protected
        self.loop = Loop("clew-coordinator", self._on_error)
        self.server = Server(self.loop, bind, secret, self._on_entered)
        self.launch: Launch = lambda group: None
        self.cancel: Cancel = lambda group, submission: None
        self.completed: set[str] = set()
        self.wanted = {str(replica) for group in groups for replica in group.replicas}
        self.tracking = None if frontiers is None else Tracking(frontiers, self.loop, self.groups, self.fail)
        """None: the events of the pipeline have no times."""
        self.generations: Generations | None = None
        """None: each replica recovers alone."""
        self.losses: list[Loss] = []
        self.error: str | None = None
        self.is_over = False
        self.over = threading.Event()
        """Set when all is done, has failed, or was stopped: hosts are told to end then."""

    # Beginning and end

    def recover_together(self, log: EpochLog, every_s: float, frontiers: Callable[[], Frontiers | None]) -> None:
        """Before the start: the run recovers by snapshots, each generation of it with frontiers of its own."""

        def rewound(generation: int) -> None:
            if self.tracking is not None and (made := frontiers()) is not None:
                self.tracking.begin_anew(made, generation)
            for group in self.groups.values():
                if group.link is not None:
                    group.state = "opening"

        replicas = [replica for group in self.groups.values() for replica in group.replicas]
        self.generations = Generations(log, replicas, every_s, self.loop, self._tell_all, rewound, self.fail)

    def start(self) -> None:
        """Launches every group."""
        self.loop.start()
        self.server.start()
        if self.generations is not None:
            self.loop.soon(self.generations.start)
        self.loop.soon(self._launch_all)
        self.loop.soon(self._watch)

    def _launch_all(self) -> None:
        for group in self.groups.values():
            self._launch(group)

    def stop(self) -> None:
        """Ends the run where it is; may be called from any thread."""
        self.loop.soon(self._end_all)

    def fail(self, why: str) -> None:
        """Ends the run with an error; on the loop's thread."""
        if not self.is_over:
            self.error = why
            self._end_all()

    def close(self) -> None:
        """Lets go of everything; hosts that still listen hear that it is over by the closing of their links."""
        self.loop.soon(self._close)
        self.loop.end()
        if self.generations is not None:
            self.generations.close()

    def _close(self) -> None:
        self.server.close()
        if self.tracking is not None:
            self.tracking.finish()
        for group in self.groups.values():
            if group.link is not None:
                group.link.close()

    def _end_all(self) -> None:
        if not self.is_over:
            self.is_over = True
            for group in self.groups.values():
                if group.link is not None:
                    group.link.send(message("end"))
                else:
                    group.state = "ended"
            self.over.set()

    @property
    def is_empty(self) -> bool:
        """Whether no host is left."""
        return all(group.link is None for group in self.groups.values())

    def _on_error(self, error: BaseException) -> None:
        self.error = self.error or f"the coordinator failed: {type(error).__name__}: {error}"
        self.is_over = True
        self.over.set()

    # Hosts

    def _launch(self, group: Group) -> None:
        if not self.is_over and group.link is None:
            group.submission += 1
            group.state = "waiting"
            try:
                self.launch(group)
            except Exception as error:
                self.fail(f"{group.name} could not be started: {type(error).__name__}: {error}")

    def _on_entered(self, connection: socket.socket, kind: int, payload: bytes) -> None:
        said = control.read_message(kind, payload)
        group = self.groups.get(str(said.get("group")))
        if said["type"] != "register" or group is None:
            raise BadFrame("the first message of a host must register it")
        try:
            process = Process(*said["process"])
            pending = Address(str(said["address"]), int(said["port"]), str(said["token"]))
        except (KeyError, TypeError, ValueError) as error:
            raise BadFrame(f"a host registered without what is needed: {error}") from error
        link = Link(self.loop, connection)
        # Spark tries on its own what was given up already, perhaps before its successor is launched.
        is_stale = said.get("submission") != group.submission or group.state != "waiting"
        if self.is_over or group.link is not None or is_stale:
            link.send(message("refused", why="the run is over" if self.is_over else "another host has the group"))
            self.loop.after(1.0, lambda: link.close())
            return
        group.link = link
        group.process = process
        group.machine = str(said.get("machine"))
        group.pending = pending
        group.heard()
        group.state = "opening"
        group.starts += 1
        self._bury(group)
        link.on_frame = lambda kind, payload: self._on_message(group, link, kind, payload)
        link.on_closed = lambda reason: self._on_closed(group, link, reason)
        link.send(
            message(
                "accepted",
                hosts=self._directory(),
                predecessor_dead=not group.unburied,
                cautious=group.suspects() if group.loss is not None and self.generations is None else [],
                last_error=group.why if group.reason in ("move", "error") else "",
                **({} if self.generations is None else self.generations.where()),
            )
        )
        link.start()

    def _directory(self) -> dict[str, list[Any]]:
        return {
            str(replica): list(group.address)
            for group in self.groups.values()
            if group.address is not None
            for replica in group.replicas
        }

    def _tell_all(self, data: bytes) -> None:
        for group in self.groups.values():
            if group.link is not None:
                group.link.send(data)

    def _on_message(self, group: Group, link: Link, kind: int, payload: bytes) -> None:
        if group.link is not link:
            return
        said = control.read_message(kind, payload)
        group.heard()
        try:
            self._told(group, said)
        except control.UNREADABLE as error:
            raise BadFrame(f"the message {said['type']!r} of {group.name} cannot be read: {error!r}") from error

    def _told(self, group: Group, said: dict[str, Any]) -> None:
        match said["type"]:
            case "beat":
                group.report = _checked(said)
            case "opened":
                group.state = "running"
                group.address = group.pending
                if said.get("alone"):
                    group.unburied = [lost for lost in group.unburied if lost[0] is not _BEFORE]
                if group.loss is not None:
                    group.loss.opened_at = time.time()
                self._tell_all(message("directory", hosts=self._directory()))
            case "progress" if self.tracking is not None:
                self.tracking.heard(group, said)
            case "joined" | "stored" if self.generations is not None:
                self.generations.told(group.replicas, said)
            case "resumed":
                self._resumed(group)
            case "completed":
                self._resumed(group)
                self.completed.add(str(said["replica"]))
                if self.completed >= self.wanted:
                    self._end_all()
            case "died":
                group.culprit = str(said["replica"])
                self._lost(group, str(said["reason"]), str(said["why"]))
            case "bye" if self.is_over:
                self._farewell(group)
            case "bye":
                group.culprit = ""
                self._lost(group, "lost", "it ended before the run did")

    def _resumed(self, group: Group) -> None:
        loss = group.loss
        if loss is not None:
            loss.resumed_at = time.time()
            loss.others_commits = self._others_commits(group) - loss.others_commits
            self.losses.append(loss)
            group.loss = None

    def _others_commits(self, group: Group) -> int:
        return sum(other.commits for other in self.groups.values() if other is not group)

    def _farewell(self, group: Group) -> None:
        link, group.link = group.link, None
        group.state = "ended"
        if link is not None:
            link.close()

    def _on_closed(self, group: Group, link: Link, reason: str) -> None:
        if group.link is link:
            if self.is_over:
                self._farewell(group)
            else:
                group.culprit = ""
                self._lost(group, "lost", f"its process ended, or its connection broke ({reason})")

    def _lost(self, group: Group, reason: str, why: str) -> None:
        """A host is gone or must be taken for gone: its group gets another."""
        link, submission = group.link, group.submission
        is_new = group.loss is None
        pause_s = group.died(reason, why, None if self.generations is None else self.generations.epoch)
        if is_new and group.loss is not None:
            group.loss.others_commits = self._others_commits(group)
        if link is not None:
            link.close()
        if self.is_over:
            return
        if self.generations is not None and link is not None:
            self.generations.lost()
        if reason in _FATAL:
            self.fail(why)
        elif not self.is_protected:
            self.fail(
                f"the host of {group.name} ended ({why}), and the run has no protection (recovery='off'), so what it "
                f"knew is lost. Run it with recovery='log'."
            )
        elif group.tries > self.restarts_max:
            self.fail(
                f"{group.name} died {group.tries} times in a row without getting anything done; the last time: "
                f"{why.rstrip('.')}. {self._safe()}; mend the cause and run the pipeline again with the same log."
            )
        else:
            self.cancel(group, submission)
            if pause_s:
                self.loop.after(pause_s, lambda: self._launch(group))
            else:
                self._launch(group)

    def _safe(self) -> str:
        if self.generations is None:
            return "Everything committed is in the log"
        return f"Everything up to epoch {self.generations.epoch} is in the log"

    def job_ended(self, group: Group, submission: int, error: str | None) -> None:
        """A Spark job is over; from any thread."""
        self.loop.soon(lambda: self._job_ended(group, submission, error))

    def _job_ended(self, group: Group, submission: int, error: str | None) -> None:
        if self.is_over or group.submission != submission:
            return
        if group.link is None and group.state == "waiting":
            self._lost(group, "launch", error or "its Spark task ended before it had begun")
        elif group.link is not None:  # Its last words may be on their way; or its machine is gone without any.
            self.loop.after(_LAST_WORDS_S, lambda: self._task_ended(group, submission, error))

    def _task_ended(self, group: Group, submission: int, error: str | None) -> None:
        if not self.is_over and group.submission == submission and group.link is not None:
            group.culprit = ""
            self._lost(group, "lost", f"its Spark task has ended{f' ({error})' if error else ''}")

    # Watching

    def _watch(self) -> None:
        now = time.monotonic()
        for group in self.groups.values():
            if group.link is not None:
                silence = now - group.heard_at
                group.looks = group.looks + 1 if silence > self.timing.silence_s else 0
                if group.looks > 1 and self._is_hung(group, silence, now):  # Who was held up itself listens again.
                    self._lost(group, "hung", f"it has said nothing for {silence:.1f} s")
                elif not self.is_over:
                    group.link.send(message("beat"))
            self._bury(group)
        if not (self.is_over and self.is_empty):
            self.loop.after(_WATCH_S, self._watch)

    def _is_hung(self, group: Group, silence: float, now: float) -> bool:
        """Silent inside a move means busy, as long as the process runs; outside one, or when stopped, hung.

        A move may have begun after the last word, and have kept the interpreter since. Here it is known by what it
        uses of the processor; of another machine nobody can know, so a group that dies of it is given more time.
        """
        assert group.process is not None
        is_seen = is_here(group.process)
        if is_seen and (is_stopped(group.process) or not is_alive(group.process)):
            return True
        if not group.is_in_move():
            if not is_seen:
                return silence > self.timing.silence_s * (1 << min(group.tries, 10))
            used = ticks_used(group.process)
            if used > group.used[0]:
                group.used = (used, now)
            if now - group.used[1] > _IDLE_S:
                return True
        timeout_s = self.timing.move_timeout_s
        return timeout_s is not None and silence > timeout_s

    def _bury(self, group: Group) -> None:
        """Forgets lost hosts that are known to be dead; when it was the last, the present host may know."""
        if not group.unburied:
            return
        group.unburied = [(who, where, at) for who, where, at in group.unburied if not self._is_dead(who, at)]
        if not group.unburied and group.link is not None:
            group.link.send(message("buried"))

    def _is_dead(self, process: Process, lost_at: float) -> bool:
        if is_here(process):
            return not is_alive(process)
        burial_s = self.timing.burial_s
        return burial_s is not None and time.monotonic() - lost_at > burial_s

    # Reports

    def frontiers(self) -> dict[str, list[str]]:
        """How far each input port is, for people; may be called from any thread."""
        return {} if self.tracking is None else self.tracking.frontiers.shown()

    def reports(self) -> dict[str, Any]:
        """How every group is; may be called from any thread."""
        return {group.name: _report(group, group.process) for group in list(self.groups.values())}


def _checked(report: dict[str, Any]) -> dict[str, Any]:
    """A host's report; raises if what the coordinator looks at is not in it."""
    for each in report["replicas"].values():
        _ = int(each["counts"]["commits"]), int(each["position"]), each["move_s"] > 0
    return report


def _report(group: Group, process: Process | None) -> dict[str, Any]:
    return {
        "state": group.state,
        "pid": None if process is None else process.pid,
        "machine": group.machine,
        "starts": group.starts,
        "commits": group.commits,
        "last_error": group.why or None,
        **{key: value for key, value in group.report.items() if key != "type"},
    }
