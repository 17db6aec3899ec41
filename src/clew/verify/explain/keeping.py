"""Keeping: which steps of a trace belong to its explanation, and which were discarded by a recovery.

In the mode `log` a replica alone goes back to its last commit: at most the commit that was under way is discarded. In
the mode `snapshot` all go back to an epoch: the trace is divided into generations at the recoveries, and in each of
them the steps of later epochs than the one gone back to are stripped (seed 000, sections 6.2 and 7.2). That the rest
still fits together, in each generation and from one to the next, is for the rules to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.model.names import Replica
from clew.trace.life import Life
from clew.trace.reader import Trace
from clew.trace.records import Completed, Part, Steps, Stored
from clew.verify.explain.explanation import Facts, NoExplanation, Step

FOR_EVER = 1 << 62


@dataclass(slots=True)
class Kept:
    """The steps of one replica, divided."""

    steps: list[Step] = field(default_factory=list)
    discarded: list[Step] = field(default_factory=list)
    undecided: list[Step] = field(default_factory=list)
    """Of epochs that are neither complete nor given up."""


def keep_committed(lives: list[Life], replica: Replica, facts: Facts | None) -> Kept:
    """In the mode `log`: what each next incarnation, or in the end the log itself, has found committed."""
    kept = Kept()
    for number, life in enumerate(lives):
        kept.steps.append(Step(replica, life, life.head, None))
        position = FOR_EVER if facts is None else facts.position
        if number + 1 < len(lives):
            position = lives[number + 1].head.position
        lost = 0
        for record in life.told:
            if isinstance(record, Steps):
                is_kept = record.position <= position and not lost
                found = kept.steps if is_kept else kept.discarded
                found += [Step(replica, life, record, part) for part in record.parts]
                lost += not is_kept
        if lost > 1:
            first = next(each for each in kept.discarded if each.life is life)
            raise NoExplanation(
                first,
                f"it was committed, since another commit followed it; afterwards only position {position:,} was found",
            )
    return kept


def keep_complete(lives: list[Life], replica: Replica, epochs: Mapping[int, int], last: int) -> Kept:
    """In the mode `snapshot`: what each generation did in epochs that the next one went back to or before it."""
    kept = Kept()
    for life in lives:
        kept.steps.append(Step(replica, life, life.head, None))
        following = [epoch for generation, epoch in epochs.items() if generation > life.incarnation]
        limit = following[0] if following else last
        for record in life.told:
            if isinstance(record, Steps):
                for part in record.parts:
                    step = Step(replica, life, record, part)
                    if part.epoch <= limit:
                        kept.steps.append(step)
                    elif following:
                        kept.discarded.append(step)
                    else:
                        kept.undecided.append(step)
    return kept


def recovered_epochs(trace: Trace) -> dict[int, int]:
    """For each generation the epoch that it went back to; raises if its replicas do not agree."""
    found: dict[int, int] = {}
    for replica, lives in trace.lives.items():
        for life in lives:
            epoch = found.setdefault(life.incarnation, life.head.recovered)
            if epoch != life.head.recovered:
                raise NoExplanation(
                    Step(replica, life, life.head, None),
                    f"it goes back to epoch {life.head.recovered}, and others of this generation to epoch {epoch}",
                )
    return dict(sorted(found.items()))


def last_common(trace: Trace, epochs: Mapping[int, int], logged: int | None = None) -> int:
    """The last epoch that is complete; raises if a generation went back to one that was not, or not to the last.

    What the log says about it counts: between the last snapshot and the word that it was the last, all may have died.
    """
    common, completed = 0, 0
    is_whole = all(lives[0].head.is_start and lives[0].head.position == 0 for lives in trace.lives.values())
    for generation, epoch in epochs.items():
        lives = {replica: _life(lives, generation) for replica, lives in trace.lives.items()}
        starts = [(replica, life) for replica, life in lives.items() if life is not None]
        for replica, life in starts:
            step = Step(replica, life, life.head, None)
            if epoch < completed:
                raise NoExplanation(step, f"it goes back to epoch {epoch}, although epoch {completed} was complete")
            if epoch > common and is_whole:
                raise NoExplanation(
                    step, f"it goes back to epoch {epoch}, which was not stored by every replica; the last was {common}"
                )
        common = max(epoch, _common([life for _, life in starts], epoch) if len(starts) == len(lives) else epoch)
        for replica, life in starts:
            for record in life.told:
                if isinstance(record, Completed):
                    completed = max(completed, record.epoch)
                    if record.epoch > common and life.head.is_start:
                        raise NoExplanation(
                            f"{replica}, generation {generation}",
                            f"it was told that epoch {record.epoch} is complete; the last that every replica had "
                            f"stored was {common}",
                        )
    if logged is not None:
        if not completed <= logged <= common:
            raise NoExplanation(
                "the log of the epochs",
                f"it says that epoch {logged} is the last complete one; replicas were told of {completed}, and had all "
                f"stored {common}",
            )
        return logged
    return common


def _life(lives: list[Life], generation: int) -> Life | None:
    return next((life for life in lives if life.incarnation == generation), None)


def _common(lives: list[Life], epoch: int) -> int:
    """The greatest common epoch; when all have finished, the last in which one of them did."""
    stored, final = [], []
    for life in lives:
        found = [record for record in life.told if isinstance(record, Stored)]
        ends = [record.epoch for record in found if record.is_final] + [epoch] * life.head.is_finished
        if ends:
            final.append(max(ends))
        else:
            stored.append(max([epoch, *(record.epoch for record in found)]))
    return min(stored) if stored else max(final, default=epoch)


def part_steps(steps: list[Step]) -> int:
    """How many decisions there are in commits, or in parts of them."""
    return sum(part.steps for part in (step.part for step in steps) if isinstance(part, Part))
