"""On which Sparks a pipeline runs, and what is refused before anything has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark import pipelines
from tests.spark.harness import Driver, Watch, is_there, parent_of, wait_until

import clew
from clew.errors import NotEnoughSlots, NotPicklable, RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def order(directory: Path, master: str, **more: Any) -> dict[str, Any]:
    return {"pipeline": "sales", "directory": str(directory), "log": str(directory / "log"), "master": master, **more}


def numbers(pipeline: clew.Pipeline, directory: Path) -> clew.Stream:
    return pipeline.source("numbers", pipelines.Steady(20, 1000.0, pipelines.gate_of(directory)))


# Which work


def test_spark_that_retries_by_itself_makes_no_second_hosts(tmp_path: Path) -> None:
    with Driver(order(tmp_path, "local[7,4]")) as driver:
        driver.started()
        for number, name in enumerate(("hourly", "report", "hourly", "orders"), 1):
            driver.passes("orders", number * 60)
            driver.returns(name, driver.kill(name))
        pipelines.gate_of(tmp_path).touch()
        result = driver.finish()
    assert result["state"] == "completed"
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()
    starts = {name: group["starts"] for name, group in result["status"]["groups"].items()}
    assert starts == {"orders": 2, "hourly": 3, "totals": 1, "report": 2, "archive": 1}, result["status"]["losses"]


def test_an_executor_is_killed(tmp_path: Path) -> None:
    """With it die several hosts at once; others go on on the other executor, and Spark starts a new one."""
    settings = {"spark.executor.memory": "512m", "spark.ui.enabled": "false"}
    with Driver(order(tmp_path, "local-cluster[2,5,512]", settings=settings), limit_s=150) as driver:
        driver.started()
        driver.passes("report", 5)
        executor = parent_of(parent_of(driver.group("hourly")["pid"]))
        lost = {
            name for name, group in driver.status()["groups"].items() if executor == parent_of(parent_of(group["pid"]))
        }
        assert "Executor" in Path(f"/proc/{executor}/cmdline").read_text()
        before = {name: driver.group(name)["pid"] for name in lost}
        os.kill(executor, signal.SIGKILL)
        for name, pid in before.items():
            driver.returns(name, pid)
        wait_until("nothing of it is left", lambda: not any(map(is_there, before.values())))
        pipelines.gate_of(tmp_path).touch()
        result = driver.finish()
    assert result["state"] == "completed"
    assert lost <= {loss["group"] for loss in result["status"]["losses"]}
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()


@contextmanager
def standalone(directory: Path) -> Iterator[str]:
    """A master and one worker with six cores, of the Spark that is installed with pip."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_WORKER_DIR": str(directory / "work"),
        "PYSPARK_PYTHON": sys.executable,
    }
    processes: list[subprocess.Popen[str]] = []
    words: list[str] = []

    def begin(*command: str) -> None:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *command],
            env=environment,
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stderr is not None
        threading.Thread(target=lambda: words.extend(process.stderr or ()), daemon=True).start()

    def said(what: str) -> str | None:
        return next((line for line in list(words) if what in line), None)

    try:
        begin("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        line = wait_until("the master has a port", lambda: said("Starting Spark master at"))
        master = line.split("Starting Spark master at ")[1].strip()
        begin("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "7", "--memory", "1g",
              "--webui-port", "0", master)  # fmt: skip
        wait_until("the worker is registered", lambda: said("Successfully registered with master"))
        yield master
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def test_a_standalone_master(tmp_path: Path) -> None:
    with standalone(tmp_path) as master:
        settings = {"spark.executor.memory": "512m", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
        with Driver(order(tmp_path, master, settings=settings), limit_s=150) as driver:
            driver.started()
            driver.passes("report", 5)
            driver.returns("hourly", driver.kill("hourly"))
            pipelines.gate_of(tmp_path).touch()
            assert driver.finish()["state"] == "completed"
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()


# What is refused


def test_too_few_slots(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = clew.Pipeline("long")
    stream = numbers(pipeline, tmp_path)
    for number in range(12):
        stream = stream.map(lambda table: table, name=f"step-{number}")
    with pytest.raises(
        NotEnoughSlots, match=r"needs 13 task slots .* numbers, step-0, .* local\[12\] has 12\. .*local\[13\]"
    ):
        pipeline.run(spark, log=tmp_path / "log")
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_an_operator_that_cannot_be_sent(spark: SparkSession, tmp_path: Path) -> None:
    lock = threading.Lock()
    pipeline = clew.Pipeline("unsendable")
    numbers(pipeline, tmp_path).map(lambda table: table if lock else None, name="locked")
    with pytest.raises(NotPicklable, match=r"operator 'locked', a Map, cannot be sent .*lock.* in open\(\)"):
        pipeline.run(spark, log=tmp_path / "log")
    assert not (tmp_path / "log").exists()


class Elsewhere:
    """A value that only the driver can load, like one of a module that is installed nowhere else."""

    def __reduce__(self) -> Any:
        return load_in, (os.getpid(),)


def load_in(pid: int) -> Elsewhere:
    if os.getpid() != pid:
        raise ModuleNotFoundError("No module named 'special'")
    return Elsewhere()


def test_an_operator_that_cannot_be_loaded_there_fails_the_run_at_once(spark: SparkSession, tmp_path: Path) -> None:
    special = Elsewhere()
    pipeline = clew.Pipeline("unloadable")
    numbers(pipeline, tmp_path).map(lambda table: table if special else None, name="special")
    run = pipeline.run(spark, log=tmp_path / "log", blocking=False)
    with Watch(run) as watch, pytest.raises(RunFailed, match=r"special cannot be loaded .*'special'.*addPyFile"):
        watch.finish()
    assert len(run.losses()) <= 1
