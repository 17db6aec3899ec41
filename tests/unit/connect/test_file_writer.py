"""Files as a destination: one whole file per write action, once."""

from __future__ import annotations

import datetime
import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.connect.reading import rows_of

import clew
from clew.errors import OutsideError
from clew.model.connection import Kind, WriteAction, WriteConnection

ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
MAKERS = {"parquet": clew.parquet, "csv": clew.csv, "jsonl": clew.jsonl}


def action(number: int, rows: list[dict[str, Any]] = ROWS, writer: str = "log/save/0/to") -> WriteAction:
    return WriteAction(writer, number, pa.RecordBatch.from_pylist(rows))


@pytest.fixture(params=list(MAKERS))
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> WriteConnection:
    made = MAKERS[request.param](tmp_path / "out" / "deeper")
    made.open()
    return made


def directory_of(connection: Any) -> Path:
    return connection.directory


def names_in(connection: Any) -> list[str]:
    return sorted(os.listdir(directory_of(connection)))


def test_each_action_becomes_a_file_that_can_be_read_again(connection: Any) -> None:
    for number in (1, 2):
        connection.execute(action(number, [{"a": number, "b": "x"}]))
    suffix = connection._suffix
    assert names_in(connection) == [f"log.save.0.to.00000000000{number}{suffix}" for number in (1, 2)]
    assert rows_of(clew.files(directory_of(connection))) == [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]
    assert (connection.kind, connection.system) == (Kind.CONDITIONAL, ("files", str(directory_of(connection))))


def test_an_action_that_is_in_is_not_done_again(connection: Any) -> None:
    connection.execute(action(1))
    connection.execute(action(1, [{"a": 9}]))
    anew = MAKERS[connection._suffix[1:]](directory_of(connection))
    anew.open()
    anew.execute(action(1, [{"a": 9}]))
    assert [row["a"] for row in rows_of(clew.files(directory_of(connection)))] == [1, 2]


def test_a_later_action_that_is_in_says_that_the_earlier_ones_are(connection: Any) -> None:
    for number in (1, 2):
        connection.execute(action(number))
    first = directory_of(connection) / names_in(connection)[0]
    first.unlink()  # Somebody has taken it.
    anew = MAKERS[connection._suffix[1:]](directory_of(connection))
    anew.execute(action(1))
    assert not first.exists()


def test_only_the_own_unfinished_files_are_swept(connection: Any) -> None:
    mine = directory_of(connection) / f".log.save.0.to.000000000007{connection._suffix}.abc.tmp"
    others = [directory_of(connection) / name for name in (".log.save.1.to.000000000001.x.tmp", ".other.tmp", "x.tmp")]
    for path in (mine, *others):
        path.write_text("half")
    connection.execute(action(1))
    assert not mine.exists()
    assert all(path.exists() for path in others)


def test_a_file_that_a_successor_swept_away_is_written_again(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    link, swept = os.link, []

    def swept_once(temporary: Path, final: Path) -> None:
        if not swept:
            swept.append(temporary)
            os.unlink(temporary)
        link(temporary, final)

    monkeypatch.setattr(os, "link", swept_once)
    connection.execute(action(1))
    assert len(names_in(connection)) == 1
    monkeypatch.setattr(os, "link", lambda temporary, final: (os.unlink(temporary), link(temporary, final)))
    with pytest.raises(OutsideError, match=r"removed 3 times while it was being written"):
        connection.execute(action(2))


def test_where_there_are_no_links_it_renames(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(temporary: Path, final: Path) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    connection.execute(action(1))
    assert len(names_in(connection)) == 1


def test_writers_have_different_files(connection: Any) -> None:
    for writer in ("a/b", "a.b", "a%b", "A/b"):
        connection.execute(action(1, writer=writer))
    assert len(names_in(connection)) == 4


def test_values_keep_their_meaning_as_json(tmp_path: Path) -> None:
    connection = clew.jsonl(tmp_path)
    at = datetime.datetime(2025, 2, 1, 12, 30, tzinfo=datetime.UTC)
    connection.execute(action(1, [{"at": at, "bytes": b"ab", "f": float("nan"), "l": [1, None], "s": {"é": True}}]))
    ((line,),) = [[*path.read_text().splitlines()] for path in tmp_path.iterdir()]
    assert line == '{"at":"2025-02-01T12:30:00+00:00","bytes":"YWI=","f":null,"l":[1,null],"s":{"é":true}}'


def test_errors_say_where_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        OutsideError, match=r"csv files in .* cannot take the write action log/save/0/to/1 .*another format"
    ):
        clew.csv(tmp_path).execute(action(1, [{"a": [1]}]))
    (tmp_path / "file").write_text("")
    with pytest.raises(OutsideError, match=r"directory .*file cannot be made or used .*Look at its rights"):
        clew.csv(tmp_path / "file").open()
    assert repr(clew.parquet("/data/out")) == "<parquet files in /data/out>"
