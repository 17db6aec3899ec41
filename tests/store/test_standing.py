"""How a replica stands: the numbers that are counted in the database agree with all of its rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.store.places import DESCRIPTION, OP3, Place, step

from clew.cli.main import main
from clew.log.processes import Process
from clew.log.standing import holder_of


def test_the_numbers_agree_with_the_rows(durable_place: Place) -> None:
    store = durable_place.create(DESCRIPTION)
    log = store.open(OP3)
    for number in range(1, 12):
        transaction = step(number)
        log.stage(transaction)
        log.commit(transaction)
        rows = store.reader().rows(OP3)
        found = store.reader().standing(OP3)  # type: ignore[attr-defined]
        assert found.incarnation == rows.incarnation == 1
        assert found.counters == rows.counters
        assert {channel: tuple(cursor) for channel, cursor in found.cursors.items()} == rows.cursors
        assert found.open_sets == sum(not closed for _, _, closed in rows.sets)
        assert found.undone_pairs == sum(not pair.is_done for pair in rows.pairs)
        assert (found.state_keys, found.timers) == (len(rows.state), len(rows.timers))
        assert (found.stored_outputs, found.lineage_rows) == (len(rows.outputs), len(rows.lineage))
        assert found.holder is not None
        assert found.holder.is_alive
    store.close()
    again = durable_place.open()
    holder = again.reader().standing(OP3).holder  # type: ignore[attr-defined]
    assert holder is None or holder.is_alive is False
    again.close()


def test_who_holds_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = Process.of(child.pid)
    assert holder_of(process) == (f"process {child.pid}", True)
    child.communicate(b"\n")
    assert holder_of(process) == (f"process {child.pid}", False)
    assert holder_of(process._replace(namespace="pid:[1]")) == (f"process {child.pid}", None)
    assert holder_of(Process(0, 0, "", "")) is None
    assert Process.of(os.getpid()) == Process.current()


@pytest.mark.postgres
def test_the_status_of_a_log_in_postgres(postgres_dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("CREATE DATABASE standing")
    dsn = make_conninfo(postgres_dsn, dbname="standing")

    def status(*options: str) -> tuple[int, str, str]:
        code = main(["status", dsn, *options])
        return code, *capsys.readouterr()

    assert status()[0] == 2
    assert "database standing at" in status()[2]
    assert "holds no log; expected one" in status()[2]
    store = Place("postgres", dsn, "one").create()
    log = store.open(OP3)
    told = json.loads(status("--json")[1])
    assert (told["state"], told["replicas"]["OP3"]["incarnation"]) == ("running", 1)
    assert told["log"].endswith(", schema one")
    log.close()
    store.close()
    Place("postgres", dsn, "two").create().close()
    code, _, said = status()
    assert code == 2
    assert "holds 2 logs: one, two; expected one. Say which one: --schema NAME." in said
    told = json.loads(status("--schema", "one", "--json")[1])
    assert told["state"] == "stopped"
    assert told["replicas"]["OP3"]["holder"]["is_alive"] is False
