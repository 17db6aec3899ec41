"""Checks that frontiers are safe: no frontier is past a time that some pointstamp could still result in.

Each check raises `Violation` with a witness. They follow pointstamps along the edges one by one and use nothing that
propagation computes. (Progress thesis, Figures 5.1 and 7.1, Propositions 7.3 and 7.4.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.errors import Violation
from clew.progress.exchange import by_location
from clew.progress.propagation import Propagation
from clew.progress.system import System
from clew.progress.topology import Topology
from clew.times import Antichain, Changes, Time


def check_frontiers(
    topology: Topology,
    pointstamps: Mapping[Any, Mapping[Time, int]],
    frontiers: Mapping[Any, Antichain | None],
    who: str = "a frontier",
) -> None:
    """No frontier is past a time that one of the pointstamps could result in; None is a frontier not known yet."""
    for location, counts in pointstamps.items():
        for time, count in counts.items():
            if count <= 0:
                continue
            for place, earliest in topology.reach(location, time).items():
                frontier = frontiers.get(place)
                if frontier is not None and not frontier.is_at_most(earliest):
                    raise Violation(
                        f"{who} is ahead of the truth: ({location}, {topology.orders[location].show(time)}) could "
                        f"result in {earliest} at {place}, whose frontier is already {frontier}"
                    )


def check_propagation(propagation: Propagation) -> None:
    """After a complete round: every frontier is behind what the pointstamps there could result in (Figure 5.1)."""
    topology = propagation.topology
    counts = {location: propagation.pointstamps(location) for location in topology.locations}
    check_frontiers(topology, counts, propagation.frontiers())


def check_system(system: System) -> None:
    """No worker's view (Proposition 7.3) and no initialised worker's frontiers (Figure 7.1) are ahead of the truth."""
    topology, truth = system.topology, by_location(system.truth)
    for name, worker in system.workers.items():
        views = by_location(worker.view)
        for location in topology.locations:
            counted = worker.propagation.pointstamps(location)
            if counted != views.get(location, Changes()):
                raise Violation(
                    f"the view of {name} has {views.get(location)} at {location}, its propagation counts {counted}"
                )
        known = [pointstamp for pointstamp, count in worker.view.items() if count > 0]
        for pointstamp, count in system.truth.items():
            if count > 0 and not any(topology.could_result_in(one, pointstamp) for one in known):
                raise Violation(f"the view of {name} is ahead of the truth: nothing in it is before {pointstamp!r}")
        if worker.is_initialised:
            check_frontiers(topology, truth, worker.propagation.frontiers(), f"a frontier of {name}")
