"""A small stage for kernels: channels, events and move results made by hand, and effects told in a few words.

The kernels under test stand alone: whoever writes a test plays the driver, feeds one input and compares what `tell`
says about the effects that came back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from clew.model.connection import Kind
from clew.model.event import BORDER, Event, as_batch
from clew.model.graph import Capture, Node
from clew.model.history import Cursor, Output, ReadAction, Recovered, Transaction, UndonePair
from clew.model.names import Channel, Replica
from clew.model.operator import Operator
from clew.model.ranges import IdSet
from clew.model.source import Source
from clew.model.values import decode, encode
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.effects import Effect, Session
from clew.protocol.logio import OperatorKernel
from clew.protocol.settings import Settings
from clew.protocol.source import SourceKernel
from clew.testing import Outside

OP, UP, SIDE, DOWN, OTHER = Replica("op"), Replica("up"), Replica("side"), Replica("down"), Replica("other")
IN = Channel(UP, "out", OP, "in")
MORE = Channel(SIDE, "out", OP, "more")
OUT = Channel(OP, "out", DOWN, "in")
ALSO = Channel(OP, "out", OTHER, "in")

CHOICES = was.Choices(0.0, 0)
FIRST = Session(1, 1)
"""The session that a receiver's first incarnation begins with."""


# Events and transactions


def event(number: int, channel: Channel = IN) -> Event:
    """The event of this id on a channel; its record says so."""
    return Event(channel.sender, channel.output, number, as_batch([{"x": number}]))


def end(number: int, channel: Channel = IN) -> Event:
    """The end mark of a channel."""
    return Event(channel.sender, channel.output, number, None)


def output(number: int, port: str = "out", requires: tuple[tuple[str, int], ...] = ()) -> Output:
    """A committed output of `op`."""
    return Output(Event(OP, port, number, as_batch([{"x": number}])), 0.0, requires)


def undone(
    order: int, number: int, key: Any, serial: int = 1, *, channel: Channel = IN, note: Any = None
) -> UndonePair:
    """An undone pair as recovery finds it."""
    return UndonePair(order, channel, number, serial, encode(key), None if note is None else encode(note))


def recovered(incarnation: int = 1, **found: Any) -> Recovered:
    """What a log holds; empty unless told otherwise."""
    return Recovered(incarnation, **found)


def cursor(assigned: int, released: int = 0, above: Iterable[int] = (), *, ended: bool = False) -> Cursor:
    return Cursor(assigned, IdSet(released, above), ended)


# Kernels


class Told(Operator):
    """Its moves are never run: tests feed their results."""

    inputs: tuple[str, ...] = ("in",)

    def assign(self, event: Any, ctx: Any) -> Any:
        raise AssertionError

    update = generate = assign


class Spoken(Source):
    """Its moves are never run: tests feed their results."""

    poll_s = 5.0

    def read(self, action: Any, offset: Any) -> Any:
        raise AssertionError


class Once(Spoken):
    is_replayable = False


def node(
    *,
    inputs: tuple[str, ...] = ("in",),
    outputs: tuple[str, ...] = ("out",),
    writes: Mapping[str, Kind] | None = None,
    writes_first: bool = False,
    capture: Capture | None = None,
    dead_letters: bool = False,
) -> Node:
    connections = {name: Outside(name).writer(kind) for name, kind in (writes or {}).items()}
    made = Node("op", Told(), inputs, outputs, connections, {}, writes_first, capture or Capture())
    return (
        replace(made, outputs=(*outputs, "dead"), dead_letters=True, keeps=frozenset(("dead",)))
        if dead_letters
        else made
    )


def operator(
    *,
    inbound: Iterable[Channel] = (IN,),
    outbound: Iterable[Channel] = (OUT,),
    settings: Settings | None = None,
    kernel: type[OperatorKernel] = OperatorKernel,
    **parts: Any,
) -> OperatorKernel:
    """The kernel of a middle operator; not started."""
    inbound = tuple(inbound)
    described = node(inputs=tuple(channel.input for channel in inbound), **parts)
    return kernel(described, OP, inbound, tuple(outbound), settings or Settings())


def source(
    definition: Source | None = None,
    *,
    outbound: Iterable[Channel] = (OUT,),
    settings: Settings | None = None,
    kernel: type[SourceKernel] = SourceKernel,
) -> SourceKernel:
    """The kernel of a source; not started."""
    described = Node("op", definition or Spoken(), (), ("out",))
    return kernel(described, OP, tuple(outbound), settings or Settings())


def start(
    kernel: OperatorKernel | SourceKernel, incarnation: int = 1, *, now: float = 0.0, dead: bool = True, **found: Any
) -> list[str]:
    """Starts a kernel on what its log holds."""
    return feed(kernel, was.Started(recovered(incarnation, **found), now, dead))


def start_cautiously(kernel: OperatorKernel | SourceKernel, error: str = "", **found: Any) -> list[str]:
    """Starts a kernel whose predecessor died, perhaps with an error."""
    return feed(kernel, was.Started(recovered(2, **found), 0.0, True, True, error))


def feed(kernel: OperatorKernel | SourceKernel, *inputs: was.Input) -> list[str]:
    """Feeds inputs and tells all effects; the kernel's own check runs after each."""
    told: list[str] = []
    for given in inputs:
        effects = kernel.step(given)
        kernel.check()
        told += [tell(effect) for effect in effects]
    return told


def step(kernel: OperatorKernel | SourceKernel, given: was.Input) -> list[Effect]:
    """Feeds one input and gives the effects themselves."""
    effects = kernel.step(given)
    kernel.check()
    return effects


