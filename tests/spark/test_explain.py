"""Runs on Spark with processes killed by SIGKILL leave a trace that is explained, and falsified is not."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.laws import trace_mutations as mutations
from tests.spark import pipelines
from tests.spark.harness import BRISK, Watch

from clew.cli.explain import facts_of
from clew.trace.reader import read_trace
from clew.trace.records import LOG, SNAPSHOT
from clew.verify.explain import Explanation, Unexplained, explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VICTIMS = ("hourly", "orders", "report")
FALSIFIED = (mutations.event_removed, mutations.event_doubled, mutations.events_swapped, mutations.commit_removed)


@pytest.mark.parametrize("mode", [pytest.param(LOG, marks=pytest.mark.soak), SNAPSHOT])
def test_a_run_with_kills_is_explained(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    log = tmp_path / "log"
    run = pipelines.sales(tmp_path).run(
        spark, log=log, recovery=mode, snapshot_every_s=0.3, blocking=False, tuning=BRISK
    )
    with Watch(run) as watch:
        for number, name in enumerate(VICTIMS, 1):
            watch.until("orders has sent more", lambda least=number * 100: watch.number("orders", "events") >= least)
            watch.returns(name, watch.kill(name))
        pipelines.gate_of(tmp_path).touch()
        watch.finish()
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected()
    trace = read_trace(log)
    found = explain(trace, *facts_of(str(log), trace))
    assert isinstance(found, Explanation), str(found)
    assert found.is_complete
    assert found.is_compared
    assert [name for recovery in found.recoveries for name in recovery.died] == list(VICTIMS)
    for mutation in FALSIFIED:
        falsified = mutation(trace, Random(7))
        assert falsified is not None
        assert isinstance(explain(falsified), Unexplained), mutation.__name__
