"""The examples and tables of LOG.io on real log contents: kernels and moves stepped over every store.

Examples 3, 4, 6, 7, 8 and 11, and Tables 1 to 6 with the corrections of the errata: in Table 4, a2 in I2 is done, since
b2 was generated from it; Table 3 also holds the bodies of a1 and a2. What the text calls a1 is event 1 of OP1, and so
on; OP' is called OP_.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from tests.store.places import Place
from tests.store.stepping import Stage, body, rows

from clew import Operator, Pipeline, Source
from clew.log.tables import Tables, read_tables
from clew.model.values import decode
from clew.operators.stateless import Stateless
from clew.protocol.settings import Settings

# Sales records: [store_ID, item_ID, city, state, date, amount], as in Figure 1.
FIELDS = ("store_ID", "item_ID", "city", "state", "date", "amount")
H = [f"2025-02-23T{hour}" for hour in (10, 11, 12)]
"""The hours H, H + 1 and H + 2, which are the Input Sets I1, I2 and I3 of OP3."""
A1 = [
    (1, "BZ234", "Cleveland", "Ohio", f"{H[0]}:05:00+03:00", 1000),
    (2, "BZ235", "Cleveland", "Ohio", f"{H[0]}:10:00+03:00", 50),
    (3, "BZ234", "Austin", "Texas", f"{H[0]}:40:00+03:00", 70),
]
A2 = [
    (1, "BZ234", "Columbus", "Ohio", f"{H[0]}:50:00+03:00", 429),
    (1, "BZ234", "Columbus", "Ohio", f"{H[1]}:05:00+03:00", 3),
    (2, "KT100", "Portland", "Oregon", f"{H[1]}:06:00+03:00", 8),
]
A3 = [(1, "BZ234", "Cleveland", "Ohio", f"{H[2]}:00:00+03:00", 11)]


def sales(records: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(FIELDS, record, strict=True)) for record in records]


class Sales(Source):
    """Gives events one after another; None is a moment without any, and after the last there are only such moments."""

    connection = "Cx"

    def __init__(self, *events: list[dict[str, Any]] | None) -> None:
        self.events = events

    def plan(self, ctx: Any) -> str | None:
        if ctx.state.get("planned"):
            return None
        ctx.state["planned"] = True
        return "text of action A"

    def read(self, action: Any, offset: Any) -> Iterator[Any]:
        for number, records in enumerate(self.events):
            if number >= (offset or 0):
                yield None if records is None else (records, number + 1)
        while self.is_replayable:
            yield None


class Snapshot(Sales):
    """The same as a read action that is not replayable: it ends, and its effect is stored first."""

    is_replayable = False


class Hourly(Operator):
    """OP3: totals per hour, item and state; an hour is complete once a later one has begun. It needs no state."""

    def open(self, ctx: Any) -> None:
        self.hours: dict[str, list[dict[str, Any]]] = {}

    def assign(self, event: Any, ctx: Any) -> list[str]:
        return sorted({hour_of(record) for record in event.rows})

    def update(self, input_set: str, event: Any, note: Any = None) -> None:
        records = [record for record in event.rows if hour_of(record) == input_set]
        self.hours.setdefault(input_set, []).extend(records)

    def ready(self, ctx: Any) -> list[list[str]]:
        return [[hour] for hour, _ in pairwise(sorted(self.hours))]

    def generate(self, input_sets: Any, ctx: Any) -> Iterator[Any]:
        (hour,) = input_sets
        totals: dict[tuple[str, str], int] = {}
        for record in self.hours.pop(hour):
            key = record["item_ID"], record["state"]
            totals[key] = totals.get(key, 0) + record["amount"]
        yield (
            "out",
            [
                {"hour": f"{hour}:00:00+03:00", "item_ID": item, "state": state, "total": total}
                for (item, state), total in sorted(totals.items())
            ],
        )


class Hundreds(Operator):
    """OP2: of every so many events the totals, and with a second generative function the extremes."""

    outputs = ("out", "extremes")

    def __init__(self, every: int) -> None:
        self.every = every

    def open(self, ctx: Any) -> None:
        self.amounts: dict[tuple[str, int], list[int]] = {}

    def assign(self, event: Any, ctx: Any) -> list[tuple[str, int]]:
        ctx.state["count"] = count = ctx.state.get("count", 0) + 1
        number = (count - 1) // self.every + 1
        return [("total", number), ("extremes", number)]

    def update(self, input_set: tuple[str, int], event: Any, note: Any = None) -> None:
        self.amounts.setdefault(input_set, []).extend(record["amount"] for record in event.rows)

    def ready(self, ctx: Any) -> list[list[tuple[str, int]]]:
        return [[key] for key in self.amounts if ctx.state["count"] >= key[1] * self.every]

    def generate(self, input_sets: Any, ctx: Any) -> Iterator[Any]:
        ((kind, number),) = input_sets
        amounts = self.amounts.pop((kind, number))
        if kind == "total":
            yield "out", [{"total": sum(amounts)}]
        else:
            yield "extremes", [{"minAmount": min(amounts), "maxAmount": max(amounts)}]


class Sink(Stateless):
    outputs = ()

    def apply(self, event: Any, ctx: Any) -> tuple[()]:
        return ()


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "memory":
        return Place("memory", "")
    found = request.getfixturevalue(f"{request.param}_place")
    assert isinstance(found, Place)
    return found


class Lab:
    """One pipeline on one store; its tables are read by somebody who opens the log anew."""

    def __init__(self, place: Place, pipeline: Pipeline, settings: Settings | None = None) -> None:
        self.place = place
        self.graph = pipeline.build()
        self.store = place.create(self.graph.describe())
        self.stage = Stage(self.graph, self.store, settings)

    def tables(self) -> Tables:
        if self.place.kind == "memory":
            return read_tables(self.store)
        reopened = self.place.open()
        try:
            return read_tables(reopened)
        finally:
            reopened.close()

    def lineage(self, operator: str, port: str, event: int) -> set[tuple[str, str, int]]:
        """Section 7.3: EVENT_LINEAGE joined with EVENT_LOG on receiver and Input Set, for input ports that count."""
        tables = self.tables()
        sets = {
            row["InSet_ID"]
            for row in tables.event_lineage.to_pylist()
            if (row["Send_Op"], row["Send_p"], row["Event_ID"]) == (operator, port, event)
        }
        ports = self.store.description["capture"][operator]["inputs"]
        return {
            (row["Send_Op"], row["Send_p"], row["Event_ID"])
            for row in tables.event_log.to_pylist()
            if row["Rec_Op"] == operator and row["Rec_p"] in ports and row["InSet_ID"] in sets
        }


def hour_of(record: dict[str, Any]) -> str:
    date: str = record["date"]
    return date[:13]


def figure_1(*events: list[dict[str, Any]] | None) -> Pipeline:
    """OP1 -> OP3 -> OP4, with lineage from OP1 to OP3."""
    pipeline = Pipeline("sales")
    pipeline.source("OP1", Sales(*events)).operator("OP3", Hourly()).operator("OP4", Sink())
    pipeline.lineage("OP1.out", "OP3.out")
    return pipeline


def example_7(place: Place) -> Lab:
    """a1, a2 and a3 have been processed by OP3; OP4 has acknowledged nothing."""
    lab = Lab(place, figure_1(sales(A1), sales(A2), sales(A3)))
    lab.stage.go("OP1", "OP3")
    return lab


def test_example_3_every_hundred_events_are_an_input_set_for_each_generative_function(place: Place) -> None:
    pipeline = Pipeline("sales")
    events = [sales([(1, "BZ234", "Cleveland", "Ohio", f"{H[0]}:00:00+03:00", amount)]) for amount in range(1, 251)]
    pipeline.source("OP1", Sales(*events)).operator("OP2", Hundreds(100))
    pipeline.lineage("OP1.out", "OP2.out")
    pipeline.lineage("OP1.out", "OP2.extremes")
    lab = Lab(place, pipeline)
    lab.stage.go("OP1", "OP2")
    tables = lab.tables()
    assigned: dict[int, list[tuple[str, str]]] = {}
    for row in tables.event_log.to_pylist():
        if row["Send_Op"] == "OP1":
            assigned.setdefault(row["Event_ID"], []).append((row["InSet_ID"], row["Status"]))
    assert sorted(assigned) == list(range(1, 251))
    for event, found in assigned.items():
        number, status = (event - 1) // 100 + 1, "done" if event <= 200 else "undone"
        assert found == [(f"('total', {number})", status), (f"('extremes', {number})", status)]
    assert rows(tables.event_lineage) == [
        (1, "OP2", "extremes", "('extremes', 1)"),
        (1, "OP2", "out", "('total', 1)"),
        (2, "OP2", "extremes", "('extremes', 2)"),
        (2, "OP2", "out", "('total', 2)"),
    ]
    assert body(tables, "OP2", "out", 2) == [{"total": sum(range(101, 201))}]
    assert body(tables, "OP2", "extremes", 1) == [{"minAmount": 1, "maxAmount": 100}]
    assert len(lab.lineage("OP2", "out", 1)) == 100
    # Algorithm 3, step 2: the state that a generation used is an event of its Input Set, and STATE has its value.
    states = {row["State_ID"]: decode(row["State"]) for row in tables.state.to_pylist() if row["OP_ID"] == "OP2"}
    used = {
        row["InSet_ID"]: states[row["Event_ID"]]
        for row in tables.event_log.to_pylist()
        if (row["Send_Op"], row["Send_p"], row["Rec_p"]) == ("OP2", None, None)
    }
    assert used == {
        "('total', 1)": {"count": 100},
        "('extremes', 1)": {"count": 100},
        "('total', 2)": {"count": 200},
        "('extremes', 2)": {"count": 200},
    }
    assert states[max(states)] == {"count": 250}


def test_example_4_an_input_set_is_an_hour_and_an_event_can_be_in_several(place: Place) -> None:
    lab = Lab(place, figure_1(sales(A1), sales(A2)))
    lab.stage.go("OP1", "OP3")
    tables = lab.tables()
    received = [row for row in rows(tables.event_log, "Event_ID", "Rec_Op", "InSet_ID") if row[1] == "OP3"]
    assert received == [(1, "OP3", H[0]), (2, "OP3", H[0]), (2, "OP3", H[1])]
    assert body(tables, "OP3", "out", 1) == [
        {"hour": f"{H[0]}:00:00+03:00", "item_ID": "BZ234", "state": "Ohio", "total": 1429},
        {"hour": f"{H[0]}:00:00+03:00", "item_ID": "BZ234", "state": "Texas", "total": 70},
        {"hour": f"{H[0]}:00:00+03:00", "item_ID": "BZ235", "state": "Ohio", "total": 50},
    ]


def example_6(place: Place) -> Lab:
    """The effect of r1 is stored, two of its events are logged and sent, a third is still to come."""
    pipeline = Pipeline("one")
    source = Snapshot(sales(A1), sales(A2), sales(A3))
    pipeline.source("OP", source).operator("OP_", Sink())
    lab = Lab(place, pipeline, Settings(read_max=1, backlog_max=2))
    lab.stage.go("OP")  # Until it waits for OP', which is two events behind and has not even begun.
    return lab


def test_example_6_tables_1_to_3_while_a_read_action_is_turned_into_events(place: Place) -> None:
    lab = example_6(place)
    tables = lab.tables()
    table_1 = [(1, "complete", "OP", "Cx", "text of action A")]
    table_2 = [
        (1, "undone", "OP", "Cx", "OP", None, None),
        (1, "undone", "OP", "out", "OP_", "in", None),
        (2, "undone", "OP", "out", "OP_", "in", None),
    ]
    assert rows(tables.read_action) == table_1
    assert rows(tables.event_log) == table_2
    assert rows(tables.event_data, "Event_ID", "Send_Op", "Send_p") == [
        (1, "OP", None),
        (1, "OP", "out"),
        (2, "OP", "out"),
    ]
    (reference,) = (row for row in tables.event_data.to_pylist() if row["Send_p"] is None)
    assert reference["Header"] is None
    assert reference["Body"] == f"{lab.store.log_id}/OP/0/effect/1".encode()
    assert body(tables, "OP", "out", 1) == sales(A1)
    assert body(tables, "OP", "out", 2) == sales(A2)


def test_example_6_goes_on_until_the_stored_effect_is_discarded(place: Place) -> None:
    lab = example_6(place)
    lab.stage.go("OP", "OP_")
    tables = lab.tables()
    assert rows(tables.read_action) == []  # Step 2.d; a read action that is done needs no row.
    assert [row for row in rows(tables.event_data) if row[2] is None] == []
    assert [row for row in rows(tables.event_log) if row[3] == "Cx"] == []


def test_example_6_after_a_crash_the_stored_effect_goes_on_behind_the_last_event(place: Place) -> None:
    lab = example_6(place)
    lab.stage.crash("OP")
    lab.stage.go("OP", "OP_")
    sent = [output.event.rows for output in lab.stage.world.archive[lab.graph.replicas[0]].outputs["out"]]
    assert sent == [sales(A1), sales(A2), sales(A3), []]  # The end mark has no records.
    assert [words for words in lab.stage.trace("OP", 2) if words.startswith(("Read(", "Plan("))] == ["Plan()"]


TABLE_4 = [
    (1, "done", "OP1", "out", "OP3", "in", H[0]),
    (1, "undone", "OP3", "out", "OP4", "in", None),
    (2, "done", "OP1", "out", "OP3", "in", H[0]),
    (2, "done", "OP1", "out", "OP3", "in", H[1]),  # The text prints undone; b2 was generated from it.
    (2, "undone", "OP3", "out", "OP4", "in", None),
    (3, "undone", "OP1", "out", "OP3", "in", H[2]),
]
TABLE_5 = [(1, "OP3", "out", H[0]), (2, "OP3", "out", H[1])]


def test_example_7_tables_4_and_5_after_two_generations(place: Place) -> None:
    tables = example_7(place).tables()
    assert rows(tables.event_log) == TABLE_4
    assert rows(tables.event_lineage) == TABLE_5
    assert rows(tables.event_data, "Event_ID", "Send_Op", "Send_p") == [
        (1, "OP1", "out"),
        (1, "OP3", "out"),
        (2, "OP1", "out"),
        (2, "OP3", "out"),
        (3, "OP1", "out"),
    ]


def test_example_7_a_successor_that_acknowledges_and_is_done_changes_only_its_own_rows(place: Place) -> None:
    lab = example_7(place)
    lab.stage.go("OP3", "OP4")
    tables = lab.tables()
    assert [row for row in rows(tables.event_log) if row[2] == "OP1"] == [row for row in TABLE_4 if row[2] == "OP1"]
    assert {row[1] for row in rows(tables.event_log) if row[2] == "OP3"} <= {"done"}
    assert rows(tables.event_lineage) == TABLE_5


TABLE_6 = [
    (1, "done", "OP1", "out", "OP3", "in", H[0]),
    (1, "undone", "OP3", "out", "OP4", "in", None),
    (2, "done", "OP1", "out", "OP3", "in", H[0]),
    (2, "undone", "OP1", "out", "OP3", "in", H[1]),
    (3, "undone", "OP1", "out", "OP3", "in", None),
]


def example_8(place: Place) -> Lab:
    """a1 and a2 have been processed; a3 is logged by OP1 and under way, and OP3 has not taken it."""
    lab = Lab(place, figure_1(sales(A1), sales(A2), None, None, sales(A3)))
    lab.stage.go("OP1", "OP3")  # Until OP1 waits, since it found nothing for the moment.
    lab.stage.tick("OP1")
    lab.stage.go("OP1")
    return lab


def test_example_8_table_6_and_the_recovery_from_it(place: Place) -> None:
    lab = example_8(place)
    assert rows(lab.tables().event_log) == TABLE_6
    lab.stage.crash("OP3")
    assert rows(lab.tables().event_log) == TABLE_6
    lab.stage.go("OP3", "OP4", "OP1")
    trace = lab.stage.trace("OP3", 2)
    sent = [words.rpartition(", ")[2] for words in trace if words.startswith("Send(")]
    assert sent[0] == "OP3.out/1)"  # b1 is resent; b2 follows when it has been generated.
    assert sorted(set(sent)) == ["OP3.out/1)", "OP3.out/2)"]
    taken = [words for words in lab.stage.trace("OP4") if words.startswith("Fold(")]
    assert taken == ["Fold(OP3.out->OP4.in, OP3.out/1)", "Fold(OP3.out->OP4.in, OP3.out/2)"]
    moves = [words for words in trace if words.startswith(("Pull(", "Refold(", "Fold(", "Ask(", "Generate("))]
    channel = "OP1.out->OP3.in"
    assert moves == [
        f"Pull([[{channel}, 2]])",
        f"Refold({channel}, OP1.out/2, {H[1]!r}, None)",
        "Ask({})",
        f"Fold({channel}, OP1.out/3)",
        "Ask({})",
        f"Generate([{H[1]!r}])",
        "Ask({})",
    ]
    tables = lab.tables()
    assert [row for row in rows(tables.event_log) if row[2] == "OP1"] == [row for row in TABLE_4 if row[2] == "OP1"]
    assert rows(tables.event_lineage) == TABLE_5
    assert body(tables, "OP3", "out", 2) == [  # Records of a2 that belong to hour H were ignored.
        {"hour": f"{H[1]}:00:00+03:00", "item_ID": "BZ234", "state": "Ohio", "total": 3},
        {"hour": f"{H[1]}:00:00+03:00", "item_ID": "KT100", "state": "Oregon", "total": 8},
    ]


def test_example_8_the_recovered_log_is_the_one_without_a_crash(place: Place) -> None:
    lab = example_8(place)
    lab.stage.crash("OP3")
    lab.stage.go("OP3", "OP1")
    tables = lab.tables()
    assert rows(tables.event_log) == TABLE_4
    assert rows(tables.event_lineage) == TABLE_5


def test_section_7_3_lineage_holds_what_was_used_and_nothing_else(place: Place) -> None:
    lab = example_7(place)
    assert lab.lineage("OP3", "out", 1) == {("OP1", "out", 1), ("OP1", "out", 2)}
    assert lab.lineage("OP3", "out", 2) == {("OP1", "out", 2)}  # No record of a3 is used to produce b2.


def test_example_11_attribute_dependencies_narrow_the_lineage_to_records(place: Place) -> None:
    lab = example_7(place)
    tables = lab.tables()
    record = {"hour": f"{H[0]}:00:00+03:00", "item_ID": "BZ234", "state": "Ohio", "total": 1429}
    assert record in body(tables, "OP3", "out", 1)
    narrowed = [
        (event, origin)
        for operator, port, event in sorted(lab.lineage("OP3", "out", 1))
        for origin in body(tables, operator, port, event)
        if all(origin[name] == record[name] for name in ("item_ID", "state"))
    ]
    assert narrowed == [(1, sales(A1)[0]), (2, sales(A2)[0]), (2, sales(A2)[1])]
    # The last one, of 11:05, did not contribute: the dependencies do not speak of the hour. With it they would.
    contributed = [origin["amount"] for _, origin in narrowed if hour_of(origin) == H[0]]
    assert sum(contributed) == record["total"]
