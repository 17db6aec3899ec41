"""The rules of LOG.io: each gives the configurations that one step of it can lead to.

Algorithms 1 to 9 of the LOG.io text and the prefix rule of the log, for operators in one process each. What happens
in an operator is first only decided, in memory; COMMIT makes everything decided so far durable at once, and only then
may SEND, WRITE and ACK let others know of it. FAIL forgets what is in memory. RECOVER concerns the failed operator
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from clew.verify.logging_semantics.configuration import (
    Channel,
    Configuration,
    Event,
    Executed,
    Memory,
    Pair,
    Process,
    Taken,
    initial,
)
from clew.verify.logging_semantics.program import InputSet, Program
from clew.verify.logging_semantics.promises import Promises, fold, with_item


class Label(NamedTuple):
    """Which rule a step used, and on whom."""

    rule: str
    on: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.rule} {self.on} {self.what}".rstrip()


Step = tuple[Label, bool, Configuration]
FAIL = "FAIL"


class Rules(Promises):
    """The steps of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = [operator.name for operator in program.operators]
        self.links_in = [
            [place for place, link in enumerate(program.links) if link.receiver == number]
            for number in range(len(self.names))
        ]
        self.links_out = [
            [place for place, link in enumerate(program.links) if link.sender == number]
            for number in range(len(self.names))
        ]

    def initial(self) -> Configuration:
        """The configuration in which the program begins."""
        return initial(self.program)

    def steps(self, configuration: Configuration) -> Iterator[Step]:
        """All steps from a configuration: label, whether it belongs to failures, and where it leads."""
        for number, process in enumerate(configuration.processes):
            if process.memory is None:
                yield from self.recover(configuration, number)
                continue
            yield from self.read(configuration, number, process.memory)
            yield from self.receive(configuration, number, process.memory)
            yield from self.assign(configuration, number, process.memory)
            yield from self.generate(configuration, number, process.memory)
            yield from self.commit(configuration, number, process, process.memory)
            yield from self.write(configuration, number, process, process.memory)
            yield from self.fail(configuration, number, process)
        for place in range(len(configuration.channels)):
            yield from self.send(configuration, place)
            yield from self.acknowledge(configuration, place)

    def read(self, configuration: Configuration, number: int, memory: Memory) -> Iterator[Step]:
        """READ: a source takes its next record and makes it an output event (Algorithm 1, step 3)."""
        records, log = self.program.operators[number].records, memory.log
        if log.offset < len(records):
            record = records[log.offset]
            log = log._replace(offset=log.offset + 1, outputs=(*log.outputs, record))
            yield self._decided("READ", configuration, number, memory._replace(log=log), str(record))

    def receive(self, configuration: Configuration, number: int, memory: Memory) -> Iterator[Step]:
        """RECEIVE: the next event of a channel is taken in, or left out as obsolete (Algorithm 2, step 1)."""
        if memory.taken is not None or self._ready(number, memory) is not None:
            return
        for port, place in enumerate(self.links_in[number]):
            channel = configuration.channels[place]
            if not channel.events:
                continue
            event, seen = channel.events[0], memory.log.assigned[port]
            rest = with_item(configuration.channels, place, channel._replace(events=channel.events[1:]))
            after = configuration._replace(channels=rest)
            if self.is_obsolete(event, seen):
                yield Label("RECEIVE", self.names[number], f"obsolete {event.number}"), False, after
            else:
                taken = memory._replace(taken=Taken(port, event.number, event.value))
                yield self._decided("RECEIVE", after, number, taken, str(event.value))

    def assign(self, configuration: Configuration, number: int, memory: Memory) -> Iterator[Step]:
        """ASSIGN: an event gets its Input Sets, may change the state, and is folded (Algorithm 2, step 2)."""
        if memory.taken is None:
            return
        port, event, value = memory.taken
        log, folded = memory.log, memory.folded
        state, input_sets = self.program.operators[number].assign(log.state, port, value)
        for input_set in input_sets:
            folded = fold(folded, input_set, port, value)
        log = log._replace(
            state=state,
            assigned=with_item(log.assigned, port, event),
            undone=(*log.undone, *(Pair(port, event, input_set) for input_set in input_sets)),
        )
        what = f"{value} to {', '.join(map(str, input_sets)) or 'none'}"
        yield self._decided("ASSIGN", configuration, number, Memory(log, None, folded), what)

    def generate(self, configuration: Configuration, number: int, memory: Memory) -> Iterator[Step]:
        """GENERATE: outputs and write actions of an Input Set; its pairs are done (Algorithm 3, steps 3 and 4)."""
        input_set = self._ready(number, memory)
        if memory.taken is not None or input_set is None:
            return
        log, contents = memory.log, dict(memory.folded)[input_set]
        rest = tuple(entry for entry in memory.folded if entry[0] != input_set)
        undone = tuple(pair for pair in log.undone if pair.input_set != input_set)
        for made in self.program.operators[number].generate(log.state, input_set, contents):
            after = log._replace(
                state=made.state,
                outputs=log.outputs + made.outputs,
                undone=undone,
                writes=log.writes + made.writes,
            )
            what = f"{input_set}: {', '.join(map(str, made.outputs + made.writes)) or 'nothing'}"
            yield self._decided("GENERATE", configuration, number, Memory(after, None, rest), what)

    def commit(self, configuration: Configuration, number: int, process: Process, memory: Memory) -> Iterator[Step]:
        """COMMIT: what was decided becomes durable, all or nothing."""
        for log in self.commits(process, memory):
            after = with_item(configuration.processes, number, Process(log, memory))
            yield Label("COMMIT", self.names[number]), False, configuration._replace(processes=after)

    def write(self, configuration: Configuration, number: int, process: Process, memory: Memory) -> Iterator[Step]:
        """WRITE: the outside system executes the next write action; that it is done is decided (Algorithm 5)."""
        log = memory.log
        if log.written < self.executable(process):
            execution = Executed(log.written + 1, log.writes[log.written])
            held = self.executed(configuration.outside[number], execution)
            after = configuration._replace(outside=with_item(configuration.outside, number, held))
            log = log._replace(written=log.written + 1)
            yield self._decided("WRITE", after, number, memory._replace(log=log), str(execution.value))

    def send(self, configuration: Configuration, place: int) -> Iterator[Step]:
        """SEND: the next output event goes on its way, if the window has room (Algorithm 3, step 5).

        What a failed sender left under way takes room too: a buffer that is full blocks the connection (section 2.1).
        """
        link, channel = self.program.links[place], configuration.channels[place]
        sender, receiver = configuration.processes[link.sender], configuration.processes[link.receiver]
        if sender.memory is None or receiver.memory is None:
            return
        outputs, window = self.sendable(sender), self.program.window
        has_room = channel.sent - channel.acknowledged < window and len(channel.events) < window
        if channel.sent < len(outputs) and has_room:
            event = Event(channel.sent + 1, outputs[channel.sent])
            after = channel._replace(events=(*channel.events, event), sent=channel.sent + 1)
            label = Label("SEND", f"{self.names[link.sender]}->{self.names[link.receiver]}", str(event.value))
            yield label, False, configuration._replace(channels=with_item(configuration.channels, place, after))

    def acknowledge(self, configuration: Configuration, place: int) -> Iterator[Step]:
        """ACK: the sender learns which events are assigned durably, which makes room in the window.

        Only once the window is full: before that, nothing depends on it, and there are fewer configurations to explore.
        """
        link, channel = self.program.links[place], configuration.channels[place]
        if configuration.processes[link.sender].memory is None or configuration.processes[link.receiver].memory is None:
            return
        known = self.acknowledgeable(configuration.processes[link.receiver], link.port)
        if known > channel.acknowledged and channel.sent - channel.acknowledged >= self.program.window:
            after = channel._replace(acknowledged=known)
            label = Label("ACK", f"{self.names[link.receiver]}->{self.names[link.sender]}", str(known))
            yield label, False, configuration._replace(channels=with_item(configuration.channels, place, after))

    def fail(self, configuration: Configuration, number: int, process: Process) -> Iterator[Step]:
        """FAIL: an operator loses its memory, and what was on its way to it."""
        channels = configuration.channels
        for place in self.links_in[number]:
            channels = with_item(channels, place, Channel((), 0, 0))
        for place in self.links_out[number]:
            channels = with_item(channels, place, Channel(channels[place].events, 0, 0))
        processes = with_item(configuration.processes, number, process._replace(memory=None))
        after = configuration._replace(processes=processes, channels=channels)
        yield Label(FAIL, self.names[number]), True, after

    def recover(self, configuration: Configuration, number: int) -> Iterator[Step]:
        """RECOVER: an operator, alone, goes on from its log (Algorithms 6 to 9).

        Senders begin again after what is assigned durably, and so does it towards its receivers. What it had sent
        before it failed may still arrive, or be lost.
        """
        process = configuration.processes[number]
        undone = process.durable.undone
        senders = [self.program.links[self.links_in[number][pair.port]].sender for pair in undone]
        logs = [configuration.processes[sender].durable.outputs for sender in senders]
        if any(pair.event > len(outputs) for pair, outputs in zip(undone, logs, strict=True)):
            return  # It cannot go on before the bodies are there. In the protocol as it is they always are.
        bodies = tuple(outputs[pair.event - 1] for pair, outputs in zip(undone, logs, strict=True))
        memory = Memory(process.durable, None, self.folded(number, undone, bodies))
        channels = configuration.channels
        for place in self.links_in[number]:
            channels = with_item(channels, place, self._begun(configuration, place, ()))
        after = configuration._replace(
            processes=with_item(configuration.processes, number, process._replace(memory=memory))
        )
        kept = lost = channels
        for place in self.links_out[number]:
            kept = with_item(kept, place, self._begun(configuration, place, channels[place].events))
            lost = with_item(lost, place, self._begun(configuration, place, ()))
        yield Label("RECOVER", self.names[number]), True, after._replace(channels=kept)
        if lost != kept:
            label = Label("RECOVER", self.names[number], "with its messages lost")
            yield label, True, after._replace(channels=lost)

    def _begun(self, configuration: Configuration, place: int, events: tuple[Event, ...]) -> Channel:
        """A channel on which the sender begins again after what its receiver has acknowledged."""
        link = self.program.links[place]
        known = self.acknowledgeable(configuration.processes[link.receiver], link.port)
        return Channel(events, known, known)

    def _ready(self, number: int, memory: Memory) -> InputSet | None:
        return self.program.operators[number].ready(memory.log.state, memory.folded)

    def _decided(self, rule: str, configuration: Configuration, number: int, memory: Memory, what: str) -> Step:
        process = configuration.processes[number]._replace(memory=memory)
        processes = with_item(configuration.processes, number, process)
        return Label(rule, self.names[number], what), False, configuration._replace(processes=processes)
