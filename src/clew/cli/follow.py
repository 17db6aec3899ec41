"""Following a run: a table on the terminal that is drawn anew, or now and then a line where there is no terminal."""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO

from clew.model.graph import Graph

_DRAW_S = 0.2
_LINE_S = 5.0
_RATE_S = 3.0
HEAD = ("operator", "state", "events", "written", "commits", "backlog", "restarts", "events/s")


class Watched(Protocol):
    """What is followed of a run."""

    def status(self) -> dict[str, Any]:
        """How the run and its groups are."""


@dataclass
class Line:
    """One replica, as last heard; numbers go on counting over its restarts."""

    name: str
    ports: int
    is_source: bool
    state: str = "waiting"
    events: int = 0
    written: int = 0
    backlog: int = 0
    restarts: int = 0
    incarnation: int = 0
    is_finished: bool = False
    counts: dict[str, float] = field(default_factory=dict)
    before: dict[str, float] = field(default_factory=dict)
    """Sums over earlier incarnations."""
    seen: deque[tuple[float, float]] = field(default_factory=deque)

    def heard(self, group: dict[str, Any], now: float) -> None:
        """Takes in what the coordinator knows of its group."""
        said = group.get("replicas", {}).get(self.name)
        self.restarts = max(0, int(group["starts"]) - 1)
        self.state = str(group["state"])
        if said is None:
            return
        if said["incarnation"] != self.incarnation:
            self.incarnation = said["incarnation"]
            for name, value in self.counts.items():
                self.before[name] = self.before.get(name, 0) + value
        self.counts = {name: said["counts"][name] for name in ("commits", "events_in", "moves", "move_s", "commit_s")}
        self.is_finished = bool(said["is_finished"])
        self.events = max(0, said["events"] - (self.ports if self.is_finished else 0))  # Without end marks.
        self.written = said["written"]
        self.backlog = said["backlog"] + said["unwritten"]
        if self.is_finished and self.state in ("running", "ended"):
            self.state = "finished"
        done = float(self.events) if self.is_source else self.total("events_in")
        self.seen.append((now, done))
        while now - self.seen[0][0] > _RATE_S:
            self.seen.popleft()

    def total(self, name: str) -> float:
        """A count over all incarnations."""
        return self.before.get(name, 0) + self.counts.get(name, 0)

    @property
    def rate(self) -> float:
        """Events per second lately: those received, of a source those given out."""
        if len(self.seen) < 2 or self.seen[-1][0] == self.seen[0][0]:
            return 0.0
        (first, before), (last, after) = self.seen[0], self.seen[-1]
        return (after - before) / (last - first)

    def cells(self) -> tuple[str, ...]:
        """The line of the table."""
        return (
            self.name,
            self.state,
            f"{self.events:,}",
            f"{self.written:,}",
            f"{int(self.total('commits')):,}",
            f"{self.backlog:,}",
            str(self.restarts),
            f"{self.rate:,.1f}",
        )


class Follower:
    """Shows how a run goes."""

    def __init__(self, graph: Graph, out: TextIO, *, is_quiet: bool = False) -> None:
        self.out = out
        self.is_quiet = is_quiet
        self.is_terminal = out.isatty()
        self.lines = {
            str(replica): Line(
                str(replica),
                len(graph.nodes[replica.operator].outputs),
                graph.nodes[replica.operator].is_source,
            )
            for replica in graph.replicas
        }
        self.began = time.monotonic()
        self._next = 0.0 if self.is_terminal else self.began + _LINE_S
        self._drawn = 0
        self._lock = threading.Lock()

    def __call__(self, run: Watched) -> None:
        """Looks at the run, and shows it when it is time."""
        self.look(run)
        now = time.monotonic()
        if self.is_quiet or now < self._next:
            return
        self._next = now + (_DRAW_S if self.is_terminal else _LINE_S)
        with self._lock:
            if self.is_terminal:
                self._erase()
                self._draw()
            else:
                print(self._words(now), file=self.out, flush=True)

    def look(self, run: Watched) -> None:
        """Takes in how the run is."""
        now = time.monotonic()
        for members, group in run.status()["groups"].items():
            for name in members.split("+"):
                self.lines[name].heard(group, now)

    def say(self, words: str) -> None:
        """A line of its own, above the table; may be called from any thread."""
        with self._lock:
            self._erase()
            print(words, file=self.out, flush=True)
            if self._drawn:
                self._draw()

    def done(self) -> None:
        """Takes the table away."""
        with self._lock:
            self._erase()
            self._drawn = 0
            self.out.flush()

    def table(self) -> list[str]:
        """The lines of the table as they are now."""
        return columns([HEAD, *(line.cells() for line in self.lines.values())])

    def _erase(self) -> None:
        if self._drawn:
            self.out.write(f"\x1b[{self._drawn}F\x1b[J")

    def _draw(self) -> None:
        width = shutil.get_terminal_size().columns - 1
        lines = [line[:width] for line in (*self.table(), f"{time.monotonic() - self.began:.1f} s")]
        self.out.write("\n".join(lines) + "\n")
        self.out.flush()
        self._drawn = len(lines)

    def _words(self, now: float) -> str:
        parts = []
        for line in self.lines.values():
            count = f"{line.written:,} written" if line.written else f"{line.events:,}"
            state = "" if line.state in ("running", "finished") else f" ({line.state})"
            parts.append(f"{line.name} {count}{state}")
        return f"{now - self.began:.0f} s: {', '.join(parts)}"


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows of cells as lines; words to the left, numbers to the right.

    >>> columns([("operator", "events"), ("hourly", "7")])
    ['operator  events', 'hourly         7']
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    is_word = [any(not _is_number(cell) for cell in cells[1:]) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, is_word, strict=True)
        ).rstrip()
        for row in rows
    ]


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").isdigit()
