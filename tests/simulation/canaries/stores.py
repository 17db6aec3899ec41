"""Canaries of stores: fencing, atomicity, body files, and counters that retention must not touch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulation.canaries.canary import canary
from tests.simulation.canaries.habitats import files, pairs, quiet, shop

from clew.log.memory import MemoryReplicaLog, Rows
from clew.model.history import Output, Recovered, Transaction


@canary(
    "no incarnation check",
    pairs,
    r"commits although incarnation|expected id \d+|the cursor of [\w.>-]+ goes back|took event|came before ready\(\)",
)
class NoIncarnationCheck(MemoryReplicaLog):
    """A process that was taken for dead and replaced can still commit, so that two histories mix in one log."""

    def commit(self, transaction: Transaction) -> None:
        self._append(transaction)
        self._forget(transaction)


@canary("incarnation not counted up", pairs, r"begins as incarnation 1 after 1|stuck: nothing can happen any more")
class SameIncarnation(MemoryReplicaLog):
    """A restart takes its predecessor's incarnation again, so that nobody can tell the two apart."""

    def __init__(self, rows: Rows, *given: Any) -> None:
        rows.incarnation = 0
        super().__init__(rows, *given)


@canary("ids reused after retention", quiet, r"is logged, expected id \d+|numbers.* sent \d+, durable 0")
class CountsRows(MemoryReplicaLog):
    """Counters of ids are recovered as the maximum of rows, so that removing rows gives their ids out again."""

    def recover(self) -> Recovered:
        recovered = super().recover()
        for name in recovered.counters:
            kind, _, port = name.partition(":")
            if kind == "out" and f"written:{port}" not in recovered.counters:
                recovered.counters[name] = max(self.rows.outputs.get(port, {}), default=0)
        return recovered


@canary("body file written after the commit", files, r"the body of [\w.]+/\d+ is missing")
class BodyAfterCommit(MemoryReplicaLog):
    """A body is written to its file only after the row that refers to it, so that a crash leaves a row without body."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.late: list[Transaction] = []

    def stage(self, transaction: Transaction) -> None:
        self._write_late()

    def commit(self, transaction: Transaction) -> None:
        super().commit(transaction)
        self.late.append(transaction)

    def outputs(self, port: str, first: int, limit: int) -> list[Output]:
        self._write_late()
        return super().outputs(port, first, limit)

    def _write_late(self) -> None:
        for transaction in self.late:
            super().stage(transaction)
        self.late.clear()


@canary("body file named without its incarnation", files, r"is sent although it is not durable")
class SharedBodyFile(MemoryReplicaLog):
    """Incarnations write the body of an event to the same file, so that one taken for dead overwrites a newer one."""

    def stage(self, transaction: Transaction) -> None:
        for output in transaction.outputs:
            if self._is_large(output):
                for incarnation in range(1, self.rows.incarnation + 1):
                    self.rows.files[incarnation, output.event.port, output.event.id] = output.event.batch


@canary("a commit that is not atomic", pairs, r"ready\(\) answered None|event \d+ is .* a run without failures")
class TornCommit(MemoryReplicaLog):
    """Done marks are in the log before the rest of their commit, so that a crash leaves them there without outputs."""

    def stage(self, transaction: Transaction) -> None:
        super().stage(transaction)
        for serial in transaction.forget_sets:
            self._forget_set(serial)


@canary("required write forgotten on resend", shop, r"orders\.out/\d+ is sent before write shop/\d+ is done")
class ForgetsRequirement(MemoryReplicaLog):
    """The log does not say which write an output waits for, so that a restarted sender resends it too early."""

    def commit(self, transaction: Transaction) -> None:
        outputs = [output._replace(requires=()) for output in transaction.outputs]
        super().commit(replace(transaction, outputs=outputs))
