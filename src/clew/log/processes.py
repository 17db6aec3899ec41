"""Processes by identity: who holds a log on this machine, and how a successor makes sure that it is gone.

A process id alone is used again sooner or later, so it is only ever looked at together with the moment its process
started, the boot in which that was, and the namespace in which the number means something.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

from clew.errors import LogError

_PATIENCE_S = 30.0


class Process(NamedTuple):
    """A process that cannot be mistaken for another one.

    >>> Process.current() == Process.current()
    True
    """

    pid: int
    started: int
    """Clock ticks between the boot and its start."""
    boot: str
    namespace: str

    @staticmethod
    def current() -> Process:
        """This very process."""
        return Process.of(os.getpid())

    @staticmethod
    def of(pid: int) -> Process:
        """The process that has this number now."""
        status = _status(pid)
        return Process(pid, status.started if status is not None else 0, _boot(), _namespace())


class _Status(NamedTuple):
    state: str
    threads: int
    started: int
    used: int


def is_here(process: Process) -> bool:
    """Whether this process could see it: same machine, same boot, same container. Machines may share a name."""
    return process.boot == _boot() and process.namespace == _namespace()


def is_elsewhere(process: Process) -> bool:
    """Whether it runs, if it runs, where this process cannot see it: in another container of this machine."""
    return process.boot == _boot() and process.namespace != _namespace()


def is_alive(process: Process) -> bool:
    """Whether it runs here; a process that has ended and was not waited for does not.

    >>> is_alive(Process.current()), is_alive(Process.current()._replace(started=1))
    (True, False)
    """
    if not is_here(process):
        return False
    status = _status(process.pid)
    if status is None or status.started != process.started:
        return False
    return status.state not in "ZX" or status.threads > 1


def is_stopped(process: Process) -> bool:
    """Whether it is here but was stopped by a signal, so that it does nothing until it is continued."""
    status = _status(process.pid) if is_alive(process) else None
    return status is not None and status.state in "Tt"


def ticks_used(process: Process) -> int:
    """How much time of the processor it has used, in clock ticks: one that uses some does something."""
    status = _status(process.pid) if is_alive(process) else None
    return 0 if status is None else status.used


def end(process: Process) -> None:
    """Kills a process and returns when it is gone. Never kills the process it is called in."""
    if process.pid == os.getpid() or not is_alive(process):
        return
    try:
        _kill(process)
    except ProcessLookupError:
        return
    except PermissionError:
        raise LogError(
            f"the log is held by process {process.pid}, which belongs to another user and cannot be ended; a "
            f"successor must end it before it may go on. End that process, or start as its user."
        ) from None
    deadline = time.monotonic() + _PATIENCE_S
    while is_alive(process):
        if time.monotonic() > deadline:
            raise LogError(
                f"the log is held by process {process.pid}, which was killed but is still there after "
                f"{_PATIENCE_S:.0f} seconds; its disk may hang. Look at that process, then start again."
            )
        time.sleep(0.002)


def _kill(process: Process) -> None:
    try:
        handle = os.pidfd_open(process.pid)
    except (OSError, AttributeError) as error:
        if isinstance(error, ProcessLookupError):
            return
        os.kill(process.pid, signal.SIGKILL)  # A system without such handles.
        return
    try:
        if is_alive(process):  # From here on the number cannot change hands: the handle is tied to one process.
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)


def _status(pid: int) -> _Status | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        fields = text.rpartition(")")[2].split()
        return _Status(fields[0], int(fields[17]), int(fields[19]), int(fields[11]) + int(fields[12]))
    return None


@cache
def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _namespace() -> str:
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""
