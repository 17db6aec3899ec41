"""Commands and runs with snapshots: what `clew status` reads off such a log, and what `clew run` refuses and says."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.store.places import DESCRIPTION, OP3, step

from clew.cli import run as command
from clew.log.epochs import EPOCHS, EpochLog
from clew.log.snapshots import SnapshotLog
from clew.log.sqlite import SqliteStore
from clew.model.history import Transaction

Run = Callable[..., Any]


def test_a_log_is_shown_as_it_was_at_the_last_complete_epoch(tmp_path: Path, run: Run) -> None:
    store = SqliteStore.create(tmp_path / "log", {**DESCRIPTION, "recovery": "snapshot"})
    epochs = EpochLog(store.open(EPOCHS))
    generation = epochs.begin_generation()
    told = run("status", tmp_path / "log", "--json").json
    assert (told["epoch"], told["generation"], told["replicas"]["OP3"]["position"]) == (0, 1, 0)
    writes = frozenset({"report"})
    log = SnapshotLog(store.open(OP3), generation, 0, write_connections=writes, durable_writes=writes)
    for epoch in (1, 2):
        for number in range(3 * epoch - 2, 3 * epoch + 1):
            log.commit(step(number))
        log.commit(Transaction(counters={"epoch": epoch, "out:report": 2 * epoch, "written:report": epoch}))
        log.store(log.capture(epoch, is_final=False))
    epochs.complete(1)
    told = run("status", tmp_path / "log", "--json").json
    mine = told["replicas"]["OP3"]
    assert (told["epoch"], mine["incarnation"], mine["position"]) == (1, 1, 3)
    assert mine["events"] == {"out": 3 - 1}, "a border is no event"
    assert (mine["written"], mine["waiting"]) == ({"report": 2}, {"report": 0}), "what is settled is so in any epoch"
    assert mine["holder"]["is_alive"]
    text = run("status", tmp_path / "log").out
    assert "\nas of epoch 1, the last complete one; generation 1\n" in text
    log.close()
    epochs.close()
    store.close()


REFUSED = """
import clew
from clew.testing import scripted

pipeline = clew.Pipeline("small")
pipeline.source("numbers", scripted([[{"x": 1}]])).batch(2, name="twos")
pipeline.lineage("numbers.out", "twos.out")
"""


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (REFUSED, [], "captures lineage from numbers.out to twos.out; recovery='snapshot' keeps no events to trace"),
        (REFUSED.rpartition("pipeline.")[0], ["--snapshot-every", "0"], "snapshot_every_s=0.0 is no time between"),
    ],
)
def test_what_is_refused_is_so_before_a_spark_is_started(
    file: Any, run: Run, text: str, options: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "spark_session", None)
    result = run("run", file(text), "--recovery", "snapshot", *options)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_who_is_stopped_is_told_how_to_go_on() -> None:
    args = Namespace(recovery="snapshot", log="x.log", file="sales.py")
    assert command._go_on(args) == (
        "clew: stopped; everything up to the last snapshot is in the log. Go on with: clew run sales.py --log x.log "
        "--recovery snapshot"
    )
