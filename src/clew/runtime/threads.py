"""Threads that do one thing after another for a replica: log reads, or the writes of one connection."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]


class Worker:
    """A thread of its own that runs jobs in order; it begins with the first."""

    def __init__(self, name: str, on_error: Callable[[BaseException], None]) -> None:
        self._name = name
        self._on_error = on_error
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def do(self, job: Job) -> None:
        """Runs a job after those before it."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        self._jobs.put(job)

    def end(self, patience_s: float = 5.0) -> bool:
        """Ends after the jobs that wait; returns when it has, or when patience is over, and says whether it has."""
        if self._thread is None:
            return True
        self._jobs.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(patience_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            try:
                job()
            except BaseException as error:
                self._on_error(error)
                return
