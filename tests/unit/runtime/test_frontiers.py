"""The frontiers of a run: who is told what and when; announcements that are joined, lost, or of the dead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import clew
from clew.errors import MoveError
from clew.model.graph import Graph, Node
from clew.model.names import Channel, Replica
from clew.progress.topology import Topology
from clew.protocol import effects as does
from clew.protocol import inputs as was
from clew.protocol.frontiers import Frontiers, frontiers_of
from clew.protocol.settings import DEFAULT
from clew.runtime import control
from clew.runtime.announcing import ANNOUNCE_EVERY_S, Announcing
from clew.runtime.coordinator import Coordinator
from clew.runtime.frames import HEADER, FrameReader
from clew.runtime.groups import Group
from clew.runtime.host import Host
from clew.runtime.spec import HostSpec, LogPlace, Timing
from clew.times import IDENTITY, Integers, Order, Product

NUMBERS = Integers()


class Numbers(clew.Source):
    """Somewhere that events come from."""


def fan_in(order: Order = NUMBERS, other: Order = NUMBERS) -> tuple[Graph, Topology]:
    """Sources `a` and `b`, both read by `m`, whose outputs `s` reads; a clock `c` has no times."""
    nodes = [
        Node("a", Numbers(), (), ("out",), order=order),
        Node("b", Numbers(), (), ("out",), order=other),
        Node("c", Numbers(), (), ("out",)),
        Node(
            "m", clew.Operator(), ("left", "right"), ("out",), order=order, input_orders={"left": order, "right": other}
        ),
        Node("s", clew.Operator(), ("in", "tick"), (), input_orders={"in": order}),
    ]
    channels = (
        Channel(Replica("a"), "out", Replica("m"), "left"),
        Channel(Replica("b"), "out", Replica("m"), "right"),
        Channel(Replica("m"), "out", Replica("s"), "in"),
        Channel(Replica("c"), "out", Replica("s"), "tick"),
    )
    orders = {"a": order, "m.left": order, "m": order, "s.in": order, "b": other, "m.right": other}
    edges: list[Any] = [("a", "m.left", IDENTITY), ("m.left", "m", IDENTITY), ("m", "s.in", IDENTITY)]
    edges.append(("b", "m.right", IDENTITY))
    if order == other:
        edges.append(("m.right", "m", IDENTITY))
    return Graph("fan", {node.name: node for node in nodes}, channels), Topology(orders, edges)


class Stage:
    """Frontiers, and replicas that say what a test wants them to; every announcement goes over the wire."""

    def __init__(self, *orders: Order) -> None:
        self.frontiers = Frontiers(*fan_in(*orders))
        self.numbers = dict.fromkeys("abms", (1, 0))

    def says(self, member: str, counts: Mapping[tuple[str, Any], int], is_idle: bool = False) -> does.Announce:
        """The member's next commit."""
        incarnation, commit = self.numbers[member]
        self.numbers[member] = (incarnation, commit + 1)
        return does.Announce(self.numbers[member], counts, is_idle=is_idle)

    def whole(self, member: str, counts: Mapping[tuple[str, Any], int], **passed: tuple[Any, ...]) -> does.Announce:
        seen = {location.replace("_", "."): times for location, times in passed.items()}
        return does.Announce(self.numbers[member], counts, is_whole=True, passed=seen)

    def hear(self, member: str, announcement: does.Announce) -> None:
        for name, heard in control.read_progress(read(control.progress({member: announcement}))):
            self.frontiers.announced(name, heard)

    def told(self) -> dict[str, was.Advanced]:
        """What is told to whom, over the wire."""
        if not self.frontiers.is_new:
            return {}
        told = self.frontiers.advance()
        assert not self.frontiers.is_new
        return dict(control.read_advanced(read(control.advanced(told))))

    def begin(self, a: Any = 0, b: Any = 0) -> dict[str, was.Advanced]:
        """All join; the sources hold these times."""
        self.hear("s", self.whole("s", {}))
        self.hear("m", self.whole("m", {}))
        self.hear("a", self.whole("a", {("a", a): 1}))
        self.hear("b", self.whole("b", {("b", b): 1}))
        return self.told()

    def moves(self, source: str, old: Any, new: Any, is_idle: bool = False) -> dict[str, was.Advanced]:
        """A source holds another time."""
        self.hear(source, self.says(source, {(source, old): -1, (source, new): 1}, is_idle))
        return self.told()


