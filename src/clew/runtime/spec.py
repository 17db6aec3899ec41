"""What a host is told when it is started: sent by Spark inside the task, never over one of Clew's own sockets."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.errors import NotPicklable, RunError
from clew.log.contract import Store
from clew.log.volatile import VolatileStore
from clew.model.graph import Graph, Node
from clew.model.names import Channel, Replica
from clew.protocol.settings import DEFAULT, Settings
from clew.trace.writer import FOLDER

RECOVERIES = ("log", "snapshot", "off")
"""How a run may recover: each replica from its own log, all together from snapshots, or not at all."""


@dataclass(frozen=True)
class LogPlace:
    """Where the log is; opens it in any process."""

    kind: str
    """`sqlite`, `postgres` or `off`."""
    where: str = field(repr=False)
    """A path or a connection string, which may hold a password."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def open(self, description: Mapping[str, Any] | None = None) -> Store:
        """The store; with a description it is made if it is not there, and refused if it is another pipeline's."""
        if self.kind == "sqlite":
            from clew.log.sqlite import open_sqlite

            return open_sqlite(self.where, description, **self.options)
        if self.kind == "postgres":
            from clew.log.postgres import open_postgres

            return open_postgres(self.where, description, **self.options)
        return VolatileStore(self.where, description or {})


def log_place(log: Any, pipeline: str, recovery: str, log_id: str) -> LogPlace:
    """The place that a user's `log=` means: a path, or a PostgreSQL connection string with perhaps a schema.

    >>> log_place("sales.log", "sales", "log", "").kind, log_place("postgresql://db/clew", "sales", "log", "").kind
    ('sqlite', 'postgres')
    """
    if recovery not in RECOVERIES:
        raise RunError(f"recovery={recovery!r} is not known; expected 'log', 'snapshot' or 'off'. Choose one of them.")
    if recovery == "off":
        if log is not None:
            raise RunError("a log was given with recovery='off', which keeps none. Leave out log=, or recovery=.")
        return LogPlace("off", log_id)
    if isinstance(log, LogPlace):
        return log
    if log is None:
        return LogPlace("sqlite", os.path.abspath(f"{pipeline}.log"))  # Hosts may run in other directories.
    text = str(log)
    if text.startswith(("postgresql://", "postgres://")) or (isinstance(log, str) and "dbname=" in text):
        return LogPlace("postgres", text, {"schema": pipeline.replace("-", "_").lower()})
    return LogPlace("sqlite", os.path.abspath(text))


def trace_place(trace: bool | str | Path, place: LogPlace) -> str | None:
    """The directory that a user's `trace=` means: that of the log, a given one, or none.

    >>> trace_place(True, LogPlace("sqlite", "/data/sales.log"))
    '/data/sales.log/trace'
    >>> trace_place(True, LogPlace("postgres", "dbname=sales")), trace_place(False, LogPlace("sqlite", "sales.log"))
    (None, None)
    """
    if trace is False or place.kind == "off":
        return None
    if trace is True:
        return os.path.join(place.where, FOLDER) if place.kind == "sqlite" else None
    return os.path.abspath(trace)


@dataclass(frozen=True)
class Timing:
    """How patient the parts of a run are with each other, in seconds."""

    beat_s: float = 0.25
    """How often a host says that it lives."""
    silence_s: float = 5.0
    """After how long a silent host that is in no move is taken for hung."""
    move_timeout_s: float | None = None
    """After how long a silent host in a move is taken for hung; None: never, as long as its process runs."""
    orphan_s: float = 10.0
    """After how long without a word from its coordinator a host ends."""
    burial_s: float | None = None
    """How long after losing a host on another machine its process is taken for dead; None: it never is."""


@dataclass(frozen=True)
class Tuning:
    """Sizes and patience; none of them changes what is computed."""

    settings: Settings = DEFAULT
    timing: Timing = field(default_factory=Timing)


TUNING = Tuning()
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Options:
    """How a pipeline is to be run; see `Pipeline.run`."""

    log: str | Path | LogPlace | None = field(default=None, repr=False)
    """A connection string may hold a password."""
    recovery: str = "log"
    restarts_max: int = 10
    bind: str = LOOPBACK
    tuning: Tuning = TUNING
    trace: bool | str | Path = True
    """Whether a trace is written beside the log, or a directory for it; a PostgreSQL log has none beside it."""
    snapshot_every_s: float = 5.0
    """With recovery='snapshot': how long after one epoch is complete the next one ends."""


@dataclass(frozen=True)
class HostSpec:
    """One host: which replicas it runs, and how it reaches everybody else."""

    pipeline: str
    group: tuple[Replica, ...]
    submission: int
    secret: bytes = field(repr=False)
    coordinator: tuple[str, int]
    bind: str
    place: LogPlace
    log_id: str
    settings: Settings
    timing: Timing
    nodes: tuple[bytes, ...] = field(repr=False)
    """The nodes of the group, pickled, so that the host itself can say which of them could not be loaded."""
    channels: tuple[Channel, ...]
    description: Mapping[str, Any]
    here: tuple[Node, ...] = field(default=(), repr=False)
    """The nodes of a group that is hosted in the driver: they may hold what cannot be sent, such as DataFrames."""
    recovery: str = "log"
    trace: str | None = None
    """The directory of the trace, if one is written."""

    @property
    def name(self) -> str:
        """The group's name: its operators."""
        return group_name(self.group)

    def graph(self) -> Graph:
        """The part of the graph that this host needs."""
        if self.here:
            return Graph(self.pipeline, {node.name: copy.deepcopy(node) for node in self.here}, self.channels)
        from pyspark import cloudpickle

        nodes: dict[str, Node] = {}
        try:
            for data in self.nodes:
                nodes |= cloudpickle.loads(data)
        except Exception as error:
            raise NotPicklable(
                f"{self.name} cannot be loaded where Spark runs it: {type(error).__name__}: {error}. If a module is "
                f"missing there, install it on the machines of the cluster, or ship it with "
                f"spark.sparkContext.addPyFile(...) before run()."
            ) from error
        return Graph(self.pipeline, nodes, self.channels)


def group_name(group: tuple[Replica, ...]) -> str:
    """The operators of a group.

    >>> group_name((Replica("hourly"), Replica("report", 1)))
    'hourly+report/1'
    """
    return "+".join(map(str, group))
