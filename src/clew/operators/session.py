"""Gathering by sessions: records of one key with less than a gap between one and the next.

Each part of an event that belongs together opens an Input Set or joins one. Sessions that turn out to be one keep their
Input Sets, which are then generated together. The state says, for each key, which sessions are open.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.model.event import Event
from clew.model.operator import Assigned, Context
from clew.operators.gathered import Divided, Gathered, Gatherer, Kept
from clew.operators.keyed import ranks
from clew.operators.moments import Moments
from clew.operators.windows import Session

COUNT = "count"
"""The state's key for how many Input Sets there were; all other keys are tuples, of the key columns' values."""


class Part(NamedTuple):
    """Records of one event and one key that belong together: from the first to the last, and the gap after it."""

    key: tuple[Any, ...]
    first: int
    end: int


Open = list[Any]
"""A session in the state: its first moment, its end, and its Input Sets, each with its time."""


class Sessions(Gathered):
    """Gathers records by sessions, which are complete when the gap after their last record has passed.

    A record is late when the gap after it has passed by the time of its event. It joins no session that has ended by
    that time, complete or not.
    """

    def __init__(
        self,
        gatherer: Gatherer,
        session: Session,
        by: str = "ts",
        keys: Sequence[str] = (),
        *,
        late: str = "drop",
        nulls: str = "error",
        bounds: bool = True,
    ) -> None:
        super().__init__(gatherer, by, late=late, nulls=nulls, bounds=bounds)
        self.session = session
        self.keys = tuple(keys)

    def open(self, ctx: Context) -> None:
        """Nothing is kept."""
        super().open(ctx)
        self._ends: list[tuple[int, int]] = []
        """A heap of the open Input Sets, with the end of the session that each is in, or an earlier moment."""

    def divide(self, event: Event, found: Moments) -> Divided:
        """By key, and where there is a gap."""
        gap = self.session.ticks(found.is_moments)
        is_open = pc.greater(found.times, event.time - gap)
        rows, late = pc.indices_nonzero(is_open), pc.indices_nonzero(pc.invert(is_open))
        batch = found.batch
        columns = [batch.column(name).take(rows) for name in self.keys]
        keys = ranks(columns) if columns and len(rows) else pa.repeat(0, len(rows))
        sorting = pa.table({"row": rows, "key": keys, "time": found.times.take(rows)})
        sorting = sorting.take(pc.sort_indices(sorting, [("key", "ascending"), ("time", "ascending")]))
        key, time = sorting["key"].combine_chunks(), sorting["time"].combine_chunks()
        is_new = pc.or_(
            pc.not_equal(key[1:], key[:-1]),
            pc.greater_equal(pc.subtract(time[1:], time[:-1]), gap),
        )
        begins = [0, *(each + 1 for each in pc.indices_nonzero(is_new).to_pylist())] if len(rows) else []
        ends = [*begins[1:], len(rows)] if begins else []
        places = {number: (begin, end - begin) for number, (begin, end) in enumerate(zip(begins, ends, strict=True))}
        number = pc.cumulative_sum(
            pa.concat_arrays([pa.array([0] * bool(begins), pa.int64()), is_new.cast(pa.int64())])
        )
        sorting = sorting.append_column("part", number)
        ordered = sorting["row"].take(pc.sort_indices(sorting, [("part", "ascending"), ("row", "ascending")]))
        firsts = sorting["row"].take(pa.array(begins, pa.int64()))
        values = [batch.column(name).take(firsts).to_pylist() for name in self.keys]
        parts = [
            Part(tuple(column[index] for column in values), time[begin].as_py(), time[end - 1].as_py() + gap)
            for index, (begin, end) in enumerate(zip(begins, ends, strict=True))
        ]
        return Divided(found, late, ordered.combine_chunks(), places, parts)

    def choose(self, event: Event, divided: Divided, ctx: Context) -> Iterator[Assigned]:
        """Each part to the session that it touches, or to a new one; the note says which parts are meant.

        Of several sessions that it touches, which are one from now on, it joins the first.
        """
        chosen: dict[tuple[int, int], list[int]] = {}
        for number, part in enumerate(divided.parts):
            sessions: list[Open] = ctx.state.get(part.key, [])
            touched = [
                each for each in sessions if each[1] > event.time and each[0] < part.end and part.first < each[1]
            ]
            if touched:
                sets = sorted(tuple(each) for session in touched for each in session[2])
            else:
                count = ctx.state.get(COUNT, 0) + 1
                ctx.state[COUNT] = count
                sets = [(count, part.end - 1)]
            first = min([part.first, *(each[0] for each in touched)])
            end = max([part.end, *(each[1] for each in touched)])
            others = [each for each in sessions if each not in touched]
            ctx.state[part.key] = [*others, [first, end, [list(each) for each in sets]]]
            chosen.setdefault(sets[0], []).append(number)
        for (input_set, time), numbers in chosen.items():
            yield Assigned(input_set, numbers, time)

    def begin(self, input_set: Any, event: Event, note: Any) -> Kept:
        """Its key is that of its parts."""
        divided, _ = self.divided(event)
        heapq.heappush(self._ends, (max(divided.parts[number].end for number in note), input_set))
        return Kept(self.gatherer.begin(), divided.moments.type, divided.parts[note[0]].key)

    def complete(self, ctx: Context) -> Sequence[Any] | None:
        """The session that ends first, if its last moment has passed."""
        while self._ends:
            end, input_set = self._ends[0]
            if input_set not in self._kept:
                heapq.heappop(self._ends)
                continue
            if not ctx.frontier().passed(end - 1):
                return None
            _, longest, sets = self._session(input_set, ctx)
            if longest == end:
                return [each for each, _ in sets if each in self._kept]
            heapq.heapreplace(self._ends, (longest, input_set))
        return None

    def groups(self, input_sets: Sequence[Any], ctx: Context) -> Iterator[list[Any]]:
        """The sessions, by end."""
        left = set(input_sets)
        for _, input_set in sorted((self._session(each, ctx)[1], each) for each in input_sets):
            if input_set in left:
                group = [each for each, _ in self._session(input_set, ctx)[2] if each in left]
                left.difference_update(group)
                yield group

    def close(self, input_sets: Sequence[Any], kept: Sequence[Kept], ctx: Context) -> tuple[int, int]:
        """From the first record to the gap after the last."""
        key = kept[0].key
        session = self._of(input_sets[0], ctx.state[key])
        others = [each for each in ctx.state[key] if each is not session]
        if others:
            ctx.state[key] = others
        else:
            del ctx.state[key]
        return session[0], session[1]

    def _session(self, input_set: Any, ctx: Context) -> Open:
        return self._of(input_set, ctx.state[self._kept[input_set].key])

    @staticmethod
    def _of(input_set: Any, sessions: list[Open]) -> Open:
        return next(each for each in sessions if any(one == input_set for one, _ in each[2]))
