"""Random arrivals for operators by time, and what a plain batch computation over all of them gives.

The second way to the answer uses dictionaries only. A script is drawn so that it keeps to the rule of frontiers: an
event comes at a time that the frontier of its port still covers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from clew.model.operator import Operator
from clew.testing import Alone
from clew.times.antichain import Antichain

Row = dict[str, Any]

FIRST = -20
"""Where all frontiers begin."""


@dataclass(frozen=True)
class Send:
    port: str
    time: int
    rows: list[Row]


@dataclass(frozen=True)
class Advance:
    port: str
    frontier: int


@dataclass(frozen=True)
class Restart:
    pass


Script = list[Send | Advance | Restart]


@st.composite
def scripts(draw: st.DrawFn, ports: tuple[str, ...] = ("in",), near_late: int = 0) -> Script:
    """Events out of order, some records late; frontiers that move on; restarts. All records have different ids.

    A late record is more than `near_late` before its event.
    """
    frontiers = dict.fromkeys(ports, FIRST)
    script: Script = []
    number = 0
    keys = st.sampled_from(["a", "b", None])
    amounts = st.integers(-(1 << 60), 1 << 60)
    floats = st.floats(-1e12, 1e12)
    for _ in range(draw(st.integers(1, 12))):
        port = draw(st.sampled_from(ports))
        match draw(st.sampled_from(["send", "send", "send", "advance", "restart"])):
            case "send":
                time = frontiers[port] + draw(st.integers(0, 12))
                rows = []
                for _ in range(draw(st.integers(1, 5))):
                    is_late = draw(st.integers(0, 5)) == 0
                    ts = time - near_late - draw(st.integers(1, 30)) if is_late else time + draw(st.integers(0, 25))
                    row = {"ts": ts, "item": draw(keys), "amount": draw(amounts), "weight": draw(floats), "id": number}
                    rows.append(row)
                    number += 1
                script.append(Send(port, time, rows))
            case "advance":
                frontiers[port] += draw(st.integers(0, 15))
                script.append(Advance(port, frontiers[port]))
            case "restart":
                script.append(Restart())
    return script


def at_the_last_moment(frontier: int, last: int, ports: tuple[str, ...] = ("in",)) -> Script:
    """A record at 0, a frontier, and another record at the last moment that can come: what closes too early shows."""
    first, second = ({"ts": ts, "item": "a", "amount": 1, "weight": 1.0, "id": ts} for ts in (0, last))
    return [Send(ports[0], 0, [first]), Advance(ports[0], frontier), Send(ports[-1], last, [second])]


@dataclass
class Outcome:
    """What an operator did with a script."""

    alone: Alone
    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)


def play(operator: Operator, script: Script, on_step: Callable[[Alone, Any], None] | None = None) -> Outcome:
    """Plays a script up to the end; what leaves is checked for its time."""
    alone = Alone(operator)
    alone.advance(FIRST)
    for step in script:
        match step:
            case Send(port, time, rows):
                alone.send(rows, port, time=time)
            case Advance(port, frontier):
                alone.advance(frontier, port)
            case Restart():
                alone.restart()
        if on_step is not None:
            on_step(alone, step)
    alone.end()
    assert alone.open_sets == []
    outcome = Outcome(alone)
    for sent in alone.sent:
        (outcome.late if sent.port == "late" else outcome.rows).extend(sent.rows)
        if sent.port == "out" and "window_end" in sent.rows[0]:
            assert {row["window_end"] - 1 for row in sent.rows} == {sent.time}
    return outcome


class Elsewhere:
    """A context that answers with another frontier."""

    def __init__(self, ctx: Any, frontier: Callable[[Any], Any]) -> None:
        self._ctx, self._frontier = ctx, frontier

    def frontier(self, port: str | None = None) -> Any:
        return self._frontier(self._ctx)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)


def a_tick_ahead(ctx: Any) -> Any:
    """For canaries that close too early."""
    return Elsewhere(ctx, lambda ctx: Antichain(ctx.order, [time + 1 for time in ctx.frontier().elements]))


def frontier(script: Iterable[Any], ports: tuple[str, ...] = ("in",)) -> int:
    """How far all ports are after these steps."""
    found = dict.fromkeys(ports, FIRST)
    found.update((step.port, step.frontier) for step in script if isinstance(step, Advance))
    return min(found.values())


def spans_of(ts: int, size: int, every: int, offset: int) -> list[int]:
    """The starts of all windows of which `ts` is in `[start, start + size)`, found by trying."""
    return [start for start in range(ts - size + 1, ts + 1) if (start - offset) % every == 0]


def by_window(script: Script, size: int, every: int, offset: int = 0) -> tuple[dict[int, list[Row]], list[Row]]:
    """The records of each window by its start, in the order of assignment; and the late ones."""
    windows: dict[int, list[Row]] = {}
    late = []
    for step in script:
        for row in step.rows if isinstance(step, Send) else ():
            starts = [start for start in spans_of(row["ts"], size, every, offset) if start + size > step.time]
            for start in starts:
                windows.setdefault(start, []).append({**row, "port": step.port})
            if not starts:
                late.append(row)
    return dict(sorted(windows.items())), late


def by_key(rows: Iterable[Row], key: str = "item") -> dict[Any, list[Row]]:
    """The rows of each key, in order of first appearance."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def sessions_of(script: Script, gap: int, key: str | None = "item") -> tuple[list[list[Row]], list[Row]]:
    """The records of each session, sorted by time; and the late ones."""
    rows = [(step.time, row) for step in script if isinstance(step, Send) for row in step.rows]
    late = [row for time, row in rows if row["ts"] + gap <= time]
    kept = [row for time, row in rows if row["ts"] + gap > time]
    found = []
    for members in (by_key(kept, key) if key else {None: kept}).values():
        members = sorted(members, key=lambda row: row["ts"])
        for index, row in enumerate(members):
            if index == 0 or row["ts"] - members[index - 1]["ts"] >= gap:
                found.append([])
            found[-1].append(row)
    return found, late


def law(
    strategy: st.SearchStrategy[Any], check: Callable[[Any], None], examples: int = 40, *, is_canary: bool = False
) -> Callable[[], None]:
    """A check on random scripts, as a function to call; a failure of a canary need not be made small."""

    @settings(
        deadline=None,
        max_examples=examples,
        print_blob=True,
        database=None,
        phases=[Phase.generate] if is_canary else [Phase.explicit, Phase.generate, Phase.shrink],
        report_multiple_bugs=not is_canary,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(strategy)
    def run(drawn: Any) -> None:
        check(drawn)

    return run


def without(row: Mapping[str, Any], *names: str) -> Row:
    """A row without some columns."""
    return {name: value for name, value in row.items() if name not in names}
