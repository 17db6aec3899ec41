"""Laws of exchange: under any legal steps no worker is ahead of the truth; a system that breaks a rule is caught."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.progress_graphs import Case, random_case

from clew.errors import Violation
from clew.progress.exchange import Refused, Worker
from clew.progress.safety import check_system
from clew.progress.system import System
from clew.times import Changes

seeds = st.integers(0, 2**32)


def random_system(random: Random, mode: Any) -> tuple[Case, System]:
    case = random_case(random, locations_max=4)
    caps = {}
    for number in range(random.randrange(1, 4)):
        locations = random.choices([str(location) for location in case.topology.locations], k=random.randrange(4))
        caps[f"w{number}"] = Changes([((location, case.draw(location)), 1) for location in locations])
    return case, System(case.topology, caps, mode)


def some(random: Random, bag: Changes, at_most: int = 2) -> list[Any]:
    """Some elements of a multiset, no more often than they are in it."""
    every = [element for element, count in bag.items() for _ in range(count)]
    return random.sample(every, min(len(every), random.randrange(at_most + 1)))


def a_step(random: Random, case: Case, system: System) -> None:
    """Tries some step; it may be refused."""
    name = random.choice(list(system.workers))
    worker = system.workers[name]

    def anything() -> list[Any]:
        places = random.choices([str(location) for location in case.topology.locations], k=random.randrange(3))
        return [(place, case.draw(place)) for place in places]

    kind = random.choice(["perform", "perform", "send", "send", "receive", "receive", "propagate", "data"])
    if kind == "perform" and system.mode == "abadi":
        system.perform(name, some(random, system.truth.positive()), anything())
    elif kind == "perform":
        sends = [(random.choice(list(system.workers)), pointstamp) for pointstamp in anything()]
        system.perform_caps(name, some(random, worker.owned.positive()), anything(), sends)
    elif kind == "send":
        pending = list(worker.pending)
        system.send_update(name, random.sample(pending, random.randrange(len(pending) + 1)))
    elif kind == "receive":
        system.receive_update(name, random.choice(list(system.workers)))
    elif kind == "data" and system.mode == "caps":
        waiting = [pointstamp for receiver, pointstamp in system.data if receiver == name]
        if waiting:
            system.receive_cap(name, random.choice(waiting))
    else:
        system.propagate(name)


def drive(seed: int, mode: str, steps: int = 60) -> int:
    """Legal steps, with a check after each; at the end everybody knows the truth. How many steps were accepted."""
    random = Random(seed)
    case, system = random_system(random, mode)
    accepted = 0
    for _ in range(steps):
        try:
            a_step(random, case, system)
            accepted += 1
        except Refused:
            continue
        check_system(system)
    for name, worker in system.workers.items():
        if worker.pending:
            system.send_update(name, list(worker.pending))
    system.settle()
    check_system(system)
    expected = case.naive(dict(system.truth))
    for worker in system.workers.values():
        assert worker.view == system.truth
        assert {place: set(times) for place, times in worker.propagation.frontiers().items()} == expected
    return accepted


@settings(max_examples=80)
@given(seeds)
def test_no_view_is_ahead_when_workers_consume_and_produce(seed: int) -> None:
    drive(seed, "abadi")


@settings(max_examples=80)
@given(seeds)
def test_no_view_is_ahead_when_workers_own_capabilities(seed: int) -> None:
    drive(seed, "caps")


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["abadi", "caps"])
def test_many_systems(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    accepted = 0
    for seed in range(1500):
        try:
            accepted += drive(seed, mode, steps=100)
        except BaseException:
            print(f"seed {seed}: repeat with drive({seed}, {mode!r}, steps=100) of {__name__}")
            raise
    with capsys.disabled():
        print(f"\n1500 random systems in mode {mode}: safe after each of {accepted} steps")


@settings(max_examples=60)
@given(seeds)
def test_a_refused_step_changes_nothing(seed: int) -> None:
    random = Random(seed)
    case, system = random_system(random, random.choice(["abadi", "caps"]))

    def state() -> Any:
        workers = [(w.view, w.owned, w.pending, w.is_initialised) for w in system.workers.values()]
        return system.truth, system.data, workers, {pair: list(queue) for pair, queue in system.queues.items()}

    for _ in range(40):
        before = state()
        try:
            a_step(random, case, system)
        except Refused:
            assert state() == before


class OutOfOrder(System):
    """Takes the newest update first."""

    def receive_update(self, sender: Any, receiver: Any) -> None:
        self.queues[sender, receiver].reverse()
        try:
            super().receive_update(sender, receiver)
        finally:
            self.queues[sender, receiver].reverse()


def canary(system_class: type[System], seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        case, sound = random_system(random, "caps")
        system = system_class(case.topology, {name: worker.owned for name, worker in sound.workers.items()}, "caps")
        for _ in range(60):
            try:
                a_step(random, case, system)
            except Refused as refused:
                if refused.rule == "change what is not over":
                    raise Violation(str(refused)) from refused
            check_system(system)


def test_the_check_notices_updates_out_of_order() -> None:
    with pytest.raises(Violation):
        canary(OutOfOrder, range(300))


def test_the_check_notices_a_creation_announced_after_the_drop_it_rests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule on what may be held back, a drop can be told before what was made from it."""
    monkeypatch.setattr(Worker, "_unjustified", lambda self, changes, owned: None)
    with pytest.raises(Violation, match="ahead of the truth"):
        canary(System, range(300))


def test_the_check_notices_who_makes_something_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "_has_before", lambda self, pointstamps, later, *, strictly: True)
    with pytest.raises(Violation, match="ahead of the truth"):
        canary(System, range(300))


def test_a_sound_system_passes_what_the_canaries_are_caught_by() -> None:
    canary(System, range(40))
