"""Exchange: which rule refuses which step, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clew.progress.exchange import Refused
from clew.progress.system import System
from clew.progress.topology import Topology
from clew.times import Add, Changes, Integers

GRAPH = Topology.of_one_order(Integers(), "ab", [("a", "b", Add(1))])


def system(mode: Any, **caps: dict[Any, int]) -> System:
    made = System(GRAPH, {name: Changes(owned) for name, owned in caps.items()}, mode)
    for name in made.workers:
        made.propagate(name)
    return made


@pytest.mark.parametrize(
    ("step", "rule", "words"),
    [
        (lambda s: s.perform("p", [("a", 9)], []), "consume what is there", "there are 0 in the system"),
        (lambda s: s.perform("p", [("a", 0)] * 2, []), "consume what is there", "cannot consume 2 of (a, 0)"),
        (lambda s: s.perform("p", [], [("a", 1)]), "upright", "cannot produce (a, 1)"),
        (lambda s: s.perform("p", [("a", 0)], [("b", 0)]), "upright", "cannot produce (b, 0)"),
        (lambda s: s.perform_caps("p"), "one mode", "perform_caps is a step of mode 'caps'"),
        (lambda s: s.send_update("p", [("a", 0)]), "say something", "p has nothing pending"),
        (lambda s: s.receive_update("p", "q"), "receive what was sent", "no update of p is under way to q"),
        (lambda s: s.propagate("r"), "known workers", "there is no worker 'r'; the workers are p, q"),
    ],
)
def test_refusals_when_workers_consume_and_produce(step: Callable[[System], None], rule: str, words: str) -> None:
    with pytest.raises(Refused) as caught:
        step(system("abadi", p={("a", 0): 1}, q={}))
    assert caught.value.rule == rule
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("step", "rule", "words"),
    [
        (lambda s: s.perform_caps("p"), "do something", "this is no step"),
        (lambda s: s.perform_caps("p", [("a", 0)], [("a", 0)]), "do something", "mints exactly what it drops"),
        (lambda s: s.perform_caps("q", [("a", 0)]), "drop what you own", "it owns 0"),
        (lambda s: s.perform_caps("q", [], [("a", 5)]), "mint at or after what you own", "cannot mint (a, 5)"),
        (lambda s: s.perform_caps("p", [], [], [("q", ("a", 0))]), "send after what you own", "strictly before"),
        (lambda s: s.receive_cap("q", ("a", 1)), "receive what was sent", "no data message with"),
        (lambda s: s.perform("p", [], []), "one mode", "perform is a step of mode 'abadi'"),
    ],
)
def test_refusals_when_workers_own_capabilities(step: Callable[[System], None], rule: str, words: str) -> None:
    with pytest.raises(Refused) as caught:
        step(system("caps", p={("a", 0): 1}, q={}))
    assert caught.value.rule == rule
    assert words in str(caught.value)


def test_no_update_before_the_first_round() -> None:
    made = System(GRAPH, {"p": Changes({("a", 0): 1}), "q": Changes()}, "abadi")
    with pytest.raises(Refused, match="has not completed its first round"):
        made.receive_update("p", "q")


def test_consuming_and_producing_the_same_is_a_step_of_one_mode_only() -> None:
    made = system("abadi", p={("a", 0): 1})
    made.perform("p", [("a", 0)], [("a", 0)])
    made.perform("p")
    assert made.truth == {("a", 0): 1}


def test_a_drop_is_not_told_before_what_was_made_from_it() -> None:
    made = system("abadi", p={("a", 0): 1})
    made.perform("p", [("a", 0)], [("b", 5)])
    with pytest.raises(Refused, match=r"cannot hold back \(b, 5\)"):
        made.send_update("p", [("a", 0)])
    made.send_update("p", [("b", 5)])
    made.send_update("p", [("a", 0)])


def test_what_is_held_back_may_rest_on_what_is_owned() -> None:
    made = system("caps", p={("a", 0): 2})
    made.perform_caps("p", drop=[("a", 0)], mint=[("a", 4)])
    made.send_update("p", [("a", 0)])  # (a, 4) is held back: p still owns (a, 0).
    made.perform_caps("p", drop=[("a", 0)], mint=[("a", 4)])
    with pytest.raises(Refused, match=r"cannot hold back \(a, 4\)"):
        made.send_update("p", [("a", 0)])


def test_owning_more_of_it_than_are_pending_is_enough() -> None:
    made = system("caps", p={("a", 4): 1, ("a", 9): 1})
    made.perform_caps("p", mint=[("a", 4)])
    made.perform_caps("p", drop=[("a", 9)])
    made.send_update("p", [("a", 9)])
    assert made.workers["p"].pending == {("a", 4): 1}


def test_a_data_message_hands_its_capability_over() -> None:
    made = system("caps", p={("a", 0): 1}, q={})
    made.perform_caps("p", drop=[("a", 0)], send=[("q", ("b", 3))])
    assert made.truth == {("b", 3): 1}
    made.receive_cap("q", ("b", 3))
    made.perform_caps("q", drop=[("b", 3)])
    for name in ("p", "q"):
        made.send_update(name, list(made.workers[name].pending))
    made.settle()
    assert made.truth == made.workers["p"].view == Changes()
    assert not any(made.workers["q"].propagation.frontiers().values())


def test_a_change_of_what_is_over_is_refused() -> None:
    """It cannot come from workers that keep the rules."""
    made = system("abadi", p={("a", 3): 1})
    with pytest.raises(Refused, match="has passed it"):
        made.workers["p"].receive_update(Changes({("a", 5): 1, ("a", 1): 1}))
    assert made.workers["p"].view == {("a", 3): 1}
    assert made.workers["p"].propagation.pointstamps("a") == {3: 1}
