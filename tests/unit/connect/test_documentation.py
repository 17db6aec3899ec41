"""The examples of the page on connectors are pipelines that keep their promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.connect.destinations import connected

import clew
from clew.model.event import as_batch
from clew.testing import run

PAGE = Path(__file__).parents[3] / "docs" / "connectors.md"


@pytest.mark.postgres
def test_the_examples_run_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DSN", dsn)
    names: dict[str, Any] = {}
    ran = []
    for example in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(example, names)
        pipeline = names["pipeline"]
        result = run(pipeline)
        for node in pipeline.build().nodes.values():
            for name in node.writes:
                rows = result.rows(f"{node.name}.{name}")
                assert rows, pipeline
                if pipeline.name == "totals":  # The examples behind it read what it writes, so it is really written.
                    really = connected("postgres", dsn)
                    really.table, really.upsert = "ticks", ["id"]  # type: ignore[attr-defined]
                    really.execute(clew.WriteAction("example", 1, as_batch(rows)))
        ran.append(pipeline.name)
    assert ran == ["archive", "clicks", "totals", "copy", "enriched", "small", "functions"]


def test_every_connector_is_on_the_page_with_its_kind() -> None:
    table = PAGE.read_text().split("\n\n")[2]
    for name in ("files", "postgres_query", "rate", "generator", "from_callable", "postgres_lookup"):
        assert re.search(rf"`{name}\(.*replayable", table), name
    for name in ("parquet", "csv", "jsonl", "postgres", "sqlite"):
        assert re.search(rf"`{name}\(.*\| conditional \|", table), name
