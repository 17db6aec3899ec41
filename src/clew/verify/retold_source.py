"""A source, re-executed: each read action's effect became events, once and in order, at the right times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from clew.errors import Violation
from clew.model.event import as_batch, same_batch
from clew.model.graph import Graph
from clew.model.names import Replica
from clew.model.values import decode, encode
from clew.protocol import decisions as did
from clew.verify.archive import Archive
from clew.verify.outside import Outside
from clew.verify.retelling import Run


class SourceRun(Run):
    """One source, re-executed."""

    def __init__(self, graph: Graph, replica: Replica, archive: Archive, outside: Outside) -> None:
        super().__init__(graph, replica, archive)
        self.readings = outside.readings
        self.held = () if self.node.stamps is None else self.node.stamps.start

    def judge(self) -> None:
        """Each read action's effect became events, once and in order."""
        kept: dict[int, list[pa.RecordBatch]] = {}
        executions: dict[int, set[int]] = {}
        items: Iterator[Any] = iter(())
        is_closed = False
        for decision in self.shelf.journal:
            match decision:
                case did.Began():
                    action = self.definition.plan(self.ctx.given(decision.choices))
                    if (None if action is None else encode(action)) != decision.description:
                        raise Violation(f"{self.replica}: plan() gave another action than in a run without failures")
                    if action is None:
                        is_closed = True
                    elif self.definition.is_replayable:
                        items = (item for item in self.definition.read(action, None) if item is not None)
                case did.Emitted() if self.definition.is_replayable:
                    self._emitted(decision, next(items, None))
                case did.Followed():
                    self._followed(decision)
                case did.Bordered():
                    self.expect_border(decision.epoch)
                case did.Read() if self.definition.is_replayable:
                    if next(items, None) is not None:
                        raise Violation(
                            f"{self.replica}: action {decision.action} ended before all of its effect was read"
                        )
                case did.Kept():
                    kept.setdefault(decision.action, []).append(decision.batch)
                    executions.setdefault(decision.action, set()).add(decision.execution)
                case did.Dropped():
                    kept.pop(decision.action, None)
                    executions.pop(decision.action, None)
                case did.Read() if not self.definition.is_replayable:
                    if len(executions.get(decision.action, ())) > 1:
                        raise Violation(f"{self.replica}: action {decision.action} mixes two executions of one read")
                    self._expect_reading(decision.action, executions, kept.get(decision.action, []))
                    for batch in kept.get(decision.action, []):
                        self._expect_stamped(batch)
        if not is_closed:
            raise Violation(f"{self.replica}: the source never finished")
        for port in self.node.outputs:
            self.expect(port, None)
        self.expect_end()

    def _expect_reading(self, action: int, executions: dict[int, set[int]], kept: list[pa.RecordBatch]) -> None:
        """What was stored of an action that is not replayable is all that one execution of it gave."""
        readings = self.readings.get((self.replica, action), {})
        used = [reading for number, reading in readings.items() if number in executions.get(action, readings)]
        if readings and not any(
            reading.is_complete and len(reading.batches) == len(kept) and all(map(same_batch, reading.batches, kept))
            for reading in used
        ):
            gave = " or ".join(str(len(reading.batches)) for reading in used) or "none"
            raise Violation(
                f"{self.replica}: action {action} stored {len(kept)} batches; its reading gave {gave}, or others"
            )

    def _emitted(self, decision: did.Emitted, item: Any) -> None:
        if item is None:
            raise Violation(f"{self.replica}: action {decision.action} gave less than was sent")
        data, position = item
        if encode(position) != decision.offset:
            raise Violation(f"{self.replica}: logged offset {decode(decision.offset)!r}; reading gives {position!r}")
        self._expect_stamped(as_batch(data))

    def _expect_stamped(self, batch: pa.RecordBatch) -> None:
        """What was read is sent as it is, or in parts, each with its time."""
        port, stamps = self.node.outputs[0], self.node.stamps
        if stamps is None:
            self.expect(port, batch)
            return
        parts, self.held = stamps.stamp(batch, self.held)
        for part in parts:
            number = self.expect(port, part.batch, part.time)
            is_late = bool(self.shelf.outputs[port][number - 1].event.attributes.get("late"))
            if is_late != part.is_late:
                raise Violation(f"{self.replica}.{port}/{number}: late is {is_late}, expected {part.is_late}")
            if is_late:
                self.ctx.counts["late"] += part.batch.num_rows

    def _followed(self, decision: did.Followed) -> None:
        """An idle source moves on only."""
        order = self.node.order
        assert order is not None
        if not all(any(order.leq(old, new) for old in self.held) for new in decision.held):
            raise Violation(f"{self.replica}: moves from {self.held} to {decision.held} while it is idle")
        self.held = decision.held