def commit_in(effects: Iterable[Effect]) -> Transaction:
    """The transaction of the one commit among the effects."""
    (found,) = (effect.transaction for effect in effects if isinstance(effect, does.Commit))
    return found


# Results of moves


def received(number: int, channel: Channel = IN, session: Session = FIRST) -> was.Received:
    return was.Received(channel, session, event(number, channel))


def received_end(number: int, channel: Channel = IN, session: Session = FIRST) -> was.Received:
    return was.Received(channel, session, end(number, channel))


def received_border(epoch: int, number: int, channel: Channel = IN, session: Session = FIRST) -> was.Received:
    border = Event(channel.sender, channel.output, number, None, attributes={BORDER: epoch})
    return was.Received(channel, session, border)


def folded(*keys: Any, note: Any = None, **changes: Any) -> was.Folded:
    """An event was assigned to these keys."""
    noted = None if note is None else encode(note)
    return was.Folded(tuple((encode(key), noted) for key in keys), changed(**changes), CHOICES)


def answered(*keys: Any) -> was.Answered:
    """`ready` gave this group, or none."""
    return was.Answered(tuple(encode(key) for key in keys) or None, CHOICES)


def generated(*destinations: str, uses: tuple[Any, ...] | None = None, reads: int = 0, **changes: Any) -> was.Generated:
    """A generation with one record for each destination."""
    keys = None if uses is None else tuple(encode(key) for key in uses)
    emissions = tuple(
        was.Emission(name, as_batch([{"made": place}]), keys) for place, name in enumerate(destinations, start=1)
    )
    effects = tuple(was.SideRead("lookup", encode(number), as_batch([{"read": number}])) for number in range(reads))
    return was.Generated(emissions, effects, changed(**changes), CHOICES)


def fired(**changes: Any) -> was.Fired:
    return was.Fired(changed(**changes), CHOICES)


def planned(action: Any, **changes: Any) -> was.Planned:
    return was.Planned(None if action is None else encode(action), changed(**changes), CHOICES)


def got(*numbers: int, complete: bool = False, execution: int = 1, now: float = 0.0) -> was.Got:
    """A source read the batches of these numbers, each with its number as offset."""
    items = tuple(was.Item(as_batch([{"x": number}]), encode(number)) for number in numbers)
    return was.Got(items, complete, execution, now)


def changed(state: Mapping[Any, Any] | None = None, timers: Mapping[Any, float | None] | None = None) -> was.Changes:
    return was.Changes(
        {encode(key): None if value is None else encode(value) for key, value in (state or {}).items()},
        {encode(name): at for name, at in (timers or {}).items()},
    )


def acked(
    assigned: int, released: int = 0, channel: Channel = OUT, session: Session = FIRST, *, pressure: int = 0
) -> was.Acked:
    return was.Acked(channel, session, assigned, IdSet(released), pressure)


def connected(assigned: int, channel: Channel = OUT, session: Session = FIRST) -> was.Connected:
    return was.Connected(channel, session, assigned)


# Telling effects


def tell(effect: Effect) -> str:
    """One effect in a few words, all that matters in them."""
    match effect:
        case does.Commit():
            return f"commit {effect.number}"
        case does.Hello():
            return f"hello {effect.channel.receiver} as {effect.incarnation}"
        case does.Connect():
            return f"connect {effect.channel.sender} {_session(effect.session)} after {effect.assigned}"
        case does.Send():
            event = effect.event
            ending = " end" if event.is_end else f" border {event.border}" if event.border else ""
            return f"send {effect.channel.receiver} {effect.event.id}{ending} {_session(effect.session)}"
        case does.Ack():
            return f"ack {effect.channel.sender} {effect.assigned} {effect.released}"
        case does.Fetch():
            return f"fetch {effect.port} {effect.first} x{effect.limit}"
        case does.FetchEffect():
            return f"fetch effect {effect.action} from {effect.first} x{effect.limit}"
        case does.Pull():
            return "pull " + " ".join(f"{channel.sender}/{number}" for channel, number in effect.events)
        case does.Survey():
            return "survey"
        case does.Write() | does.Check():
            return f"{type(effect).__name__.lower()} {effect.connection} {effect.number}"
        case does.Snapshot():
            return f"snapshot {effect.epoch}{' final' if effect.is_final else ''}"
        case does.Alarm():
            return f"alarm {effect.at}"
        case does.Complete():
            return "complete"
        case does.Fail():
            return f"fail {effect.message}"
        case does.Fold():
            return f"fold {effect.channel.sender}/{effect.event.id}"
        case does.Refold():
            note = "" if effect.note is None else f" {decode(effect.note)!r}"
            return f"refold {effect.channel.sender}/{effect.event.id} in {decode(effect.key)!r}{note}"
        case does.Ask():
            return "ask" + "".join(f" {port} ended" for port in sorted(effect.ended))
        case does.Generate() | does.Finish():
            return " ".join([type(effect).__name__.lower(), *(repr(decode(key)) for key in effect.keys)])
        case does.Fire():
            return f"fire {decode(effect.name)!r}"
        case does.Plan():
            return "plan"
        case does.Read():
            offset = "start" if effect.offset is None else decode(effect.offset)
            return f"read {effect.action} {decode(effect.description)!r} from {offset} x{effect.limit}"
    raise AssertionError(effect)


def tells(effects: Iterable[Effect]) -> list[str]:
    return [tell(effect) for effect in effects]


def _session(session: Session) -> str:
    return f"in {session.incarnation}.{session.number}"


def read_action(number: int, **changes: Any) -> ReadAction:
    """A row of a read action that is under way."""
    return ReadAction(number, "in", encode("all"), False, False, None, False)._replace(**changes)
