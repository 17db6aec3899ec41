"""Ways to falsify a trace so that it tells of something else than happened; each must be noticed.

A mutation is given a complete run and chance, and gives another trace, or None where there is nothing to falsify so.
The number of steps of a commit stays what its position says, so that it is not this which gives the falsification away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from clew.model.names import Replica
from clew.trace.life import Life
from clew.trace.reader import Trace
from clew.trace.records import LOG, SNAPSHOT, Completed, Part, Steps, Stored, Wrote, threes, twos


class Spot(NamedTuple):
    """A record of a trace."""

    replica: Replica
    life: int
    place: int
    record: Any


def kept_spots(trace: Trace) -> Iterator[Spot]:
    """The commits that no recovery discarded, by their positions or epochs alone."""
    generations = {life.incarnation: life.head.recovered for lives in trace.lives.values() for life in lives}
    for replica, lives in trace.lives.items():
        for number, life in enumerate(lives):
            following = lives[number + 1].head if number + 1 < len(lives) else None
            later = [epoch for generation, epoch in generations.items() if generation > life.incarnation]
            for place, record in enumerate(life.told):
                if not isinstance(record, Steps) or not record.parts:
                    continue
                if trace.mode == LOG:
                    is_kept = following is None or record.position <= following.position
                else:
                    is_kept = not later or record.parts[0].epoch <= min(later)
                if is_kept:
                    yield Spot(replica, number, place, record)


def with_told(trace: Trace, replica: Replica, life: int, told: list[Any]) -> Trace:
    lives = {each: list(found) for each, found in trace.lives.items()}
    lives[replica][life] = Life(lives[replica][life].head, told)
    return Trace(trace.mode, lives)


def with_record(trace: Trace, spot: Spot, *records: Any) -> Trace:
    told = list(trace.lives[spot.replica][spot.life].told)
    told[spot.place : spot.place + 1] = records
    return with_told(trace, spot.replica, spot.life, told)


def with_part(trace: Trace, spot: Spot, more_steps: int = 0, **changes: Any) -> Trace:
    part: Part = spot.record.parts[0]
    counts = {**part.counts, **changes.pop("counts", {})}
    if more_steps:
        counts["made up"] = more_steps
    return with_record(trace, spot, spot.record._replace(parts=(part._replace(counts=counts, **changes),)))


def flat(groups: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(number for group in groups for number in group)


def single(runs: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Runs as single events."""
    return [(place, number, number) for place, first, last in threes(runs) for number in range(first, last + 1)]


def _pick(trace: Trace, chance: Random, wanted: Callable[[Part], Any]) -> Spot | None:
    found = [spot for spot in kept_spots(trace) if wanted(spot.record.parts[0])]
    return chance.choice(found) if found else None


def event_removed(trace: Trace, chance: Random) -> Trace | None:
    spot = _pick(trace, chance, lambda part: part.took)
    if spot is None:
        return None
    events = single(spot.record.parts[0].took)
    events.pop(chance.randrange(len(events)))
    return with_part(trace, spot, 1, took=flat(events))


def event_doubled(trace: Trace, chance: Random) -> Trace | None:
    spot = _pick(trace, chance, lambda part: part.took)
    if spot is None:
        return None
    events = single(spot.record.parts[0].took)
    at = chance.randrange(len(events))
    events.insert(at, events[at])
    return with_part(trace, spot, -1, took=flat(events))


def events_swapped(trace: Trace, chance: Random) -> Trace | None:
    spot = _pick(trace, chance, lambda part: any(last > first for _, first, last in threes(part.took)))
    if spot is None:
        return None
    events = single(spot.record.parts[0].took)
    at = chance.choice([i for i in range(len(events) - 1) if events[i][0] == events[i + 1][0]])
    events[at], events[at + 1] = events[at + 1], events[at]
    return with_part(trace, spot, took=flat(events))


def output_removed(trace: Trace, chance: Random) -> Trace | None:
    spot = _pick(trace, chance, lambda part: part.made)
    if spot is None:
        return None
    events = single(spot.record.parts[0].made)
    events.pop(chance.randrange(len(events)))
    return with_part(trace, spot, made=flat(events))


def output_doubled(trace: Trace, chance: Random) -> Trace | None:
    spot = _pick(trace, chance, lambda part: part.made)
    if spot is None:
        return None
    events = single(spot.record.parts[0].made)
    return with_part(trace, spot, made=flat([*events, chance.choice(events)]))


def commit_removed(trace: Trace, chance: Random) -> Trace | None:
    spot = _pick(trace, chance, lambda part: part.steps)
    return None if spot is None else with_record(trace, spot)


def commit_doubled(trace: Trace, chance: Random) -> Trace | None:
    spot = _pick(trace, chance, lambda part: part.steps)
    return None if spot is None else with_record(trace, spot, spot.record, spot.record)


def commits_swapped(trace: Trace, chance: Random) -> Trace | None:
    spots = list(kept_spots(trace))
    found = [
        (one, two)
        for one, two in pairwise(spots)
        if (one.replica, one.life, one.place + 1) == (two.replica, two.life, two.place)
    ]
    if not found:
        return None
    one, two = chance.choice(found)
    return with_record(with_record(trace, one, two.record), two, one.record)


def mark_removed(trace: Trace, chance: Random) -> Trace | None:
    spot = _pick(trace, chance, lambda part: part.ended or part.held or part.closed or part.borders)
    if spot is None:
        return None
    part = spot.record.parts[0]
    field = chance.choice([name for name in ("ended", "held", "closed", "borders") if getattr(part, name)])
    marks = list(twos(getattr(part, field)))
    marks.pop(chance.randrange(len(marks)))
    return with_part(trace, spot, int(field in ("ended", "held")), **{field: flat(marks)})


