"""Arrivals: no frontier is ahead of a time that can still arrive, and none stays behind.

What can still arrive is worked out by brute force from what is durable: events that their receivers have not taken,
and rows of times that are held. It shares no code with the tracker or with the kernels' own counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from clew.errors import Violation
from clew.model.graph import Graph
from clew.model.history import Transaction
from clew.model.names import Channel, Replica
from clew.model.values import decode
from clew.progress.naive import naive_frontiers
from clew.protocol.inputs import Advanced
from clew.times.order import Order
from clew.times.summary import IDENTITY


class Arrivals:
    """Judges every frontier that is told, and every event that becomes durable after it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.orders: dict[str, Order] = {}
        self.edges: list[tuple[str, str, Any]] = []
        for replica in graph.replicas:
            node = graph.nodes[replica.operator]
            if node.order is not None:
                self.orders[str(replica)] = node.order
            for port, order in node.input_orders.items():
                self.orders[f"{replica}.{port}"] = order
                summary = getattr(node.definition, "summaries", {}).get(port, IDENTITY)
                if node.order is not None:
                    self.edges.append((f"{replica}.{port}", str(replica), summary.results_in))
        for channel in graph.channels:
            if graph.nodes[channel.sender.operator].order is not None:
                self.edges.append((str(channel.sender), _place(channel), lambda time: time))
        self.leq = {location: order.leq for location, order in self.orders.items()}
        self.held: dict[Replica, dict[bytes, list[Any]]] = {}
        for replica in graph.replicas:
            stamps = graph.nodes[replica.operator].stamps
            self.held[replica] = {} if stamps is None else {b"start": list(stamps.start)}
        self.sent: dict[Channel, list[Any]] = {channel: [] for channel in graph.channels}
        """The time of each event, by number."""
        self.taken: dict[Channel, int] = dict.fromkeys(graph.channels, 0)
        self.finished: set[Replica] = set()
        self.shown: dict[str, tuple[Any, ...]] = {}
        """By input port: the last frontier that anybody was told."""
        self.logged: dict[str, tuple[Any, ...]] = {}
        """By input port: the last frontier that its operator was shown, as its log says."""

    def on_commit(self, replica: Replica, transaction: Transaction) -> None:
        """Nothing becomes durable at a time that a frontier has passed."""
        held = self.held[replica]
        held.pop(b"start", None)  # The first commit has whatever it holds from then on.
        for (kind, name), value in transaction.progress.items():
            if kind == "hold":
                if value is None:
                    held.pop(name, None)
                else:
                    held[name] = decode(value)
            elif kind == "shown" and value is not None:
                self.logged[f"{replica}.{decode(name)}"] = tuple(decode(value))
        if transaction.counters.get("finished"):
            self.finished.add(replica)
        for channel, cursor in transaction.cursors.items():
            self.taken[channel] = cursor.assigned
        for channel in self.graph.outbound(replica) if transaction.outputs else ():
            for output in transaction.outputs:
                if output.event.port == channel.output:
                    self.sent[channel].append(output.event.time)
                    self._judge_event(channel, output.event.id, output.event.time)

    def _judge_event(self, channel: Channel, number: int, time: Any) -> None:
        place = _place(channel)
        for shown in (self.shown.get(place), self.logged.get(place)):
            if shown is not None and time is not None and not any(self.leq[place](each, time) for each in shown):
                raise Violation(
                    f"{channel}: event {number} has the time {self._show(place, [time])}, which the frontier "
                    f"{self._show(place, shown)} had passed"
                )

    def on_told(self, member: str, advanced: Advanced) -> None:
        """A frontier that is told covers all that can still arrive."""
        truth = self._truth()
        for place, frontier in advanced.frontiers.items():
            leq = self.leq[place]
            for time in truth[place]:
                if not any(leq(each, time) for each in frontier):
                    raise Violation(
                        f"{member} is told the frontier {self._show(place, frontier)} of {place}, although "
                        f"{self._show(place, [time])} can still arrive there"
                    )
            before = self.shown.get(place)
            if before is not None and not all(any(leq(old, new) for old in before) for new in frontier):
                raise Violation(
                    f"the frontier of {place} goes back from {self._show(place, before)} to "
                    f"{self._show(place, frontier)}"
                )
            self.shown[place] = frontier

    def on_power(self) -> None:
        """All that was told is forgotten, except for what was logged."""
        self.shown.clear()

    def on_rest(self) -> None:
        """Nothing can happen at the moment: then all was told, and shown to whoever works by time."""
        truth = self._truth()
        for replica in self.graph.replicas:
            node = self.graph.nodes[replica.operator]
            for port in node.input_orders:
                place = f"{replica}.{port}"
                self._judge_rest("told", place, self.shown.get(place), truth[place])
                if getattr(node.definition, "is_timely", False) and replica not in self.finished:
                    self._judge_rest("shown to its operator", place, self.logged.get(place), truth[place])
        for place, times in truth.items() if len(self.finished) == len(self.graph.replicas) else ():
            if times:
                raise Violation(f"all have finished, although {self._show(place, times)} can still arrive at {place}")

    def _judge_rest(self, how: str, place: str, shown: tuple[Any, ...] | None, truth: set[Any]) -> None:
        if shown is None:
            raise Violation(f"the frontier of {place} was never {how}")
        if set(shown) != truth:
            raise Violation(
                f"the frontier of {place}, as it was {how}, stays at {self._show(place, shown)}, although only what is "
                f"at or after {self._show(place, truth)} can still arrive"
            )

    def _truth(self) -> dict[str, set[Any]]:
        counts: Counter[tuple[str, Any]] = Counter()
        for replica, owners in self.held.items():
            for times in owners.values():
                for time in times:
                    counts[str(replica), time] += 1
        for channel, times in self.sent.items():
            for time in times[self.taken[channel] :]:
                if time is not None:
                    counts[_place(channel), time] += 1
        return naive_frontiers(self.leq, self.edges, [(place, time, count) for (place, time), count in counts.items()])

    def _show(self, place: str, times: Any) -> str:
        return "{" + ", ".join(sorted(map(self.orders[place].show, times))) + "}"


def _place(channel: Channel) -> str:
    return f"{channel.receiver}.{channel.input}"
