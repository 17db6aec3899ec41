"""The tracer's files: what is in them when, how they are divided and removed, and what happens when they cannot be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.trace.test_packing import LEFT, ME, NAMES, made, took

from clew.model.history import Cursor, Recovered, Transaction
from clew.model.ranges import IdSet
from clew.trace.life import Life
from clew.trace.reader import read_trace
from clew.trace.records import SNAPSHOT, End, Part, Steps, Wrote
from clew.trace.writer import Tracer, segments_of


def life(root: Path, number: int = 0) -> Life:
    return read_trace(root).lives[ME][number]


def commit(number: int) -> Transaction:
    return Transaction(outputs=made("out", number), journal=took(LEFT, number), counters={"position": number})


def test_a_start_tells_what_the_log_holds(tmp_path: Path) -> None:
    recovered = Recovered(
        3,
        cursors={LEFT: Cursor(7, IdSet(5), True)},
        counters={"position": 40, "out:out": 9, "out:archive": 4, "written:archive": 2, "finished": 1},
    )
    Tracer(tmp_path, NAMES, clock=lambda: 5.0).start(recovered)
    head = life(tmp_path).head
    assert head[:8] == (NAMES, "log", 3, 0, 0, 40, (7, 0), (1, 0))
    assert (head.made, head.closed, head.written) == ((9, 0, 4), (1, 1), (2,))
    assert (head.undone, head.is_finished, head.process, head.time, head.is_start) == (0, True, os.getpid(), 5.0, True)


def test_a_commit_is_in_the_file_at_once(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path, NAMES, clock=lambda: 5.0)
    tracer.start(Recovered(1))
    tracer.steps(1, commit(1))
    assert life(tmp_path).told == [Steps(5.0, 1, 1, (), (Part(0, (0, 1, 1), (0, 1, 1)),))]


def test_writes_go_with_the_next_commit_or_with_the_end(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path, NAMES, clock=lambda: 5.0)
    tracer.start(Recovered(1))
    tracer.wrote("archive", 1)
    tracer.wrote("archive", 2)
    tracer.steps(1, Transaction(counters={"written:archive": 2}))
    tracer.wrote("archive", 3)
    tracer.close(True)
    assert life(tmp_path).told == [
        Steps(5.0, 1, 0, (0, 1, 0, 2), ()),
        Wrote(5.0, (0, 3)),
        End(5.0, True),
    ]


def test_a_commit_without_decisions_is_not_told(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path, NAMES)
    tracer.start(Recovered(1))
    tracer.steps(1, Transaction(counters={"written:archive": 2}))
    assert life(tmp_path).told == []


def test_a_generation_may_begin_in_the_same_file(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path, NAMES, SNAPSHOT)
    tracer.start(Recovered(1))
    tracer.start(Recovered(2, counters={"epoch": 3}), epoch=3)
    tracer.close(False)
    assert [each.incarnation for each in read_trace(tmp_path).lives[ME]] == [1, 2]
    assert len(segments_of(tracer.folder)) == 1


def test_segments_are_divided_and_the_oldest_removed(tmp_path: Path) -> None:
    tracer = Tracer(tmp_path, NAMES, segment_bytes=600, keep_bytes=2000)
    tracer.start(Recovered(1))
    for number in range(1, 101):
        tracer.steps(number, commit(number))
    tracer.close(True)
    segments = segments_of(tracer.folder)
    assert int(segments[-1].stem) > len(segments)
    assert sum(path.stat().st_size for path in segments) < 2600
    found = life(tmp_path)
    assert not found.head.is_start
    first = next(record for record in found.told if isinstance(record, Steps))
    assert (found.head.position, found.head.taken, found.head.made) == (
        first.position - 1,
        (first.number - 1, 0),
        (first.number - 1, 0, 0),
    )


def test_each_incarnation_has_files_of_its_own_even_beside_a_predecessor_that_lives_on(tmp_path: Path) -> None:
    old, new = Tracer(tmp_path, NAMES, segment_bytes=300), Tracer(tmp_path, NAMES)
    old.start(Recovered(1))
    new.start(Recovered(2))
    for number in range(1, 10):
        old.steps(number, commit(number))
    new.steps(1, commit(1))
    one, two = read_trace(tmp_path).lives[ME]
    assert (len(one.told), len(two.told)) == (9, 1)


def test_a_trace_that_cannot_be_written_ends_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    tracer = Tracer(tmp_path / "file", NAMES)
    tracer.start(Recovered(1))
    tracer.steps(1, commit(1))
    tracer.close(True)
    assert tracer.error is not None
    assert "cannot be written" in tracer.error


@pytest.mark.parametrize("is_snapshot", [False, True])
def test_a_killed_process_leaves_what_it_must(tmp_path: Path, is_snapshot: bool) -> None:
    """SIGKILL right after a commit was told: it is there."""
    script = f"""
import os, signal
from pathlib import Path
from tests.unit.trace.test_packing import NAMES
from tests.unit.trace.test_writer import Recovered, Tracer, commit
tracer = Tracer(Path({str(tmp_path)!r}), NAMES, {"snapshot" if is_snapshot else "log"!r})
tracer.start(Recovered(1))
for number in range(1, 51):
    tracer.steps(number, commit(number))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(life(tmp_path).told) == 50
