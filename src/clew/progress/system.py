"""A whole system of workers with the queues between them and the truth that no worker sees.

Updates travel in one queue for each pair of workers and arrive in the order sent; data messages arrive in any order.
(Progress thesis, Figure 6.1 and Appendix B.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from clew.progress.exchange import Mode, Refused, Worker
from clew.progress.topology import Pointstamp, Topology
from clew.times import Antichain, Changes


class System:
    """Workers that all begin with the same view: the sum of what each of them has.

    >>> from clew.times import Add, Integers
    >>> graph = Topology.of_one_order(Integers(), "ab", [("a", "b", Add(1))])
    >>> system = System(graph, {"w0": Changes({("a", 0): 1}), "w1": Changes()}, "caps")
    >>> system.propagate("w1")
    {'a': Antichain({0}), 'b': Antichain({1})}
    >>> system.perform_caps("w0", drop=[("a", 0)], mint=[("a", 3)])
    >>> system.send_update("w0", [("a", 0), ("a", 3)])
    >>> system.receive_update("w0", "w1")
    >>> system.propagate("w1")
    {'a': Antichain({3}), 'b': Antichain({4})}
    """

    def __init__(self, topology: Topology, caps: Mapping[Any, Changes], mode: Mode) -> None:
        self.topology = topology
        self.mode = mode
        self.truth = sum(caps.values(), Changes())
        self.workers = {name: Worker(name, topology, self.truth, owned, mode) for name, owned in caps.items()}
        self.queues: dict[tuple[Any, Any], deque[Changes]] = {
            (sender, receiver): deque() for sender in self.workers for receiver in self.workers
        }
        self.data = Changes()  # Data messages under way: (receiver, pointstamp).

    def perform(self, name: Any, minus: Iterable[Pointstamp] = (), plus: Iterable[Pointstamp] = ()) -> None:
        """A worker consumes and produces pointstamps (mode `abadi`)."""
        self.truth += self._worker(name).perform(self._bag(minus), self._bag(plus), self.truth)

    def perform_caps(
        self,
        name: Any,
        drop: Iterable[Pointstamp] = (),
        mint: Iterable[Pointstamp] = (),
        send: Iterable[tuple[Any, Pointstamp]] = (),
    ) -> None:
        """A worker drops, mints and sends capabilities (mode `caps`)."""
        sent = Changes([((self._worker(receiver).name, pointstamp), 1) for receiver, pointstamp in send])
        carried = Changes([(pointstamp, count) for (_, pointstamp), count in sent.items()])
        self.truth += self._worker(name).perform_caps(self._bag(drop), self._bag(mint), carried)
        self.data += sent

    def receive_cap(self, name: Any, pointstamp: Pointstamp) -> None:
        """A worker takes a data message that carries this pointstamp (mode `caps`)."""
        if self.data.count((name, pointstamp)) <= 0:
            raise Refused("receive what was sent", f"no data message with {pointstamp!r} is under way to {name}")
        self._worker(name).receive_cap(pointstamp)
        self.data -= Changes({(name, pointstamp): 1})

    def send_update(self, name: Any, pointstamps: Iterable[Pointstamp]) -> None:
        """A worker tells all, itself included, its pending changes of these pointstamps."""
        update = self._worker(name).send_update(pointstamps)
        for receiver in self.workers:
            self.queues[name, receiver].append(update)

    def receive_update(self, sender: Any, receiver: Any) -> None:
        """The receiver takes the sender's oldest update."""
        worker = self._worker(receiver)
        queue = self.queues[self._worker(sender).name, receiver]
        worker.must_be_initialised()
        if not queue:
            raise Refused("receive what was sent", f"no update of {sender} is under way to {receiver}")
        worker.receive_update(queue[0])
        queue.popleft()

    def propagate(self, name: Any) -> dict[Any, Antichain]:
        """One complete round of propagation at a worker; returns the frontiers that it has changed."""
        return self._worker(name).propagate()

    def settle(self) -> None:
        """Delivers all updates that are under way and lets every worker propagate."""
        for name in self.workers:
            self.propagate(name)
        for (sender, receiver), queue in self.queues.items():
            while queue:
                self.receive_update(sender, receiver)
        for name in self.workers:
            self.propagate(name)

    def _worker(self, name: Any) -> Worker:
        if name not in self.workers:
            raise Refused("known workers", f"there is no worker {name!r}; the workers are {', '.join(self.workers)}")
        return self.workers[name]

    def _bag(self, pointstamps: Iterable[Pointstamp]) -> Changes:
        return Changes([(pointstamp, 1) for pointstamp in pointstamps])
