"""The coordinator's log in a run with snapshots: which epoch is complete, and which generation of the run this is.

It is a log of the same store under a name that no operator can have. Invariant: both numbers only grow.
"""

from __future__ import annotations

from clew.errors import LogError, LogNotFound
from clew.log.contract import LogReader, ReplicaLog
from clew.model.history import Transaction
from clew.model.names import Replica

EPOCHS = Replica("clew.epochs")
"""Whose log it is; an operator's name has no dot."""


class EpochLog:
    """What the coordinator knows for ever."""

    def __init__(self, durable: ReplicaLog) -> None:
        self._durable = durable
        counters = durable.recover().counters
        self.epoch = counters.get("epoch", 0)
        """The last complete epoch; 0: there is none yet."""
        self.generation = counters.get("generation", 0)
        """The last generation of the run that was begun; they count from 1."""

    def begin_generation(self) -> int:
        """Takes the next generation's number, durably."""
        self._set("generation", self.generation + 1)
        self.generation += 1
        return self.generation

    def complete(self, epoch: int) -> None:
        """Makes it durable that every replica has stored this epoch."""
        if epoch < self.epoch:
            raise LogError(
                f"epoch {epoch} cannot become the last complete one, since epoch {self.epoch} is complete already; "
                f"expected a later one. Complete epochs in their order."
            )
        self._set("epoch", epoch)
        self.epoch = epoch

    def close(self) -> None:
        """Lets go of the log."""
        self._durable.close()

    def _set(self, name: str, value: int) -> None:
        transaction = Transaction(counters={name: value})
        self._durable.stage(transaction)
        self._durable.commit(transaction)


def complete_epoch(reader: LogReader) -> int:
    """The last complete epoch of a run with snapshots, from its logs; 0 if there is none."""
    try:
        return reader.rows(EPOCHS).counters.get("epoch", 0)
    except LogNotFound:
        return 0
