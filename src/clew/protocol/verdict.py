"""Verdicts: an input that was attempted as often as it may be, with everything that is known of it.

It is told to the user in an error, or set aside as dead letters: events with the old records, and attributes that say
where they come from and why they are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from clew.model.event import Event
from clew.model.graph import DEAD
from clew.model.history import Recovered, UndonePair
from clew.model.names import Channel, Replica
from clew.model.values import decode
from clew.protocol.caution import FINISH, FIRE, FOLD, GENERATE, PLAN, READ, REFOLD, Attempt, timer_number

CALLS = {
    FOLD: "assign() and update()",
    REFOLD: "update()",
    GENERATE: "generate()",
    FINISH: "finish()",
    FIRE: "on_timer()",
    PLAN: "plan()",
    READ: "read()",
}
_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is given up."""

    attempt: Attempt
    tries: int
    error: str
    """What the replica died of the last time, as far as that is known."""
    pairs: tuple[UndonePair, ...] = ()
    """The pairs concerned, in the order of their assignment."""
    keys: tuple[bytes, ...] = ()
    """The Input Sets concerned."""
    taken: tuple[Channel, int] | None = None
    """The event, if it was not taken yet."""
    timer: tuple[bytes, float] | None = None
    events: dict[tuple[Channel, int], tuple[bytes, ...]] = field(init=False)
    """Each event concerned, once, with the Input Sets concerned that it is in."""

    def __post_init__(self) -> None:
        events: dict[tuple[Channel, int], tuple[bytes, ...]] = {}
        if self.taken is not None:
            events[self.taken] = ()
        for pair in self.pairs:
            place = pair.channel, pair.event
            events[place] = (*events.get(place, ()), pair.key)
        object.__setattr__(self, "events", events)

    @property
    def move(self) -> str:
        """The move that always fails."""
        return self.attempt.move

    @property
    def timer_name(self) -> bytes:
        """The timer, if it is one."""
        assert self.timer is not None
        return self.timer[0]

    @property
    def subject(self) -> tuple[Channel | None, int, tuple[bytes, ...], bytes | None]:
        """The event, the Input Sets and the timer that the history names."""
        is_one = self.move in (FOLD, REFOLD)
        channel, number = next(iter(self.events)) if is_one else (None, 0)
        return channel, number, self.keys, None if self.timer is None else self.timer[0]


def find_verdict(
    attempt: Attempt, tries: int, error: str, recovered: Recovered, channels: Iterable[Channel]
) -> Verdict | None:
    """The verdict about an attempt of an operator; none, if what was attempted is not there any more."""
    move, numbers = attempt.move, attempt.numbers
    if move == FOLD:
        channel = tuple(channels)[int(attempt.place.partition("/")[2])]
        cursor = recovered.cursors.get(channel)
        is_next = numbers[0] == (0 if cursor is None else cursor.assigned) + 1
        return Verdict(attempt, tries, error, taken=(channel, numbers[0])) if is_next else None
    if move == FIRE:
        timers = [timer for timer in recovered.timers.items() if timer_number(*timer) == numbers[0]]
        return Verdict(attempt, tries, error, timer=timers[0]) if timers else None
    if move == REFOLD:
        pairs = tuple(pair for pair in recovered.undone if pair.order == numbers[0])
        return Verdict(attempt, tries, error, pairs, tuple(pair.key for pair in pairs)) if pairs else None
    keys = dict(recovered.open_sets)
    serials = tuple(keys) if move == FINISH else numbers
    wanted = set(serials)
    if not keys.keys() >= wanted:
        return None
    concerned = tuple(pair for pair in recovered.undone if pair.serial in wanted)
    return Verdict(attempt, tries, error, concerned, tuple(keys[serial] for serial in serials))


def message(replica: Replica, verdict: Verdict) -> str:
    """The error that stops the run."""
    events = _listed([f"{channel.sender}.{channel.output}/{number}" for channel, number in verdict.events])
    sets = _listed([repr(decode(key)) for key in verdict.keys])
    match verdict.move:
        case "fold":
            what = f"event {events} on input port {next(iter(verdict.events))[0].input!r}"
        case "refold":
            what = f"event {events} in Input Set {sets}"
        case "fire":
            what = f"timer {decode(verdict.timer_name)!r}"
        case _:
            what = f"Input Sets {sets} with the events {events}" if verdict.keys else "no Input Sets"
    return (
        f"operator {str(replica)!r}: {CALLS[verdict.move]} for {what} did not come to an end in {verdict.tries} "
        f"{'try' if verdict.tries == 1 else 'tries'} in a row; {_cause(verdict.error)}. Look at "
        f"{'the state' if verdict.timer else 'these events'} in the log, fix the operator and run the pipeline again "
        f"on the same log; or declare the operator with dead_letters=True, and such inputs are set aside on its port "
        f"{DEAD!r} while the run goes on."
    )


def source_message(replica: Replica, attempt: Attempt, tries: int, error: str, action: Any) -> str:
    """The error of a source, which has no input to set aside."""
    what = "the next read action" if attempt.move == PLAN else f"read action {attempt.numbers[0]} ({action!r})"
    return (
        f"source {str(replica)!r}: {CALLS[attempt.move]} for {what} did not come to an end in {tries} "
        f"{'try' if tries == 1 else 'tries'} in a row; {_cause(error)}. Look at what the source reads, fix it or the "
        f"source, and run the pipeline again on the same log."
    )


def _cause(error: str) -> str:
    return f"the last error was: {error.rstrip('.')}" if error else "its process died without an error"


def _listed(words: list[str]) -> str:
    more = len(words) - _SHOWN_MAX
    return ", ".join(words[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def event_letter(
    replica: Replica, verdict: Verdict, channel: Channel, event: Event
) -> tuple[pa.RecordBatch, Mapping[str, Any]]:
    """The dead letter of an event: its records, and what became of it."""
    attributes = _about(replica, verdict)
    attributes |= {"input": channel.input, "event": f"{channel.sender}.{channel.output}/{event.id}"}
    if verdict.move != FOLD:
        attributes["input_sets"] = [decode(key) for key in verdict.events[channel, event.id]]
    if event.attributes:
        attributes["attributes"] = dict(event.attributes)
    return event.batch, attributes


def timer_letter(replica: Replica, verdict: Verdict) -> tuple[pa.RecordBatch, Mapping[str, Any]]:
    """The dead letter of a timer: one row that describes it, and what became of it."""
    assert verdict.timer is not None
    name, at = decode(verdict.timer[0]), verdict.timer[1]
    row = {"timer": str(name), "at": at}
    return pa.RecordBatch.from_pylist([row]), {**_about(replica, verdict), "timer": name}


def _about(replica: Replica, verdict: Verdict) -> dict[str, Any]:
    return {"operator": str(replica), "move": verdict.move, "tries": verdict.tries, "error": verdict.error}
