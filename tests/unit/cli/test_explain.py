"""`clew explain`: the timeline, the page, JSON, exit codes; of traces by hand, and of a log beside one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.laws.test_explain import save
from tests.store.places import DESCRIPTION, OP3, step
from tests.unit.verify.explain.test_explaining import change_part
from tests.unit.verify.explain.told import SUMS, log_trace, snapshot_trace

from clew.cli.explain import facts_of
from clew.cli.explain_page import page
from clew.log.sqlite import SqliteStore
from clew.verify.explain import Explanation, Unexplained, explain

Run = Callable[..., Any]
GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture(autouse=True)
def _in_greenwich(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def without_seconds(text: str) -> str:
    return re.sub(r"Explained in \d+\.\d\d s\.", "Explained in 0.00 s.", text)


@pytest.mark.parametrize(("name", "build"), [("explain_log", log_trace), ("explain_snapshot", snapshot_trace)])
def test_the_timeline(name: str, build: Callable[[], Any], tmp_path: Path, run: Run, monkeypatch: Any) -> None:
    """The golden files were read by people; write them anew with what this prints if they shall change."""
    save(build(), tmp_path / "sales.log" / "trace")
    monkeypatch.chdir(tmp_path)
    found = run("explain", "sales.log")
    assert found.code == 0
    assert without_seconds(found.out) == (GOLDEN / f"{name}.txt").read_text()


def test_the_first_step_that_cannot_be_explained(tmp_path: Path, run: Run) -> None:
    trace = log_trace()
    change_part(trace.lives[SUMS][1], 0, took=(0, 3, 3))
    save(trace, tmp_path)
    found = run("explain", tmp_path)
    assert found.code == 1
    assert found.lines[1:] == [
        "There is no failure-free explanation. The first step that cannot be explained:",
        "  sums, incarnation 2, commit 1 at 00:00:06.000 (position 4)",
        "  it takes feed.out/3 too early; expected feed.out/2 next",
    ]
    told = run("explain", tmp_path, "--json")
    assert (told.code, told.json["is_explained"], told.json["why"]) == (1, False, found.lines[3].strip())


def test_json(tmp_path: Path, run: Run) -> None:
    save(snapshot_trace(), tmp_path)
    told = run("explain", tmp_path, "--json").json
    assert (told["is_explained"], told["mode"], told["epochs"], told["is_complete"]) == (True, "snapshot", 2, True)
    assert (told["steps"], told["commits"], told["discarded"]) == (15, 8, 4)
    assert told["replicas"]["sums"]["written"] == {"archive": 3}
    (recovery,) = told["recoveries"]
    assert (recovery["who"], recovery["to"], recovery["seconds"]) == (["feed", "sums"], 1, 1.6)


def test_where_there_is_no_trace(tmp_path: Path, run: Run) -> None:
    found = run("explain", tmp_path)
    assert found.code == 2
    assert "holds no trace" in found.err


def test_a_damaged_trace(tmp_path: Path, run: Run) -> None:
    save(log_trace(), tmp_path)
    file = tmp_path / "feed-0" / "000001.trace"
    data = bytearray(file.read_bytes())
    data[-60] ^= 255
    file.write_bytes(data)
    found = run("explain", tmp_path)
    assert found.code == 1
    assert "has another checksum than was written with it" in found.err


# The page


class Parts(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("build", [log_trace, snapshot_trace])
def test_the_page_needs_nothing_else(build: Callable[[], Any], tmp_path: Path, run: Run) -> None:
    save(build(), tmp_path / "trace")
    found = run("explain", tmp_path, "--html", tmp_path / "page.html")
    assert found.code == 0
    assert f"the page is in {tmp_path / 'page.html'}" in found.err
    text = (tmp_path / "page.html").read_text()
    parts = Parts(text)
    assert parts.open == []
    assert not re.search(r"https?://|src=|href=|@import|url\(", text)
    assert [tag for tag, _ in parts.tags].count("svg") == 1
    assert "sums" in text
    assert "in order and each once" in text


def test_bars_are_inside_the_picture_and_discarded_ones_are_seen() -> None:
    found = explain(log_trace())
    assert isinstance(found, Explanation)
    parts = Parts(page("sales.log", found))
    bars = [attrs for tag, attrs in parts.tags if tag == "rect"]
    assert all(150 <= float(bar["x"] or 0) <= 1000 for bar in bars)
    assert all(float(bar["x"] or 0) + float(bar["width"] or 0) <= 1000 for bar in bars)
    assert any(bar["fill"] == "var(--lost)" for bar in bars)


def test_names_on_the_page_are_text() -> None:
    trace = log_trace()
    change_part(trace.lives[SUMS][1], 0, took=(0, 3, 3))
    text = page("<b>&", explain(trace))
    assert "<title>&lt;b&gt;&amp;</title>" in text
    assert "There is no failure-free explanation" in text


def test_a_page_that_cannot_be_written(tmp_path: Path, run: Run) -> None:
    save(log_trace(), tmp_path)
    found = run("explain", tmp_path, "--html", tmp_path / "no" / "page.html")
    assert found.code == 2
    assert "--html" in found.err
    assert "cannot be written" in found.err


# The log beside it


def test_the_facts_of_a_log(tmp_path: Path) -> None:
    store = SqliteStore.create(tmp_path / "log", DESCRIPTION)
    log = store.open(OP3)
    for number in range(1, 4):
        transaction = step(number)
        log.stage(transaction)
        log.commit(transaction)
    trace = log_trace()
    assert facts_of(str(tmp_path / "log"), trace) == ({}, None), "this process works on it"
    log.close()
    store.close()
    facts, epoch = facts_of(str(tmp_path / "log"), trace)
    assert facts_of(str(tmp_path / "log" / "trace"), trace) == (facts, epoch)
    assert epoch is None
    assert facts[OP3].made == {"out": 3}
    assert list(facts[OP3].taken.values()) == [3]


def test_a_trace_without_a_log_has_no_facts(tmp_path: Path) -> None:
    assert facts_of(str(tmp_path), log_trace()) == ({}, None)


def test_the_epoch_of_the_log_must_be_one_that_all_have_stored_and_not_before_what_was_told() -> None:
    trace = snapshot_trace()
    found = explain(trace)
    assert isinstance(found, Explanation)
    last = found.epochs
    assert isinstance(explain(trace, {}, last), Explanation)
    for wrong in (last + 1, 0):
        refused = explain(trace, {}, wrong)
        assert isinstance(refused, Unexplained)
        assert f"epoch {wrong} is the last complete one" in str(refused)
