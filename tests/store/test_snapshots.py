"""What a log with snapshots promises, on every store."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from tests.store.places import OP1, OP3, A, end_mark, event

from clew.errors import Fenced, LogDamaged, LogError
from clew.log import snapshot_rows
from clew.log.contract import ReplicaLog, Store
from clew.log.epochs import EPOCHS, EpochLog, complete_epoch
from clew.log.snapshot_rows import snapshot_state
from clew.log.snapshots import Capture, SnapshotLog
from clew.log.versions import split_key, version_key
from clew.model.history import (
    END_SERIAL,
    Cursor,
    Expired,
    Output,
    Pair,
    ReadAction,
    Recovered,
    Stored,
    Transaction,
    UndonePair,
)
from clew.model.names import is_name
from clew.model.ranges import IdSet

MakeStore = Callable[..., Store]
WRITES = frozenset({"report", "audit"})


def commit(log: ReplicaLog | SnapshotLog, **parts: object) -> None:
    transaction = Transaction(**parts)  # type: ignore[arg-type]
    log.stage(transaction)
    log.commit(transaction)


def open_at(store: Store, epoch: int, generation: int = 1, durable_writes: frozenset[str] = frozenset()) -> SnapshotLog:
    return SnapshotLog(store.open(OP3), generation, epoch, write_connections=WRITES, durable_writes=durable_writes)


def end_epoch(log: SnapshotLog, epoch: int, is_final: bool = False) -> None:
    log.store(log.capture(epoch, is_final))


def rows(store: Store) -> list[tuple[bytes, int]]:
    """The rows that are durable, without schemas, with their stamps."""
    found = (split_key(key) for key, _ in store.reader().rows(OP3).state)
    return [row for row in found if row[0][:1] != b"h"]


def work(log: SnapshotLog) -> None:
    """A bit of everything."""
    commit(
        log,
        outputs=[
            Output(event(1), 1.0),
            Output(event(1, port="report", rows=2, time=(1, "a"), attributes={"late": True}), 1.5, (("audit", 3),)),
            Output(end_mark(2), 2.0),
        ],
        opened=[(1, b"H"), (2, b"H+1")],
        pairs=[Pair(1, A, 1, 1, None), Pair(2, A, 1, 2, b"n"), Pair(3, A, 2, 2, b""), Pair(4, A, 3, END_SERIAL, None)],
        taken=[(A, event(1, sender=OP1)), (A, event(2, sender=OP1, rows=3))],
        cursors={A: Cursor(3, IdSet(1, [3]), True)},
        counters={"position": 4, "out:report": 1},
        state={b"a": b"1", b"b": b"2"},
        timers={b"t": 2.5},
        reads=[ReadAction(1, "Cx", b"q", False, False, b"7", True), ReadAction(2, "Cx", b"q", True, True, None, True)],
        stored=[Stored(1, 0, event(1, port="Cx")), Stored(2, 0, event(2, port="Cx"))],
        progress={("hold", b"out"): b"5", ("sum", b"x"): b"one"},
    )


def recovered(generation: int) -> Recovered:
    return Recovered(
        generation,
        cursors={A: Cursor(3, IdSet(1, [3]), True)},
        counters={"position": 4, "out:report": 1},
        undone=[
            UndonePair(1, A, 1, 1, b"H", None),
            UndonePair(2, A, 1, 2, b"H+1", b"n"),
            UndonePair(3, A, 2, 2, b"H+1", b""),
        ],
        open_sets=[(1, b"H"), (2, b"H+1")],
        timers={b"t": 2.5},
        reads=[ReadAction(1, "Cx", b"q", False, False, b"7", True)],
        progress={("hold", b"out"): b"5", ("sum", b"x"): b"one"},
    )


def test_a_new_log_is_empty(make_store: MakeStore) -> None:
    log = open_at(make_store(), 0, generation=7)
    assert log.replica == OP3
    assert log.recover() == Recovered(7)
    assert log.incarnation == 7
    assert log.state_items() == log.outputs("out", 1, 9) == log.effect(1, 0, 9) == log.events([(A, 1)]) == []
    assert log.expired({"out": IdSet(9)}, {}) == Expired((), (), (), ())


def test_an_epoch_comes_back_whole(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    work(log)
    assert log.recover() == recovered(1)
    assert [output.event.id for output in log.outputs("out", 1, 9)] == [1, 2]
    end_epoch(log, 1)
    log.close()
    again = open_at(store, 1, generation=2)
    assert again.recover() == recovered(2)
    assert (again.state(b"a"), again.state(b"none")) == (b"1", None)
    assert again.state_items() == [(b"a", b"1"), (b"b", b"2")]
    one, two = again.events([(A, 2), (A, 9), (A, 1)])
    assert one.same(event(2, sender=OP1, rows=3))
    assert two.same(event(1, sender=OP1))
    (write,) = again.outputs("report", 1, 9)
    assert (write.created, write.requires) == (1.5, (("audit", 3),))
    assert write.event.same(event(1, port="report", rows=2, time=(1, "a"), attributes={"late": True}))
    (stored,) = again.effect(1, 0, 9)
    assert stored.event.same(event(1, port="Cx"))
    assert again.outputs("out", 1, 9) == again.effect(2, 0, 9) == []
    assert store.reader().rows(OP3).counters == {"epoch": 1, "final": 0, "generation": 1}


def test_only_what_changed_is_written(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    commit(log, state={b"%04d" % number: b"v" for number in range(1000)}, counters={"position": 1})
    end_epoch(log, 1)
    assert len(rows(store)) == 1001
    commit(log, state={b"0007": b"w", b"new": b"1", b"brief": b"1"}, counters={"position": 2})
    commit(log, state={b"0008": None, b"brief": None})
    end_epoch(log, 2)
    assert sorted(row for row, stamp in rows(store) if stamp > 3) == [b"cposition", b"s0007", b"s0008", b"snew"]
    end_epoch(log, 3, is_final=True)
    assert len(rows(store)) == 1005
    assert store.reader().rows(OP3).counters == {"epoch": 3, "final": 1, "generation": 1}


def test_versions_that_no_epoch_needs_disappear(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    for epoch in range(1, 20):
        commit(log, state={b"a": b"%d" % epoch, b"b": b"1" if epoch % 2 else None}, counters={"position": epoch})
        end_epoch(log, epoch)
        log.completed(epoch)
    assert rows(store) == [(b"cposition", 36), (b"cposition", 38), (b"sa", 36), (b"sa", 38), (b"sb", 38)]
    log.completed(4)  # Said late, it changes nothing.
    end_epoch(log, 20)
    assert rows(store) == [(b"cposition", 38), (b"sa", 38), (b"sb", 38)]
    assert snapshot_state(store.reader().rows(OP3), 20) == [(b"a", b"19"), (b"b", b"1")]


def test_an_epoch_that_is_not_complete_can_be_gone_back_from(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    commit(log, state={b"a": b"1", b"b": b"1"})
    end_epoch(log, 1)
    log.completed(1)
    commit(log, state={b"a": b"2", b"b": None, b"c": b"2"})
    end_epoch(log, 2)
    log.close()
    again = open_at(store, 1, generation=2)
    assert again.state_items() == [(b"a", b"1"), (b"b", b"1")]
    assert snapshot_state(store.reader().rows(OP3), 1) == [(b"a", b"1"), (b"b", b"1")]
    commit(again, state={b"d": b"3"})
    end_epoch(again, 2)
    again.close()
    assert open_at(store, 2, generation=3).state_items() == [(b"a", b"1"), (b"b", b"1"), (b"d", b"3")]
    assert rows(store) == [(b"sa", 2), (b"sb", 2), (b"sd", 4)]


def test_a_finished_replica_stands_for_later_epochs(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    commit(log, state={b"a": b"1"}, counters={"finished": 1})
    end_epoch(log, 3, is_final=True)
    log.close()
    assert open_at(store, 9, generation=2).recover().counters == {"finished": 1}


def test_going_back_forgets_what_was_captured_and_not_stored(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    work(log)
    end_epoch(log, 1)
    commit(log, state={b"a": b"9"}, forget_sets=[1, 2], timers={b"t": None}, outputs=[Output(event(3), 1.0)])
    lost = log.capture(2, is_final=False)
    log.close()
    log = open_at(store, 1, generation=2)
    assert log.recover() == recovered(2)
    assert log.outputs("out", 1, 9) == []
    with pytest.raises(LogError) as raised:
        log.store(lost)
    assert str(raised.value) == (
        "OP3: capture 2 of generation 1 (epoch 2) cannot be stored; expected capture 1 of generation 2, since each "
        "holds only what changed. Store captures in their order, and none of an earlier generation."
    )
    log.close()
    log = open_at(store, 0, generation=3)
    assert log.recover() == Recovered(3)
    commit(log, state={b"z": b"1"})
    end_epoch(log, 1)
    assert snapshot_state(store.reader().rows(OP3), 1) == [(b"z", b"1")]


def test_captures_are_stored_in_their_order(make_store: MakeStore) -> None:
    log = open_at(make_store(), 0)
    commit(log, state={b"a": b"1"})
    first = log.capture(1, is_final=False)
    commit(log, state={b"b": b"1"})
    second = log.capture(2, is_final=False)
    with pytest.raises(LogError, match=r"capture 2 of generation 1 \(epoch 2\) cannot be stored; expected capture 1"):
        log.store(second)
    log.store(first)
    log.store(second)
    with pytest.raises(LogError, match="expected capture 3"):
        log.store(second)
    with pytest.raises(AssertionError, match="epoch 2 ends after 2"):
        log.capture(2, is_final=False)


def test_the_events_of_undone_pairs_are_kept_as_long_as_a_pair_needs_them(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    work(log)
    end_epoch(log, 1)
    commit(log, closed=[2])
    assert [each.id for each in log.events([(A, 1), (A, 2)])] == [1]
    commit(log, forget_sets=[1, END_SERIAL])
    assert log.events([(A, 1)]) == []
    end_epoch(log, 2)
    log.completed(2)
    end_epoch(log, 3)
    kinds = {row[:1] for row, _ in rows(store)}
    assert kinds.isdisjoint({b"e", b"p", b"o"})


def test_events_without_a_pair_are_not_kept(make_store: MakeStore) -> None:
    log = open_at(make_store(), 0)
    commit(log, opened=[(1, b"H")], pairs=[Pair(1, A, 1, 1, None)], taken=[(A, event(n, sender=OP1)) for n in (1, 2)])
    assert [each.id for each in log.events([(A, 1), (A, 2)])] == [1]


def test_write_actions_are_kept_until_they_are_done(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    commit(
        log,
        outputs=[Output(event(number, port="report"), 1.0) for number in (1, 2, 3, 4)],
        counters={"out:report": 4, "written:report": 1},
    )
    commit(log, counters={"written:report": 2})
    end_epoch(log, 1)
    log.close()
    again = open_at(store, 1, generation=2)
    assert [each.event.id for each in again.outputs("report", 3, 9)] == [3, 4]
    assert [each.event.id for each in again.outputs("report", 1, 9)] == [3, 4]
    commit(again, counters={"written:report": 4}, forget_outputs=[("report", 3, 4)])
    end_epoch(again, 2)
    again.completed(2)
    end_epoch(again, 3)
    assert [row for row, _ in rows(store)] == [b"cout:report", b"cwritten:report"]


def test_marks_that_must_not_be_lost_are_durable_at_once(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0, durable_writes=frozenset({"report"}))
    made = [Output(event(number, port=port), 1.0) for port in ("report", "audit") for number in (1, 2)]
    commit(log, outputs=made, counters={"out:report": 2, "out:audit": 2})
    end_epoch(log, 1)
    commit(log, counters={"written:report": 1, "written:audit": 1})
    assert store.reader().rows(OP3).counters["written:report"] == 1
    log.close()
    again = open_at(store, 1, generation=2)
    assert again.recover().counters == {"out:report": 2, "out:audit": 2, "written:report": 1}
    assert [each.event.id for each in again.outputs("report", 1, 9)] == [2]
    assert [each.event.id for each in again.outputs("audit", 1, 9)] == [1, 2]
    again.close()
    again = open_at(store, 1, generation=3, durable_writes=frozenset({"audit"}))
    commit(again, counters={"written:audit": 1})
    again.close()
    again = open_at(store, 1, generation=4)
    assert again.recover().counters["written:audit"] == 1
    end_epoch(again, 2)
    again.completed(2)
    end_epoch(again, 3)  # What was done meanwhile is gone from the snapshot too.
    assert [row[9:] for row, _ in rows(store) if row[:1] == b"w"] == [b"audit", b"report"]


def test_a_finished_replica_settles_every_mark(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    made = [Output(event(number, port="report"), 1.0) for number in (1, 2)]
    commit(log, outputs=made, counters={"out:report": 2, "finished": 1})
    end_epoch(log, 1, is_final=True)
    commit(log, counters={"written:report": 1})
    commit(log, counters={"written:report": 2})
    log.close()
    again = open_at(store, 1, generation=2)
    assert again.recover().counters == {"out:report": 2, "finished": 1, "written:report": 2}
    assert again.outputs("report", 1, 9) == []


def test_a_predecessor_cannot_store_and_sees_that_it_is_one(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0, durable_writes=WRITES)
    commit(log, state={b"a": b"1"})
    capture = log.capture(1, is_final=False)
    successor = open_at(store, 0, generation=2)
    commit(log, state={b"a": b"2"})  # In memory it may go on; nothing of it will ever count.
    for act in (lambda: log.store(capture), lambda: log.commit(Transaction())):
        with pytest.raises(Fenced, match="has been replaced"):
            act()
    with pytest.raises(Fenced):
        commit(log, counters={"written:report": 1})
    assert rows(store) == []
    successor.commit(Transaction())
    end_epoch(successor, 1)


def test_commits_go_on_while_an_epoch_is_stored(make_store: MakeStore) -> None:
    store = make_store()
    log = open_at(store, 0)
    errors: list[BaseException] = []
    captures: list[Capture] = []
    is_there = threading.Condition()

    def keep() -> None:
        try:
            for number in range(10):
                with is_there:
                    is_there.wait_for(lambda: len(captures) > number, 30)  # noqa: B023
                log.store(captures[number])
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=keep)
    thread.start()
    count = 0
    for epoch in range(1, 11):
        for _ in range(200):
            count += 1
            commit(
                log,
                state={b"%d" % (count % 50): b"%d" % count, b"gone": None if count % 2 else b"x"},
                counters={"position": count},
                opened=[(count, b"k")],
                pairs=[Pair(count, A, count, count, None)],
                taken=[(A, event(count, sender=OP1))],
                forget_sets=[count - 5] if count > 5 else [],
            )
        with is_there:
            captures.append(log.capture(epoch, is_final=False))
            is_there.notify()
    commit(log, state={b"after": b"1"})
    thread.join(60)
    assert not errors
    log.close()
    for epoch in (1, 4, 10):
        found = open_at(store, epoch, generation=epoch)
        last = 200 * epoch
        assert found.recover().counters == {"position": last}
        expected = {b"%d" % (number % 50): b"%d" % number for number in range(1, last + 1)} | {b"gone": b"x"}
        assert dict(found.state_items()) == expected
        assert [pair.order for pair in found.recover().undone] == list(range(last - 4, last + 1))
        assert [each.id for each in found.events((A, n) for n in range(last + 9))] == list(range(last - 4, last + 1))
        found.close()


def test_a_store_that_failed_can_be_tried_again(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store()
    log = open_at(store, 0)
    work(log)
    capture = log.capture(1, is_final=False)

    def fail(transaction: Transaction) -> None:
        raise LogError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(log._durable, "stage", fail)
        with pytest.raises(LogError, match="the disk is full"):
            log.store(capture)
    log.store(capture)
    log.close()
    again = open_at(store, 1, generation=2)
    assert again.recover() == recovered(2)
    assert len(again.events([(A, 1), (A, 2)])) == 2


def test_what_is_too_large_is_named(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_rows, "VALUE_BYTES_MAX", 1000)
    store = make_store()
    log = open_at(store, 0)
    large = event(5, sender=OP1, rows=900)
    commit(log, opened=[(1, b"H")], pairs=[Pair(1, A, 5, 1, None)], taken=[(A, large)])
    with pytest.raises(LogError) as raised:
        end_epoch(log, 1)
    assert str(raised.value).startswith("operator OP3: event OP1.out/5, which waits in an Input Set, has ")
    assert str(raised.value).endswith(
        " bytes; a snapshot can hold at most 1000 in one piece. Let its sender yield its records as several events, "
        "or run with recovery='log'."
    )
    log = open_at(store, 0, generation=2)
    commit(log, state={b"\xa5total": b"v" * 1001})
    with pytest.raises(LogError, match=r"the value of state key 'total' has 1001 bytes.* Keep it under several keys"):
        end_epoch(log, 1)
    log = open_at(store, 0, generation=3)
    commit(log, outputs=[Output(event(2, port="report", rows=900), 1.0)])
    with pytest.raises(LogError, match=r"write action 2 on 'report' has .* Yield its records as several write actions"):
        end_epoch(log, 1)


def test_a_large_body_comes_back(make_store: MakeStore) -> None:
    """Larger than what logs put into files: it is a row here."""
    store = make_store()
    log = open_at(store, 0)
    large = event(1, sender=OP1, rows=200_000)
    assert large.size > 1 << 20
    commit(log, opened=[(1, b"H")], pairs=[Pair(1, A, 1, 1, None)], taken=[(A, large)])
    end_epoch(log, 1)
    log.close()
    (found,) = open_at(store, 1, generation=2).events([(A, 1)])
    assert found.same(large)


def test_a_log_of_the_other_recovery_is_refused(make_store: MakeStore) -> None:
    store = make_store()
    commit(store.open(OP3), counters={"position": 1}, state={b"a": b"1"})
    with pytest.raises(LogError) as raised:
        open_at(store, 0)
    assert str(raised.value) == (
        "the log of OP3 was written with recovery='log'; expected a new log, or one of a run with recovery='snapshot'. "
        "Run it with recovery='log', or name another log."
    )


@pytest.mark.parametrize(
    ("row", "value"), [(b"?x", b"1"), (b"t", b"\xc1"), (b"u", b"\x91\x01"), (b"e\x90", b"\x90"), (b"r\x01", b"\x90")]
)
def test_a_damaged_row_is_named(make_store: MakeStore, row: bytes, value: bytes) -> None:
    store = make_store()
    commit(store.open(OP3), state={version_key(row, 2): value}, counters={"generation": 1})
    with pytest.raises(LogDamaged, match=r"a row of the snapshot of OP3 cannot be read: its key is .* Restore the log"):
        open_at(store, 1)


def test_the_coordinators_log_keeps_epoch_and_generation(make_store: MakeStore) -> None:
    store = make_store()
    assert complete_epoch(store.reader()) == 0
    log = EpochLog(store.open(EPOCHS))
    assert (log.epoch, log.generation) == (0, 0)
    assert (log.begin_generation(), log.begin_generation()) == (1, 2)
    log.complete(1)
    log.complete(4)
    log.complete(4)
    with pytest.raises(LogError) as raised:
        log.complete(3)
    assert str(raised.value) == (
        "epoch 3 cannot become the last complete one, since epoch 4 is complete already; expected a later one. "
        "Complete epochs in their order."
    )
    again = EpochLog(store.open(EPOCHS))
    assert (again.epoch, again.generation) == (4, 2)
    assert complete_epoch(store.reader()) == 4
    with pytest.raises(Fenced):
        log.complete(5)
    assert again.begin_generation() == 3
    again.close()


def test_no_operator_can_have_the_name_of_the_coordinators_log() -> None:
    assert not is_name(EPOCHS.operator)
