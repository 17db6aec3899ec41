"""`clew run` as far as it goes without a Spark: wrong calls, what is shipped, what is shown, how it is stopped."""

from __future__ import annotations

import io
import os
import queue
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from clew.cli import run as command
from clew.cli.follow import Follower
from clew.cli.interrupt import Interrupted, handlers_kept, interruptible
from clew.cli.load import load
from clew.runtime import preflight

Run = Callable[..., Any]

GOOD = """
import clew
from clew.testing import Outside, scripted

pipeline = clew.Pipeline("small")
pipeline.source("numbers", scripted([[{"x": 1}]])).write("save", Outside("store").writer())
"""


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever would start a Spark here gets an error of another kind."""

    def starts(*_: Any) -> Iterator[None]:
        raise AssertionError("a Spark was started")

    monkeypatch.setattr(command, "spark_session", starts)
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--conf", "spark.x"], "--conf 'spark.x' is no Spark setting; expected KEY=VALUE"),
        (["--recovery", "off", "--log", "x.log"], "a log was given with recovery='off', which keeps none"),
    ],
)
def test_a_wrong_call_starts_nothing(file: Any, run: Run, options: list[str], words: str) -> None:
    result = run("run", file(GOOD), *options)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_what_cannot_be_sent_is_said_before_a_spark_is_started(file: Any, run: Run) -> None:
    text = GOOD.replace("\npipeline.source", "\nimport threading\nLOCK = threading.Lock()\npipeline.source")
    text = text.replace('.write("save"', '.map(lambda table: LOCK and table, name="locked").write("save"')
    result = run("run", file(text))
    assert result.code == 2
    assert "operator 'locked', a Map, cannot be sent to another process" in result.err


def test_a_run_that_is_stopped_before_it_began(file: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def interrupted(*_: Any) -> Iterator[None]:
        os.kill(os.getpid(), signal.SIGTERM)
        yield

    monkeypatch.setattr(command, "spark_session", interrupted)
    result = run("run", file(GOOD))
    assert (result.code, result.out) == (143, "")
    assert result.err == "Spark is starting.\nclew: stopped before the run had begun\n"


def test_modules_beside_the_file_are_sent_along(file: Any, tmp_path: Path) -> None:
    file("FACTOR = 3\n\ndef times(x):\n    return x * FACTOR\n", "near_one.py")
    file("import near_one\n\nclass Tool:\n    def use(self, x):\n        return near_one.times(x)\n", "near_two.py")
    text = GOOD.replace("import clew\n", "import clew\nfrom near_two import Tool\n\nTOOL = Tool()\n")
    text = text.replace(
        '.write("save"', '.map(lambda row: {"x": TOOL.use(row["x"])}, name="use", rows=True).write("save"'
    )
    graph = load(file(text, "far.py"))
    data = preflight.pickled(graph)["use"]
    for name in ("near_one", "near_two", "far"):
        del sys.modules[name]  # As where Spark runs Python.
    node = cloudpickle.loads(data)["use"]
    assert node.definition.f({"x": 2}) == {"x": 6}


def test_a_file_does_not_replace_a_module_of_the_same_name(file: Any) -> None:
    graph = load(file(GOOD, "queue.py"))
    assert graph.name == "small"
    assert sys.modules["queue"] is queue


class Words:
    """Where a run is shown: something like a terminal, or not."""

    def __init__(self, is_terminal: bool) -> None:
        self.text = io.StringIO()
        self.text.isatty = lambda: is_terminal  # type: ignore[method-assign]


class Told:
    """A run as the coordinator would tell of it."""

    def __init__(self) -> None:
        self.groups: dict[str, Any] = {}

    def status(self) -> dict[str, Any]:
        return {"groups": self.groups}

    def tell(self, name: str, state: str = "running", starts: int = 1, **numbers: Any) -> None:
        said = {"incarnation": starts, "events": 0, "written": 0, "backlog": 0, "unwritten": 0, "is_finished": False}
        counts = dict.fromkeys(("commits", "events_in", "moves", "move_s", "commit_s"), 0)
        counts |= {key: numbers.pop(key) for key in list(numbers) if key in counts}
        replicas = {} if state == "down" else {name: {**said, **numbers, "counts": counts}}
        self.groups[name] = {"state": state, "starts": starts, "replicas": replicas}


@pytest.fixture
def follower(file: Any) -> Callable[[bool], Follower]:
    def make(is_terminal: bool) -> Follower:
        return Follower(load(file(GOOD)), Words(is_terminal).text)

    return make


def test_numbers_go_on_counting_over_a_restart(follower: Callable[[bool], Follower]) -> None:
    shown, told = follower(False), Told()
    told.tell("numbers", events=7, commits=5)
    told.tell("save", written=3, commits=9, unwritten=2)
    shown.look(told)
    told.tell("save", "down")
    shown.look(told)
    assert shown.lines["save"].state == "down"
    assert shown.lines["save"].written == 3
    told.tell("save", starts=2, written=6, commits=4)
    told.tell("numbers", events=11, commits=8, is_finished=True)
    shown.look(told)
    assert [line.split()[:7] for line in shown.table()] == [
        ["operator", "state", "events", "written", "commits", "backlog", "restarts"],
        ["numbers", "finished", "10", "0", "8", "0", "0"],  # Without the end mark.
        ["save", "running", "0", "6", "13", "0", "1"],
    ]


def test_a_terminal_shows_a_table_that_is_drawn_anew(follower: Callable[[bool], Follower]) -> None:
    shown, told = follower(True), Told()
    told.tell("numbers", events=1)
    shown(told)
    shown.say("something happened")
    shown.done()
    text = shown.out.getvalue()  # type: ignore[attr-defined]
    assert text.count("operator  state") == 2
    assert text.count("\x1b[4F\x1b[J") == 2
    assert text.index("something happened") > text.index("\x1b[4F")


def test_without_a_terminal_there_is_a_line_now_and_then(
    follower: Callable[[bool], Follower], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, told = follower(False), Told()
    told.tell("numbers", events=1200)
    told.tell("save", "down")
    shown(told)
    assert shown.out.getvalue() == ""  # type: ignore[attr-defined]
    monkeypatch.setattr("clew.cli.follow.time.monotonic", lambda: shown.began + 6)
    shown(told)
    shown(told)
    assert shown.out.getvalue() == "6 s: numbers 1,200, save 0 (down)\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_stops_and_later_ones_do_not_cut_that_off(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with interruptible():
        with pytest.raises(Interrupted) as caught:
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        with handlers_kept():
            signal.signal(number, signal.SIG_IGN)
        assert signal.getsignal(number) is not signal.SIG_IGN
    assert caught.value.exit_code == code
    assert capsys.readouterr().err == "clew: already stopping\n"
    assert signal.getsignal(number) is before


def test_how_to_go_on_says_no_password() -> None:
    said = command._go_on(Namespace(recovery="log", log="postgresql://ann:geheim@db/shop", file="my sales.py"))
    assert said.endswith("Go on with: clew run 'my sales.py' --log with the same connection string")
    said = command._go_on(Namespace(recovery="log", log="a b.log", file="sales.py"))
    assert said.endswith("Go on with: clew run sales.py --log 'a b.log'")
    assert "begin anew" in command._go_on(Namespace(recovery="off", log=None, file="sales.py"))
