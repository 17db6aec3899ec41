"""What every store promises (`clew.log.contract`), on every store."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest
from tests.store.places import OP1, OP3, A, end_mark, event, step

from clew.errors import Fenced
from clew.log.contract import OutputRow, PairRow, ReplicaLog, Store
from clew.model.event import Event, as_batch
from clew.model.history import (
    END_SERIAL,
    Cursor,
    Lineage,
    Output,
    Pair,
    ReadAction,
    Recovered,
    Stored,
    Transaction,
    UndonePair,
    Use,
)
from clew.model.ranges import IdSet

MakeStore = Callable[..., Store]


def commit(log: ReplicaLog, **parts: object) -> None:
    transaction = Transaction(**parts)  # type: ignore[arg-type]
    log.stage(transaction)
    log.commit(transaction)


def test_a_new_log_is_empty(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    recovered = log.recover()
    assert log.incarnation == 1
    assert recovered == Recovered(1)
    assert log.state_items() == log.outputs("out", 1, 9) == log.effect(1, 0, 9) == []
    assert store.reader().replicas() == [OP3]
    assert store.reader().events(OP1, "out", [1]) == []


def test_every_start_takes_the_next_incarnation(make_store: MakeStore) -> None:
    store = make_store()
    assert [store.open(OP3).incarnation for _ in range(3)] == [1, 2, 3]
    assert store.open(OP1).incarnation == 1
    assert store.reader().rows(OP3).incarnation == 3


def test_outputs_come_back_whole(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    moment = datetime.datetime(2025, 2, 1, 10, tzinfo=datetime.UTC)
    outputs = [
        Output(event(1, rows=3, time=(moment, 2), attributes={"late": True, "of": [1, None]}), 10.25),
        Output(event(2, rows=0), 10.5, (("report", 4), ("audit", 1))),
        Output(end_mark(3), 11.0),
    ]
    commit(log, outputs=outputs)
    for found in (log.outputs("out", 1, 9), store.open(OP3).outputs("out", 1, 9)):
        assert [(output.created, output.requires) for output in found] == [
            (10.25, ()),
            (10.5, (("report", 4), ("audit", 1))),
            (11.0, ()),
        ]
        assert all(one.event.same(other.event) for one, other in zip(found, outputs, strict=True))
    assert found[2].event.is_end
    assert store.reader().rows(OP3).outputs == [
        OutputRow("out", 1, 10.25, False),
        OutputRow("out", 2, 10.5, False),
        OutputRow("out", 3, 11.0, True),
    ]


def test_outputs_are_read_from_an_id_on_up_to_a_limit(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, outputs=[Output(event(number), 0.0) for number in range(1, 8)])
    commit(log, outputs=[Output(event(number, port="report"), 0.0) for number in range(1, 4)])
    commit(log, forget_outputs=[("out", 1, 2), ("out", 5, 5)])
    assert [output.event.id for output in log.outputs("out", 1, 3)] == [3, 4, 6]
    assert [output.event.id for output in log.outputs("out", 4, 9)] == [4, 6, 7]
    assert [output.event.id for output in log.outputs("report", 2, 9)] == [2, 3]
    assert [output.event.port for output in log.outputs("report", 2, 9)] == ["report", "report"]
    assert log.outputs("out", 8, 9) == log.outputs("elsewhere", 1, 9) == []
    assert [each.id for each in store.reader().events(OP3, "out", [7, 5, 3, 99])] == [7, 3]


def test_events_of_several_schemas_keep_theirs(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    batches = [as_batch([{"x": 1}]), as_batch([{"y": "a"}]), as_batch([{"x": 2}]), as_batch([{"x": 2.5}])]
    for number, batch in enumerate(batches, 1):
        commit(log, outputs=[Output(Event(OP3, "out", number, batch), 0.0)])
    found = store.reader().events(OP3, "out", range(1, 5))
    assert [each.batch for each in found] == batches


def test_pairs_are_undone_until_their_set_is_closed(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(
        log,
        opened=[(1, b"H"), (2, b"H+1")],
        pairs=[Pair(1, A, 1, 1, None), Pair(2, A, 2, 1, b"n"), Pair(3, A, 2, 2, b"")],
        cursors={A: Cursor(2, IdSet(), False)},
    )
    commit(log, pairs=[Pair(4, A, 3, 1, None)], closed=[1], cursors={A: Cursor(3, IdSet(1, [3]), False)})
    recovered = store.open(OP3).recover()
    assert recovered.undone == [UndonePair(3, A, 2, 2, b"H+1", b"")]
    assert recovered.open_sets == [(2, b"H+1")]
    assert recovered.cursors == {A: Cursor(3, IdSet(1, [3]), False)}
    rows = store.reader().rows(OP3)
    assert rows.pairs == [
        PairRow(1, A, 1, 1, b"H", True, None),
        PairRow(2, A, 2, 1, b"H", True, b"n"),
        PairRow(3, A, 2, 2, b"H+1", False, b""),
        PairRow(4, A, 3, 1, b"H", True, None),
    ]
    assert rows.sets == [(1, b"H", True), (2, b"H+1", False)]
    assert rows.cursors == {A: (3, IdSet(1, [3]), False)}


def test_undone_pairs_come_back_in_the_order_of_assignment(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    for order in range(1, 30):
        serial = order % 3 + 1
        commit(
            log, opened=[(serial, b"%d" % serial)] if order <= 3 else [], pairs=[Pair(order, A, order, serial, None)]
        )
    recovered = log.recover()
    assert [pair.order for pair in recovered.undone] == list(range(1, 30))
    assert recovered.open_sets == [(1, b"1"), (2, b"2"), (3, b"3")]


def test_pairs_of_end_marks_are_done_when_the_replica_has_finished(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, pairs=[Pair(1, A, 5, END_SERIAL, None)], cursors={A: Cursor(5, IdSet(4), True)})
    assert log.recover().undone == log.recover().open_sets == []
    assert store.reader().rows(OP3).pairs == [PairRow(1, A, 5, END_SERIAL, None, False, None)]
    commit(log, counters={"finished": 1})
    assert store.reader().rows(OP3).pairs == [PairRow(1, A, 5, END_SERIAL, None, True, None)]
    commit(log, forget_sets=[END_SERIAL])
    assert store.reader().rows(OP3).pairs == []
    assert log.recover().cursors[A].ended


def test_a_forgotten_set_takes_its_pairs_and_uses_along(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, opened=[(1, b"a"), (2, b"b"), (3, b"c")], pairs=[Pair(n, A, n, n, None) for n in (1, 2, 3)])
    commit(log, closed=[1, 2], uses=[Use(1, "state", 1), Use(2, "state", 1)])
    commit(log, forget_sets=[1, 3])  # The third was still open: it is simply gone.
    rows = store.reader().rows(OP3)
    assert ([pair.serial for pair in rows.pairs], rows.sets, rows.uses) == ([2], [(2, b"b", True)], [(2, "state", 1)])
    assert log.recover().undone == []


def test_a_set_may_come_and_go_in_one_transaction(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(
        log,
        opened=[(1, b"a"), (2, b"b"), (3, b"c")],
        pairs=[Pair(n, A, n, n, None) for n in (1, 2, 3)],
        closed=[1, 2],
        uses=[Use(1, "read", 1), Use(2, "read", 1)],
        forget_sets=[1, 3],
    )
    rows = store.reader().rows(OP3)
    assert ([pair.serial for pair in rows.pairs], rows.sets, rows.uses) == ([2], [(2, b"b", True)], [(2, "read", 1)])


def test_state_is_a_map_of_its_last_values(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, state={b"b": b"1", b"a": b"", b"c": b"x" * 5000})
    commit(log, state={b"b": b"2", b"c": None, b"never": None})
    assert log.state_items() == [(b"a", b""), (b"b", b"2")]
    assert [log.state(key) for key in (b"a", b"b", b"c")] == [b"", b"2", None]
    assert store.open(OP3).state_items() == store.reader().rows(OP3).state == [(b"a", b""), (b"b", b"2")]


def test_state_versions_keep_what_each_changed(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, state_versions=[(1, {b"a": b"1"}), (2, {b"a": b"2", b"b": None})])
    assert store.reader().rows(OP3).state_versions == [(1, b"a", b"1"), (2, b"a", b"2"), (2, b"b", None)]


def test_timers_are_set_moved_and_removed(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, timers={b"one": 1.5, b"two": 2.5, b"three": 3.0})
    commit(log, timers={b"one": None, b"two": 9.75})
    assert store.open(OP3).recover().timers == {b"two": 9.75, b"three": 3.0}


def test_rows_of_time_are_set_replaced_and_removed(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, progress={("sum", b"a"): b"1", ("hold", b"b"): b"", ("hold", b"a"): b"2", ("frontier", b""): b"3"})
    commit(log, progress={("hold", b"a"): None, ("sum", b"a"): b"\x00\xff", ("hold", b"never"): None})
    commit(store.open(OP1), progress={("sum", b"a"): b"of another", ("hold", b"b"): None})
    commit(log, state={b"k": b"v"})
    expected = [(("frontier", b""), b"3"), (("hold", b"b"), b""), (("sum", b"a"), b"\x00\xff")]
    assert list(store.reader().rows(OP3).progress.items()) == expected
    assert list(store.open(OP3).recover().progress.items()) == expected
    assert store.reader().rows(OP1).progress == {("sum", b"a"): b"of another"}


def test_many_rows_of_time_in_one_commit(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, progress={("sum", b"%d" % number): b"%d" % number for number in range(1500)})
    commit(log, progress={("sum", b"%d" % number): None if number % 2 else b"even" for number in range(1500)})
    assert log.recover().progress == {("sum", b"%d" % number): b"even" for number in range(0, 1500, 2)}


def test_a_refused_commit_leaves_the_rows_of_time_alone(make_store: MakeStore) -> None:
    store = make_store()
    old = store.open(OP3)
    commit(old, progress={("hold", b"a"): b"1"})
    new = store.open(OP3)
    with pytest.raises(Fenced):
        commit(old, progress={("hold", b"a"): None, ("hold", b"b"): b"2"})
    assert new.recover().progress == {("hold", b"a"): b"1"}


TIMES = [0, -1, 1_738_404_000_000_000, 2**70, "monday", (), (1, 2), ((1, (2, "x")), 0), ("L", 5), ("R", ("L", (3, 0)))]


def test_the_times_of_events_come_back_equal_and_of_the_same_kind(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    made = [event(number, time=time) for number, time in enumerate(TIMES, 1)]
    last = len(made) + 1
    commit(
        log, outputs=[*(Output(each, 1.0) for each in made), Output(Event(OP3, "out", last, None, time=(9, 9)), 1.0)]
    )
    commit(log, reads=[ReadAction(1, "Cx", b"A", False, False, None, True)])
    commit(log, stored=[Stored(1, index, each) for index, each in enumerate(made)])
    log = store.open(OP3)
    outputs = [output.event for output in log.outputs("out", 1, 99)]
    for found in (outputs, store.reader().events(OP3, "out", range(1, last + 1))):
        assert [repr(each.time) for each in found] == [*map(repr, TIMES), "(9, 9)"]  # A list is no tuple.
    assert [repr(stored.event.time) for stored in log.effect(1, 0, 99)] == [*map(repr, TIMES)]


def test_counters_survive_the_removal_of_what_they_counted(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    for number in range(1, 7):
        log.commit(step(number))
    commit(log, forget_outputs=[("out", 1, 6)], forget_sets=[1, 2])
    rows = store.reader().rows(OP3)
    assert (rows.outputs, rows.pairs, rows.sets) == ([], [], [])
    recovered = store.open(OP3).recover()
    assert recovered.counters == {"order": 6, "out:out": 6, "position": 6}
    assert recovered.cursors == {A: Cursor(6, IdSet(3), False)}


def test_read_actions_and_their_stored_effects(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP1)
    first = ReadAction(1, "Cx", b"text of A", False, False, None, True)
    effect = [Stored(1, index, event(index + 1, sender=OP1, port="Cx")) for index in range(5)]
    commit(log, reads=[first], counters={"read": 1})
    commit(log, stored=effect[:3])
    commit(log, stored=effect[3:], reads=[first._replace(offset=b"x"), first._replace(is_complete=True)])
    log = store.open(OP1)
    assert log.recover().reads == [first._replace(is_complete=True)]
    found = log.effect(1, 1, 3)
    assert [(stored.action, stored.index) for stored in found] == [(1, 1), (1, 2), (1, 3)]
    assert all(one.event.same(other.event) for one, other in zip(found, effect[1:4], strict=True))
    assert log.effect(2, 0, 9) == []
    commit(log, reads=[first._replace(is_complete=True, is_done=True)])
    assert log.recover().reads == []
    assert store.reader().rows(OP1).stored == [(1, index) for index in range(5)]
    commit(log, forget_reads=[1])
    rows = store.reader().rows(OP1)
    assert (rows.reads, rows.stored, rows.counters) == ([], [], {"read": 1})


def test_a_cut_off_effect_is_stored_anew_in_one_transaction(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP1)
    action = ReadAction(1, "Cx", b"A", False, False, None, True)
    commit(log, reads=[action], stored=[Stored(1, index, event(7, sender=OP1, port="Cx")) for index in range(3)])
    commit(log, forget_effects=[1], stored=[Stored(1, 0, event(8, sender=OP1, port="Cx"))])
    assert [(stored.index, stored.event.id) for stored in log.effect(1, 0, 9)] == [(0, 8)]
    assert log.recover().reads == [action]


def test_lineage_goes_with_its_output(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(
        log,
        outputs=[Output(event(1), 1.0), Output(event(2), 1.0), Output(event(1, port="report"), 1.0)],
        opened=[(1, b"a"), (2, b"b")],
        closed=[1, 2],
        lineage=[Lineage("out", 1, 1), Lineage("out", 2, 1), Lineage("out", 2, 2), Lineage("report", 1, 2)],
    )
    commit(log, forget_outputs=[("out", 2, 2)])
    rows = store.reader().rows(OP3)
    assert rows.lineage == [("out", 1, 1), ("report", 1, 2)]
    assert rows.sets == [(1, b"a", True), (2, b"b", True)]


def test_an_older_incarnation_is_refused_and_changes_nothing(make_store: MakeStore) -> None:
    store = make_store()
    old = store.open(OP3)
    old.commit(step(1))
    new = store.open(OP3)
    before = store.reader().rows(OP3)
    for number in (2, 3):
        with pytest.raises(Fenced, match=r"incarnation 1 of OP3 .* incarnation 2"):
            old.commit(step(number))
    assert store.reader().rows(OP3) == before
    new.commit(step(2))
    assert [output.event.id for output in new.outputs("out", 1, 9)] == [1, 2]


def test_replicas_do_not_see_each_other(make_store: MakeStore) -> None:
    store = make_store()
    one, other = store.open(OP3), store.open(OP1)
    one.commit(step(1))
    commit(other, outputs=[Output(event(1, sender=OP1), 5.0)], opened=[(1, b"k")], state={b"latest": b"x"})
    commit(other, forget_sets=[1], forget_outputs=[("out", 1, 1)], state={b"latest": None})
    assert one.state(b"latest") == b"1"
    assert [pair.serial for pair in one.recover().undone] == [1]
    assert store.reader().replicas() == [OP1, OP3]
    assert [output.id for output in store.reader().rows(OP3).outputs] == [1]


def test_closing_changes_nothing(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    log.commit(step(1))
    before = store.reader().rows(OP3)
    log.close()
    assert store.reader().rows(OP3) == before
    store.open(OP3).commit(step(2))
