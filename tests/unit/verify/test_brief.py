"""Brief words about inputs, effects and transactions, as traces show them."""

from __future__ import annotations

import pytest

from clew.model.event import Event, as_batch
from clew.model.history import Output, Pair, Recovered, Transaction
from clew.model.names import Channel, Replica
from clew.model.ranges import IdSet
from clew.model.values import encode
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.verify.brief import brief

A, B = Replica("a"), Replica("b")
IN = Channel(A, "out", B, "in")
EVENT = Event(A, "out", 3, as_batch([{"x": 1}]))
CHOICES = was.Choices(0.0, 0)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (does.Send(IN, does.Session(1, 2), EVENT), "Send(a.out->b.in, Session(incarnation=1, number=2), a.out/3)"),
        (does.Fold(IN, EVENT), "Fold(a.out->b.in, a.out/3)"),
        (does.Generate((encode("h"), encode(2))), "Generate(['h', 2])"),
        (does.Generate(tuple(map(encode, range(6)))), "Generate([0, 1, 2, 3, ...])"),
        (does.Ask(frozenset()), "Ask({})"),
        (does.Ask(frozenset({"more", "in"})), "Ask({in, more})"),
        (does.Plan(), "Plan()"),
        (was.Folded(((encode("h"), None),), was.NO_CHANGES, CHOICES), "Folded([['h', None]])"),
        (was.Started(Recovered(2), 0.0, True), "Started(0 undone pairs)"),
        (
            was.Acked(IN, does.Session(1, 1), 3, IdSet(2), 4),
            "Acked(a.out->b.in, Session(incarnation=1, number=1), 3, IdSet(2), 4)",
        ),
        (was.Committed(4), "Committed(4)"),
        (CHOICES, "..."),
        ("x" * 99, "'" + "x" * 56 + "..."),
    ],
)
def test_one_line_about_everything(value: object, words: str) -> None:
    assert brief(value) == words


def test_a_transaction_says_what_it_holds() -> None:
    transaction = Transaction(
        outputs=[Output(EVENT, 0.0)],
        pairs=[Pair(1, IN, 7, 2, None)],
        closed=[2],
        forget_sets=[1],
        counters={"order": 1, "written:db": 4},
    )
    words = "[out/3, in/7 in set 2, set 2 done, set 1 done, written:db=4]"
    assert brief(transaction) == words
    assert brief(does.Commit(9, transaction)) == f"Commit {words}"
