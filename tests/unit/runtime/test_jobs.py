"""Spark jobs of hosts: Spark shows the operators' names, and cancelling does not interrupt what starts workers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from clew.model.names import Replica
from clew.runtime.groups import Group
from clew.runtime.jobs import Jobs


class Context:
    """Notes what it is told; its jobs fail."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, bool]] = []
        self.cancelled: list[str] = []

    def setJobGroup(self, group: str, description: str, interruptOnCancel: bool) -> None:
        self.told.append((group, description, interruptOnCancel))

    def parallelize(self, values: list[int], parts: int) -> Any:
        raise RuntimeError("Job aborted.\n at some.Place\nValueError: no such thing")

    def cancelJobGroup(self, group: str) -> None:
        self.cancelled.append(group)


def test_spark_is_told_the_operators_and_never_to_interrupt() -> None:
    context, ended = Context(), []
    coordinator = SimpleNamespace(
        launch=None, cancel=None, job_ended=lambda group, submission, error: ended.append((submission, error))
    )
    spark: Any = SimpleNamespace(sparkContext=context)
    spec: Any = SimpleNamespace(submission=3)
    jobs = Jobs(spark, "sales", "run", coordinator, lambda group: spec)  # type: ignore[arg-type]
    group = Group((Replica("hourly"), Replica("report")), False)
    jobs.launch(group)
    assert jobs.end(10)
    assert context.told == [("clew-run-hourly+report-3", "clew sales: hourly+report", False)]
    assert ended == [(3, "ValueError: no such thing")]
