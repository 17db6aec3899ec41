"""Generations: the coordinator's part in a run with snapshots, which steps the kernel of epochs and tells the hosts.

All of it happens on the loop's thread, except what must become durable: that has a thread of its own, since a disk
may take its time, and the loop must not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from clew.log.epochs import EpochLog
from clew.model.names import Replica, parse_replica
from clew.protocol import epochs
from clew.runtime.control import message
from clew.runtime.loop import Loop
from clew.runtime.threads import Worker


class Generations:
    """Which generation of the run this is, from which epoch it began, and which epochs are complete."""

    def __init__(
        self,
        log: EpochLog,
        replicas: Iterable[Replica],
        every_s: float,
        loop: Loop,
        tell_all: Callable[[bytes], None],
        rewound: Callable[[int], None],
        fail: Callable[[str], None],
    ) -> None:
        self.kernel = epochs.EpochKernel(replicas, every_s, log.epoch)
        self._log = log
        self._loop = loop
        self._tell_all = tell_all
        self._rewound = rewound
        """Called with the number of each new generation, before anybody is told."""
        self._fail = fail
        self._durably = Worker("clew-epochs", self._on_error)
        self._tick_at: float | None = None
        self._began_from = log.epoch
        self._completed = 0
        self._completed_at: float | None = None
        self._is_over = False

    def start(self) -> None:
        """Begins the first generation of this run."""
        self._take(epochs.Lost())

    def lost(self) -> None:
        """A host is gone: all begin anew."""
        self._take(epochs.Lost())

    def close(self) -> None:
        """Makes nothing durable any more."""
        self._is_over = True
        if self._durably.end():
            self._log.close()

    def told(self, replicas: Iterable[Replica], said: dict[str, Any]) -> None:
        """A host says that a replica has joined the generation, or has stored a snapshot; raises if it cannot be so."""
        replica, generation = parse_replica(said["replica"]), int(said["generation"])
        if replica not in replicas:
            raise ValueError(f"{replica} is not one of its replicas")
        if said["type"] == "joined":
            self._take(epochs.Joined(replica, generation, bool(said["is_finished"])))
        else:
            self._take(epochs.Stored(replica, generation, int(said["epoch"]), bool(said["is_final"])))

    def where(self) -> dict[str, int]:
        """From where a host that has just come begins; generation 0: it will be told."""
        kernel = self.kernel
        is_open = kernel.generation > 0 and not kernel.is_opening
        return {"generation": kernel.generation if is_open else 0, "epoch": self._began_from}

    @property
    def epoch(self) -> int:
        """The last complete epoch."""
        return self.kernel.epoch

    def report(self) -> dict[str, Any]:
        """For reports; may be called from any thread."""
        at = self._completed_at
        return {
            "generation": self.kernel.generation,
            "epoch": self.kernel.epoch,
            "epochs_completed": self._completed,
            "every_s": self.kernel.every_s,
            "age_s": None if at is None else round(time.monotonic() - at, 3),
        }

    # The kernel

    def _take(self, given: epochs.Input) -> None:
        if self._is_over:
            return
        effects = [*self.kernel.step(epochs.Ticked(time.monotonic())), *self.kernel.step(given)]
        for effect in effects:
            self._begin(effect)
        at = self.kernel.next_at
        if at is not None and at != self._tick_at:
            self._tick_at = at
            self._loop.at(at, self._tick)

    def _tick(self) -> None:
        self._tick_at = None
        self._take(epochs.Ticked(time.monotonic()))

    def _begin(self, effect: epochs.Effect) -> None:
        generation = self.kernel.generation
        match effect:
            case epochs.Open():
                self._durably.do(self._open)
            case epochs.Record():
                self._durably.do(lambda: self._record(effect.epoch))
            case epochs.Rewind():
                self._began_from = effect.epoch
                self._rewound(effect.generation)
                self._tell_all(message("rewind", generation=effect.generation, epoch=effect.epoch))
            case epochs.Mark():
                self._tell_all(message("mark", generation=generation, epoch=effect.epoch))
            case epochs.Tell():
                self._tell_all(message("epoch", generation=generation, epoch=effect.epoch))

    # What becomes durable, on the worker's thread

    def _open(self) -> None:
        opened = epochs.Opened(self._log.begin_generation())
        self._loop.soon(lambda: self._take(opened))

    def _record(self, epoch: int) -> None:
        self._log.complete(epoch)
        self._loop.soon(lambda: self._recorded(epoch))

    def _recorded(self, epoch: int) -> None:
        self._completed += 1
        self._completed_at = time.monotonic()
        self._take(epochs.Recorded(epoch))

    def _on_error(self, error: BaseException) -> None:
        why = (
            f"the epochs of the run cannot be kept: {type(error).__name__}: {error}. Mend the log's disk or database, "
            f"and run the pipeline again with the same log."
        )
        self._loop.soon(lambda: self._fail(why))
