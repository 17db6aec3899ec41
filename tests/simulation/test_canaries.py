"""Every canary dies: the search that finds nothing wrong with healthy parts finds each broken one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.simulation.canaries import CANARIES, HABITATS, Canary, Habitat, Hunt
from tests.simulation.canaries.hunt import STEPS_MAX
from tests.simulation.canaries.tampering import TAMPERINGS, Tampering, judged
from tests.simulation.canary_summary import PROPERTY

from clew.errors import Violation
from clew.verify.simulator import simulate

REQUIRED = {
    "outputs sent before the commit",
    "outputs and done marks in two transactions",
    "no obsolete filter",
    "filter by the durable cursor",
    "a commit that overtakes an earlier assignment",
    "no incarnation check",
    "state lost between generations",
    "state changed twice after recovery",
    "round-robin refolding with triggers in between",
    "event state restored for the wrong set",
    "write action not checked",
    "second write in flight",
    "ids reused after retention",
    "resend in wrong order",
    "acknowledgement before durability",
    "body file written after the commit",
    "end-of-input mark done before finish",
    "output sent before its required write",
    "a commit that holds half a move",
    "timer delivered before the undone pairs are folded",
    "tries that do not advance",
    "an innocent neighbour given up",
    "a lost dead letter",
    "no alignment",
    "a border passed on before the state was captured",
    "recovery that keeps uncommitted output",
    "the greatest epoch instead of the greatest common one",
    "sources not rewound",
    "events doubled after recovery",
}


def each_canary() -> list[object]:
    return [
        pytest.param(canary, id=name, marks=[pytest.mark.xfail(reason=canary.unseen)] if canary.unseen else [])
        for name, canary in CANARIES.items()
    ]


def each_habitat() -> list[object]:
    """All of them; those on which the search takes long, and which the sweeps know, in the soak."""
    slow = ("loops", "two_moments", "replicas", "epochs_pairs", "epochs_two", "epochs_idempotent", "epochs_moments")
    return [
        pytest.param(habitat, id=name, marks=[pytest.mark.soak] if name in slow else [])
        for name, habitat in HABITATS.items()
    ]


@pytest.mark.parametrize("habitat", each_habitat())
def test_healthy_parts_survive_the_hunt(habitat: Habitat) -> None:
    hunt = Hunt(habitat.graph, habitat.parts)
    report = hunt.first_violation()
    assert report is None, f"{habitat.name} {report.schedule}: {report.violation}"
    assert hunt.runs > 1000


@pytest.mark.parametrize("canary", each_canary())
def test_canary_is_caught(canary: Canary, record_property: Callable[[str, object], None]) -> None:
    catch = Hunt(canary.habitat.graph, canary.parts).catch(canary.expected)
    assert catch is not None, f"nothing sees that {canary.part.__doc__}"
    for report in (catch.found, catch.shrunk):
        assert canary.expected.search(report.violation or ""), (
            f"{report.schedule}: another checker says {report.violation}"
        )
        healthy = simulate(canary.habitat.graph, report.schedule, parts=canary.habitat.parts, steps_max=STEPS_MAX)
        assert healthy.is_good, f"healthy parts under {report.schedule}: {healthy.violation}"
    said = (catch.shrunk.violation or "").replace("\n", " ")
    said = said if len(said) <= 120 else said[:117] + "..."
    record_property(PROPERTY, f"{canary.name}: {canary.habitat.name} {catch.shrunk.schedule}: {said}")


@pytest.mark.parametrize("tampering", TAMPERINGS.values(), ids=TAMPERINGS)
def test_oracle_sees_tampering(tampering: Tampering) -> None:
    world = tampering.finished()
    judged(world)
    tampering.change(world)
    with pytest.raises(Violation, match=tampering.expected):
        judged(world)


def test_what_must_be_caught_is_among_the_canaries() -> None:
    assert set(CANARIES) >= REQUIRED
    assert not any(CANARIES[name].unseen for name in REQUIRED)
