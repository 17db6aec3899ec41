"""A small pipeline of members whose truth is known, with a tracker that hears of it late, again, or after a restart.

Members hold capabilities at their own location, and send events with times over channels; a channel is a location, too:
the sender counts +1 there for an event, the receiver -1 once it has taken it. Each step of a member is one commit,
durable at once; what it changed reaches the tracker later, in order, or never if the connection breaks: then the member
joins again. Members log the frontiers that they are told, and delete their counts at times that have passed when they
like.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from random import Random
from typing import Any

from tests.laws.progress_graphs import DIAMOND, plain_leq, random_summary, random_time

from clew.progress.naive import naive_frontiers
from clew.progress.safety import check_frontiers
from clew.progress.topology import Topology
from clew.progress.tracker import Tracker
from clew.times import IDENTITY, Antichain, Changes, Order, Product
from clew.verify.vectors.domains import order_of, summary_of


class WithoutJoins(Product):
    """A product that does not say which times are after two given ones, as a user's own order may not."""

    def __init__(self, *orders: Order) -> None:
        super().__init__(*orders)
        self.has_upper_bounds = False

    def upper_bounds(self, one: Any, other: Any) -> tuple[Any, ...]:
        raise AssertionError("nobody may ask this order for upper bounds")


class Member:
    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.sums: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.passed: dict[str, Antichain] = {}
        self.told: deque[tuple[str, Antichain]] = deque()
        self.sent: deque[tuple[int, dict[str, Changes]]] = deque()
        self.heard: list[tuple[int, dict[str, Changes]]] = []
        self.is_connected = False


