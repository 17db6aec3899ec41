"""A run of a pipeline on Spark, and the handle by which a user follows it."""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.errors import RunError, RunFailed
from clew.log.claim import Claim, claim
from clew.log.contract import LogReader, Store
from clew.log.epochs import EPOCHS, EpochLog
from clew.log.snapshot_rows import snapshot_state
from clew.model.graph import Capture, Graph
from clew.model.names import Replica
from clew.model.values import decode
from clew.operators.collect import Collect, collected
from clew.protocol.eligible import check_snapshots
from clew.protocol.frontiers import Frontiers, frontiers_of
from clew.runtime import preflight
from clew.runtime.coordinator import Coordinator
from clew.runtime.groups import Group
from clew.runtime.jobs import Jobs
from clew.runtime.session import active_session, local_session
from clew.runtime.snapshot_reading import rows_together
from clew.runtime.spec import LOOPBACK, HostSpec, LogPlace, Options, log_place, trace_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FAREWELL_S = 20.0


def start(graph: Graph, spark: SparkSession | None, options: Options) -> Run:
    """Checks everything, then starts a run."""
    frontiers = frontiers_of(graph)
    description = graph.describe()
    if options.recovery == "snapshot":
        check_snapshots(graph)
        preflight.check_interval(options.snapshot_every_s)
        description["recovery"] = options.recovery
    if options.recovery == "off":
        bare = {name: dataclasses.replace(node, capture=Capture()) for name, node in graph.nodes.items()}
        graph = dataclasses.replace(graph, nodes=bare)
    place = log_place(options.log, graph.name, options.recovery, secrets.token_hex(8))
    groups = groups_of(graph)
    nodes = preflight.pickled(graph)
    needs_jobs = any(group.is_in_driver for group in groups)
    session = spark if spark is not None else active_session()
    if session is not None:
        preflight.check_session(session)
    is_own = session is None
    store = place.open(description)
    claimed = None
    try:
        preflight.check_recovery(store, place, options.recovery)
        claimed = claim(store)
        if session is None:
            session = local_session(graph.name, len(groups))
        preflight.check_slots(session, groups, needs_jobs)
        preflight.check_workers(session)
        preflight.check_machines(session, place, options.bind)
        return Run(graph, session, is_own, options, place, store, claimed, groups, nodes, frontiers)
    except BaseException:
        if claimed is not None:
            claimed.release()
        store.close()
        if is_own and session is not None:
            session.stop()
        raise


def groups_of(graph: Graph) -> list[Group]:
    """The hosts that a pipeline needs: one for each declared group, and one for each other replica."""
    found: list[Group] = []
    grouped = {name: group for group in graph.groups for name in group}
    for replica in graph.replicas:
        group = grouped.get(replica.operator)
        if group is None:
            found.append(Group((replica,), replica.operator in graph.in_driver))
        elif replica.operator == group[0] and replica.index == 0:
            members = tuple(each for each in graph.replicas if each.operator in group)
            found.append(Group(members, group[0] in graph.in_driver))
    return found


