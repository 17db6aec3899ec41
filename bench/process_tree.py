"""What this process and everything below it uses: CPU seconds and resident memory, read from /proc."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _processes() -> dict[int, tuple[int, float, int]]:
    """Parent, CPU seconds (with those of children that were waited for) and resident bytes, by process id."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            cpu_s = sum(int(fields[number]) for number in (11, 12)) / _TICKS
            found[int(name)] = (int(fields[1]), cpu_s, int(fields[21]) * _PAGE)
    return found


def _below(root: int, processes: dict[int, tuple[int, float, int]]) -> set[int]:
    members = {root}
    while True:
        more = {pid for pid, (parent, _, _) in processes.items() if parent in members} - members
        if not more:
            return members
        members |= more


class Tree:
    """Samples the tree below this process while it is used as a context."""

    def __init__(self, every_s: float = 0.1) -> None:
        self.every_s = every_s
        self.cpu_s = 0.0
        self.rss_peak = 0
        self._cpu: dict[int, float] = {}
        self._before: dict[int, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Tree:
        processes = _processes()
        self._before = {pid: processes[pid][1] for pid in _below(os.getpid(), processes)}
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._sample()
        self.cpu_s = sum(cpu_s - self._before.get(pid, 0.0) for pid, cpu_s in self._cpu.items())

    def _run(self) -> None:
        while not self._is_over.wait(self.every_s):
            self._sample()

    def _sample(self) -> None:
        processes = _processes()
        members = _below(os.getpid(), processes)
        for pid in members:
            self._cpu[pid] = max(self._cpu.get(pid, 0.0), processes[pid][1])
        self.rss_peak = max(self.rss_peak, sum(processes[pid][2] for pid in members))


def machine() -> str:
    """The machine in a few words."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at {time.strftime('%Y-%m-%d %H:%M')}"
