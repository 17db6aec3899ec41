"""A trace by hand: `feed` sends to `sums`, which writes to an outside system; and ways to say what they did."""

from __future__ import annotations

from typing import Any

from clew.model.names import Channel, Replica
from clew.trace.life import Life
from clew.trace.reader import Trace
from clew.trace.records import LOG, SNAPSHOT, Completed, End, Head, Names, Part, Steps, Stored, Wrote

FEED, SUMS = Replica("feed"), Replica("sums")
NAMES = {
    FEED: Names(FEED, (), ("out",), ()),
    SUMS: Names(SUMS, (Channel(FEED, "out", SUMS, "in"),), (), ("archive",)),
}


def head(replica: Replica, incarnation: int, time: float, mode: str = LOG, **fields: Any) -> Head:
    """A start; from the beginning unless fields say otherwise."""
    is_sums = replica == SUMS
    first = Head(
        NAMES[replica],
        mode,
        incarnation,
        0,
        int(mode == SNAPSHOT),
        0,
        (0,) if is_sums else (),
        (0,) if is_sums else (),
        (0,),
        () if is_sums else (0,),
        (0,) if is_sums else (),
        0,
        False,
        100 * incarnation + is_sums,
        time,
        True,
    )
    return first._replace(**fields)


def fed(time: float, number: int, first: int, last: int, epoch: int = 0, marks: int = 0, **fields: Any) -> Steps:
    """The source emits events; its position is the last number, less the borders among them."""
    part = Part(epoch, made=(0, first, last), counts={"Emitted": last - first + 1})._replace(**fields)
    return Steps(time, number, last - marks, (), (part,))


def summed(time: float, number: int, first: int, last: int, wrote: tuple[int, ...] = (), epoch: int = 0) -> Steps:
    """The sink takes events and makes a write action of each."""
    part = Part(epoch, took=(0, first, last), made=(0, first, last), counts={"Made": last - first + 1})
    return Steps(time, number, 2 * last, tuple(each for action in wrote for each in (0, action)), (part,))


def log_trace() -> Trace:
    """Three events; `sums` dies in its second commit, which was not applied, and takes its event again."""
    feed = Life(
        head(FEED, 1, 1.0),
        [
            fed(2.0, 1, 1, 2),
            fed(3.0, 2, 3, 3),
            Steps(4.0, 3, 4, (), (Part(0, counts={"Began": 1}, closed=(0, 4)),)),
            End(20.0, True),
        ],
    )
    first = Life(head(SUMS, 1, 1.1), [summed(2.5, 1, 1, 1), summed(3.5, 2, 2, 3, wrote=(1,))])
    second = Life(
        head(SUMS, 2, 5.0, position=2, taken=(1,), made=(1,), undone=1),
        [
            summed(6.0, 1, 2, 2, wrote=(1,)),
            summed(7.0, 2, 3, 3, wrote=(2,)),
            Steps(8.0, 3, 8, (0, 3), (Part(0, ended=(0, 4), counts={"Closed": 1}),)),
            End(20.0, True),
        ],
    )
    return Trace(LOG, {FEED: [feed], SUMS: [first, second]})


def snapshot_trace() -> Trace:
    """Epoch 1 is complete with two events; what followed is lost, done again in generation 2, and ends in epoch 2."""
    border = fed(2.2, 2, 3, 3, 1, 0, made=(), counts={}, is_border=True, borders=(0, 3))
    held = Steps(3.2, 2, 6, (), (Part(1, held=(0, 3), is_border=True),))
    feed = [
        Life(
            head(FEED, 1, 1.0, SNAPSHOT),
            [fed(2.0, 1, 1, 2, 1), border, Stored(2.3, 1, False), fed(2.4, 3, 4, 5, 2), Completed(3.5, 1)],
        ),
        Life(
            head(FEED, 2, 5.0, SNAPSHOT, recovered=1, epoch=2, position=3, made=(3,)),
            [
                fed(5.5, 1, 4, 4, 2),
                Steps(5.6, 2, 5, (), (Part(2, counts={"Began": 1}, closed=(0, 5)),)),
                Stored(5.7, 2, True),
                Completed(7.5, 2),
                End(9.0, True),
            ],
        ),
    ]
    sums = [
        Life(
            head(SUMS, 1, 1.1, SNAPSHOT),
            [
                summed(3.0, 1, 1, 2, epoch=1),
                held,
                Stored(3.3, 1, False),
                Completed(3.6, 1),
                Steps(3.8, 3, 8, (0, 1), (Part(2, took=(0, 4, 4), made=(0, 3, 3), counts={"Made": 1}),)),
            ],
        ),
        Life(
            head(SUMS, 2, 5.1, SNAPSHOT, recovered=1, epoch=2, position=6, taken=(3,), made=(2,)),
            [
                Steps(6.0, 1, 8, (0, 1), (Part(2, took=(0, 4, 4), made=(0, 3, 3), counts={"Made": 1}),)),
                Steps(6.5, 2, 10, (0, 2), (Part(2, ended=(0, 5), counts={"Closed": 1}),)),
                Stored(7.0, 2, True),
                Completed(7.6, 2),
                Wrote(8.0, (0, 3)),
                End(9.0, True),
            ],
        ),
    ]
    return Trace(SNAPSHOT, {FEED: feed, SUMS: sums})