class Run:
    """A run of a pipeline, under way or over."""

    def __init__(
        self,
        graph: Graph,
        spark: SparkSession,
        is_own_session: bool,
        options: Options,
        place: LogPlace,
        store: Store,
        claimed: Claim,
        groups: list[Group],
        nodes: Mapping[str, bytes],
        frontiers: Frontiers | None,
    ) -> None:
        self.graph = graph
        self.spark = spark
        self.log = place
        self.store = store
        self._claim = claimed
        self.id = secrets.token_hex(4)
        self.began_at = time.time()
        self.ended_at: float | None = None
        self._is_own_session = is_own_session
        self._options = options
        self._nodes = nodes
        self._secret = secrets.token_bytes(32)
        self._is_closed = False
        self._closing = threading.RLock()
        self._final: dict[str, Any] | None = None
        is_protected = options.recovery != "off"
        try:
            self._coordinator = Coordinator(
                groups,
                self._secret,
                options.bind,
                options.tuning.timing,
                options.restarts_max,
                is_protected,
                frontiers,
            )
        except OSError as error:
            raise RunError(
                f"the coordinator cannot listen on bind={options.bind!r}: {error}. Pass an address of this machine, or "
                f"leave bind= out for {LOOPBACK}."
            ) from error
        self._address = (self._driver_address(), self._coordinator.server.port)
        self._jobs = Jobs(spark, graph.name, self.id, self._coordinator, self._spec)
        if options.recovery == "snapshot":
            log = EpochLog(store.open(EPOCHS))
            self._coordinator.recover_together(log, options.snapshot_every_s, lambda: frontiers_of(graph))
        self._coordinator.start()

    def wait(self, timeout_s: float | None = None, progress: Callable[[Run], None] | None = None) -> Run:
        """Waits until the run is over; raises `RunFailed` if it failed. With a timeout it may return before.

        `progress` is called a few times a second. Ctrl-C stops the run.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            while not self._coordinator.over.wait(0.2 if progress is not None or deadline is not None else 1.0):
                if progress is not None:
                    progress(self)
                if deadline is not None and time.monotonic() > deadline:
                    return self
        except BaseException:
            self.stop()
            raise
        self._close()
        if self._coordinator.error is not None:
            raise RunFailed(self._coordinator.error)
        return self

    def stop(self) -> None:
        """Ends the run where it is, and everything it has started; running again on the same log goes on."""
        self._coordinator.stop()
        self._coordinator.over.wait()
        self._close()

    @property
    def is_over(self) -> bool:
        """Whether the run has completed, failed or was stopped."""
        return self._coordinator.over.is_set()

    @property
    def state(self) -> str:
        """`running`, `completed`, `failed` or `stopped`."""
        if not self.is_over:
            return "running"
        if self._coordinator.error is not None:
            return "failed"
        return "completed" if self._coordinator.completed >= self._coordinator.wanted else "stopped"

    @property
    def error(self) -> str | None:
        """Why the run failed."""
        return self._coordinator.error

    def status(self) -> dict[str, Any]:
        """How the run and each of its groups are; what operators have counted, by replica; frontiers, by input port."""
        groups = self._final or self._coordinator.reports()
        generations = self._coordinator.generations
        return {
            "pipeline": self.graph.name,
            "run": self.id,
            "state": self.state,
            "error": self.error,
            "seconds": round((self.ended_at or time.time()) - self.began_at, 3),
            "completed": sorted(self._coordinator.completed),
            "refused": self._coordinator.server.refused,
            "groups": groups,
            "counts": {
                replica: state["tallies"]
                for group in groups.values()
                for replica, state in group.get("replicas", {}).items()
                if "tallies" in state
            },
            "frontiers": self._coordinator.frontiers(),
            **({} if generations is None else {"snapshots": generations.report()}),
        }

    def metrics(self) -> dict[str, Any]:
        """Numbers of every replica, as last heard: by replica."""
        found: dict[str, Any] = {}
        for group in (self._final or self._coordinator.reports()).values():
            for replica, state in group.get("replicas", {}).items():
                host = {key: group[key] for key in ("pid", "starts", "cpu_s", "rss_bytes", "refused") if key in group}
                found[replica] = {**state, **host}
        return found

    def results(self, operator: str) -> pa.Table:
        """What a collecting sink has so far: `stream.collect("found")`, then `run.results("found")`."""
        node = self.graph.nodes.get(operator)
        if node is None or not isinstance(node.definition, Collect):
            known = [name for name, each in self.graph.nodes.items() if isinstance(each.definition, Collect)]
            raise RunError(
                f"{operator!r} collects no results in pipeline {self.graph.name!r}; those that do are "
                f"{', '.join(known) or 'none'}. Declare one with stream.collect({operator!r})."
            )
        store = self.log.open(self.graph.describe())
        try:
            rows = self._state_of(store.reader(), self.graph.replicas_named(operator))
        finally:
            store.close()
        return collected((decode(key), decode(value)) for key, value in rows)

    def _state_of(self, reader: LogReader, replicas: Iterable[Replica]) -> list[tuple[bytes, bytes]]:
        """The state of replicas, as far as it can be lost no more; all of it of one epoch, if there are epochs."""
        generations = self._coordinator.generations
        if generations is None:
            return [row for each in replicas for row in reader.rows(each).state]
        present = set(reader.replicas())
        epoch, found = rows_together(present.intersection(replicas), reader.rows, lambda: generations.epoch)
        return [row for _, rows in sorted(found.items()) for row in snapshot_state(rows, epoch)]

    def losses(self) -> list[dict[str, Any]]:
        """Every death of a host so far, and how long its recovery took."""
        under_way = [group.loss for group in list(self._coordinator.groups.values())]
        return [loss.as_dict() for loss in [*self._coordinator.losses, *under_way] if loss is not None]

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._is_closed:
            self.stop()

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.graph.name}: {self.state}>"

    def _close(self) -> None:
        """Waits until nothing of the run is left."""
        with self._closing:  # Whoever comes second waits until the first is through.
            if self._is_closed:
                return
            self._is_closed = True
            try:
                self._jobs.end(_FAREWELL_S)
            finally:  # Also when somebody who waits here is interrupted.
                self._final = self._coordinator.reports()
                self._coordinator.close()
                self.ended_at = time.time()
                self.store.close()
                self._claim.release()
                if self._is_own_session:
                    self.spark.stop()

    def _driver_address(self) -> str:
        bind = self._options.bind
        if bind in ("0.0.0.0", "::"):
            return str(self.spark.sparkContext.getConf().get("spark.driver.host", "127.0.0.1"))
        return bind

    def _spec(self, group: Group) -> HostSpec:
        operators = dict.fromkeys(replica.operator for replica in group.replicas)
        members = set(group.replicas)
        return HostSpec(
            pipeline=self.graph.name,
            group=group.replicas,
            submission=group.submission,
            secret=self._secret,
            coordinator=self._address,
            bind=self._options.bind,
            place=self.log,
            log_id=self.store.log_id,
            settings=self._options.tuning.settings,
            timing=self._options.tuning.timing,
            nodes=() if group.is_in_driver else tuple(self._nodes[name] for name in operators),
            channels=tuple(each for each in self.graph.channels if each.sender in members or each.receiver in members),
            description=self.store.description,
            trace=trace_place(self._options.trace, self.log),
            here=tuple(self.graph.nodes[name] for name in operators) if group.is_in_driver else (),
            recovery=self._options.recovery,
        )
