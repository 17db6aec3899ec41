"""Structured Streaming as a source: each micro-batch once, though the driver dies at the worst moments."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.running import finish, rows_of, until
from tests.spark.stream_child import build

import clew
from clew.connect.spark_streams import Passage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clew.runtime.run import Run

pytestmark = pytest.mark.spark

REPOSITORY = Path(__file__).parents[2]
FILES, LINES = 4, 60


def child(root: Path, *point: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.spark.stream_child", str(root), *point],
        cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def batches(root: Path, kind: str) -> list[int]:
    return sorted(int(path.name) for path in (root / "checkpoint" / kind).iterdir() if path.name.isdecimal())


def test_every_batch_arrives_once_though_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = []
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        rows = [{"id": number * LINES + line, "word": "ab" * (line % 5)} for line in range(LINES)]
        expected += [(row["id"], row["word"], len(str(row["word"]))) for row in rows]
        file = tmp_path / "in" / f"{number}.json"
        file.write_text("\n".join(map(json.dumps, rows)))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

    first = child(tmp_path, "reading", "1")
    assert first.returncode == -9, first.stderr
    assert (batches(tmp_path, "offsets"), batches(tmp_path, "commits")) == ([0, 1], [0])

    second = child(tmp_path, "durable", "2")
    assert second.returncode == -9, second.stderr
    assert (batches(tmp_path, "offsets"), batches(tmp_path, "commits")) == ([0, 1, 2], [0, 1])

    delivered = []
    deliver = Passage.deliver
    with monkeypatch.context() as patches:
        patches.setattr(Passage, "deliver", lambda *args: (delivered.append(args[2]), deliver(*args)))
        finish(build(tmp_path).run(spark, log=tmp_path / "log", blocking=False))
    assert delivered == [2, 3]
    assert batches(tmp_path, "commits") == [0, 1, 2, 3]
    assert rows_of(tmp_path / "out.db", "words") == sorted(expected)
    lake = spark.read.parquet(str(tmp_path / "lake")).select("id", "word", "length")
    assert sorted(map(tuple, lake.collect())) == sorted(expected)


def counting(root: Path, *, is_stateful: bool) -> clew.Pipeline:
    """Numbers from 0 on, ten to a batch, for ever."""

    def numbers(spark: SparkSession) -> DataFrame:
        stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1)
        frame = stream.load().select("value")
        return frame.dropDuplicates() if is_stateful else frame

    pipeline = clew.Pipeline("counting")
    source = pipeline.source("numbers", clew.read_stream(numbers, checkpoint=root / "checkpoint"))
    source.write("save", clew.sqlite(root / "out.db", "numbers", create=True))
    return pipeline


def written(run: Run) -> int:
    return int(run.metrics().get("save", {}).get("written", 0))


def test_an_endless_stream_is_stopped_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    for wanted in (3, 6):
        run = counting(tmp_path, is_stateful=False).run(spark, log=tmp_path / "log", blocking=False)
        until(lambda run=run, wanted=wanted: written(run) >= wanted)
        run.stop()
        assert run.state == "stopped"
        assert not spark.streams.active
    values = [value for (value,) in rows_of(tmp_path / "out.db", "numbers")]
    assert values == list(range(len(values)))
    assert len(values) >= 60


def test_a_durable_batch_of_a_stream_with_state_is_passed_over(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source fails after batch 1 was stored and before Spark was told; it begins anew in the driver."""
    durable, delivered = Passage.durable, []
    deliver = Passage.deliver
    failed = tmp_path / "failed"

    def stumble(self: Passage, batch: int) -> None:
        if batch == 1 and not failed.exists():
            failed.touch()
            raise ValueError("a stumble")
        durable(self, batch)

    monkeypatch.setattr(Passage, "durable", stumble)
    monkeypatch.setattr(Passage, "deliver", lambda *args: (delivered.append(args[2]), deliver(*args)))
    run = counting(tmp_path, is_stateful=True).run(spark, log=tmp_path / "log", blocking=False)
    until(lambda: written(run) >= 4)
    run.stop()
    assert delivered[:4] == [0, 1, 1, 2]
    assert [loss["reason"] for loss in run.losses()] == ["move"]
    values = [value for (value,) in rows_of(tmp_path / "out.db", "numbers")]
    assert values == list(range(len(values)))


def test_a_checkpoint_that_does_not_belong_to_the_log_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    run = counting(tmp_path, is_stateful=False).run(spark, log=tmp_path / "log", blocking=False)
    until(lambda: written(run) >= 2)
    run.stop()
    (tmp_path / "checkpoint").rename(tmp_path / "old")
    with pytest.raises(clew.ClewError, match="whose batches have other numbers"):
        finish(counting(tmp_path, is_stateful=False).run(spark, log=tmp_path / "log", blocking=False))
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "old").rename(tmp_path / "checkpoint")
    with pytest.raises(clew.ClewError, match=r"the log has its batches up to -1, so expected 0"):
        finish(counting(tmp_path, is_stateful=False).run(spark, log=tmp_path / "new", blocking=False))
