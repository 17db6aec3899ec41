"""The tracker: unknown is not empty, frontiers do not go back, what has passed is ignored."""

from __future__ import annotations

from typing import Any

import pytest

from clew.errors import MoveError
from clew.progress.topology import Topology
from clew.progress.tracker import Tracker
from clew.times import IDENTITY, Antichain, Changes, Integers, Product

GRAPH = Topology.of_one_order(
    Integers(), ["source", "wire", "sink"], [("source", "wire", IDENTITY), ("wire", "sink", IDENTITY)]
)


def at(*times: Any) -> Antichain:
    return Antichain(Integers(), times)


def test_nothing_is_known_before_everybody_has_joined() -> None:
    tracker = Tracker(GRAPH, ["s", "t"])
    tracker.joined("s", 1, {}, {})
    assert tracker.advance() == {}
    assert tracker.frontier("sink") is None
    assert tracker.waiting == {"t"}
    tracker.joined("t", 1, {}, {})
    assert tracker.advance() == {"source": at(), "wire": at(), "sink": at()}
    assert tracker.advance() == {}


def test_until_then_what_a_member_has_logged_is_shown() -> None:
    tracker = Tracker(GRAPH, ["s", "t"])
    tracker.joined("s", 4, {"source": Changes({9: 1})}, {"wire": at(5)})
    assert tracker.advance() == {"wire": at(5)}
    tracker.joined("t", 7, {"wire": Changes({3: -2})}, {"wire": at(4), "sink": at(6)})
    assert tracker.advance() == {"sink": at(9), "source": at(9), "wire": at(9)}


def test_counts_at_times_that_have_passed_are_ignored_whoever_still_has_them() -> None:
    """The receiver has deleted its -5 at 3, the sender still has its +5."""
    tracker = Tracker(GRAPH, ["s", "t"])
    tracker.joined("s", 4, {"source": Changes({9: 1}), "wire": Changes({3: 5})}, {})
    tracker.joined("t", 7, {}, {"wire": at(4)})
    assert tracker.advance() == {"wire": at(9), "source": at(9), "sink": at(9)}
    tracker.changed("s", 5, {"wire": Changes({4: 1, 8: 1}), "source": Changes({9: 1})})
    assert tracker.advance() == {}  # Nothing goes back.


def test_who_joins_again_replaces_what_was_known_of_it() -> None:
    tracker = Tracker(GRAPH, ["s"])
    tracker.joined("s", 1, {"source": Changes({1: 1})}, {})
    tracker.advance()
    tracker.changed("s", 2, {"source": Changes({2: 1, 1: -1})})
    tracker.joined("s", 3, {"source": Changes({3: 1})}, {})
    assert tracker.advance()["sink"] == at(3)
    tracker.joined("s", 2, {"source": Changes({2: 1})}, {})  # From an old connection.
    tracker.changed("s", 3, {"source": Changes({3: -1})})  # Known already.
    assert tracker.advance() == {}


def test_numbers_may_be_pairs() -> None:
    tracker = Tracker(GRAPH, ["s"])
    tracker.joined("s", (1, 9), {"source": Changes({1: 1})}, {})
    tracker.joined("s", (2, 0), {"source": Changes({2: 1})}, {})
    tracker.changed("s", (1, 12), {"source": Changes({5: 1})})
    assert tracker.advance()["source"] == at(2)


def test_frontiers_of_unordered_times_are_joined() -> None:
    order = Product(Integers(), Integers())
    tracker = Tracker(Topology.of_one_order(order, ["x"], []), ["s"])
    tracker.joined("s", 1, {"x": Changes({(0, 2): 1, (3, 3): 1})}, {"x": Antichain(order, [(1, 0)])})
    assert tracker.advance() == {"x": Antichain(order, [(3, 3)])}
    tracker.joined("s", 2, {"x": Changes({(3, 3): 1, (5, 1): 1})}, {})
    assert tracker.advance() == {}


def test_a_long_run_keeps_only_what_is_not_over() -> None:
    tracker = Tracker(GRAPH, ["s", "t"])
    tracker.joined("s", 0, {"source": Changes({0: 1})}, {})
    tracker.joined("t", 0, {}, {})
    for now in range(3000):
        tracker.changed("s", now + 1, {"source": Changes({now: -1, now + 1: 1}), "wire": Changes({now: 1})})
        tracker.changed("t", now + 1, {"wire": Changes({now: -1})})
        tracker.advance()
    assert tracker.frontier("sink") == at(3000)
    assert sum(len(counts) for members in tracker._sums.values() for counts in members.values()) < 200
    assert sum(len(tracker._propagation.pointstamps(place)) for place in GRAPH.locations) < 200


def test_what_cannot_be() -> None:
    tracker = Tracker(GRAPH, ["s", "t"])
    with pytest.raises(MoveError, match="s has sent changes before its sums"):
        tracker.changed("s", 1, {})
    with pytest.raises(MoveError, match="'u' is no member; the members are s, t"):
        tracker.joined("u", 1, {}, {})
    with pytest.raises(MoveError, match="counts at 'nowhere', which is no location"):
        tracker.joined("s", 1, {"nowhere": Changes({1: 1})}, {})
