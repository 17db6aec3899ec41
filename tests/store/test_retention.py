"""What retention may remove, with and without lineage, on every store."""

from __future__ import annotations

from collections.abc import Callable

from tests.store.places import OP3, A, Place, event
from tests.store.test_contract import commit

from clew.log.contract import ReplicaLog, Store
from clew.log.sql_reading import read_file_names
from clew.log.sqlite_replica import SqliteReplicaLog
from clew.model.history import END_SERIAL, Expired, Lineage, Output, Pair, ReadAction, Stored, Use
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet

MakeStore = Callable[..., Store]
OTHER = Channel(Replica("OP2"), "out", OP3, "more")


def outputs(log: ReplicaLog, *numbers: int, port: str = "out") -> None:
    """Each is made at the second of its number."""
    commit(log, outputs=[Output(event(number, port=port), float(number)) for number in numbers])


def test_nothing_is_released_nothing_expires(make_store: MakeStore) -> None:
    log = make_store().open(OP3)
    outputs(log, 1, 2)
    assert log.expired({}, {}) == log.expired({"out": IdSet()}, {}) == Expired((), (), (), ())


def test_released_outputs_expire_in_ranges(make_store: MakeStore) -> None:
    log = make_store().open(OP3)
    outputs(log, *range(1, 10))
    outputs(log, 1, 2, port="report")
    commit(log, forget_outputs=[("out", 2, 2)])
    released = {"out": IdSet(4, [6, 8, 9, 10]), "report": IdSet(1), "unknown": IdSet(7)}
    assert log.expired(released, {}).outputs == (
        ("out", 1, 1),
        ("out", 3, 4),
        ("out", 6, 6),
        ("out", 8, 9),
        ("report", 1, 1),
    )


def test_a_target_keeps_what_is_young(make_store: MakeStore) -> None:
    log = make_store().open(OP3)
    outputs(log, *range(1, 10))
    released = {"out": IdSet(5, [7])}
    assert log.expired(released, {"out": 3.0}).outputs == (("out", 1, 2),)
    assert log.expired(released, {"out": 99.0}).outputs == (("out", 1, 5), ("out", 7, 7))
    assert log.expired(released, {"out": None}).outputs == ()
    assert log.expired(released, {"report": None}).outputs == (("out", 1, 5), ("out", 7, 7))


def test_a_closed_set_without_lineage_goes_with_what_only_it_needs(make_store: MakeStore) -> None:
    log = make_store().open(OP3)
    commit(
        log,
        opened=[(1, b"a"), (2, b"b"), (3, b"c")],
        pairs=[
            Pair(1, A, 1, 1, None),
            Pair(2, A, 2, 1, None),
            Pair(3, A, 2, 3, None),
            Pair(4, OTHER, 2, 2, None),
            Pair(5, A, 3, 3, None),
            Pair(6, A, 4, END_SERIAL, None),
        ],
        closed=[1, 2],
    )
    assert log.expired({}, {}) == Expired((), (1, 2), (), ((A, 1), (OTHER, 2)))
    commit(log, forget_sets=[1, 2])
    assert log.expired({}, {}) == Expired((), (), (), ())
    commit(log, closed=[3])
    assert log.expired({}, {}) == Expired((), (3,), (), ((A, 2), (A, 3)))


def test_lineage_keeps_a_set_as_long_as_one_of_its_outputs(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, opened=[(1, b"a"), (2, b"b")], pairs=[Pair(1, A, 1, 1, None), Pair(2, A, 1, 2, None)])
    commit(
        log,
        outputs=[Output(event(number), float(number)) for number in (1, 2, 3)],
        closed=[1, 2],
        lineage=[Lineage("out", 1, 1), Lineage("out", 2, 1), Lineage("out", 3, 2)],
    )
    everything = {"out": IdSet(3)}
    assert log.expired(everything, {"out": 2.0}) == Expired((("out", 1, 1),), (), (), ())
    assert log.expired(everything, {"out": 3.0}) == Expired((("out", 1, 2),), (1,), (), ())
    assert log.expired(everything, {"out": 4.0}) == Expired((("out", 1, 3),), (1, 2), (), ((A, 1),))
    commit(log, forget_outputs=[("out", 1, 2)])
    assert log.expired(everything, {"out": 2.0}) == Expired((), (1,), (), ())
    commit(log, forget_sets=[1])
    log = store.open(OP3)
    assert log.expired(everything, {}) == Expired((("out", 3, 3),), (2,), (), ((A, 1),))


