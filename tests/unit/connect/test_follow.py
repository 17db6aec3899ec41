"""Following: a file that grows line by line, and a directory that grows file by file."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.connect.reading import PlanContext, items_of, rows_of

import clew
from clew.errors import OutsideError


def tail(path: Path, **options: Any) -> Any:
    return clew.files(path, follow=True, poll_s=0.1, **options)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_lines_come_as_they_are_appended_and_a_partial_one_waits(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    reading = iter(tail(path).read(("tail", str(path)), None))
    assert next(reading) is None  # The file is not there yet.
    append(path, '{"a": 1}\n{"a"')
    assert next(reading)[0].to_pylist() == [{"a": 1}]
    assert next(reading) is None
    append(path, ": 2")
    assert next(reading) is None
    append(path, '}\n{"a": 3}\n')
    batch, offset = next(reading)
    assert batch.to_pylist() == [{"a": 2}, {"a": 3}]
    assert next(reading) is None
    append(path, '{"a": 4}\n')
    anew = iter(tail(path).read(("tail", str(path)), offset))
    assert next(anew)[0].to_pylist() == [{"a": 4}]
    assert next(anew) is None


def test_a_csv_file_is_followed_from_its_header_on(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    reading = iter(tail(path).read(("tail", str(path)), None))
    append(path, "a,")
    assert next(reading) is None
    append(path, 'b\n1,"x\n')
    assert next(reading) is None  # The quotation mark is still open.
    append(path, 'y"\n2,z\n')
    assert next(reading)[0].to_pylist() == [{"a": 1, "b": "x\ny"}, {"a": 2, "b": "z"}]
    assert next(reading) is None


def test_a_followed_file_ends_when_nothing_is_new_for_long_enough(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append(path, '{"a": 1}\n')
    reading = list(tail(path, idle_s=0.3).read(("tail", str(path)), None))
    assert [item is None for item in reading] == [False, True, True, True]
    append(path, '{"a": 2}')  # Then its last line counts, though its end is missing.
    assert rows_of(tail(path, idle_s=0.3)) == [{"a": 1}, {"a": 2}]
    append(path, "}")
    with pytest.raises(OutsideError, match=r"line 2 .*cannot be read as JSON"):
        rows_of(tail(path, idle_s=0.3))


def test_a_followed_file_that_becomes_shorter_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append(path, '{"a": 1}\n')
    reading = iter(tail(path).read(("tail", str(path)), None))
    next(reading)
    path.write_text("")
    with pytest.raises(OutsideError, match=r"only grows"):
        next(reading)


class Follower:
    """A source that follows a directory, with the state that its log would keep."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.source = clew.files(directory, follow=True, poll_s=0.1, **options)
        self.ctx: Any = PlanContext()
        self.restart()

    def restart(self) -> None:
        self.running = copy.deepcopy(self.source)
        self.running.open(self.ctx)

    def plan(self) -> Any:
        return self.running.plan(self.ctx)


def put(directory: Path, name: str) -> None:
    hidden = directory / f".{name}.tmp"
    hidden.write_text(json.dumps({"file": name}) + "\n")
    hidden.rename(directory / name)


def test_new_files_are_found_whatever_their_names(tmp_path: Path) -> None:
    put(tmp_path, "m.jsonl")
    follower = Follower(tmp_path)
    assert follower.plan() == ("file", str(tmp_path / "m.jsonl"))
    assert follower.plan() == ("wait", 0)
    waiting = iter(follower.running.read(("wait", 0), None))
    assert [next(waiting) for _ in range(3)] == [None, None, None]
    put(tmp_path, "z.jsonl")
    put(tmp_path, "a.jsonl")
    (tmp_path / "half.jsonl.tmp").write_text('{"fi')
    assert list(waiting) == []
    assert follower.plan() == ("file", str(tmp_path / "a.jsonl"))
    follower.restart()
    assert follower.plan() == ("file", str(tmp_path / "z.jsonl"))
    assert follower.plan() == ("wait", 0)
    follower.restart()
    put(tmp_path, "b.jsonl")
    assert list(follower.running.read(("wait", 0), None)) == []
    assert follower.plan() == ("file", str(tmp_path / "b.jsonl"))
    assert items_of(follower.running, ("file", str(tmp_path / "b.jsonl")))[0][0].to_pylist() == [{"file": "b.jsonl"}]


def test_a_followed_directory_may_come_later_and_ends_when_told_how(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "later", idle_s=0.2)
    assert follower.plan() == ("wait", 0)
    (tmp_path / "later").mkdir()
    put(tmp_path / "later", "a.jsonl")
    assert list(follower.running.read(("wait", 0), None)) == []
    assert follower.plan() == ("file", str(tmp_path / "later" / "a.jsonl"))
    assert follower.plan() == ("wait", 0)
    assert list(follower.running.read(("wait", 0), None)) == [None, None]
    follower.restart()
    assert follower.plan() is None
