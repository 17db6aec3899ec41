"""The operators of the habitats: each makes something go visibly wrong when a promise is broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import clew
from clew.model.operator import Assigned
from clew.testing import Outside


def numbers(count: int) -> list[list[dict[str, int]]]:
    """Events of one record each: x = 1, 2, ..."""
    return [[{"x": number}] for number in range(1, count + 1)]


def x_of(event: clew.Event) -> int:
    """The number in an event."""
    return int(event.rows[0]["x"])


class Pairs(clew.Operator):
    """The numbers two by two with a running total; `assign` and `generate` both change the state."""

    def open(self, ctx: clew.Context) -> None:
        self.waiting: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        ctx.state["count"] = count = ctx.state.get("count", 0) + 1
        return [(count + 1) // 2]

    def update(self, input_set: int, event: clew.Event, note: Any = None) -> None:
        self.waiting.setdefault(input_set, []).append(x_of(event))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[key] for key in self.waiting if 2 * key <= ctx.state.get("count", 0)]

    def generate(self, input_sets: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        for key in input_sets:
            xs = self.waiting.pop(key)
            ctx.state["total"] = total = ctx.state.get("total", 0) + sum(xs)
            yield "out", [{"xs": xs, "total": total}]

    def finish(self, input_sets: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        ctx.state["finished"] = True
        yield from super().finish(input_sets, ctx)


class Dice(clew.Operator):
    """Four throws of the dice for each number: a second generation gives something else."""

    def open(self, ctx: clew.Context) -> None:
        self.waiting: list[int] = []

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        return [x_of(event)]

    def update(self, input_set: int, event: clew.Event, note: Any = None) -> None:
        self.waiting.append(input_set)

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [self.waiting[:1]] if self.waiting else []

    def generate(self, input_sets: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        self.waiting.remove(input_sets[0])
        for _ in range(4):
            yield "out", [{"x": input_sets[0], "throw": ctx.random.randint(1, 1_000_000)}]


class Windows(clew.Operator):
    """Each number belongs to its own window and to the next one, with a note; a window ends when a later one begins."""

    outputs = ()

    def __init__(self) -> None:
        self.writes = {"to": Outside("windows").writer()}

    def open(self, ctx: clew.Context) -> None:
        self.windows: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[Assigned]:
        ctx.state["latest"] = latest = x_of(event)
        ctx.state["count"] = count = ctx.state.get("count", 0) + 1
        return [Assigned(latest, 10 * count), Assigned(latest + 1, 100 * count)]

    def update(self, input_set: int, event: clew.Event, note: Any = None) -> None:
        self.windows.setdefault(input_set, []).append(x_of(event) + (note or 0))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[key] for key in sorted(self.windows) if key < ctx.state.get("latest", 0)]

    def generate(self, input_sets: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        for key in input_sets:
            yield "to", [{"window": key, "xs": self.windows.pop(key, [])}]


class Hours(clew.Operator):
    """The numbers of two inputs hour by hour; an hour ends when `p` begins a later one."""

    inputs = ("p", "q")
    outputs = ()

    def __init__(self, is_sorted: bool) -> None:
        self.writes = {"to": Outside("hours").writer()}
        self.is_sorted = is_sorted
        """Whether the order of arrival makes no difference."""

    def open(self, ctx: clew.Context) -> None:
        self.hours: dict[int, list[int]] = {}
        self.begun = 0

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        return [int(event.rows[0]["hour"])]

    def update(self, input_set: int, event: clew.Event, note: Any = None) -> None:
        self.hours.setdefault(input_set, []).append(x_of(event))
        if event.input == "p":
            self.begun = max(self.begun, input_set)

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[hour] for hour in sorted(self.hours) if hour < self.begun]

    def generate(self, input_sets: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        for hour in input_sets:
            xs = self.hours.pop(hour)
            yield "to", [{"hour": hour, "xs": sorted(xs) if self.is_sorted else xs}]


class Quiet(clew.Operator):
    """The numbers that came before a while of silence; timers' moves note which they saw and when a batch was over."""

    outputs = ()

    def __init__(self) -> None:
        self.writes = {"to": Outside("quiet").writer()}

    def open(self, ctx: clew.Context) -> None:
        self.waiting: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        ctx.timer("silence", ctx.now + 0.002)
        return [ctx.state.get("batch", 1)]

    def update(self, input_set: int, event: clew.Event, note: Any = None) -> None:
        self.waiting.setdefault(input_set, []).append(x_of(event))

    def on_timer(self, name: Any, ctx: clew.Context) -> None:
        if name == "over":
            ctx.state["over"] = ctx.state.get("over", 0) + 1
            return
        batch = ctx.state.get("batch", 1)
        ctx.state["noted"] = list(self.waiting.get(batch, ()))
        ctx.state["batch"] = batch + 1

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[key] for key in self.waiting if key < ctx.state.get("batch", 1)]

    def generate(self, input_sets: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        for key in input_sets:
            ctx.timer("over", ctx.now + 0.002)
            noted, over = ctx.state.get("noted", []), ctx.state.get("over", 0)
            yield "to", [{"xs": self.waiting.pop(key), "noted": noted, "over": over}]


class Orders(Dice):
    """Writes each number into a shop and then tells whoever reads there."""

    writes_first = True

    def __init__(self) -> None:
        self.writes = {"shop": Outside("shop").writer("checkable")}

    def generate(self, input_sets: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        self.waiting.remove(input_sets[0])
        yield "shop", [{"x": input_sets[0]}]
        yield "out", [{"x": input_sets[0]}]


class Look(Dice):
    """Reads in the shop what was ordered when it is told."""

    outputs = ()

    def __init__(self) -> None:
        self.writes = {"to": Outside("seen").writer()}
        self.reads = {"shop": Outside("shop").reader()}

    def generate(self, input_sets: Sequence[int], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        self.waiting.remove(input_sets[0])
        yield "to", [{"x": input_sets[0], "found": ctx.read("shop").num_rows}]


class Sorted(clew.Operator):
    """Generates odd and even numbers together, and says which output came from which; looks something up for both."""

    def __init__(self) -> None:
        self.reads = {"prices": Outside("prices").reader(lambda query, applied: [{"price": 7}])}

    def open(self, ctx: clew.Context) -> None:
        self.waiting: dict[tuple[int, str], list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[tuple[int, str]]:
        ctx.state["count"] = count = ctx.state.get("count", 0) + 1
        return [((count + 1) // 2, "odd" if x_of(event) % 2 else "even")]

    def update(self, input_set: Any, event: clew.Event, note: Any = None) -> None:
        self.waiting.setdefault(input_set, []).append(x_of(event))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[Any]]:
        return [sorted(self.waiting)] if len(self.waiting) == 2 else []

    def generate(self, input_sets: Sequence[Any], ctx: clew.Context) -> Iterator[tuple[str, Any]]:
        price = ctx.read("prices")["price"][0].as_py()
        for key in input_sets:
            ctx.uses(key)
            yield "out", [{"cost": x * price} for x in self.waiting.pop(key)]
