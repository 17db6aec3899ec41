"""Ancestors by hand: the sales pipeline in the simulator, and a chain of two operators."""

from __future__ import annotations

from collections import Counter

from examples import sales

import clew
from clew.lineage.ancestors import EventName, Hop, hops_back
from clew.model.names import Replica
from clew.testing import scripted
from clew.verify.schedule import Schedule
from clew.verify.world import World


def ran(pipeline: clew.Pipeline) -> World:
    world = World(pipeline.build(), Schedule(1))
    world.run(1_000_000)
    return world


def test_the_orders_of_an_hour_add_up_to_its_total() -> None:
    batches = sales.sales(events=20, records=3, hours=6)
    world = ran(sales.build(scripted(batches)))
    reader = world.store.reader()
    for number in range(1, 7):
        (hop,) = hops_back(world.store, EventName("hourly", "out", number))
        (made,) = reader.events(Replica("hourly"), "out", [number])
        totals: Counter[tuple[str, str]] = Counter()
        for name in hop.sources:
            assert (name.sender, name.port) == ("orders", "out")
            for row in batches[name.id - 1].to_pylist():
                if row["date"].replace(minute=0, second=0) == made.rows[0]["hour"]:
                    totals[row["item_ID"], row["state"]] += row["amount"]
        assert totals == {(row["item_ID"], row["state"]): row["total"] for row in made.rows}


def test_the_way_back_has_a_hop_for_each_operator() -> None:
    pipeline = clew.Pipeline("chain")
    numbers = pipeline.source("numbers", scripted([[{"x": number}] for number in range(6)]))
    numbers.batch(2, name="twos").batch(2, name="fours").batch(1, name="last")
    pipeline.lineage("numbers.out", "fours.out")
    world = ran(pipeline)
    hops = hops_back(world.store, EventName("fours", "out", 1))
    assert [str(hop.event) for hop in hops] == ["fours.out/1", "twos.out/1", "twos.out/2"]
    assert [str(source) for hop in hops[1:] for source in hop.sources] == [f"numbers.out/{id}" for id in (1, 2, 3, 4)]
    assert hops[0].sources == (EventName("twos", "out", 1), EventName("twos", "out", 2))


def test_what_was_not_captured_has_no_way_back() -> None:
    world = ran(sales.build(scripted(sales.sales(events=20, records=3, hours=6))))
    none: list[Hop] = []
    assert hops_back(world.store, EventName("totals", "out", 1)) == none
    assert hops_back(world.store, EventName("nobody", "out", 1)) == none