def test_an_open_set_stays_even_if_outputs_named_it(make_store: MakeStore) -> None:
    log = make_store().open(OP3)
    commit(log, outputs=[Output(event(1), 1.0)], opened=[(1, b"a")], lineage=[Lineage("out", 1, 1)])
    assert log.expired({"out": IdSet(1)}, {}) == Expired((("out", 1, 1),), (), (), ())


def test_read_actions_go_with_the_last_set_that_used_them(make_store: MakeStore) -> None:
    log = make_store().open(OP3)
    reads = [ReadAction(number, "Cx", b"q", True, True, None, True) for number in (1, 2)]
    commit(
        log,
        outputs=[Output(event(number), float(number)) for number in (1, 2)],
        opened=[(1, b"a"), (2, b"b")],
        closed=[1, 2],
        lineage=[Lineage("out", 1, 1), Lineage("out", 2, 2)],
        reads=reads,
        stored=[Stored(number, 0, event(number, port="Cx")) for number in (1, 2)],
        uses=[Use(1, "read", 1), Use(1, "read", 2), Use(2, "read", 2), Use(2, "state", 1)],
    )
    assert log.expired({"out": IdSet(2)}, {"out": 1.5}) == Expired((("out", 1, 1),), (1,), (1,), ())
    assert log.expired({"out": IdSet(2)}, {"out": 2.5}) == Expired((("out", 1, 2),), (1, 2), (1, 2), ())


def test_many_sets_expire_at_once(make_store: MakeStore) -> None:
    log = make_store().open(OP3)
    many = range(1, 1300)
    commit(
        log,
        outputs=[Output(event(number), float(number)) for number in many],
        opened=[(number, b"k") for number in many],
        pairs=[Pair(number, A, number, number, None) for number in many],
        closed=list(many),
        lineage=[Lineage("out", number, number) for number in many],
        uses=[Use(number, "read", number) for number in many],
    )
    expired = log.expired({"out": IdSet(1200)}, {"out": 5000.0})
    assert expired.outputs == (("out", 1, 1200),)
    assert expired.sets == expired.reads == tuple(range(1, 1201))
    assert expired.freed == tuple((A, number) for number in range(1, 1201))
    commit(log, forget_outputs=list(expired.outputs), forget_sets=list(expired.sets), forget_reads=list(expired.reads))
    assert log.expired({"out": IdSet(1200)}, {"out": 5000.0}) == Expired((), (), (), ())


def test_versions_of_the_state_that_nothing_uses_are_merged(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    for version in range(1, 7):
        commit(
            log,
            opened=[(version, b"k")],
            closed=[version],
            outputs=[Output(event(version), float(version))],
            lineage=[Lineage("out", version, version)],
            state_versions=[
                (version, {b"a": b"%d" % version, b"even" if version % 2 else b"odd": None, b"x": b"same"})
            ],
            uses=[Use(version, "state", version)],
        )
    for going in ((1, 2, 3), (4,)):
        commit(log, forget_sets=list(going))
    rows = store.reader().rows(OP3).state_versions
    assert rows[:2] == [(5, b"a", b"5"), (5, b"x", b"same")]
    assert {version for version, _, _ in rows} == {5, 6}
    commit(store.open(OP3), forget_sets=[5, 6])
    assert store.reader().rows(OP3).state_versions == [(6, b"a", b"6"), (6, b"x", b"same")]


def test_what_is_kept_costs_nothing_to_pass_over(sqlite_place: Place) -> None:
    """Every question that retention and recovery ask of a long log is answered by an index."""
    store = sqlite_place.create()
    log = store.open(OP3)
    assert isinstance(log, SqliteReplicaLog)
    connection = log._read_session.connection
    asked: list[str] = []
    commit(log, outputs=[Output(event(1), 1.0)], opened=[(1, b"k")], lineage=[Lineage("out", 1, 1)], closed=[1])
    commit(log, opened=[(2, b"k"), (3, b"l")], pairs=[Pair(1, A, 1, 2, None)], uses=[Use(2, "read", 1)], closed=[2])
    connection.set_trace_callback(asked.append)
    log.expired({"out": IdSet(1)}, {"out": 5.0})
    log.recover()
    read_file_names(log._read_session)
    connection.set_trace_callback(None)
    small = {"ports", "channels", "schemas", "cursors", "counters", "timers", "progress"}
    scans = []
    for statement in asked:
        for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
            if step.startswith("SCAN") and "INDEX" not in step and step.split()[1] not in small:
                scans.append((step, statement))
    assert len(asked) > 12
    assert scans == []
