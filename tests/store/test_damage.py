"""Logs that cannot be opened: the error says what and why and what to do, and nothing on disk changes."""

from __future__ import annotations

import copy
import json
import shutil
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.postgres_server import PASSWORD
from tests.store.child import heard, running
from tests.store.places import DESCRIPTION, OP1, OP3, Place, step

from clew.errors import LogDamaged, LogError, LogExists, LogNotFound, LogOfAnotherPipeline, LogTooNew
from clew.log.postgres import PostgresStore, open_postgres
from clew.log.sqlite import SqliteStore, open_sqlite


def contents(directory: Path) -> dict[str, bytes | None]:
    """Every file and directory, with its bytes."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


@pytest.fixture
def log_path(sqlite_place: Place) -> Path:
    """A log with two replicas, closed by its owners."""
    store = sqlite_place.create()
    for replica in (OP1, OP3):
        log = store.open(replica)
        if replica == OP3:
            for number in range(1, 60):
                log.commit(step(number))
        log.close()
    store.close()
    return Path(sqlite_place.where)


def edit_manifest(**changes: object) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        manifest = json.loads((path / "log.json").read_text())
        (path / "log.json").write_text(json.dumps({**manifest, **changes}))

    return edit


def write(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda path: (path / name).write_bytes(data) and None


def cut(name: str, share: float) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        whole = (path / name).read_bytes()
        (path / name).write_bytes(whole[: int(len(whole) * share)])

    return edit


def run_sql(name: str, script: str) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        connection = sqlite3.connect(path / name)
        connection.executescript(script)
        connection.close()

    return edit


def overwrite_middle(path: Path) -> None:
    data = bytearray((path / "OP3.0.db").read_bytes())
    data[100:4096] = b"\xff" * 3996
    (path / "OP3.0.db").write_bytes(data)


DAMAGES: list[tuple[str, Callable[[Path], None], type[LogError], str]] = [
    (
        "no manifest",
        lambda path: (path / "log.json").unlink(),
        LogNotFound,
        r"it has no log\.json; expected .* Look at",
    ),
    ("manifest is no JSON", write("log.json", b"{'format'"), LogDamaged, r"log\.json is not JSON .*expected .*Restore"),
    (
        "manifest is no text",
        write("log.json", b"\xff\xfe\x00"),
        LogDamaged,
        r"log\.json is not text; expected .*Restore",
    ),
    ("manifest is a list", write("log.json", b"[1]"), LogDamaged, r"has the format None; expected a number.*Restore"),
    ("manifest without an id", edit_manifest(log=None), LogDamaged, r"has the log id None .*expected text.*Restore"),
    ("format is text", edit_manifest(format="1"), LogDamaged, r"has the format '1'; expected a number.*Restore"),
    ("newer manifest", edit_manifest(format=2), LogTooNew, r"log\.json has format 2; .* up to 1\. Open it with"),
    ("newer file", run_sql("OP3.0.db", "PRAGMA user_version = 7"), LogTooNew, r"OP3\.0\.db has format 7; .* up to 1"),
    (
        "empty file",
        write("OP3.0.db", b""),
        LogDamaged,
        r"OP3\.0\.db cannot be read \(file is too short.*0 bytes.*Restore",
    ),
    ("text file", write("OP3.0.db", b"hello " * 99), LogDamaged, r"OP3\.0\.db cannot be read \(file is not a database"),
    (
        "cut off early",
        cut("OP3.0.db", 0.0005),
        LogDamaged,
        r"OP3\.0\.db cannot be read \(file is too short.* \d\d bytes",
    ),
    ("cut off", cut("OP3.0.db", 0.5), LogDamaged, r"OP3\.0\.db cannot be read \(.*malformed, \d+ bytes\); expected"),
    ("garbage inside", overwrite_middle, LogDamaged, r"OP3\.0\.db cannot be read \(.*malformed.*expected .*Restore"),
    ("missing tables", run_sql("OP3.0.db", "DROP TABLE pairs; DROP TABLE state"), LogDamaged, r"lacks .*pairs, state;"),
    (
        "another application",
        run_sql("OP3.0.db", "PRAGMA application_id = 5"),
        LogDamaged,
        r"OP3\.0\.db is an SQLite database of another application; expected .*Put the right file",
    ),
    (
        "file of another log",
        edit_manifest(log="0123456789abcdef"),
        LogDamaged,
        r"is the log of OP1\.0 of log [0-9a-f]{16}; expected OP1\.0 of log 0123456789abcdef\. Put the right",
    ),
    (
        "file of another replica",
        lambda path: shutil.copy(path / "OP1.0.db", path / "OP3.0.db") and None,
        LogDamaged,
        r"OP3\.0\.db is the log of OP1\.0 of log .*; expected OP3\.0 of log",
    ),
]


@pytest.mark.parametrize(
    ("damage", "error", "words"), [case[1:] for case in DAMAGES], ids=[case[0] for case in DAMAGES]
)
def test_a_damaged_log_is_named_and_left_alone(
    log_path: Path, damage: Callable[[Path], None], error: type[LogError], words: str
) -> None:
    damage(log_path)
    before = contents(log_path)
    for attempt in (SqliteStore.open_existing, open_sqlite):
        with pytest.raises(error, match=words):
            attempt(log_path)
    if (log_path / "log.json").exists():
        with pytest.raises(error, match=words):
            open_sqlite(log_path, DESCRIPTION)
    assert contents(log_path) == before


def test_a_log_that_became_damaged_while_its_store_is_open(log_path: Path) -> None:
    store = SqliteStore.open_existing(log_path)
    cut("OP3.0.db", 0.5)(log_path)
    before = contents(log_path)
    with pytest.raises(LogDamaged, match="malformed"):
        store.open(OP3)
    assert contents(log_path) == before


@pytest.mark.parametrize("companions", ["both", "without index"])
def test_a_log_that_was_cut_short_is_judged_without_a_trace(sqlite_place: Place, companions: str) -> None:
    """A killed owner leaves a write-ahead log behind, which must be read too."""
    sqlite_place.create().close()
    with running("stream", sqlite_place) as child:
        assert heard(child) == "1"
    path = Path(sqlite_place.where)
    edit_manifest(log="0123456789abcdef")(path)
    if companions == "without index":
        (path / "OP3.0.db-shm").unlink()
    before = contents(path)
    assert before["OP3.0.db-wal"]
    with pytest.raises(LogDamaged, match="Put the right file"):
        SqliteStore.open_existing(path)
    assert contents(path) == before


def test_there_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(LogNotFound, match=r"there is no log at .*none: it does not exist; expected .*run the pipeline"):
        open_sqlite(tmp_path / "none")
    (tmp_path / "file").write_text("x")
    with pytest.raises(LogNotFound, match=r"has no log\.json"):
        open_sqlite(tmp_path / "file")
    assert contents(tmp_path) == {"file": b"x"}


def test_a_log_is_not_made_over_something_else(tmp_path: Path, log_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    before = contents(tmp_path)
    with pytest.raises(LogExists, match=r"holds OP1\.0\.db, OP3\.0\.db, log\.json.*; expected .* Open the log"):
        SqliteStore.create(log_path, DESCRIPTION)
    for make in (SqliteStore.create, open_sqlite):
        with pytest.raises(LogExists, match=r"holds thesis\.txt; expected a directory"):
            make(tmp_path / "full", DESCRIPTION)
        with pytest.raises(LogExists, match=r"is a file; expected a directory"):
            make(tmp_path / "file", DESCRIPTION)
    assert contents(tmp_path) == before


def test_a_log_is_made_once_and_then_opened(tmp_path: Path) -> None:
    one = open_sqlite(tmp_path / "deep" / "log", DESCRIPTION)
    other = open_sqlite(tmp_path / "deep" / "log", DESCRIPTION)
    assert one.log_id == other.log_id
    assert len(one.log_id) == 16
    assert one.description == other.description == DESCRIPTION


def without_operator(description: dict[str, Any]) -> None:
    del description["operators"]["OP4"]
    description["connections"].pop()


def with_another_port(description: dict[str, Any]) -> None:
    description["operators"]["OP3"]["outputs"] = ["out", "late"]


def with_another_connection(description: dict[str, Any]) -> None:
    description["connections"][1] = ["OP1", "out", "OP4", "in"]


def with_another_write(description: dict[str, Any]) -> None:
    description["operators"]["OP3"]["writes"] = {"archive": "conditional"}


DIFFERENCES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda description: description.update(pipeline="other"), r"name of the pipeline: sales in the log, other in the"),
    (without_operator, r"operator 'OP4', input ports: in in the log, nothing in the pipeline"),
    (with_another_port, r"operator 'OP3', output ports: out in the log, late, out in the pipeline"),
    (with_another_connection, r"connection OP3\.out to OP4\.in: there in the log, nothing in the pipeline"),
    (with_another_write, r"operator 'OP3', write connections: report in the log, archive in the pipeline"),
]


@pytest.mark.parametrize(("change", "words"), DIFFERENCES)
def test_the_log_of_another_pipeline(durable_place: Place, change: Callable[[dict[str, Any]], Any], words: str) -> None:
    durable_place.create().close()
    other = copy.deepcopy(DESCRIPTION)
    change(other)
    with pytest.raises(LogOfAnotherPipeline, match=rf"belongs to the pipeline 'sales'.*{words}.*name another place"):
        durable_place.open(other)


def test_code_scopes_and_kinds_do_not_make_another_pipeline(durable_place: Place) -> None:
    durable_place.create().close()
    other = copy.deepcopy(DESCRIPTION)
    other["scopes"] = other["capture"] = {}
    other["operators"]["OP3"]["writes"] = {"report": "checkable"}
    other["connections"].reverse()
    assert durable_place.open(other).description == DESCRIPTION


def dump(place: Place) -> list[Any]:
    """All tables of the schema with all their rows."""
    with psycopg.connect(place.where) as connection:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s ORDER BY 1"
        names = [name for (name,) in connection.execute(query, (place.schema,))]
        rows = [connection.execute(f'SELECT * FROM "{place.schema}"."{name}" ORDER BY 1, 2'.encode()) for name in names]
        return [names, *(each.fetchall() for each in rows)]


POSTGRES_DAMAGES: list[tuple[str, str, type[LogError], str]] = [
    (
        "no schema",
        "DROP SCHEMA {0} CASCADE",
        LogNotFound,
        r"there is no log in .*; expected a schema.*run the pipeline",
    ),
    ("no manifest", "DROP TABLE {0}.log", LogDamaged, r"lacks the tables log; expected those of format 1\. Restore"),
    ("no tables", "DROP TABLE {0}.pairs, {0}.state", LogDamaged, r"lacks the tables pairs, state; expected .*Restore"),
    ("no row", "DELETE FROM {0}.log", LogDamaged, r"the table log in .* has 0 rows; expected one\. Restore"),
    ("newer", "UPDATE {0}.log SET format = 2", LogTooNew, r"has format 2; .* up to 1\. Open it with the version"),
    ("bad format", "UPDATE {0}.log SET format = 0", LogDamaged, r"has the format 0; expected a number from 1 to 1"),
    ("no JSON", "UPDATE {0}.log SET description = '{{'", LogDamaged, r"is not JSON .*expected the manifest.*Restore"),
    ("other id", "UPDATE {0}.log SET log_id = 'x'", LogDamaged, r"has the log id x beside a manifest of log .*Restore"),
]


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("script", "error", "words"), [case[1:] for case in POSTGRES_DAMAGES], ids=[case[0] for case in POSTGRES_DAMAGES]
)
def test_a_damaged_schema_is_named_and_left_alone(
    postgres_place: Place, script: str, error: type[LogError], words: str
) -> None:
    log = postgres_place.create().open(OP3)
    log.commit(step(1))
    log.close()
    with psycopg.connect(postgres_place.where, autocommit=True) as connection:
        connection.execute(script.format(postgres_place.schema).encode())
    before = dump(postgres_place)
    with pytest.raises(error, match=words):
        postgres_place.open()
    assert dump(postgres_place) == before


@pytest.mark.postgres
def test_a_schema_is_not_made_over_something_else(postgres_place: Place) -> None:
    postgres_place.create()
    before = dump(postgres_place)
    with pytest.raises(LogExists, match=r"holds channels, .* \.\.\.; expected a schema that does not exist"):
        postgres_place.create()
    assert dump(postgres_place) == before
    store = open_postgres(postgres_place.where, DESCRIPTION, schema=postgres_place.schema)
    assert store.log_id == postgres_place.open().log_id
    with psycopg.connect(postgres_place.where, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {postgres_place.schema}_empty".encode())
    assert open_postgres(postgres_place.where, DESCRIPTION, schema=f"{postgres_place.schema}_empty").log_id


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


@pytest.mark.postgres
def test_no_error_tells_the_password(postgres_place: Place) -> None:
    dsn = postgres_place.where
    assert PASSWORD in dsn
    attempts = [
        dsn.replace(f":{PASSWORD}@", ":hunter2@"),
        dsn.replace("127.0.0.1", "127.0.0.2").replace(PASSWORD, "hunter2"),
        "host=127.0.0.1 password=hunter2 hunter2",
        "postgresql://clew:hunter2@127.0.0.1:notaport/postgres",
        "postgresql://clew:hunter2@127.0.0.1/postgres?hunter2=1",
    ]
    for attempt in attempts:
        with pytest.raises(LogError) as caught:
            PostgresStore.open_existing(attempt)
        assert "hunter2" not in told(caught.value)
        assert "connection string" in str(caught.value)
    store = postgres_place.create()
    log = store.open(OP3)
    log.commit(step(1))
    with pytest.raises(LogError) as caught:
        log.commit(step(1))
    assert PASSWORD not in told(caught.value) + repr(store) + repr(vars(store)) + repr(log)
