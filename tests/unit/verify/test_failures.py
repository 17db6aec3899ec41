"""Failing moves: what failed must be given up, what was given up must have failed, and nothing fails for ever."""

from __future__ import annotations

import pytest

from clew.errors import Violation
from clew.model.event import Event, as_batch
from clew.model.history import Transaction
from clew.model.names import Channel, Replica
from clew.model.values import encode
from clew.protocol import decisions as did
from clew.protocol import effects as does
from clew.verify.archive import Archive, Shelf
from clew.verify.failures import Failures

OP = Replica("op")
IN = Channel(Replica("up"), "out", OP, "in")
EVENT = Event(IN.sender, "out", 7, as_batch([{"x": 7}]))
A, B = encode("a"), encode("b")


def archive(*decisions: did.GaveUp) -> Archive:
    shelf = Shelf()
    shelf.add(Transaction(journal=list(decisions)))
    return {OP: shelf}


@pytest.mark.parametrize(
    ("move", "decision", "other"),
    [
        (does.Fold(IN, EVENT), did.GaveUp("fold", 3, "", IN, 7), did.GaveUp("fold", 3, "", IN, 8)),
        (
            does.Refold(IN, EVENT, A, None),
            did.GaveUp("refold", 3, "", IN, 7, (A,)),
            did.GaveUp("refold", 3, "", IN, 7, (B,)),
        ),
        (
            does.Generate((A, B)),
            did.GaveUp("generate", 3, "", keys=(B, A)),
            did.GaveUp("generate", 3, "", keys=(A,)),
        ),
        (does.Fire(A), did.GaveUp("fire", 3, "", timer=A), did.GaveUp("fire", 3, "", timer=B)),
        (does.Finish((A,)), did.GaveUp("finish", 3, "", keys=(A,)), did.GaveUp("fold", 3, "", IN, 1)),
    ],
)
def test_what_was_given_up_must_have_failed(move: does.Move, decision: did.GaveUp, other: did.GaveUp) -> None:
    failures = Failures(3)
    failures.add(OP, move, "no")
    failures.judge(archive(decision))
    with pytest.raises(Violation, match=r"op: GaveUp.* was decided, but that move never failed"):
        failures.judge(archive(decision, other))


def test_what_failed_and_was_not_given_up_is_told() -> None:
    failures = Failures(3)
    failures.judge(archive())
    failures.add(OP, does.Fold(IN, EVENT), "assign() raised")
    with pytest.raises(Violation, match=r"^assign\(\) raised; when it was tried again, it did not fail$"):
        failures.judge(archive())


def test_what_nobody_can_be_blamed_for_may_fail_as_often_as_an_input_may() -> None:
    failures = Failures(3)
    for _ in range(3):
        failures.add(OP, does.Ask(frozenset()), "ready() raised")
    with pytest.raises(Violation, match=r"^ready\(\) raised$"):
        failures.add(OP, does.Ask(frozenset()), "ready() raised")


def test_what_is_never_given_up_does_not_go_on_for_ever() -> None:
    failures = Failures(3)
    for _ in range(103):
        failures.add(OP, does.Fire(A), "on_timer() raised")
    with pytest.raises(Violation):
        failures.add(OP, does.Fire(A), "on_timer() raised")
