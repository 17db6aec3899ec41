"""What is refused before anything starts, with words that say what to do; Spark itself is played by a few objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from clew.errors import NotEnoughSlots, UnsuitableSpark
from clew.model.names import Replica
from clew.runtime import preflight
from clew.runtime.groups import Group
from clew.runtime.spec import LogPlace


class Conf(dict[str, str]):
    """Settings, as Spark gives them."""


def session(settings: dict[str, str] | None = None, master: str = "local[4]", hosts: tuple[str, ...] = ()) -> Any:
    infos = [SimpleNamespace(host=lambda host=host: host) for host in hosts]
    tracker = SimpleNamespace(getExecutorInfos=lambda: infos)
    context = SimpleNamespace(isStopped=lambda: False, statusTracker=lambda: tracker)
    jsc = SimpleNamespace(sc=lambda: context)
    return SimpleNamespace(sparkContext=SimpleNamespace(_jsc=jsc, master=master, getConf=lambda: Conf(settings or {})))


def test_a_plain_session_is_fine() -> None:
    preflight.check_session(session())


def test_spark_connect_is_refused() -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UnsuitableSpark, match=r"one of Spark Connect, .* without remote"):
        preflight.check_session(remote)


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(UnsuitableSpark, match="spark is a str; expected a SparkSession"):
        preflight.check_session("local[4]")


def test_a_stopped_session_is_refused() -> None:
    stopped = session()
    stopped.sparkContext._jsc = None
    with pytest.raises(UnsuitableSpark, match=r"the Spark session was stopped\. Make a new one"):
        preflight.check_session(stopped)


@pytest.mark.parametrize("setting", ["spark.speculation", "spark.python.worker.killOnIdleTimeout"])
def test_settings_that_would_harm_hosts_are_refused(setting: str) -> None:
    with pytest.raises(UnsuitableSpark, match=rf"{setting} is on: .* [Ss]et .* to false"):
        preflight.check_session(session({setting: "true"}))
    preflight.check_session(session({setting: "false"}))


def test_too_few_slots_are_told_with_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "slots_of", lambda spark: 2)
    groups = [Group((Replica(name),), is_in_driver=False) for name in ("orders", "hourly")]
    preflight.check_slots(session(), groups, needs_driver_jobs=False)
    with pytest.raises(
        NotEnoughSlots,
        match=r"needs 3 task slots at the same time, one for each of orders, hourly and one for DataFrame jobs; "
        r"local\[4\] has 2\. Use a master with more cores \(local\[3\]",
    ):
        preflight.check_slots(session(), groups, needs_driver_jobs=True)


def test_slots_that_are_on_their_way_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([0, 0, 1])
    monkeypatch.setattr(preflight, "slots_of", lambda spark: next(found))
    monkeypatch.setattr(preflight.time, "sleep", lambda seconds: None)
    preflight.check_slots(session(master="spark://somewhere:7077"), [Group((Replica("orders"),), False)], False)


def test_dynamic_allocation_finds_slots_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "slots_of", lambda spark: 0)
    growing = session({"spark.dynamicAllocation.enabled": "true"})
    preflight.check_slots(growing, [Group((Replica("orders"),), False)], False)


CLUSTER = {"master": "spark://one:7077", "hosts": ("127.0.0.1", "10.1.2.3", "two.example")}


def test_one_machine_needs_nothing() -> None:
    preflight.check_machines(session(), LogPlace("sqlite", "log"), "127.0.0.1")
    here = session(master="spark://127.0.0.1:7077", hosts=("127.0.0.1",))
    preflight.check_machines(here, LogPlace("sqlite", "log"), "127.0.0.1")


def test_a_sqlite_log_on_several_machines_is_refused_and_postgresql_named() -> None:
    with pytest.raises(
        UnsuitableSpark, match=r"works on one machine only.* 10\.1\.2\.3, two\.example too\. Use a PostgreSQL log"
    ):
        preflight.check_machines(session(**CLUSTER), LogPlace("sqlite", "log"), "0.0.0.0")


def test_hosts_that_others_cannot_reach_are_refused() -> None:
    with pytest.raises(UnsuitableSpark, match=r"hosts listen on 127\.0\.0\.1, .* run\(bind='0\.0\.0\.0'\)"):
        preflight.check_machines(session(**CLUSTER), LogPlace("postgres", "dbname=clew"), "127.0.0.1")
    preflight.check_machines(session(**CLUSTER), LogPlace("postgres", "dbname=clew"), "0.0.0.0")
