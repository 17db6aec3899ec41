"""Invariants: each step that breaks one is named at once; what is durable passes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from clew import Pipeline
from clew.errors import Violation
from clew.model.event import Event, as_batch
from clew.model.history import Cursor, Lineage, Output, Transaction
from clew.model.names import Replica
from clew.model.ranges import IdSet
from clew.operators.functions import Map
from clew.protocol import effects as does
from clew.testing import Outside as Handle
from clew.testing import scripted
from clew.verify.archive import Archive, Shelf
from clew.verify.invariants import Invariants
from clew.verify.outside import Outside

UP, OP, SAVE = Replica("up"), Replica("op"), Replica("save")
SESSION = does.Session(1, 1)


class Bench:
    """A small pipeline, up -> op -> save, with an archive that is filled by hand; op writes before it sends."""

    def __init__(self, keep_s: float | None = 60.0) -> None:
        pipeline = Pipeline("p")
        source = pipeline.source("up", scripted([[{"x": 1}]]))
        passing = Map(lambda table: table)
        rows = source.operator("op", passing, writes={"db": Handle("db").writer()}, writes_first=True)
        rows.write("save", Handle("store").writer())
        pipeline.lineage("up.out", "op.out", keep_s)
        self.graph = pipeline.build()
        self.inward, self.outward = self.graph.channels
        self.archive: Archive = {replica: Shelf() for replica in self.graph.replicas}
        self.outside = Outside(self.graph)
        self.invariants = Invariants(self.graph, self.archive, self.outside, "log")

    def send(self, replica: Replica, effect: does.Send, incarnation: int = 1) -> None:
        self.invariants.sent.clear()
        self.invariants.on_send(replica, incarnation, effect)

    def commit(self, replica: Replica, transaction: Transaction, now: float = 0.0) -> None:
        self.invariants.on_commit(replica, transaction, now)

    def durable(self, replica: Replica, **rows: Any) -> None:
        self.archive[replica].add(Transaction(**rows))


def output(number: int, replica: Replica = OP, port: str = "out", **fields: Any) -> Output:
    return Output(Event(replica, port, number, as_batch([{"x": number}])), 0.0, **fields)


def refused(words: str) -> Any:
    return pytest.raises(Violation, match=re.escape(words))


def test_what_is_sent_is_durable() -> None:
    bench = Bench()
    send = does.Send(bench.outward, SESSION, output(1).event)
    with refused("op: event op.out/1 is sent although it is not durable"):
        bench.send(OP, send)
    bench.durable(OP, outputs=[output(1)])
    bench.send(OP, send)
    other = Event(OP, "out", 1, as_batch([{"x": 99}]))
    with refused("op: event op.out/1 is sent although it is not durable"):
        bench.send(OP, does.Send(bench.outward, SESSION, other))


def test_what_is_sent_comes_after_the_writes_made_before_or_with_it() -> None:
    bench = Bench()
    write, made = output(1, OP, "db"), output(1)
    bench.durable(OP, outputs=[write, made])
    bench.durable(OP, outputs=[output(2, OP, "db")])
    send = does.Send(bench.outward, SESSION, made.event)
    with refused("op: event op.out/1 is sent before write db/1 is done"):
        bench.send(OP, send)
    bench.outside.write("log", OP, "db", write)
    bench.send(OP, send)  # The second write was made later.


def test_ids_only_grow_within_a_session_of_one_incarnation() -> None:
    bench = Bench()
    bench.durable(OP, outputs=[output(1), output(2)])
    one, two = (does.Send(bench.outward, SESSION, output(number).event) for number in (1, 2))
    bench.invariants.on_send(OP, 1, two)
    for again in (one, two):
        with refused(f"op: event op.out/{again.event.id} is sent after out/2 in one session"):
            bench.invariants.on_send(OP, 1, again)
    bench.invariants.on_send(OP, 2, one)
    bench.invariants.on_send(OP, 1, does.Send(bench.outward, does.Session(1, 2), one.event))


def test_who_is_complete_has_done_all_its_writes() -> None:
    bench = Bench()
    writes = [output(number, OP, "db") for number in (1, 2)]
    bench.durable(OP, outputs=writes)
    bench.outside.write("log", OP, "db", writes[0])
    with refused("op: is complete before write db/2 is done"):
        bench.invariants.on_complete(OP)
    bench.outside.write("log", OP, "db", writes[1])
    bench.invariants.on_complete(OP)


def test_what_is_acknowledged_and_released_is_durable() -> None:
    bench = Bench()
    with refused("op: acknowledges up.out->op.in up to 1 and releases IdSet(0); durable are 0 and IdSet(0)"):
        bench.invariants.on_ack(OP, does.Ack(bench.inward, SESSION, 1, IdSet(), 0))
    bench.durable(OP, cursors={bench.inward: Cursor(3, IdSet(1), False)})
    bench.invariants.on_ack(OP, does.Ack(bench.inward, SESSION, 3, IdSet(1), 0))
    bench.invariants.on_ack(OP, does.Ack(bench.inward, SESSION, 2, IdSet(), 0))
    with refused("op: acknowledges up.out->op.in up to 3 and releases IdSet(1, 3..3); durable are 3 and IdSet(1)"):
        bench.invariants.on_ack(OP, does.Ack(bench.inward, SESSION, 3, IdSet(1, [3]), 0))


def test_what_is_written_is_durable() -> None:
    bench = Bench()
    write = does.Write("to", 1, output(1, SAVE, "to"))
    with refused("save: write to/1 is begun before it is durable"):
        bench.invariants.on_write(SAVE, write)
    bench.durable(SAVE, outputs=[output(1, SAVE, "to")])
    bench.invariants.on_write(SAVE, write)


def test_ids_go_on_without_gaps() -> None:
    bench = Bench()
    bench.durable(OP, outputs=[output(1)])
    bench.commit(OP, Transaction(outputs=[output(2), output(3)]))
    for wrong in (1, 3):
        with refused(f"op: op.out/{wrong} is logged, expected id 2"):
            bench.commit(OP, Transaction(outputs=[output(wrong)]))
    with refused("op: op.out/2 is logged, expected id 3"):
        bench.commit(OP, Transaction(outputs=[output(2), output(2)]))


def test_cursors_only_grow() -> None:
    bench = Bench()
    bench.durable(OP, cursors={bench.inward: Cursor(3, IdSet(2), False)})
    bench.commit(OP, Transaction(cursors={bench.inward: Cursor(3, IdSet(2), True)}))
    for back in (Cursor(2, IdSet(2), False), Cursor(3, IdSet(1), False)):
        with refused("op: the cursor of up.out->op.in goes back from Cursor(assigned=3, released=IdSet(2)"):
            bench.commit(OP, Transaction(cursors={bench.inward: back}))


def test_only_what_every_receiver_has_released_is_forgotten() -> None:
    bench = Bench()
    forgetting = Transaction(forget_outputs=[("out", 1, 2)])
    with refused("up: forgets out/1..2, not released by op"):
        bench.commit(UP, forgetting)
    bench.durable(OP, cursors={bench.inward: Cursor(3, IdSet(1, [3]), False)})
    with refused("up: forgets out/1..2, not released by op"):
        bench.commit(UP, forgetting)
    bench.durable(OP, cursors={bench.inward: Cursor(3, IdSet(3), False)})
    bench.commit(UP, forgetting)


def test_what_a_scope_keeps_is_not_forgotten_before_its_time() -> None:
    made = Output(output(1).event, 100.0)
    forgetting = Transaction(forget_outputs=[("out", 1, 1)])
    for keep_s, now, is_kept in ((60.0, 159.0, True), (60.0, 160.0, False), (None, 10_000.0, True)):
        bench = Bench(keep_s)
        bench.durable(OP, outputs=[made])
        bench.durable(SAVE, cursors={bench.outward: Cursor(1, IdSet(1), False)})
        if is_kept:
            with refused("op: forgets op.out/1, which a lineage scope still keeps"):
                bench.commit(OP, forgetting, now)
        else:
            bench.commit(OP, forgetting, now)


def test_an_input_set_stays_as_long_as_an_output_that_came_from_it() -> None:
    bench = Bench()
    bench.durable(SAVE, cursors={bench.outward: Cursor(2, IdSet(2), False)})
    bench.durable(OP, outputs=[output(1), output(2)], lineage=[Lineage("out", 1, 7), Lineage("out", 2, 7)])
    bench.commit(OP, Transaction(forget_outputs=[("out", 1, 2)], forget_sets=[7]), now=1000.0)
    bench.commit(OP, Transaction(forget_sets=[8]), now=1000.0)
    bench.durable(OP, forget_outputs=[("out", 1, 1)])
    with refused("op: forgets Input Set 7, which out/2 came from"):
        bench.commit(OP, Transaction(forget_sets=[7]), now=1000.0)
