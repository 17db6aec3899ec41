"""Broken variants of the rules of LOG.io, each with one promise taken away; the checker must catch every one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.verify.logging_semantics.configuration import (
    Configuration,
    Event,
    Executed,
    Log,
    Memory,
    Pair,
    Process,
    Value,
)
from clew.verify.logging_semantics.promises import Folded
from clew.verify.logging_semantics.rules import Rules, Step


class SendsBeforeCommit(Rules):
    def sendable(self, process: Process) -> tuple[Value, ...]:
        assert process.memory is not None
        return process.memory.log.outputs


class TakesObsolete(Rules):
    def is_obsolete(self, event: Event, seen: int) -> bool:
        return False


class ForgetsUndone(Rules):
    def folded(self, number: int, undone: tuple[Pair, ...], bodies: tuple[Value, ...]) -> Folded:
        return ()


class WritesWithoutId(Rules):
    def executed(self, before: tuple[Executed, ...], execution: Executed) -> tuple[Executed, ...]:
        return (*before, execution)


class WritesBeforeCommit(Rules):
    def executable(self, process: Process) -> int:
        assert process.memory is not None
        return len(process.memory.log.writes)


class SplitsGenerations(Rules):
    """Outputs and write actions are logged in one commit, what is done in the next."""

    def commits(self, process: Process, memory: Memory) -> Iterable[Log]:
        durable, log = process.durable, memory.log
        if (durable.outputs, durable.writes) != (log.outputs, log.writes):
            yield durable._replace(outputs=log.outputs, writes=log.writes, offset=log.offset)
        else:
            yield from super().commits(process, memory)


class SplitsTheOtherWay(Rules):
    """What is done is logged in one commit, outputs and write actions in the next."""

    def commits(self, process: Process, memory: Memory) -> Iterable[Log]:
        durable, log = process.durable, memory.log
        first = log._replace(outputs=durable.outputs, writes=durable.writes)
        if durable != first:
            yield first
        else:
            yield from super().commits(process, memory)


class CommitsStateLater(Rules):
    """The state is stored at generations only, as the LOG.io text has it, not with the assignment that changed it."""

    def commits(self, process: Process, memory: Memory) -> Iterable[Log]:
        durable, log = process.durable, memory.log
        is_generation = (durable.outputs, durable.writes) != (log.outputs, log.writes)
        kept = log if is_generation else log._replace(state=durable.state)
        if kept != durable:
            yield kept


class ResendsNothing(Rules):
    """A sender that starts again goes on after its last output event."""

    def recover(self, configuration: Configuration, number: int) -> Iterator[Step]:
        for label, is_failure, after in super().recover(configuration, number):
            channels = list(after.channels)
            for place in self.links_out[number]:
                end = len(after.processes[number].durable.outputs)
                channels[place] = channels[place]._replace(sent=end, acknowledged=end)
            yield label, is_failure, after._replace(channels=tuple(channels))


class TriggersWhileRefolding(Rules):
    """Asks for ready Input Sets after each undone pair, as the LOG.io text has it; the others come too late."""

    def recover(self, configuration: Configuration, number: int) -> Iterator[Step]:
        for label, is_failure, after in super().recover(configuration, number):
            process = after.processes[number]
            assert process.memory is not None
            folded: Folded = ()
            for input_set, contents in process.memory.folded:
                folded = (*folded, (input_set, contents[:1]))
                if self.program.operators[number].ready(process.durable.state, folded) is None:
                    folded = (*folded[:-1], (input_set, contents))
            hasty = process._replace(memory=process.memory._replace(folded=folded))
            processes = (*after.processes[:number], hasty, *after.processes[number + 1 :])
            yield label, is_failure, after._replace(processes=processes)
