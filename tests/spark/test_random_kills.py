"""Many kills in one run, of operators that chance chooses, also while they recover; at the end everything is exact.

The seed decides who is killed when. A failure prints the command that kills the same ones again; what the processes
were doing at that moment is up to the machine.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark import pipelines
from tests.spark.harness import BRISK, Watch
from tests.spark.pipelines import differences
from tests.spark.running import is_explained

from clew.runtime.run import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KILLS, SOAK_KILLS = 25, 300


def seed_of(default: int | None) -> int:
    """The seed that was asked for, or the test's own, or chance."""
    asked = os.environ.get("CLEW_SEED")
    return int(asked) if asked else random.SystemRandom().randrange(1 << 32) if default is None else default


def kill_at_random(run: Run, names: tuple[str, ...], kills: int, seed: int, directory: Path, test: str) -> Run:
    """Kills, half a second or so apart, whoever is chosen, as soon as it has a process."""
    replay = f"CLEW_SEED={seed} .venv/bin/python -m pytest {test}"
    print(f"seed {seed}; replay: {replay}")
    chance = random.Random(seed)
    with Watch(run, limit_s=60 + 3.0 * kills, replay=replay) as watch:
        for _ in range(kills):
            time.sleep(chance.uniform(0.2, 0.8))
            watch.kill(chance.choice(names))
        pipelines.gate_of(directory).touch()
        watch.finish()
    deaths = Counter(name for name, _ in watch.killed)
    gaps = sorted(loss["recovery_s"] for loss in run.losses() if loss["recovery_s"] is not None)
    reasons = Counter(loss["reason"] for loss in run.losses())
    print(f"killed: {dict(deaths)}; losses: {dict(reasons)}")
    print(f"recoveries: median {gaps[len(gaps) // 2]} s, longest {gaps[-1]} s")
    for loss in run.losses():
        if loss["reason"] != "lost":
            print(f"not killed here: {loss}")
    return run


def test_many_kills_in_one_run(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run = pipelines.sales(tmp_path, count=1200, per_second=80.0).run(
        spark, log=tmp_path / "log", blocking=False, tuning=BRISK
    )
    kill_at_random(run, pipelines.SALES, KILLS, seed_of(1), tmp_path, request.node.nodeid)
    expected, found = pipelines.sales_expected(1200), pipelines.sales_found(tmp_path)
    for name, rows in expected.items():
        assert differences(found[name], rows) == (0, 0), f"{name}: (lost, doubled or wrong)"
    assert found == expected
    assert is_explained(tmp_path / "log")


@pytest.mark.soak
def test_many_kills_of_the_sales_pipeline(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run = pipelines.sales(tmp_path, count=12_000, per_second=80.0).run(
        spark, log=tmp_path / "log", blocking=False, tuning=BRISK
    )
    kill_at_random(run, pipelines.SALES, SOAK_KILLS, seed_of(None), tmp_path, request.node.nodeid)
    assert pipelines.sales_found(tmp_path) == pipelines.sales_expected(12_000)
    assert is_explained(tmp_path / "log")


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_many_kills_of_a_fan_in(
    spark: SparkSession, tmp_path: Path, dsn: str, store: str, request: pytest.FixtureRequest
) -> None:
    log = tmp_path / "log" if store == "sqlite" else dsn
    run = pipelines.fan_in(tmp_path, dsn, count=12_000, per_second=80.0).run(
        spark, log=log, blocking=False, tuning=BRISK
    )
    kill_at_random(run, pipelines.FAN_IN, SOAK_KILLS, seed_of(None), tmp_path, request.node.nodeid)
    assert pipelines.fan_in_found(tmp_path, dsn) == pipelines.fan_in_expected(12_000)


@pytest.mark.soak
def test_many_kills_of_replicas(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run = pipelines.parallel(tmp_path, count=12_000, per_second=80.0).run(
        spark, log=tmp_path / "log", blocking=False, tuning=BRISK
    )
    kill_at_random(run, pipelines.PARALLEL, SOAK_KILLS, seed_of(None), tmp_path, request.node.nodeid)
    assert pipelines.parallel_found(tmp_path) == pipelines.parallel_expected(12_000)
