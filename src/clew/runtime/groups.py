"""Groups as the coordinator sees them: which host runs each, how it died, when it may start again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from clew.log.processes import Process
from clew.model.names import Replica
from clew.runtime.control import Address
from clew.runtime.link import Link
from clew.runtime.spec import group_name

PATIENT_S = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""How long a group waits before its next start, by how often in a row it died without getting anything done."""


@dataclass(slots=True)
class Loss:
    """One death of a host, and how its group came back."""

    group: str
    reason: str
    why: str
    pid: int
    lost_at: float
    opened_at: float | None = None
    """When a successor had taken over its logs."""
    resumed_at: float | None = None
    """When the successor had committed something, or had nothing left to do."""
    others_commits: int = 0
    """How many commits other groups made until then."""

    def as_dict(self) -> dict[str, Any]:
        """For reports."""
        end = self.resumed_at or self.opened_at
        return {
            "group": self.group,
            "reason": self.reason,
            "why": self.why,
            "pid": self.pid,
            "lost_at": self.lost_at,
            "opened_s": None if self.opened_at is None else round(self.opened_at - self.lost_at, 3),
            "recovery_s": None if end is None else round(end - self.lost_at, 3),
            "others_committed_meanwhile": self.others_commits,
        }


@dataclass(slots=True)
class Group:
    """Replicas that share a host."""

    replicas: tuple[Replica, ...]
    is_in_driver: bool
    submission: int = 0
    state: str = "waiting"
    """`waiting` for a slot, `opening` its logs, `running`, `down`, or `ended`."""
    link: Link | None = None
    process: Process | None = None
    machine: str = ""
    address: Address | None = None
    pending: Address | None = None
    """Where the host will be reached as soon as it has opened its logs."""
    heard_at: float = 0.0
    looks: int = 0
    """How often in a row it was found silent."""
    used: tuple[int, float] = (-1, 0.0)
    """While it is silent: how much of the processor its process had used when that last grew, and when that was."""
    report: dict[str, Any] = field(default_factory=dict)
    commits_before: int = 0
    """Commits of the hosts before this one."""
    starts: int = 0
    tries: int = 0
    """How often in a row it died without getting anything done."""
    position: int = -1
    """How far it was when it last died."""
    reason: str = ""
    why: str = ""
    culprit: str = ""
    """The replica that said why, if one did."""
    loss: Loss | None = None
    unburied: list[tuple[Process, str, float]] = field(default_factory=list)
    """Hosts that were lost and may still live: process, machine, when by the monotonic clock."""

    @property
    def name(self) -> str:
        """Its operators."""
        return group_name(self.replicas)

    @property
    def commits(self) -> int:
        """How many commits all its hosts made, as far as was heard."""
        return self.commits_before + sum(int(each["counts"]["commits"]) for each in self._states())

    def reached(self) -> int:
        """How far its replicas are."""
        return sum(int(each["position"]) for each in self._states())

    def is_in_move(self) -> bool:
        """Whether it was in the middle of user code when it was last heard."""
        return any(each["move_s"] > 0 for each in self._states())

    def suspects(self) -> list[str]:
        """The replicas that begin with caution: the one that failed, or all when nobody knows which."""
        if self.reason in ("move", "error") and self.culprit in map(str, self.replicas):
            return [self.culprit]
        return list(map(str, self.replicas)) if self.reason in ("lost", "error") else []

    def heard(self) -> None:
        """Its host has said something."""
        self.heard_at = time.monotonic()
        self.used = (-1, 0.0)

    def _states(self) -> list[dict[str, Any]]:
        return list(self.report.get("replicas", {}).values())

    def died(self, reason: str, why: str, epoch: int | None = None) -> float:
        """Notes a death; says how long to wait before the next start.

        Where replicas recover together, only a complete epoch is something that was done.
        """
        now = time.time()
        reached = epoch if epoch is not None else self.reached() if self.report else self.position
        is_progress = (self.report or epoch is not None) and reached > self.position
        self.tries = 1 if is_progress else self.tries + 1
        self.position = max(reached, self.position)
        self.commits_before = self.commits
        self.report = {}
        self.reason, self.why = reason, why
        if self.process is not None:
            self.unburied.append((self.process, self.machine, time.monotonic()))
        if self.loss is None:
            pid = self.process.pid if self.process is not None else 0
            self.loss = Loss(self.name, reason, why, pid, now)
        self.link = self.process = self.address = self.pending = None
        self.state = "down"
        return PATIENT_S[min(self.tries - 1, len(PATIENT_S) - 1)]