def read(data: bytes) -> dict[str, Any]:
    reader = FrameReader()
    reader.fed(data)
    ((kind, payload),) = reader.frames()
    return control.read_message(kind, payload)


@pytest.fixture
def stage() -> Stage:
    return Stage()


# Whom it concerns


def test_nobody_is_told_anything_before_all_have_joined(stage: Stage) -> None:
    for name, counts in (("a", {("a", 0): 1}), ("m", {}), ("s", {})):
        stage.hear(name, stage.whole(name, counts))
        assert stage.told() == {}
    stage.hear("b", stage.whole("b", {("b", 3): 1}))
    assert stage.told() == {
        "a": was.Advanced({"m.left": (0,)}),
        "b": was.Advanced({"m.right": (3,)}),
        "m": was.Advanced({"m.left": (0,), "m.right": (3,), "s.in": (0,)}),
        "s": was.Advanced({"s.in": (0,)}),
    }


def test_each_is_told_what_changed_at_its_own_ports_and_at_those_of_its_receivers(stage: Stage) -> None:
    stage.begin(a=0, b=3)
    assert stage.moves("a", 0, 2) == {
        "a": was.Advanced({"m.left": (2,)}),
        "m": was.Advanced({"m.left": (2,), "s.in": (2,)}),
        "s": was.Advanced({"s.in": (2,)}),
    }
    assert stage.moves("a", 2, 7) == {  # Now b holds the sink back.
        "a": was.Advanced({"m.left": (7,)}),
        "m": was.Advanced({"m.left": (7,), "s.in": (3,)}),
        "s": was.Advanced({"s.in": (3,)}),
    }
    stage.hear("b", stage.says("b", {("b", 3): 1}))
    assert stage.told() == {}
    assert stage.frontiers.shown() == {"m.left": ["7"], "m.right": ["3"], "s.in": ["3"]}


def test_an_event_on_its_way_holds_its_time_until_it_was_taken(stage: Stage) -> None:
    stage.begin(a=0, b=9)
    stage.hear("a", stage.says("a", {("a", 0): -1, ("a", 5): 1, ("m.left", 0): 1}))
    assert stage.told() == {}
    stage.hear("m", stage.says("m", {("m.left", 0): -1, ("m", 4): 1}))
    assert stage.told()["s"] == was.Advanced({"s.in": (4,)})
    stage.hear("m", stage.says("m", {("m", 4): -1}))
    assert stage.told()["s"] == was.Advanced({"s.in": (5,)})


def test_times_keep_their_form_over_the_wire() -> None:
    stage = Stage(Product(NUMBERS, NUMBERS), Product(NUMBERS, NUMBERS))
    stage.begin((0, 1), (1, 0))
    assert set(stage.frontiers.current["s.in"]) == {(0, 1), (1, 0)}
    assert set(stage.moves("a", (0, 1), (2, 1))["s"].frontiers["s.in"]) == {(1, 0)}


# Pace


def test_what_was_announced_by_then_is_told_together(stage: Stage) -> None:
    stage.begin()
    stage.hear("a", stage.says("a", {("a", 0): -1, ("a", 1): 1}))
    assert stage.frontiers.is_new
    stage.frontiers.advance()
    assert not stage.frontiers.is_new
    stage.hear("a", stage.says("a", {("a", 1): -1, ("a", 2): 1}))
    stage.hear("a", stage.says("a", {("a", 2): -1, ("a", 3): 1}))
    assert stage.told()["a"] == was.Advanced({"m.left": (3,)})


