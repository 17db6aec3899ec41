"""The five tables of the LOG.io text, read off small logs made by hand, on every store (Tables 1 to 6, corrected)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from tests.store.places import DESCRIPTION, OP1, OP3, OP4, A, B, end_mark, event
from tests.store.test_contract import commit

from clew.log.contract import ReplicaLog, Store
from clew.log.tables import Tables, read_tables
from clew.model.history import END_SERIAL, Cursor, Lineage, Output, Pair, ReadAction, Stored, Use
from clew.model.ranges import IdSet
from clew.model.values import decode, encode

MakeStore = Callable[..., Store]


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def made(log: ReplicaLog, *numbers: int) -> None:
    commit(log, outputs=[Output(event(number, sender=log.replica), float(number)) for number in numbers])


def hours(store: Store, *, is_third_taken: bool) -> None:
    """Example 7: a1 is of hour H, a2 of H and H+1, a3 of H+2; an hour is complete when a later one has begun."""
    made(store.open(OP1), 1, 2, 3)
    log = store.open(OP3)
    commit(
        log,
        opened=[(1, encode("H")), (2, encode("H+1"))],
        pairs=[Pair(1, A, 1, 1, None), Pair(2, A, 2, 1, None), Pair(3, A, 2, 2, None)],
        cursors={A: Cursor(2, IdSet(), False)},
        outputs=[Output(event(1), 1.0)],
        closed=[1],
        lineage=[Lineage("out", 1, 1)],
    )
    if is_third_taken:
        commit(
            log,
            opened=[(3, encode("H+2"))],
            pairs=[Pair(4, A, 3, 3, None)],
            cursors={A: Cursor(3, IdSet(), False)},
            outputs=[Output(event(2), 2.0)],
            closed=[2],
            lineage=[Lineage("out", 2, 2)],
        )


def test_tables_4_and_5(make_store: MakeStore) -> None:
    store = make_store()
    hours(store, is_third_taken=True)
    tables = read_tables(store)
    assert tables.event_log.column_names == ["Event_ID", "Status", "Send_Op", "Send_p", "Rec_Op", "Rec_p", "InSet_ID"]
    assert rows(tables.event_log) == sorted(
        [
            (1, "done", "OP1", "out", "OP3", "in", "H"),
            (2, "done", "OP1", "out", "OP3", "in", "H"),
            (2, "done", "OP1", "out", "OP3", "in", "H+1"),  # b2 was made from it: the text prints undone by mistake.
            (1, "undone", "OP3", "out", "OP4", "in", None),
            (3, "undone", "OP1", "out", "OP3", "in", "H+2"),
            (2, "undone", "OP3", "out", "OP4", "in", None),
        ],
        key=repr,
    )
    assert tables.event_lineage.column_names == ["Event_ID", "Send_Op", "Send_p", "InSet_ID"]
    assert rows(tables.event_lineage) == [(1, "OP3", "out", "H"), (2, "OP3", "out", "H+1")]


def test_table_6(make_store: MakeStore) -> None:
    store = make_store()
    hours(store, is_third_taken=False)
    assert rows(read_tables(store).event_log) == sorted(
        [
            (1, "done", "OP1", "out", "OP3", "in", "H"),
            (2, "done", "OP1", "out", "OP3", "in", "H"),
            (2, "undone", "OP1", "out", "OP3", "in", "H+1"),
            (1, "undone", "OP3", "out", "OP4", "in", None),
            (3, "undone", "OP1", "out", "OP3", "in", None),
        ],
        key=repr,
    )


def body(tables: Tables, number: int) -> list[dict[str, Any]]:
    (found,) = [
        row["Body"] for row in tables.event_data.to_pylist() if (row["Event_ID"], row["Send_p"]) == (number, "out")
    ]
    return pa.ipc.open_stream(found).read_all().to_pylist()  # type: ignore[no-any-return]


def test_tables_1_2_and_3(make_store: MakeStore) -> None:
    """Example 6: r1 is complete, its effect is stored, and two events were made of it so far."""
    store = make_store()
    log = store.open(OP1)
    action = ReadAction(1, "Cx", encode("text of action A"), True, False, encode(2), True)
    commit(
        log,
        reads=[action],
        stored=[Stored(1, index, event(index + 1, sender=OP1, port="Cx")) for index in range(3)],
        outputs=[Output(event(number, sender=OP1), 1.0) for number in (1, 2)],
        counters={"read": 1},
    )
    tables = read_tables(store)
    assert tables.read_action.column_names == ["Action_ID", "Status", "OP_ID", "Conn_ID", "Action_Desc"]
    assert rows(tables.read_action) == [(1, "complete", "OP1", "Cx", "text of action A")]
    assert rows(tables.event_log) == sorted(
        [
            (1, "undone", "OP1", "Cx", "OP1", None, None),
            (1, "undone", "OP1", "out", "OP3", "in", None),
            (2, "undone", "OP1", "out", "OP3", "in", None),
        ],
        key=repr,
    )
    assert tables.event_data.column_names == ["Event_ID", "Send_Op", "Send_p", "Header", "Body"]
    assert [row[:3] for row in rows(tables.event_data)] == [(1, "OP1", "out"), (1, "OP1", None), (2, "OP1", "out")]
    (reference,) = [row[3:] for row in rows(tables.event_data) if row[2] is None]
    assert reference == (None, f"{store.log_id}/OP1/0/effect/1".encode())
    assert body(tables, 2) == event(2).rows
    commit(log, reads=[action._replace(is_done=True)], forget_effects=[1])
    tables = read_tables(store)
    assert (1, "done", "OP1", "Cx", "OP1", None, None) in rows(tables.event_log)
    assert [row[:3] for row in rows(tables.event_data)] == [(1, "OP1", "out"), (2, "OP1", "out")]


def test_an_incomplete_read_action_is_no_event_yet(make_store: MakeStore) -> None:
    store = make_store()
    commit(store.open(OP1), reads=[ReadAction(1, "Cx", encode("A"), False, False, None, True)])
    tables = read_tables(store)
    assert rows(tables.read_action) == [(1, "incomplete", "OP1", "Cx", "A")]
    assert rows(tables.event_log) == []


def test_an_event_that_was_taken_and_has_no_pair_is_done(make_store: MakeStore) -> None:
    store = make_store()
    made(store.open(OP1), 1, 2)
    commit(store.open(OP3), cursors={A: Cursor(1, IdSet(1), False)})
    assert rows(read_tables(store).event_log) == [
        (1, "done", "OP1", "out", "OP3", "in", None),
        (2, "undone", "OP1", "out", "OP3", "in", None),
    ]


def test_write_actions_have_no_sender_port(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(log, outputs=[Output(event(number, port="report"), 1.0) for number in (1, 2)])
    assert rows(read_tables(store).event_log) == [
        (1, "undone", "OP3", None, "OP3", "report", None),
        (2, "undone", "OP3", None, "OP3", "report", None),
    ]
    commit(log, counters={"written:report": 1})
    tables = read_tables(store)
    assert [row[:2] for row in rows(tables.event_log)] == [(1, "done"), (2, "undone")]
    assert [row[:3] for row in rows(tables.event_data)] == [(1, "OP3", "report"), (2, "OP3", "report")]


def test_captured_reads_and_states_belong_to_their_set(make_store: MakeStore) -> None:
    store = make_store()
    log = store.open(OP3)
    commit(
        log,
        opened=[(1, encode("H"))],
        closed=[1],
        outputs=[Output(event(1), 1.0)],
        lineage=[Lineage("out", 1, 1)],
        reads=[ReadAction(1, "Cx", encode("q"), True, True, None, True)],
        stored=[Stored(1, 0, event(1, port="Cx"))],
        uses=[Use(1, "read", 1), Use(1, "state", 2)],
        state={encode("seen"): encode(4)},
        state_versions=[
            (1, {encode("seen"): encode(1), encode("old"): encode("x")}),
            (2, {encode("seen"): encode(2), encode("old"): None}),
            (3, {encode("seen"): encode(4)}),
        ],
        counters={"state": 3},
    )
    tables = read_tables(store)
    assert rows(tables.event_log) == sorted(
        [
            (1, "done", "OP3", "Cx", "OP3", None, "H"),
            (2, "done", "OP3", None, "OP3", None, "H"),
            (1, "undone", "OP3", "out", "OP4", "in", None),
        ],
        key=repr,
    )
    assert [(number, name, decode(state)) for number, name, state in rows(tables.state)] == [
        (2, "OP3", {"seen": 2}),
        (3, "OP3", {"seen": 4}),
    ]


def test_without_capture_there_is_the_latest_state(make_store: MakeStore) -> None:
    store = make_store()
    commit(store.open(OP3), state={encode("seen"): encode(7), encode(("a", 1)): encode(None)}, counters={"state": 9})
    ((number, name, state),) = rows(read_tables(store).state)
    assert (number, name, decode(state)) == (9, "OP3", {"seen": 7, ("a", 1): None})


def test_a_key_that_comes_again_shows_its_serial(make_store: MakeStore) -> None:
    store = make_store()
    made(store.open(OP1), 1, 2, 3)
    commit(
        store.open(OP3),
        opened=[(1, encode("H")), (2, encode("H")), (3, encode(("a", 2)))],
        pairs=[Pair(number, A, number, number, None) for number in (1, 2, 3)],
        cursors={A: Cursor(3, IdSet(), False)},
        closed=[1],
    )
    assert [(row[0], row[1], row[6]) for row in rows(read_tables(store).event_log)] == [
        (1, "done", "H#1"),
        (2, "undone", "H#2"),
        (3, "undone", "('a', 2)"),
    ]


def test_end_marks_are_events_in_a_set_of_their_own(make_store: MakeStore) -> None:
    store = make_store()
    commit(store.open(OP3), outputs=[Output(end_mark(1), 1.0)], counters={"finished": 1})
    log = store.open(OP4)
    commit(log, pairs=[Pair(1, B, 1, END_SERIAL, None)], cursors={B: Cursor(1, IdSet(), True)})
    assert rows(read_tables(store).event_log) == [(1, "undone", "OP3", "out", "OP4", "in", "<end>")]
    commit(log, counters={"finished": 1})
    tables = read_tables(store)
    assert rows(tables.event_log) == [(1, "done", "OP3", "out", "OP4", "in", "<end>")]
    ((*_, header, nothing),) = rows(tables.event_data)
    assert decode(header) == {"time": None, "attributes": {}}
    assert nothing is None


def test_a_port_with_two_receivers_gives_two_rows(make_store: MakeStore) -> None:
    description = {**DESCRIPTION, "connections": [["OP1", "out", "OP3", "in"], ["OP1", "out", "OP4", "in"]]}
    store = make_store(description)
    made(store.open(OP1), 1)
    commit(store.open(OP3), cursors={A: Cursor(1, IdSet(1), False)})
    assert rows(read_tables(store).event_log) == [
        (1, "done", "OP1", "out", "OP3", "in", None),
        (1, "undone", "OP1", "out", "OP4", "in", None),
    ]


def test_an_empty_log_gives_empty_tables(make_store: MakeStore) -> None:
    store = make_store()
    tables = read_tables(store, with_bodies=False)
    assert [table.num_rows for table in tables] == [0] * 5
