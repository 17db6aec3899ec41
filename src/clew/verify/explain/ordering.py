"""Ordering: the kept steps of all replicas as one sequence, in which nothing is taken before it was made.

Each replica's steps keep their order. Of the steps that are possible, the one that was taken first by the clock is
next, so the sequence is close to what happened; but clocks decide nothing: what takes something not made yet waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from clew.model.names import Replica
from clew.trace.records import Head
from clew.verify.explain.explanation import NoExplanation, Step
from clew.verify.explain.rules import Place, Stream, moment_of


def in_causal_order(steps: Mapping[Replica, list[Step]], places: Mapping[Replica, Place]) -> list[Step]:
    """The explanation, every step of it checked; raises at the first that cannot be taken."""
    order: list[Step] = []
    replicas = list(steps)
    done = [0] * len(replicas)
    ready = [(moment_of(steps[replica][0]), index) for index, replica in enumerate(replicas) if steps[replica]]
    heapq.heapify(ready)
    waiting: dict[Stream, list[tuple[int, int]]] = {}
    while ready:
        _, index = heapq.heappop(ready)
        replica = replicas[index]
        place, own = places[replica], steps[replica]
        step = own[done[index]]
        part = step.part
        if part is None:
            if done[index] and isinstance(step.record, Head):
                place.begin(step, step.record)
        else:
            wanted = place.waits_for(part)
            if wanted is not None:
                waiting.setdefault(wanted[0], []).append((wanted[1], index))
                continue
            place.apply(step, part)
            order.append(step)
            if waiting and (part.made or part.closed or part.is_border):
                _wake(place, waiting, ready, replicas, steps, done)
        done[index] += 1
        if done[index] < len(own):
            heapq.heappush(ready, (moment_of(own[done[index]]), index))
    if waiting:
        raise _stuck(waiting, [(steps[each], done[index]) for index, each in enumerate(replicas)])
    return order


def _wake(
    place: Place,
    waiting: dict[Stream, list[tuple[int, int]]],
    ready: list[tuple[float, int]],
    replicas: list[Replica],
    steps: Mapping[Replica, list[Step]],
    done: list[int],
) -> None:
    for stream in place.outbound:
        found = waiting.get(stream)
        if found is None:
            continue
        still = [each for each in found if each[0] > stream.made]
        for number, index in found:
            if number <= stream.made:
                heapq.heappush(ready, (moment_of(steps[replicas[index]][done[index]]), index))
        if still:
            waiting[stream] = still
        else:
            del waiting[stream]


def _stuck(waiting: dict[Stream, list[tuple[int, int]]], own: list[tuple[list[Step], int]]) -> NoExplanation:
    """Of the steps that wait for what nobody makes, the first by the clock; if all wait for each other, the first."""
    found = []
    unfinished = {str(steps[at].replica) for steps, at in own if at < len(steps)}
    for stream, waiters in waiting.items():
        sender = stream.name.rpartition(".")[0]
        for number, index in waiters:
            steps, at = own[index]
            found.append((sender in unfinished, moment_of(steps[at]), steps[at], stream, number))
    _, _, step, stream, number = min(found, key=lambda each: each[:2])
    last = f"the last that was made is {stream.name}/{stream.made}" if stream.made else "nothing was made there"
    return NoExplanation(step, f"it takes {stream.name}/{number}, which was never made; {last}")