class Clock:
    """Time that goes on when a test says so, and calls back."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def later(self, seconds: float, job: Callable[[], None]) -> None:
        self.calls.append((self.now + seconds, job))

    def __call__(self) -> float:
        return self.now

    def run(self, until: float) -> None:
        while self.calls and self.calls[0][0] <= until:
            self.now, job = self.calls.pop(0)
            job()
        self.now = until


def test_a_host_tells_the_first_at_once_and_then_all_that_came_meanwhile() -> None:
    clock, told = Clock(), list[Mapping[str, does.Announce]]()

    def tell(announcements: Mapping[str, does.Announce]) -> bool:
        told.append(announcements)
        return True

    announcing, stage = Announcing(tell, clock.later, clock), Stage()
    for number in range(5000):  # One every 0.1 ms.
        clock.run(number / 10000)
        announcing.announce("a", stage.says("a", {("a", number): -1, ("a", number + 1): 1, ("m.left", number): 1}))
    clock.run(1.0)
    assert told[0]["a"].counts == {("a", 0): -1, ("a", 1): 1, ("m.left", 0): 1}
    assert len(told) <= 0.5 / ANNOUNCE_EVERY_S + 2
    assert told[-1]["a"].number == (1, 5000)
    held = [where for each in told for where in each["a"].counts if where[0] == "a"]
    assert len(held) == 2 * len(told)  # What came and went meanwhile is not told.
    total = sum(count for each in told for where, count in each["a"].counts.items() if where[0] == "m.left")
    assert total == 5000


def test_a_host_waits_when_the_way_to_the_coordinator_is_full() -> None:
    clock, told, is_free = Clock(), list[Mapping[str, does.Announce]](), [False]

    def tell(announcements: Mapping[str, does.Announce]) -> bool:
        if is_free[0]:
            told.append(announcements)
        return is_free[0]

    announcing, stage = Announcing(tell, clock.later, clock), Stage()
    announcing.announce("a", stage.says("a", {("a", 0): 1}))
    announcing.announce("b", stage.says("b", {("b", 0): 1}))
    clock.run(0.5)
    assert told == []
    is_free[0] = True
    clock.run(0.6)
    assert [sorted(each) for each in told] == [["a", "b"]]
    assert clock.calls == []


# Joining announcements


def test_changes_onto_a_whole_one_stay_whole_and_a_whole_one_replaces_what_was_before() -> None:
    clock, told, stage = Clock(), list[Mapping[str, does.Announce]](), Stage()

    def tell(announcements: Mapping[str, does.Announce]) -> bool:
        told.append(announcements)
        return True

    announcing = Announcing(tell, clock.later, clock)
    announcing.announce("m", stage.says("m", {}))  # At once; the rest waits.
    announcing.announce("m", stage.says("m", {("s.in", 99): 1}))
    stage.numbers["m"] = (2, 0)
    announcing.announce("m", stage.whole("m", {("m", 4): 1, ("m.left", 3): -1}, s_in=(2,)))
    announcing.announce("m", stage.says("m", {("m", 4): -1, ("s.in", 4): 1}, is_idle=True))
    clock.run(1.0)
    assert told[1:] == [
        {
            "m": does.Announce(
                (2, 1), {("m.left", 3): -1, ("s.in", 4): 1}, is_whole=True, passed={"s.in": (2,)}, is_idle=True
            )
        }
    ]


# Deaths


def test_who_joins_again_is_told_all_that_it_cares_about_and_the_others_nothing(stage: Stage) -> None:
    stage.begin(a=4, b=3)
    stage.numbers["m"] = (2, 0)
    stage.hear("m", stage.whole("m", {}, s_in=(3,)))
    assert stage.told() == {"m": was.Advanced({"m.left": (4,), "m.right": (3,), "s.in": (3,)})}


def test_what_was_announced_by_an_earlier_incarnation_is_ignored(stage: Stage) -> None:
    stage.begin(a=4, b=3)
    late = stage.says("b", {("b", 3): -1, ("b", 100): 1})
    stage.numbers["b"] = (2, 0)
    stage.hear("b", stage.whole("b", {("b", 3): 1}))
    stage.told()
    stage.hear("b", late)
    stage.hear("b", does.Announce((1, 7), {}, is_whole=True))
    assert stage.told() == {}
    assert stage.frontiers.shown()["s.in"] == ["3"]


def test_changes_of_what_was_never_said_are_refused(stage: Stage) -> None:
    stage.begin()
    stage.numbers["a"] = (2, 0)
    with pytest.raises(MoveError, match=r"a announces changes as \(2, 1\), and has not said what they are changes of"):
        stage.hear("a", stage.says("a", {("a", 0): -1}))
    with pytest.raises(MoveError, match="a announces something of 'nowhere', which is no location of the pipeline"):
        stage.hear("a", does.Announce((3, 0), {}, is_whole=True, passed={"nowhere": (1,)}))


def test_lost_announcements_hold_times_back_until_their_replica_joins_again(stage: Stage) -> None:
    """`a` sends an event at 0 and moves on, `m` takes it; but the process of `a` dies before it could announce that."""
    stage.begin(a=0, b=9)
    stage.says("a", {("a", 0): -1, ("a", 5): 1, ("m.left", 0): 1})
    stage.hear("m", stage.says("m", {("m.left", 0): -1, ("m", 0): 1}))
    assert stage.told() == {}
    stage.hear("m", stage.says("m", {("m", 0): -1, ("s.in", 0): 1}))
    stage.hear("s", stage.says("s", {("s.in", 0): -1}))
    assert stage.told() == {}
    assert stage.frontiers.shown()["s.in"] == ["0"]
    stage.numbers["a"] = (2, 0)
    stage.hear("a", stage.whole("a", {("a", 5): 1, ("m.left", 0): 1}))
    assert stage.told()["s"] == was.Advanced({"s.in": (5,)})


# Idle and finished sources


def test_an_idle_source_is_told_what_the_others_hold(stage: Stage) -> None:
    stage.begin(a=4, b=3)
    stage.hear("b", stage.says("b", {}, is_idle=True))
    assert stage.told() == {"b": was.Advanced({}, others=(4,))}
    told = stage.moves("a", 4, 6)
    assert told["b"] == was.Advanced({}, others=(6,))
    assert told["m"] == was.Advanced({"m.left": (6,)})
    told = stage.moves("b", 3, 6, is_idle=True)  # It follows, and so does everything behind it.
    assert told["b"] == was.Advanced({"m.right": (6,)}, others=(6,))
    assert told["s"] == was.Advanced({"s.in": (6,)})


def test_a_source_that_is_not_idle_any_more_is_told_nothing_of_the_others(stage: Stage) -> None:
    stage.begin(a=4, b=3)
    stage.hear("b", stage.says("b", {}, is_idle=True))
    stage.told()
    stage.hear("b", stage.says("b", {("m.right", 3): 1}))
    assert stage.told() == {}
    assert "b" not in stage.moves("a", 4, 6)
    stage.hear("b", stage.says("b", {}, is_idle=True))
    assert stage.told() == {"b": was.Advanced({}, others=(6,))}


def test_when_all_sources_are_idle_they_are_told_the_furthest_and_no_more(stage: Stage) -> None:
    stage.begin(a=4, b=3)
    stage.hear("b", stage.says("b", {}, is_idle=True))
    stage.hear("a", stage.says("a", {}, is_idle=True))
    assert stage.told() == {"a": was.Advanced({}, others=(3,)), "b": was.Advanced({}, others=(4,))}
    assert stage.moves("b", 3, 4, is_idle=True)["a"] == was.Advanced({}, others=(4,))
    assert stage.frontiers.shown()["s.in"] == ["4"]


def test_a_finished_source_holds_nothing(stage: Stage) -> None:
    stage.begin(a=4, b=3)
    stage.hear("b", stage.says("b", {}, is_idle=True))
    stage.told()
    stage.hear("a", stage.says("a", {("a", 4): -1}))
    told = stage.told()
    assert told["b"] == was.Advanced({}, others=None)
    assert told["m"] == was.Advanced({"m.left": ()})
    stage.hear("b", stage.says("b", {("b", 3): -1}))
    assert stage.told()["s"] == was.Advanced({"s.in": ()})
    assert stage.frontiers.shown() == {"m.left": [], "m.right": [], "s.in": []}


def test_an_idle_source_waits_for_those_that_were_never_heard(stage: Stage) -> None:
    stage.hear("a", stage.whole("a", {("a", 4): 1}))
    stage.hear("a", stage.says("a", {}, is_idle=True))
    assert stage.told() == {}


def test_an_idle_source_that_joins_again_is_not_idle_until_it_says_so(stage: Stage) -> None:
    stage.begin(a=4, b=3)
    stage.hear("b", stage.says("b", {}, is_idle=True))
    stage.told()
    stage.numbers["b"] = (2, 0)
    stage.hear("b", stage.whole("b", {("b", 3): 1}))
    assert stage.told() == {"b": was.Advanced({"m.right": (3,)})}
    stage.hear("b", stage.says("b", {}, is_idle=True))
    assert stage.told() == {"b": was.Advanced({}, others=(4,))}


def test_an_idle_source_does_not_follow_times_of_another_order() -> None:
    stage = Stage(NUMBERS, Product(NUMBERS, NUMBERS))
    stage.begin(a=4, b=(0, 3))
    stage.hear("a", stage.says("a", {}, is_idle=True))
    assert stage.told() == {}


# Through the coordinator and a host


class Line:
    """A link that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, data: bytes) -> None:
        self.sent.append(read(data))


