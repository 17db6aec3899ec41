"""Transactions as parts of records: runs of events, marks, borders, and nothing where nothing was decided."""

from __future__ import annotations

from typing import Any

from clew.model.event import BORDER, Event, as_batch
from clew.model.history import Output, Transaction
from clew.model.names import Channel, Replica
from clew.protocol import decisions as did
from clew.protocol.inputs import Choices
from clew.trace.packing import Packer
from clew.trace.records import Names, Part

ME = Replica("sums")
LEFT, RIGHT = (Channel(Replica(name), "out", ME, name) for name in ("left", "right"))
NAMES = Names(ME, (LEFT, RIGHT), ("out", "dead"), ("archive",))
NOW = Choices(1.0, 0)
BATCH = as_batch([{"x": 1}])


def took(channel: Channel, *events: int) -> list[Any]:
    return [did.Took(channel, event, NOW) for event in events]


def made(port: str, *numbers: int) -> list[Output]:
    return [Output(Event(ME, port, number, BATCH), 1.0) for number in numbers]


def mark(port: str, number: int, border: int = 0) -> Output:
    return Output(Event(ME, port, number, None, attributes={BORDER: border} if border else {}), 1.0)


def pack(transaction: Transaction, epoch: int = 0) -> list[Part]:
    return [
        Part(*(tuple(field) if isinstance(field, list) else field for field in part))
        for part in Packer(NAMES).pack(transaction, epoch)
    ]


def test_events_that_follow_each_other_are_one_run() -> None:
    journal = [*took(LEFT, 4, 5), did.Asked(None, NOW), *took(LEFT, 6), *took(RIGHT, 1), *took(LEFT, 7)]
    (part,) = pack(Transaction(journal=journal))
    assert part == Part(0, took=(0, 4, 6, 1, 1, 1, 0, 7, 7))
    assert part.steps == 5


def test_an_order_that_is_wrong_is_told_as_it_was() -> None:
    (part,) = pack(Transaction(journal=took(LEFT, 5, 4, 4, 6)))
    assert part.took == (0, 5, 5, 0, 4, 4, 0, 4, 4, 0, 6, 6)


def test_an_equal_connection_that_is_another_object_is_the_same() -> None:
    twin = Channel(Replica("left"), "out", Replica("sums"), "left")
    (part,) = pack(Transaction(journal=[*took(LEFT, 1), *took(twin, 2)]))
    assert [number for place in part.took[::3] for number in (place,)] == [0, 0]


def test_outputs_are_runs_by_destination_in_their_order() -> None:
    outputs = [*made("archive", 1), *made("out", 1, 2), *made("archive", 2, 3), *made("out", 3)]
    (part,) = pack(Transaction(outputs=outputs, journal=[did.Made((b"k",), NOW)] * 2))
    assert part == Part(0, made=(2, 1, 1, 0, 1, 2, 2, 2, 3, 0, 3, 3), counts={"Made": 2})


def test_end_marks_are_told_apart() -> None:
    journal = [*took(LEFT, 3), did.Ended(LEFT, 4), did.Ended(RIGHT, 1), did.Closed(NOW)]
    outputs = [*made("out", 9), mark("out", 10), mark("dead", 1)]
    (part,) = pack(Transaction(outputs=outputs, journal=journal))
    assert part == Part(0, (0, 3, 3), (0, 9, 9), {"Closed": 1}, ended=(0, 4, 1, 1), closed=(0, 10, 1, 1))


def test_an_event_that_was_given_up_was_taken() -> None:
    (part,) = pack(Transaction(outputs=made("dead", 1), journal=[did.GaveUp("fold", 3, "no", LEFT, 7)]))
    assert part == Part(0, took=(0, 7, 7), made=(1, 1, 1))
    (other,) = pack(Transaction(journal=[did.GaveUp("refold", 3, "no", LEFT, 7, (b"k",))]))
    assert other == Part(0, counts={"GaveUp": 1})


def test_a_border_ends_a_part() -> None:
    journal = [*took(LEFT, 1), did.Held(LEFT, 2, 3), did.Held(RIGHT, 1, 3), did.Bordered(3), *took(LEFT, 3)]
    outputs = [*made("out", 1), mark("out", 2, border=3), mark("dead", 1, border=3), *made("out", 3)]
    first, second = pack(Transaction(outputs=outputs, journal=journal), epoch=3)
    assert first == Part(3, (0, 1, 1), (0, 1, 1), {}, held=(0, 2, 1, 1), is_border=True, borders=(0, 2, 1, 1))
    assert second == Part(4, (0, 3, 3), (0, 3, 3))
    assert (first.steps, second.steps) == (4, 1)


def test_a_border_is_the_last_of_its_commit() -> None:
    (part,) = pack(Transaction(journal=[did.Bordered(1)], outputs=[mark("out", 1, border=1)]), epoch=1)
    assert part == Part(1, is_border=True, borders=(0, 1))


def test_what_decides_nothing_is_nothing() -> None:
    assert pack(Transaction(journal=[did.Asked(None, NOW)], counters={"written:archive": 3})) == []
