"""Telling: what an explanation leaves out, as a story: who failed when, what was discarded, what was done again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from clew.model.names import Replica
from clew.trace.life import Life
from clew.trace.reader import Trace
from clew.trace.records import LOG, Steps, threes, twos
from clew.verify.explain.explanation import Recovery, Step, Story
from clew.verify.explain.keeping import Kept, part_steps
from clew.verify.explain.rules import Place
from clew.verify.explain.writes import Outside


def stories_of(
    trace: Trace, kept: Mapping[Replica, Kept], places: Mapping[Replica, Place], outside: Mapping[Replica, Outside]
) -> dict[str, Story]:
    """What each replica did."""
    stories = {}
    for replica, lives in trace.lives.items():
        own, place, names = kept[replica], places[replica], trace.names(replica)
        lost = {(id(step.life), id(step.record)) for step in own.discarded}
        moments = [
            (record.time, record.steps, (id(life), id(record)) not in lost)
            for life in lives
            for record in life.told
            if isinstance(record, Steps) and record.parts
        ]
        end = lives[-1].end
        stories[str(replica)] = Story(
            incarnations=len(lives),
            commits=sum(step.part is not None for step in own.steps),
            steps=part_steps(own.steps),
            discarded=part_steps(own.discarded),
            undecided=part_steps(own.undecided),
            taken={str(channel): number for channel, number in zip(names.channels, place.taken, strict=True)},
            made=dict(zip(names.ports, place.made, strict=False)),
            written={name: each.last for name, each in zip(names.writes, outside[replica].connections, strict=True)},
            settled=sum(each.settled for each in outside[replica].connections),
            is_complete=end is not None and end.is_complete,
            moments=moments,
            lives=[(life.incarnation, life.head.time, life.last_seen, life.end is not None) for life in lives],
        )
    return stories


def recoveries_of(
    trace: Trace, kept: Mapping[Replica, Kept], places: Mapping[Replica, Place], outside: Mapping[Replica, Outside]
) -> list[Recovery]:
    """Every beginning but the first, in the order of the clock; with snapshots those of a generation are one."""
    beginnings: dict[tuple[str, int], list[tuple[Replica, Life, Life]]] = {}
    for replica, lives in trace.lives.items():
        for before, after in pairwise(lives):
            key = (str(replica) if trace.mode == LOG else "", after.incarnation)
            beginnings.setdefault(key, []).append((replica, before, after))
    found = []
    for (_, incarnation), members in beginnings.items():
        died = [replica for replica, before, after in members if _has_died(before, after)]
        seen = [before.last_seen for replica, before, _ in members if not died or replica in died]
        first = min(
            (each.time for _, _, after in members for each in after.told if isinstance(each, Steps)), default=None
        )
        head = members[0][2].head
        reasons = [before.end.why for _, before, _ in members if before.end is not None and before.end.why]
        recovery = Recovery(
            who=tuple(str(replica) for replica, _, _ in members),
            died=tuple(map(str, died)),
            incarnation=incarnation,
            last_seen=min(seen),
            back=max(after.head.time for _, _, after in members),
            went_on=first,
            to=head.position if trace.mode == LOG else head.recovered,
            why="; ".join(dict.fromkeys(reasons)),
        )
        for replica, before, after in members:
            lost = [step for step in kept[replica].discarded if step.life is before]
            recovery.discarded += part_steps(lost)
            recovery.discarded_commits += len({id(step.record) for step in lost})
            recovery.replayed += _taken_again(lost, after, places[replica])
            recovery.refolded += after.head.undone
            recovery.settled += outside[replica].settled.get(after.incarnation, 0)
        found.append(recovery)
    return sorted(found, key=lambda each: each.back)


def _has_died(before: Life, after: Life) -> bool:
    """Whether its process did not end in order; with snapshots most processes live on and only go back."""
    return before.end is None and before.head.process != after.head.process


def _taken_again(lost: Iterable[Step], after: Life, place: Place) -> int:
    """How many events of discarded steps were taken after all."""
    reached: dict[int, int] = {}
    for step in lost:
        if step.part is not None:
            for index, _, last in threes(step.part.took):
                reached[index] = max(reached.get(index, 0), last)
            for index, number in twos(step.part.ended + step.part.held):
                reached[index] = max(reached.get(index, 0), number)
    return sum(max(0, min(last, place.taken[index]) - after.head.taken[index]) for index, last in reached.items())