def test_the_coordinator_tells_each_group_what_concerns_its_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [Group(tuple(map(Replica, names)), is_in_driver=False) for names in ("ab", "ms", "c")]
    stage = Stage()
    coordinator = Coordinator(groups, b"s" * 32, "127.0.0.1", Timing(), 10, True, stage.frontiers)
    soon: list[Callable[[], None]] = []
    monkeypatch.setattr(coordinator.loop, "soon", soon.append)
    lines = [Line(), Line(), Line()]
    for group, line in zip(groups, lines, strict=True):
        group.link = line  # type: ignore[assignment]

    def tell(group: Group, **announcements: does.Announce) -> None:
        coordinator._told(group, read(control.progress(announcements)))

    tell(groups[0], a=stage.whole("a", {("a", 4): 1}), b=stage.whole("b", {("b", 3): 1}))
    tell(groups[1], m=stage.whole("m", {}), s=stage.whole("s", {}))
    assert [line.sent for line in lines] == [[], [], []]
    assert len(soon) == 1  # After all that had arrived.
    soon.pop()()
    (first,), (second,), third = (line.sent for line in lines)
    assert dict(control.read_advanced(first)) == {
        "a": was.Advanced({"m.left": (4,)}),
        "b": was.Advanced({"m.right": (3,)}),
    }
    assert set(second["replicas"]) == {"m", "s"}
    assert third == []
    with pytest.raises(ValueError, match="'m' is not one of its replicas"):
        tell(groups[0], m=stage.says("m", {}))
    coordinator.server.close()


