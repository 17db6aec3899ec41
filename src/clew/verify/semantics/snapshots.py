"""Greatest common epoch, output and latest common snapshot of a configuration (Definitions 4.2, 4.3 and 4.5)."""

from __future__ import annotations

from clew.verify.semantics.configuration import Configuration, Normal, State, arranged
from clew.verify.semantics.program import Message


def gce(c: Configuration) -> int:
    """The greatest epoch that every task has a snapshot of."""
    return min(state.archive[-1][0] for state in c.states)


def messages_up_to(c: Configuration, epoch: int) -> frozenset[Message]:
    """The messages of all epochs up to this one."""
    return frozenset(
        message for slots in c.messages for slot in slots for message in slot if message.data.epoch <= epoch
    )


def out(c: Configuration) -> frozenset[Message]:
    """The output: what no recovery can take back any more."""
    return messages_up_to(c, gce(c))


def lcs(c: Configuration) -> Configuration:
    """The latest common snapshot, which a recovery goes back to."""
    epoch = gce(c)
    kept = messages_up_to(c, epoch)
    program = c.program
    states = tuple(restored(state, epoch) for state in c.states)
    counts = dict.fromkeys(program.streams, 0)
    for message in kept:
        counts[message.stream] += 1
    numbers = tuple(tuple(counts[stream] for stream in task.streams) for task in program.tasks)
    return Configuration(program, states, numbers, arranged(program, kept.union(program.initial_messages)))


def restored(state: State, epoch: int) -> State:
    """A task's state as its snapshot of this epoch has it; later snapshots are gone, earlier ones stay.

    >>> restored(State(((0, "a"), (1, "b"), (2, "c")), None), 1)
    State(archive=((0, 'a'), (1, 'b')), volatile=Normal(epoch=2, value='b'))
    """
    kept = tuple(snapshot for snapshot in state.archive if snapshot[0] <= epoch)
    return State(kept, Normal(epoch + 1, dict(kept)[epoch]))