def start_elsewhere(trace: Trace, chance: Random) -> Trace | None:
    found = [(replica, number) for replica, lives in trace.lives.items() for number in range(1, len(lives))]
    if not found:
        return None
    replica, number = chance.choice(found)
    life = trace.lives[replica][number]
    head, by = life.head, chance.choice((-1, 1))
    wanted = ["position", "made", *(["taken"] if head.taken else [])]
    if trace.mode == SNAPSHOT and not head.is_finished:
        wanted += ["recovered", "epoch"]
    name = chance.choice(wanted)
    value = getattr(head, name)
    changed = value + by if isinstance(value, int) else (value[0] + by, *value[1:])
    lives = {each: list(all_lives) for each, all_lives in trace.lives.items()}
    lives[replica][number] = Life(head._replace(**{name: changed}), life.told)
    return Trace(trace.mode, lives)


def generation_elsewhere(trace: Trace, chance: Random) -> Trace | None:
    """All replicas agree on another epoch than the one that they have gone back to."""
    generations = sorted({life.incarnation for lives in trace.lives.values() for life in lives})[1:]
    if trace.mode != SNAPSHOT or not generations:
        return None
    generation, by = chance.choice(generations), chance.choice((-1, 1))
    unfinished = [
        life for lives in trace.lives.values() for life in lives
        if life.incarnation == generation and not life.head.is_finished
    ]  # fmt: skip
    if not unfinished:
        return None
    return Trace(
        trace.mode,
        {
            replica: [
                Life(life.head._replace(recovered=life.head.recovered + by), life.told)
                if life.incarnation == generation
                else life
                for life in lives
            ]
            for replica, lives in trace.lives.items()
        },
    )


def _wrote(trace: Trace) -> list[Spot]:
    return [
        Spot(replica, number, place, record)
        for replica, lives in trace.lives.items()
        for number, life in enumerate(lives)
        for place, record in enumerate(life.told)
        if isinstance(record, Steps | Wrote) and record.wrote
    ]


def write_removed(trace: Trace, chance: Random) -> Trace | None:
    """Only where another write of the same incarnation follows: a death may hide the last one."""
    spots = _wrote(trace)
    found = [spot for spot, after in pairwise(spots) if (spot.replica, spot.life) == (after.replica, after.life)]
    if not found:
        return None
    spot = chance.choice(found)
    return with_record(trace, spot, spot.record._replace(wrote=spot.record.wrote[:-2]))


def write_doubled(trace: Trace, chance: Random) -> Trace | None:
    found = _wrote(trace)
    if not found:
        return None
    spot = chance.choice(found)
    return with_record(trace, spot, spot.record._replace(wrote=spot.record.wrote + spot.record.wrote[-2:]))


def writes_swapped(trace: Trace, chance: Random) -> Trace | None:
    found = [spot for spot in _wrote(trace) if len(spot.record.wrote) >= 4]
    if not found:
        return None
    spot = chance.choice(found)
    pairs = list(twos(spot.record.wrote))
    pairs[0], pairs[1] = pairs[1], pairs[0]
    return with_record(trace, spot, spot.record._replace(wrote=flat(pairs)))


def write_too_early(trace: Trace, chance: Random) -> Trace | None:
    """An action is executed in the very commit that makes it, or before its epoch is complete."""
    spots = [spot for spot in _wrote(trace) if isinstance(spot.record, Steps)]
    if not spots:
        return None
    spot = chance.choice(spots)
    told = list(trace.lives[spot.replica][spot.life].told)
    if trace.mode == SNAPSHOT:
        head = trace.lives[spot.replica][spot.life].head
        before = [place for place in range(spot.place) if isinstance(told[place], Completed)]
        first = spot.record.wrote[1]
        if not before or first <= head.made[0] or spot.record.wrote[1] != first:
            return None
        told = [record for place, record in enumerate(told) if place not in before]
        return with_told(trace, spot.replica, spot.life, told)
    number = spot.record.wrote[1]
    made = [
        place
        for place, record in enumerate(told)
        if isinstance(record, Steps)
        for part in record.parts
        for _, first, last in threes(part.made)
        if first <= number <= last
    ]
    if not made or made[0] >= spot.place:
        return None
    told[spot.place] = spot.record._replace(wrote=())
    told[made[0]] = told[made[0]]._replace(wrote=told[made[0]].wrote + spot.record.wrote)
    return with_told(trace, spot.replica, spot.life, told)


def snapshot_missing(trace: Trace, chance: Random) -> Trace | None:
    """An epoch counts as complete although one replica has not stored it."""
    found = []
    for replica, lives in trace.lives.items():
        for number, life in enumerate(lives):
            stored = [place for place, record in enumerate(life.told) if isinstance(record, Stored)]
            told = [record.epoch for record in life.told if isinstance(record, Completed)]
            if stored and told and not life.head.is_finished:
                needed = [place for place in stored if life.told[place].epoch == max(told)]
                if needed and max(stored) == needed[0] and not life.told[needed[0]].is_final:
                    found.append(Spot(replica, number, needed[0], life.told[needed[0]]))
    if not found:
        return None
    spot = chance.choice(found)
    return with_record(trace, spot)


MUTATIONS: tuple[Callable[[Trace, Random], Trace | None], ...] = (
    event_removed,
    event_doubled,
    events_swapped,
    output_removed,
    output_doubled,
    commit_removed,
    commit_doubled,
    commits_swapped,
    mark_removed,
    start_elsewhere,
    generation_elsewhere,
    write_removed,
    write_doubled,
    writes_swapped,
    write_too_early,
    snapshot_missing,
)