class Rude(Integers):
    """An order of a user's own that fails at some time."""

    def leq(self, one: Any, other: Any) -> bool:
        if max(one, other) > 99:
            raise RuntimeError("that is too late")
        return super().leq(one, other)


def test_an_order_that_fails_ends_the_run_with_its_words() -> None:
    stage = Stage(Rude(), Rude())
    group = Group((Replica("a"),), is_in_driver=False)
    coordinator = Coordinator([group], b"s" * 32, "127.0.0.1", Timing(), 10, True, stage.frontiers)
    stage.begin(a=4, b=3)
    for time in (100, 101):
        announcement = stage.says("a", {("m.left", time): 1})
        coordinator._told(group, read(control.progress({"a": announcement})))
    assert coordinator.tracking is not None
    coordinator.tracking._advance()
    assert coordinator.error == "the frontiers cannot be computed: RuntimeError: that is too late"
    assert coordinator.over.is_set()
    coordinator.server.close()


def test_pipelines_without_times_have_no_frontiers() -> None:
    pipeline = clew.Pipeline("plain")
    pipeline.source("numbers", clew.rate(1000, count=3)).map(lambda table: table, name="same")
    assert frontiers_of(pipeline.build()) is None


class Heard:
    """A running replica that keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[was.Input] = []

    def take(self, given: was.Input) -> None:
        self.given.append(given)


def test_a_host_hands_each_replica_what_it_is_told_once_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _ = fan_in()
    members = (Replica("m"), Replica("s"))
    address = ("127.0.0.1", 1)
    place = LogPlace("off", "x")
    host = Host(
        HostSpec("fan", members, 1, b"", address, "127.0.0.1", place, "", DEFAULT, Timing(), (), graph.channels, {})
    )
    told = {"m": was.Advanced({"s.in": (3,), "m.left": ()}), "s": was.Advanced({"s.in": (3,)}, others=((1, 2),))}
    payload = control.advanced(told)[HEADER.size :]
    host._on_control(control.CONTROL, payload)  # While it opens: they will be told all when they have joined.
    heard = {member: Heard() for member in members}
    host.replicas = heard  # type: ignore[assignment]
    host._on_control(control.CONTROL, payload)
    assert [each.given for each in heard.values()] == [[told["m"]], [told["s"]]]
    said: list[bytes] = []
    monkeypatch.setattr(host, "_tell_coordinator", said.append)
    host.announcing.announce("m", does.Announce((1, 1), {("m", 3): 1}))
    host.announcing.announce("m", does.Announce((1, 2), {("m", 3): -1, ("m", 4): 1}))
    host.announcing.finish()  # Before it leaves, so that in the end all is known.
    assert [dict(control.read_progress(read(each))) for each in said] == [
        {"m": does.Announce((1, 1), {("m", 3): 1})},
        {"m": does.Announce((1, 2), {("m", 3): -1, ("m", 4): 1})},
    ]
    host.server.close()
