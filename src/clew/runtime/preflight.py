"""Checks before anything starts: is this Spark suitable, has it enough slots, can every operator be sent there?"""

from __future__ import annotations

import copy
import socket
import sys
import sysconfig
import time
from collections.abc import Iterable
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any

from clew.errors import NotEnoughSlots, NotPicklable, RunError, UnsuitableSpark
from clew.log.contract import Store
from clew.model.graph import Graph, Node
from clew.runtime.groups import Group
from clew.runtime.spark_errors import explain
from clew.runtime.spec import LogPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE_S = 30.0
_REMEDY = (
    "Install the same Clew and Python there, or say which Python to use before the session is made: on one machine, "
    "os.environ['PYSPARK_PYTHON'] = sys.executable."
)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def check_session(spark: Any) -> None:
    """Raises if a pipeline cannot run on this session at all."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UnsuitableSpark(
            "the session is one of Spark Connect, which gives no access to Spark's tasks; expected a classic session. "
            "Run the driver beside the cluster with SparkSession.builder.master(...), without remote(...)."
        )
    if not hasattr(spark, "sparkContext"):
        raise UnsuitableSpark(
            f"spark is a {type(spark).__name__}; expected a SparkSession. Pass SparkSession.builder...getOrCreate(), "
            f"or leave it out for a local one."
        )
    if spark.sparkContext._jsc is None or spark.sparkContext._jsc.sc().isStopped():
        raise UnsuitableSpark("the Spark session was stopped. Make a new one, or leave spark= out for a local one.")
    conf = spark.sparkContext.getConf()
    if str(conf.get("spark.speculation", "false")).lower() == "true":
        raise UnsuitableSpark(
            "spark.speculation is on: Spark would start second copies of hosts, which run for as long as the pipeline "
            "and so always look slow. Set spark.speculation to false for this session."
        )
    if str(conf.get("spark.python.worker.killOnIdleTimeout", "false")).lower() == "true":
        raise UnsuitableSpark(
            "spark.python.worker.killOnIdleTimeout is on: Spark would kill hosts, which give no rows until the "
            "pipeline ends. Set it to false for this session."
        )


def check_interval(every_s: Any) -> None:
    """Raises if snapshots cannot be that far apart."""
    if not isinstance(every_s, int | float) or isinstance(every_s, bool) or not 0 < every_s < float("inf"):
        raise RunError(
            f"snapshot_every_s={every_s!r} is no time between snapshots; expected a positive number of seconds. Pass "
            f"about as much as may be done again after a failure, such as 5.0."
        )


def check_recovery(store: Store, place: LogPlace, recovery: str) -> None:
    """Raises if the log was made by a run that recovers in another way."""
    found = store.description.get("recovery", "log")
    if recovery != "off" and found != recovery:
        where = place.where if place.kind == "sqlite" else "in the database"
        raise RunError(
            f"the log {where} was made with recovery={found!r}, and the run was asked for with recovery={recovery!r}, "
            f"which keeps something else in it. Run with recovery={found!r}, or name another place for the log."
        )


def check_workers(spark: SparkSession) -> None:
    """Raises if the Python in which Spark runs tasks cannot host operators; a small job asks it."""
    context = spark.sparkContext
    if context.getConf().get("spark.python.daemon.module") == "clew.runtime.daemon":
        return  # It could not have started without Clew.
    here = metadata.version("clew")

    def version_there(_: int) -> str:
        from importlib import metadata

        try:
            return metadata.version("clew")
        except metadata.PackageNotFoundError:
            return "none"

    try:
        there = context.parallelize([0], 1).map(version_there).collect()[0]
    except Exception as error:
        raise UnsuitableSpark(
            f"a first small Python job on {context.master}, run by {context.pythonExec!r}, failed: {explain(error)}. "
            f"{_REMEDY}"
        ) from error
    if there != here:
        raise UnsuitableSpark(
            f"the driver has Clew {here}; where {context.master} runs tasks, {context.pythonExec!r} has {there}. "
            f"{_REMEDY}"
        )


def check_slots(spark: SparkSession, groups: Iterable[Group], needs_driver_jobs: bool) -> None:
    """Raises if Spark cannot run all hosts at the same time; waits a moment for executors that are on their way."""
    hosts = [group.name for group in groups if not group.is_in_driver]
    needed = len(hosts) + (1 if needs_driver_jobs else 0)
    deadline = time.monotonic() + (_PATIENCE_S if not str(spark.sparkContext.master).startswith("local[") else 0)
    while (found := slots_of(spark)) < needed and time.monotonic() < deadline:
        time.sleep(0.2)
    if found < needed and not _is_growing(spark):
        jobs = " and one for DataFrame jobs" if needs_driver_jobs else ""
        raise NotEnoughSlots(
            f"the pipeline needs {needed} task slots at the same time, one for each of {', '.join(hosts)}{jobs}; "
            f"{spark.sparkContext.master} has {found}. Use a master with more cores (local[{needed}] is enough on one "
            f"machine), or put operators together with pipeline.group(...)."
        )


def slots_of(spark: SparkSession) -> int:
    """How many tasks Spark can run at the same time now."""
    context = spark.sparkContext._jsc.sc()
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))


def _is_growing(spark: SparkSession) -> bool:
    return str(spark.sparkContext.getConf().get("spark.dynamicAllocation.enabled", "false")).lower() == "true"


def check_machines(spark: SparkSession, place: LogPlace, bind: str) -> None:
    """Raises if hosts on several machines could not reach each other, or not the log."""
    others = other_machines(spark)
    if not others:
        return
    if place.kind == "sqlite":
        raise UnsuitableSpark(
            f"the log is a SQLite log, which works on one machine only, and {spark.sparkContext.master} runs tasks on "
            f"{', '.join(others)} too. Use a PostgreSQL log: run(log='postgresql://...')."
        )
    if bind in _LOOPBACK:
        raise UnsuitableSpark(
            f"hosts listen on {bind}, which other machines cannot reach, and {spark.sparkContext.master} runs tasks on "
            f"{', '.join(others)}. Say on which address to listen: run(bind='0.0.0.0'), inside a network you trust."
        )


def other_machines(spark: SparkSession) -> list[str]:
    """Machines of the cluster that are not this one."""
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return []
    here = {*_LOOPBACK, socket.gethostname(), socket.getfqdn(), context.getConf().get("spark.driver.host", "")}
    for name in list(here):
        try:
            here.update(str(found[4][0]) for found in socket.getaddrinfo(name, None))
        except OSError:
            continue
    infos = context._jsc.sc().statusTracker().getExecutorInfos()
    return sorted({str(info.host()) for info in infos} - here)


def pickled(graph: Graph) -> dict[str, bytes]:
    """Every node as it is sent to its host; raises if one cannot be sent, or copied if its host is the driver."""
    here = graph.in_driver
    for node in graph.nodes.values():
        for module in _modules(node):
            _ship(module)
        if node.name in here:
            _check_copied(node)
    return {name: _pickled(node) for name, node in graph.nodes.items() if name not in here}


def _check_copied(node: Node) -> None:
    try:
        copy.deepcopy(node)
    except Exception as error:
        raise NotPicklable(
            f"operator {node.name!r}, a {type(node.definition).__name__}, cannot be copied: {type(error).__name__}: "
            f"{error}. Each of its hosts begins with a copy; make what cannot be copied in open() instead of "
            f"__init__(), or refer to it from a function."
        ) from error


def _pickled(node: Node) -> bytes:
    from pyspark import cloudpickle

    try:
        data = cloudpickle.dumps({node.name: node})  # type: ignore[no-untyped-call]
        cloudpickle.loads(data)
    except Exception as error:
        raise NotPicklable(
            f"operator {node.name!r}, a {type(node.definition).__name__}, cannot be sent to another process: "
            f"{type(error).__name__}: {error}. Make what cannot be sent (connections, locks, open files) in open() "
            f"instead of __init__(), and do not refer to it from a function."
        ) from error
    return bytes(data)


def _modules(node: Node) -> set[str]:
    """The modules that define a node's operator, its function and its connections."""
    parts: list[Any] = list(node.parts)
    parts += [value for part in list(parts) for value in vars(part).values() if callable(value)]
    names = {getattr(part, "__module__", None) for part in parts} | {type(part).__module__ for part in parts}
    return {name for name in names if isinstance(name, str)}


def _ship(name: str, shipped: set[str] | None = None) -> None:
    """Sends a user's own module along, and those of the user that it uses: where Spark runs Python they may not be."""
    from pyspark import cloudpickle

    shipped = set() if shipped is None else shipped
    module = sys.modules.get(name)
    if module is None or name in shipped or (name != "__main__" and not _is_users(module)):
        return
    shipped.add(name)
    if name != "__main__":  # It is always sent along.
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    for value in list(vars(module).values()):
        used = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(used, str):
            _ship(used, shipped)


def _is_users(module: ModuleType) -> bool:
    """Whether a module is a file of the user's, neither of Python nor installed nor Clew's."""
    file = getattr(module, "__file__", None)
    if file is None or module.__name__.partition(".")[0] == "clew":
        return False
    paths = sysconfig.get_paths()
    return not any(file.startswith(paths[key]) for key in ("stdlib", "platstdlib", "purelib", "platlib"))
