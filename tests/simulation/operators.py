"""The operators of the simulated pipelines: each does one thing that a recovery could get wrong."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

import clew
from clew.operators.counted import Counted
from clew.operators.stateless import Stateless

Outputs = Iterator[tuple[str, Any] | tuple[str, Any, dict[str, Any]]]


def numbers(count: int, first: int = 1, rows: int = 1, column: str = "x") -> list[pa.RecordBatch]:
    """So many events with so many rows each: 1, 2, 3 ..."""
    schema = pa.schema({column: pa.int64()})
    values = range(first, first + count * rows)
    return [
        pa.RecordBatch.from_pydict({column: list(values[start : start + rows])}, schema=schema)
        for start in range(0, count * rows, rows)
    ]


def values(event: clew.Event | pa.RecordBatch) -> list[Any]:
    """The first column."""
    batch = event.batch if isinstance(event, clew.Event) else event
    return batch.column(0).to_pylist()


def row(**columns: Any) -> pa.RecordBatch:
    """An event of one row."""
    return pa.RecordBatch.from_pylist([columns])


class Fault(Exception):
    """An operator noticed that something is wrong, which the simulator reports as a violation."""


class Double(Stateless):
    """Stateless: twice the number."""

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        yield "out", row(x=2 * sum(values(event)))


class Sliding(clew.Operator):
    """Sliding windows over the count of events: each event is in several Input Sets, and outputs show the state."""

    def __init__(self, size: int, step: int) -> None:
        self.size = size
        self.step = step

    def open(self, ctx: clew.Context) -> None:
        self.windows: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        count = ctx.state["count"] = ctx.state.get("count", 0) + 1
        ctx.state["total"] = ctx.state.get("total", 0) + sum(values(event))
        first = max(1, -(-(count - self.size) // self.step) + 1)
        return list(range(first, (count - 1) // self.step + 2))

    def update(self, window: int, event: clew.Event, note: Any = None) -> None:
        self.windows.setdefault(window, []).extend(values(event))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[w] for w in sorted(self.windows) if ctx.state["count"] >= (w - 1) * self.step + self.size]

    def generate(self, windows: Sequence[int], ctx: clew.Context) -> Outputs:
        for window in windows:
            made = ctx.state["made"] = ctx.state.get("made", 0) + 1
            yield "out", row(x=sum(self.windows.pop(window)), window=window, total=ctx.state["total"], made=made)


class CountedWriter(Counted):
    """A writer in the middle: one write action and one output for every so many events."""

    def __init__(self, every: int, connection: clew.WriteConnection) -> None:
        super().__init__(every)
        self.writes = {"store": connection}

    def apply(self, batches: list[pa.RecordBatch], ctx: clew.Context) -> Outputs:
        found = [value for batch in batches for value in values(batch)]
        yield "out", row(x=sum(found))
        yield "store", row(x=sum(found), count=len(found))


class Terminal(clew.Operator):
    """A sink without connections, as in the use cases of the seed: it only counts."""

    outputs = ()

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[Hashable]:
        ctx.state["count"] = ctx.state.get("count", 0) + 1
        return []

    def update(self, input_set: Any, event: clew.Event, note: Any = None) -> None:
        raise Fault("an event that was assigned to no Input Set was folded")

    def generate(self, input_sets: Sequence[Any], ctx: clew.Context) -> Outputs:
        raise Fault("an Input Set that does not exist was generated")


class Synchronised(clew.Operator):
    """Generates when so many events came on each of its two ports; what one port has too many of waits in windows."""

    inputs = ("left", "right")

    def __init__(self, every: int, connection: clew.WriteConnection) -> None:
        self.every = every
        self.writes = {"store": connection}

    def open(self, ctx: clew.Context) -> None:
        self.windows: dict[int, dict[str, list[int]]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        count = ctx.state[event.input] = ctx.state.get(event.input, 0) + 1
        return [(count - 1) // self.every + 1]

    def update(self, window: int, event: clew.Event, note: Any = None) -> None:
        self.windows.setdefault(window, {"left": [], "right": []})[event.input].append(sum(values(event)))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        for window, ports in self.windows.items():
            if all(len(found) == self.every for found in ports.values()):
                yield [window]

    def generate(self, windows: Sequence[int], ctx: clew.Context) -> Outputs:
        for window in windows:
            ports = self.windows.pop(window)
            yield "store", row(x=window, left=sum(ports["left"]), right=sum(ports["right"]))
            yield "out", row(x=sum(ports["left"]) + sum(ports["right"]))


class Arrivals(clew.Operator):
    """Shows in which order the events of its ports arrived: any order is right, but there is only one."""

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)

    def open(self, ctx: clew.Context) -> None:
        self.waiting: dict[int, clew.Event] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        ctx.state["came"] = [*ctx.state.get("came", []), event.input][-6:]
        place = ctx.state["place"] = ctx.state.get("place", 0) + 1
        return [place]

    def update(self, place: int, event: clew.Event, note: Any = None) -> None:
        self.waiting[place] = event

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[place] for place in self.waiting]

    def generate(self, places: Sequence[int], ctx: clew.Context) -> Outputs:
        for place in places:
            event = self.waiting.pop(place)
            yield "out", row(x=sum(values(event)), place=place, came=" ".join(ctx.state["came"]))


class Chance(clew.Operator):
    """Chance and clock decide which Input Sets an event belongs to, when they are ready, and what comes out."""

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        ctx.state["last"] = ctx.random.randrange(100)
        return ctx.random.sample(range(3), ctx.random.randrange(3))

    def update(self, key: int, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(key, []).extend(values(event))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[key] for key in sorted(self.sets) if len(self.sets[key]) > 2 or ctx.random.random() < 0.3]

    def generate(self, keys: Sequence[int], ctx: clew.Context) -> Outputs:
        found = [value for key in keys for value in self.sets.pop(key)]
        for number in range(ctx.random.randrange(3)):
            yield (
                "out",
                row(x=sum(found), chance=ctx.random.random(), now=ctx.now, last=ctx.state["last"], number=number),
            )
        ctx.state["last"] = ctx.random.randrange(100)


class OneReading(Counted):
    """Batches of readings, and a watch: all readings of one read action come from one execution of it."""

    def __init__(self, every: int, events_per_action: int) -> None:
        super().__init__(every)
        self.events_per_action = events_per_action

    def apply(self, batches: list[pa.RecordBatch], ctx: clew.Context) -> Outputs:
        for batch in batches:
            for each in batch.to_pylist():
                action = (each["x"] - 1) // self.events_per_action
                if ctx.state.setdefault(("reading", action), each["reading"]) != each["reading"]:
                    raise Fault(f"read action {action} mixes two executions")
        yield "out", pa.Table.from_batches(batches)


class WriteThenSend(Stateless):
    """Writes what it then announces; with `writes_first`, a reader downstream finds it written."""

    writes_first = True

    def __init__(self, connection: clew.WriteConnection) -> None:
        self.writes = {"store": connection}

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        number = sum(values(event))
        yield "out", row(x=number)
        yield "store", row(x=number, square=number * number)


class ReadWritten(Stateless):
    """Looks up what was announced, and notices when it is not there yet, or is there twice."""

    def __init__(self, connection: clew.ReadConnection) -> None:
        self.reads = {"lookup": connection}

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        number = values(event)[0]
        found = [each for each in ctx.read("lookup", number).to_pylist() if each.get("x") == number]
        if len(found) != 1:
            raise Fault(f"number {number} was announced and is there {len(found)} times")
        yield "out", row(x=number, square=found[0]["square"])


OVERDUE_S = 0.2


class Timed(clew.Operator):
    """Windows that a timer closes after a while, or earlier when nothing comes; timers are set anew and cancelled."""

    def open(self, ctx: clew.Context) -> None:
        self.windows: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        self._check(ctx)
        window = ctx.state.get("closed", 0) + 1
        if ctx.state.get("opened", 0) < window:
            ctx.state["opened"] = window
            self._set("close", ctx.now + 0.35, ctx)
        if sum(values(event)) % 3:
            self._set("idle", ctx.now + 0.15, ctx)
        else:
            ctx.cancel("idle")
            ctx.state.pop(("due", "idle"), None)
        return [window]

    def update(self, window: int, event: clew.Event, note: Any = None) -> None:
        self.windows.setdefault(window, []).extend(values(event))

    def on_timer(self, name: str, ctx: clew.Context) -> None:
        if ctx.state.pop(("due", name), None) is None:
            raise Fault(f"timer {name!r} rang although it was not set")
        ctx.state["closed"] = ctx.state["opened"]
        ctx.state["by"] = name
        for other in ("idle", "close"):
            ctx.cancel(other)
            ctx.state.pop(("due", other), None)

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[window] for window in self.windows if window <= ctx.state.get("closed", 0)]

    def generate(self, windows: Sequence[int], ctx: clew.Context) -> Outputs:
        for window in windows:
            yield "out", row(x=sum(self.windows.pop(window)), window=window, by=ctx.state.get("by"))

    def _set(self, name: str, at: float, ctx: clew.Context) -> None:
        ctx.timer(name, at)
        ctx.state["due", name] = at

    def _check(self, ctx: clew.Context) -> None:
        for name in ("idle", "close"):
            due = ctx.state.get(("due", name))
            if due is not None and due < ctx.now - OVERDUE_S:
                raise Fault(f"timer {name!r} is {ctx.now - due:.3f} s overdue")


class Kinds(clew.Operator):
    """Writes to several connections, one action or several for each Input Set of two events."""

    outputs = ()

    def __init__(self, **connections: clew.WriteConnection) -> None:
        self.writes = connections

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        count = ctx.state["count"] = ctx.state.get("count", 0) + 1
        return [(count + 1) // 2]

    def update(self, key: int, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(key, []).extend(values(event))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[key] for key, found in self.sets.items() if len(found) == 2]

    def generate(self, keys: Sequence[int], ctx: clew.Context) -> Outputs:
        for key in keys:
            found = self.sets.pop(key)
            for place, connection in enumerate(self.writes):
                for value in found[place % 2 :]:
                    yield connection, row(x=value, key=key)


class Dispatch(Stateless):
    """Round robin over its output ports, passing over a port that is behind (section 7.1 of the seed)."""

    def __init__(self, ports: int, behind: int = 2) -> None:
        self.outputs = tuple(f"out{number}" for number in range(1, ports + 1))
        self.behind = behind

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        turn = ctx.state.get("turn", 0)
        order = [self.outputs[(turn + step) % len(self.outputs)] for step in range(len(self.outputs))]
        port = next((port for port in order if ctx.backlog(port) < self.behind), order[0])
        ctx.state["turn"] = (self.outputs.index(port) + 1) % len(self.outputs)
        yield port, event.batch


def keyed(events: int, rows: int, keys: int) -> list[pa.RecordBatch]:
    """Events of some rows each, with keys that come again and again."""
    schema = pa.schema({"x": pa.int64(), "key": pa.string()})
    values = [{"x": x, "key": f"k{x * 5 % keys}"} for x in range(events * rows)]
    return [pa.RecordBatch.from_pylist(values[start : start + rows], schema) for start in range(0, len(values), rows)]


class KeyCounts(clew.Operator):
    """Every so many records of a key give one output, numbered for each key; so each key must have one home."""

    def __init__(self, every: int) -> None:
        self.every = every

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[str, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[str]:
        return sorted({each["key"] for each in event.rows})

    def update(self, key: str, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(key, []).extend(each["x"] for each in event.rows if each["key"] == key)

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[str]]:
        return [[key] for key, found in self.sets.items() if len(found) >= self.every]

    def generate(self, keys: Sequence[str], ctx: clew.Context) -> Outputs:
        for key in keys:
            number = ctx.state[key] = ctx.state.get(key, 0) + 1
            found = self.sets.pop(key)
            yield "out", row(key=key, number=number, first=found[0], last=found[-1], x=sum(found)), {"key": key}


class KeyWatch(Stateless):
    """Notices when the outputs of one key are not numbered 1, 2, 3, or their records are out of order."""

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        for each in event.rows:
            number, last = ctx.state.get(each["key"], (0, -1))
            if each["number"] != number + 1 or not last < each["first"] <= each["last"]:
                raise Fault(f"key {each['key']} is out of turn: {each} came after number {number} with x up to {last}")
            ctx.state[each["key"]] = (each["number"], each["last"])
        yield "out", event.batch, dict(event.attributes)


class Sessions(clew.Operator):
    """Sessions of events that are close in time; an event between two sessions merges them.

    Merged sessions are one set group. Each says with `ctx.uses` what it alone gave, then all what they gave together.
    """

    def __init__(self, gap: int) -> None:
        self.gap = gap

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        moment = max(values(event))
        sessions: list[list[Any]] = ctx.state.get("sessions", [])
        near = [each for each in sessions if each[0] - self.gap <= moment <= each[1] + self.gap]
        key = ctx.state["last"] = ctx.state.get("last", 0) + 1
        merged = [moment, moment, [key]]
        for first, last, keys in near:
            merged = [min(first, merged[0]), max(last, merged[1]), [*keys, *merged[2]]]
        if len(near) == 1:  # Joins the newest Input Set of its session.
            key = near[0][2][-1]
            merged[2] = near[0][2]
        ctx.state["sessions"] = [each for each in sessions if each not in near] + [merged]
        ctx.state["latest"] = max(moment, ctx.state.get("latest", 0))
        return [key]

    def update(self, key: int, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(key, []).extend(values(event))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        for _, last, keys in ctx.state.get("sessions", []):
            if last + 2 * self.gap < ctx.state["latest"]:
                yield keys

    def generate(self, keys: Sequence[int], ctx: clew.Context) -> Outputs:
        ctx.state["sessions"] = [each for each in ctx.state["sessions"] if not set(each[2]) & set(keys)]
        found = {key: self.sets.pop(key) for key in keys}
        if len(keys) > 1:
            for key in keys:
                ctx.uses(key)
                yield "out", row(x=sum(found[key]), keys=str(key))
            ctx.uses(*keys)
        yield "out", row(x=sum(map(sum, found.values())), keys=" ".join(map(str, sorted(keys))))


class Reused(clew.Operator):
    """One key, generated and opened again and again; the event state of one opening must not leak into the next."""

    def __init__(self, every: int) -> None:
        self.every = every

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[str, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[str]:
        return ["all", "odd" if sum(values(event)) % 2 else "even"]

    def update(self, key: str, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(key, []).append(sum(values(event)))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[str]]:
        return [[key] for key, found in self.sets.items() if len(found) >= self.every]

    def generate(self, keys: Sequence[str], ctx: clew.Context) -> Outputs:
        for key in keys:
            yield "out", row(x=sum(self.sets.pop(key)), key=key)


class Choosy(clew.Operator):
    """Most events belong to no Input Set: they only change the state, which the others show."""

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[int, int] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        number = sum(values(event))
        if number % 3:
            ctx.state["passed"] = ctx.state.get("passed", 0) + number
            return []
        return [number]

    def update(self, key: int, event: clew.Event, note: Any = None) -> None:
        self.sets[key] = sum(values(event))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[key] for key in self.sets if ctx.state.get("passed", 0) > 2 * key]

    def generate(self, keys: Sequence[int], ctx: clew.Context) -> Outputs:
        for key in keys:
            yield "out", row(x=self.sets.pop(key), passed=ctx.state.get("passed", 0))
        ctx.state["passed"] = 0


class Noted(clew.Operator):
    """What `update` needs of state and clock comes as a note, the same again after a crash; sometimes there is none."""

    def __init__(self, every: int) -> None:
        self.every = every

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[int, list[Any]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[Hashable | clew.Assigned]:
        count = ctx.state["count"] = ctx.state.get("count", 0) + 1
        key = (count - 1) // self.every + 1
        if count % 4 == 0:
            return [key]
        return [clew.Assigned(key, {"rank": count, "drawn": ctx.random.random(), "at": (ctx.now, None)})]

    def update(self, key: int, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(key, []).append([sum(values(event)), note])

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[key] for key, found in self.sets.items() if len(found) == self.every]

    def generate(self, keys: Sequence[int], ctx: clew.Context) -> Outputs:
        for key in keys:
            found = self.sets.pop(key)
            about = {"key": key, "noted": sum(note is not None for _, note in found)}
            yield "out", row(x=sum(number for number, _ in found), notes=repr([note for _, note in found])), about


class Lookup(Stateless):
    """Reads, once or twice, from an outside system that changes meanwhile."""

    def __init__(self, connection: clew.ReadConnection) -> None:
        self.reads = {"lookup": connection}

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        number = sum(values(event))
        seen = [ctx.read("lookup", number).num_rows for _ in range(1 + number % 2)]
        yield "out", row(x=number, seen=sum(seen))


class Split(Stateless):
    """Several output ports; one of them usually has no receiver."""

    outputs = ("even", "odd", "all")

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        for number in values(event):
            yield "odd" if number % 2 else "even", row(x=number)
        yield "all", event.batch


class Swell(Stateless):
    """Gives an event a large body, sometimes."""

    def __init__(self, length: int) -> None:
        self.length = length

    def apply(self, event: clew.Event, ctx: clew.Context) -> Outputs:
        number = sum(values(event))
        yield "out", row(x=number, text="0123456789"[number % 10] * (self.length if number % 3 else 1))


class Histogram(clew.Operator):
    """Many keys of state: changed in place, removed, and walked through in the order in which the state gives them."""

    def __init__(self, every: int) -> None:
        self.every = every

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[int, list[int]] = {}

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[int]:
        for number in values(event):
            ctx.state.setdefault(("bin", number * 7 % 5), []).append(number)
        count = ctx.state["count"] = ctx.state.get("count", 0) + 1
        return [(count - 1) // self.every + 1]

    def update(self, key: int, event: clew.Event, note: Any = None) -> None:
        self.sets.setdefault(key, []).extend(values(event))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[int]]:
        return [[key] for key in self.sets if ctx.state["count"] >= key * self.every]

    def generate(self, keys: Sequence[int], ctx: clew.Context) -> Outputs:
        for key in keys:
            self.sets.pop(key)
            bins = [(each, found) for each, found in ctx.state.items() if each != "count"]
            yield "out", row(x=key, bins=repr(bins))
            fullest = max(bins, key=lambda each: (len(each[1]), each[0]), default=None)
            if fullest is not None:
                del ctx.state[fullest[0]]


class Poisoned(clew.Operator):
    """Cannot digest some numbers: one of its moves fails whenever it has to do with them.

    Each event is in a set of two and in one with all of its parity; a timer for each rings at once.
    """

    def __init__(self, where: str, poison: Iterable[int], every: int = 2) -> None:
        self.where = where
        self.poison = frozenset(poison)
        self.every = every

    def open(self, ctx: clew.Context) -> None:
        self.sets: dict[Any, list[int]] = {}
        self.is_new = False

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[Hashable]:
        self._eat("assign", *values(event))
        self.is_new = True
        count = ctx.state["count"] = ctx.state.get("count", 0) + 1
        if self.where == "on_timer":
            for number in values(event):
                ctx.timer(number, ctx.now)
        return [(count - 1) // self.every, "odd" if sum(values(event)) % 2 else "even"]

    def update(self, key: Any, event: clew.Event, note: Any = None) -> None:
        if key == "odd":
            self._eat("update", *values(event))
        if not self.is_new:
            self._eat("refold", *values(event))
        self.sets.setdefault(key, []).extend(values(event))

    def ready(self, ctx: clew.Context) -> Iterable[Sequence[Any]]:
        return [[key] for key, found in self.sets.items() if type(key) is int and len(found) == self.every]

    def generate(self, keys: Sequence[Any], ctx: clew.Context) -> Outputs:
        for key in keys:
            found = self.sets.pop(key)
            self._eat("generate", *found)
            yield "out", row(x=sum(found), key=str(key), rang=ctx.state.get("rang", 0))

    def on_timer(self, name: int, ctx: clew.Context) -> None:
        self._eat("on_timer", name)
        ctx.state["rang"] = ctx.state.get("rang", 0) + 1

    def finish(self, keys: Sequence[Any], ctx: clew.Context) -> Outputs:
        for key in keys:
            self._eat("finish", *self.sets[key])
            found = self.sets.pop(key)
            yield "out", row(x=sum(found), key=str(key), rang=ctx.state.get("rang", 0))

    def _eat(self, where: str, *numbers: int) -> None:
        if where == self.where and self.poison.intersection(numbers):
            raise Fault(f"cannot digest {sorted(self.poison.intersection(numbers))}")


class PoisonedArrivals(Arrivals):
    """The order of arrival shows, and some numbers cannot be taken."""

    def __init__(self, poison: Iterable[int]) -> None:
        super().__init__(("one", "two"))
        self.poison = frozenset(poison)

    def assign(self, event: clew.Event, ctx: clew.Context) -> list[Any]:
        if self.poison.intersection(values(event)):
            raise Fault(f"cannot take {values(event)}")
        return list(super().assign(event, ctx))