class Model:
    """The truth, and a tracker beside it."""

    def __init__(self, random: Random, make_tracker: Callable[..., Tracker] = Tracker) -> None:
        self.random, self.make_tracker = random, make_tracker
        self.domain: Any = random.choice(["int", DIAMOND, ["prod", "int", "int"], ["prod", "int", DIAMOND]])
        order = order_of(self.domain)
        if isinstance(order, Product) and random.random() < 0.4:
            order = WithoutJoins(*order.orders)
        names = [f"m{n}" for n in range(random.randrange(2, 5))]
        self.members = {name: Member(name) for name in names}
        self.channels: dict[str, tuple[str, str]] = {}
        self.inside: dict[str, Any] = {}
        edges: list[Any] = []
        self.plain_edges: list[Any] = []
        for m, sender in enumerate(names):
            for n, receiver in enumerate(names):
                summary = random_summary(random, self.domain, advances=n <= m)
                if random.random() < (0.6 if m < n else 0.25) and summary is not None:
                    channel = f"{sender}>{receiver}"
                    self.channels[channel] = sender, receiver
                    edges += [(sender, channel, IDENTITY), (channel, receiver, summary_of(self.domain, summary))]
                    self.inside[channel] = edges[-1][2].results_in
                    self.plain_edges += [
                        (sender, channel, lambda time: time),
                        (channel, receiver, self.inside[channel]),
                    ]
        self.topology = Topology.of_one_order(order, [*names, *self.channels], edges)
        self.held: dict[str, list[Any]] = {name: [] for name in names}
        self.under_way: dict[str, list[Any]] = {channel: [] for channel in self.channels}
        for name in names:  # Whatever is held at the beginning is a first commit.
            for _ in range(random.randrange(3)):
                self._hold(name, random_time(random, self.domain), defaultdict(lambda: defaultdict(int)))
        self.tracker = make_tracker(self.topology, names)
        self.shown: dict[str, Antichain] = {}

    def step(self) -> None:
        """Something happens."""
        random = self.random
        member = self.members[random.choice(list(self.members))]
        what = random.choice(
            ["work"] * 4 + ["deliver"] * 4 + ["advance"] * 3 + ["log", "log", "forget", "break", "stale"]
        )
        if what == "work":
            self._work(member)
        elif what == "deliver":
            self._deliver(member)
        elif what == "advance":
            self.advance()
        elif what == "log" and member.told:
            location, frontier = member.told.popleft()
            known = member.passed.get(location)
            if known is None or known.is_at_most(frontier):
                member.passed[location] = frontier
        elif what == "forget":
            self._forget(member)
        elif what == "break":
            if random.random() < 0.2:
                self.restart()
            else:
                self._break(member)
        elif what == "stale" and member.is_connected and member.heard:
            self.tracker.changed(member.name, *random.choice(member.heard))
        self.check()

    def advance(self) -> None:
        for location, frontier in self.tracker.advance().items():
            before = self.shown.get(location)
            assert before is None or before.is_at_most(frontier), f"{location} went back from {before} to {frontier}"
            assert frontier == self.tracker.frontier(location)
            self.shown[location] = frontier
            for member in self.members.values():
                if self.random.random() < 0.5:
                    member.told.append((location, frontier))

    def check(self) -> None:
        """What is shown, and what was logged, is not ahead of the truth."""
        truth: dict[str, dict[Any, int]] = {}
        for location, times in (*self.held.items(), *self.under_way.items()):
            truth[location] = dict(Changes([(time, 1) for time in times]))
        check_frontiers(
            self.topology, truth, {place: self.tracker.frontier(place) for place in self.topology.locations}
        )
        for member in self.members.values():
            check_frontiers(self.topology, truth, member.passed, f"what {member.name} has logged")

    def settle(self) -> None:
        """All news arrive; then the tracker shows exactly the truth."""
        for member in self.members.values():
            while not member.is_connected or member.sent:
                self._deliver(member)
        self.advance()
        self.check()
        counts = [(place, time, 1) for place, times in (*self.held.items(), *self.under_way.items()) for time in times]
        leq = dict.fromkeys(self.topology.locations, lambda one, other: plain_leq(self.domain, one, other))
        expected = naive_frontiers(leq, self.plain_edges, counts)
        came = {place: self.tracker.frontier(place) for place in self.topology.locations}
        assert {place: None if times is None else set(times) for place, times in came.items()} == expected

    def restart(self) -> None:
        """The tracker is lost; a new one knows nothing."""
        for member in self.members.values():
            self._break(member)
        self.tracker = self.make_tracker(self.topology, list(self.members))
        self.shown = {}

    def _break(self, member: Member) -> None:
        member.is_connected = False
        member.sent.clear()

    def _deliver(self, member: Member) -> None:
        if not member.is_connected:
            sums = {place: Changes(counts) for place, counts in member.sums.items()}
            self.tracker.joined(member.name, member.number, sums, dict(member.passed))
            member.is_connected = True
        elif member.sent:
            member.heard.append(member.sent.popleft())
            self.tracker.changed(member.name, *member.heard[-1])

    def _forget(self, member: Member) -> None:
        for location, frontier in member.passed.items():
            for time in [time for time in member.sums[location] if frontier.passed(time)]:
                if self.random.random() < 0.7:
                    del member.sums[location][time]

    def _work(self, member: Member) -> None:
        """One commit: takes events, holds and gives up times, sends events."""
        changes: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        for _ in range(self.random.randrange(1, 4)):
            what = self.random.choice(["take", "take", "send", "drop", "later"])
            held = self.held[member.name]
            inbound = [c for c, (_, receiver) in self.channels.items() if receiver == member.name and self.under_way[c]]
            if what == "take" and inbound:
                channel = self.random.choice(inbound)
                time = self.under_way[channel].pop(self.random.randrange(len(self.under_way[channel])))
                changes[channel][time] -= 1
                if self.random.random() < 0.6:
                    self._hold(member.name, self._later(self.inside[channel](time)), changes)
            elif what == "send" and held:
                time = self._later(self.random.choice(held))
                for channel, (sender, _) in self.channels.items():
                    if sender == member.name and len(self.under_way[channel]) < 8:
                        self.under_way[channel].append(time)
                        changes[channel][time] += 1
            elif what in ("drop", "later") and held:
                time = held.pop(self.random.randrange(len(held)))
                changes[member.name][time] -= 1
                if what == "later":
                    self._hold(member.name, self._later(time), changes)
        member.number += 1
        for location, counts in changes.items():
            for time, count in counts.items():
                if self._is_counted(member, location, time):
                    member.sums[location][time] += count
        if member.is_connected:
            member.sent.append((member.number, {place: Changes(counts) for place, counts in changes.items()}))

    def _is_counted(self, member: Member, location: str, time: Any) -> bool:
        return location not in member.passed or member.passed[location].covers(time)

    def _hold(self, name: str, time: Any, changes: dict[str, dict[Any, int]]) -> None:
        self.held[name].append(time)
        changes[name][time] += 1
        if not hasattr(self, "tracker"):
            self.members[name].sums[name][time] += 1

    def _later(self, time: Any) -> Any:
        for _ in range(3):
            other = random_time(self.random, self.domain)
            if plain_leq(self.domain, time, other):
                return other
        return time
