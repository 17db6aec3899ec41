"""Spark jobs: one for each host, each with one long-running task; and threads for hosts that need the driver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from clew.runtime.coordinator import Coordinator
from clew.runtime.groups import Group
from clew.runtime.host import Host
from clew.runtime.spark_errors import explain
from clew.runtime.spec import HostSpec
from clew.runtime.task import serve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Here:
    """A host in the driver."""

    thread: threading.Thread
    predecessor: _Here | None
    is_gone: bool = False
    """Whether nothing of it, nor of those before it, can still act."""

    def is_predecessor_gone(self) -> bool:
        """Waits for its predecessor to end; says whether that has left nothing. The first has none that it knows of."""
        before, self.predecessor = self.predecessor, None
        if before is None:
            return False
        before.thread.join()
        return before.is_gone


class Jobs:
    """Starts hosts and hears of their ends."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: str,
        run_id: str,
        coordinator: Coordinator,
        spec: Callable[[Group], HostSpec],
    ) -> None:
        self._spark = spark
        self._context = spark.sparkContext
        self._pipeline = pipeline
        self._run_id = run_id
        self._coordinator = coordinator
        self._spec = spec
        self._threads: list[threading.Thread] = []
        self._submitted: set[str] = set()
        self._here: dict[str, _Here] = {}
        """The last host of each group that is hosted in the driver."""
        self._lock = threading.Lock()
        coordinator.launch = self.launch
        coordinator.cancel = self.cancel

    def launch(self, group: Group) -> None:
        """Starts a host for a group, as a Spark job or in the driver."""
        work = self._host_here if group.is_in_driver else self._submit
        spec = self._spec(group)
        thread = threading.Thread(target=work, args=(group, spec), name=f"clew-job-{group.name}", daemon=True)
        with self._lock:
            if group.is_in_driver:
                self._here[group.name] = _Here(thread, self._here.get(group.name))
            self._threads = [each for each in self._threads if each.is_alive()]
            self._threads.append(thread)
        thread.start()

    def cancel(self, group: Group, submission: int) -> None:
        """Gives up a job whose host is gone; whatever is left of it must not be started again by Spark."""
        if not group.is_in_driver:
            name = self._job_group(group.name, submission)
            threading.Thread(target=self._cancel, args=(name,), name="clew-cancel", daemon=True).start()

    def end(self, patience_s: float) -> bool:
        """Waits until every job is over, and cancels those that are not; True when all ended by themselves."""
        with self._lock:
            threads = list(self._threads)
        share = patience_s / max(1, len(threads))
        for thread in threads:
            thread.join(share)
        left = [thread for thread in threads if thread.is_alive()]
        if left:
            for name in list(self._submitted):
                self._cancel(name)
            for thread in left:
                thread.join(share)
        return not left

    def _job_group(self, group: str, submission: int) -> str:
        return f"clew-{self._run_id}-{group}-{submission}"

    def _cancel(self, job_group: str) -> None:
        try:
            self._context.cancelJobGroup(job_group)
        except Exception:
            return  # Spark itself is gone, and its jobs with it.

    def _submit(self, group: Group, spec: HostSpec) -> None:
        error = None
        name = self._job_group(group.name, spec.submission)
        try:
            self._submitted.add(name)
            # Cancelling must not interrupt Spark's thread: one that is just starting a Python worker would take its
            # daemon for dead and restart it, and with it all hosts of the machine.
            self._context.setJobGroup(name, f"clew {self._pipeline}: {group.name}", interruptOnCancel=False)
            self._context.parallelize([0], 1).mapPartitions(partial(serve, spec)).collect()
        except Exception as found:
            error = explain(found)
        finally:
            self._submitted.discard(name)
        self._coordinator.job_ended(group, spec.submission, error)

    def _host_here(self, group: Group, spec: HostSpec) -> None:
        """Hosts a group in this thread, after its last host has ended: nobody can end that one by its process."""
        error = None
        try:
            here = self._here[group.name]
            host = Host(spec, self._spark, here.is_predecessor_gone())
            try:
                host.run()
            finally:
                here.is_gone = host.close() and host.is_alone
        except Exception as found:
            error = explain(found)
        self._coordinator.job_ended(group, spec.submission, error)
