"""The kernels of `clew.progress` under the steps of `progress/1` files: what a step does, what can be compared then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from clew.errors import MoveError
from clew.progress.propagation import Propagation
from clew.progress.system import System
from clew.progress.topology import Pointstamp, Topology
from clew.times import Changes
from clew.verify.vectors.domains import antichain_of, changes_of, order_of, plain, summary_of
from clew.verify.vectors.report import BadVectors, reading

Take: TypeAlias = Callable[[], None]
Comparison: TypeAlias = tuple[str, Any, Callable[[], Any]]


class Run(ABC):
    """A case under way. Steps are read first, so that a file with an unknown step is not half replayed."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        with reading("graph"):
            graph = case["graph"]
            domain = graph["domain"]
            self.order = order_of(domain)
            edges = [
                (source, target, [summary_of(domain, summary) for summary in summaries])
                for source, target, summaries in graph["edges"]
            ]
            self.topology = Topology.of_one_order(self.order, graph["locations"], edges)

    def read_step(self, step: Any) -> Take:
        """What taking this step means; taking it raises `MoveError` if the kernels refuse it."""
        try:
            return self._read_step(step)
        except MoveError as error:  # It names a location or a time that is not there: taking it is refused.
            return partial(_refuse, error)

    @abstractmethod
    def _read_step(self, step: Any) -> Take: ...

    @abstractmethod
    def read_expected(self, entry: Mapping[str, Any]) -> list[Comparison]:
        """What is compared after a step: its name, what is expected, how to get what came."""

    def read_final(self, case: Mapping[str, Any]) -> list[Comparison]:
        """What is compared after `settle`."""
        return []

    def settle(self) -> None:
        """Brings the case to its end."""
        return None

    def plain(self, value: Any) -> Any:
        """A value in the words of the file."""
        return plain(value)

    def _frontiers(self, given: Mapping[str, Any], propagation: Propagation) -> list[Comparison]:
        self._know(given)
        return [
            (f"frontier of {location}", antichain_of(self.order, given.get(location, ())), frontier)
            for location in self.topology.locations
            for frontier in [partial(propagation.frontier, location)]
        ]

    def _know(self, given: Mapping[str, Any]) -> None:
        for location in given:
            if location not in self.topology.orders:
                raise BadVectors(f"the graph has no location {location!r}")


class PropagationRun(Run):
    """Changes of counts (`CM`) and rounds of propagation (`PR`)."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        super().__init__(case)
        with reading("initial"):
            self._know(case["initial"])
            initial = {location: changes_of(self.order, counts) for location, counts in case["initial"].items()}
        self.propagation = Propagation(self.topology, initial)

    def _read_step(self, step: Any) -> Take:
        match step:
            case {"op": "PR"}:
                return self._propagate
            case {"op": "CM", "loc": location, "t": time, "n": int(count)}:
                return partial(self.propagation.change, location, self.order.check(time), count)
        raise BadVectors(f'{step!r} is no step; expected {{"op": "PR"}} or {{"op": "CM", "loc", "t", "n"}}')

    def read_expected(self, entry: Mapping[str, Any]) -> list[Comparison]:
        comparisons: list[Comparison] = []
        if "pointstamps" in entry:
            given = entry["pointstamps"]
            self._know(given)
            for location in self.topology.locations:
                counts = changes_of(self.order, given.get(location, ()))
                came = partial(self.propagation.pointstamps, location)
                comparisons.append((f"pointstamps of {location}", counts, came))
        return comparisons + self._frontiers(entry["frontiers"], self.propagation)

    def _propagate(self) -> None:
        self.propagation.propagate()


class ProtocolRun(Run):
    """Several workers that exchange updates, in one of the two modes."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        super().__init__(case)
        with reading("initial_caps"):
            given = case["initial_caps"]
            caps = {name: self._counts(given.get(name, ())) for name in case.get("workers", given)}
        if case["mode"] not in ("abadi", "caps"):
            raise BadVectors(f'mode: {case["mode"]!r} is not "abadi" or "caps"')
        self.system = System(self.topology, caps, case["mode"])

    def _read_step(self, step: Any) -> Take:
        system, at = self.system, self._pointstamps
        match step:
            case ["performop", str(name), [*minus], [*plus]]:
                return partial(system.perform, name, at(minus), at(plus))
            case ["performop_caps", str(name), [*drop], [*mint], [*send]]:
                sent = [(receiver, *at([pointstamp])) for receiver, pointstamp in send]
                return partial(system.perform_caps, name, at(drop), at(mint), sent)
            case ["recv_cap", str(name), pointstamp]:
                return partial(system.receive_cap, name, *at([pointstamp]))
            case ["send_update", str(name), [*pointstamps]]:
                return partial(system.send_update, name, at(pointstamps))
            case ["recv_update", str(sender), str(receiver)]:
                return partial(system.receive_update, sender, receiver)
            case ["propagate", str(name)]:
                return partial(self._propagate, name)
        raise BadVectors(f"{step!r} is no step of this format")

    def read_expected(self, entry: Mapping[str, Any]) -> list[Comparison]:
        worker = self.system.workers[entry["worker"]]
        comparisons: list[Comparison] = []
        if "glob" in entry:
            comparisons.append(("glob", self._counts(entry["glob"]), lambda: worker.view))
        return comparisons + self._frontiers(entry["frontiers"], worker.propagation)

    def read_final(self, case: Mapping[str, Any]) -> list[Comparison]:
        comparisons: list[Comparison] = []
        if "final_nrec" in case:
            comparisons.append(("final_nrec", self._counts(case["final_nrec"]), lambda: self.system.truth))
        if "final_frontiers" in case:
            for name, worker in self.system.workers.items():
                for what, expected, came in self._frontiers(case["final_frontiers"], worker.propagation):
                    comparisons.append((f"{what} at {name}", expected, came))
        return comparisons

    def settle(self) -> None:
        self.system.settle()

    def _propagate(self, name: str) -> None:
        self.system.propagate(name)

    def _counts(self, pairs: Iterable[Any]) -> Changes:
        counted = [(self._pointstamps([pointstamp])[0], count) for pointstamp, count in pairs]
        return Changes(counted)

    def _pointstamps(self, given: Iterable[Any]) -> list[Pointstamp]:
        found = []
        for location, time in given:
            if location not in self.topology.orders:
                raise MoveError(f"the graph has no location {location!r}")
            found.append((location, self.order.check(time)))
        return found


def _refuse(error: MoveError) -> None:
    raise error
