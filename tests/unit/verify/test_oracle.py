"""The oracle: a calm run passes, and each thing that is changed in its archive afterwards is found, by its words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from clew import Assigned, Operator, Pipeline
from clew.errors import Violation
from clew.model.event import Event, as_batch
from clew.model.graph import Graph
from clew.model.history import Output
from clew.model.names import Replica
from clew.model.values import encode
from clew.protocol import decisions as did
from clew.protocol.inputs import Choices
from clew.testing import Outside, scripted
from clew.verify.archive import Shelf
from clew.verify.oracle import judge
from clew.verify.schedule import Schedule
from clew.verify.world import World


class Twos(Operator):
    """Sums of two numbers each, with a note; a timer rings once; the last sum carries an attribute."""

    def open(self, ctx: Any) -> None:
        self.sums: dict[int, int] = {}

    def assign(self, event: Any, ctx: Any) -> list[Assigned]:
        count = ctx.state.get("count", 0)
        ctx.state["count"] = count + 1
        if count == 0:
            ctx.timer("bell", ctx.now)
        return [Assigned(count // 2, 100)]

    def update(self, input_set: int, event: Any, note: int = 0) -> None:
        self.sums[input_set] = self.sums.get(input_set, note) + event.rows[0]["x"]

    def on_timer(self, name: Any, ctx: Any) -> None:
        ctx.state["rang"] = name

    def ready(self, ctx: Any) -> list[list[int]]:
        return [[key] for key in self.sums if ctx.state["count"] >= 2 * key + 2]

    def generate(self, input_sets: Any, ctx: Any) -> Iterator[Any]:
        for key in input_sets:
            yield "out", [{"sum": self.sums.pop(key)}], {"set": key}


def pipeline(*, replayable: bool = True) -> Graph:
    built = Pipeline("p")
    events = [[{"x": number}] for number in range(1, 6)]
    source = scripted(events, replayable=replayable, actions=2, change=lambda batch, reading: batch)
    built.source("numbers", source).operator("twos", Twos()).write("save", Outside("store").writer())
    built.lineage("numbers.out", "twos.out")
    return built.build()


class Book:
    """The archive of a calm run, to be changed."""

    def __init__(self, **kind: Any) -> None:
        self.graph = pipeline(**kind)
        self.world = World(self.graph, Schedule(3))
        self.world.run(100_000)

    def judge(self) -> None:
        judge(self.graph, self.world.archive, self.world.outside, self.world.store.log_id)

    def shelf(self, operator: str) -> Shelf:
        return self.world.archive[Replica(operator)]

    def places(self, operator: str, kind: type) -> list[int]:
        return [place for place, each in enumerate(self.shelf(operator).journal) if isinstance(each, kind)]

    def change(self, operator: str, kind: type, number: int = 0, **fields: Any) -> None:
        """Changes fields of the n-th decision of a kind."""
        place = self.places(operator, kind)[number]
        journal = self.shelf(operator).journal
        journal[place] = replace(journal[place], **fields)

    def replace(self, operator: str, kind: type, decision: Any) -> None:
        """Puts another decision in the place of the first of a kind."""
        self.shelf(operator).journal[self.places(operator, kind)[0]] = decision

    def remove(self, operator: str, kind: type, number: int = 0) -> Any:
        return self.shelf(operator).journal.pop(self.places(operator, kind)[number])

    def rewrite(self, operator: str, port: str, number: int, rows: Any = None, **header: Any) -> None:
        """Changes the committed event of an id."""
        outputs = self.shelf(operator).outputs[port]
        old = outputs[number - 1].event
        batch = old.batch if rows is None else as_batch(rows)
        fields = {"attributes": old.attributes, **header}
        outputs[number - 1] = Output(Event(old.sender, port, number, batch, **fields), 0.0)

    @property
    def applied(self) -> list[Any]:
        return self.world.outside.writes["save", "to"].applied


@pytest.mark.parametrize("replayable", [True, False])
def test_a_calm_run_passes(replayable: bool) -> None:
    book = Book(replayable=replayable)
    book.judge()
    assert [each.batch.to_pylist() for each in book.applied] == [[{"sum": 103}], [{"sum": 107}], [{"sum": 105}]]
    assert book.places("twos", did.Rang)


Change = Callable[[Book], Any]

OPERATORS: list[tuple[str, Change, str]] = [
    (
        "an output with other contents",
        lambda book: book.rewrite("twos", "out", 2, [{"sum": 1}]),
        "twos.out: event 2 is [{'sum': 1}]; a run without failures produces [{'sum': 107}]",
    ),
    (
        "an output with other attributes",
        lambda book: book.rewrite("twos", "out", 2, attributes={"set": 9}),
        "twos.out: event 2 has other attributes than without failures",
    ),
    (
        "a missing output",
        lambda book: book.shelf("twos").outputs["out"].pop(),
        "twos.out: event 4 is missing; a run without failures produces it",
    ),
    (
        "an output in the place of the end mark",
        lambda book: book.rewrite("twos", "out", 4, [{"sum": 1}]),
        "twos.out: event 4 is [{'sum': 1}]; a run without failures produces the end mark",
    ),
    (
        "one output too many",
        lambda book: book.shelf("twos").outputs["out"].append(book.shelf("twos").outputs["out"][0]),
        "twos.out: 5 events were committed; a run without failures produces 4",
    ),
    (
        "an event taken twice",
        lambda book: book.change("twos", did.Took, 1, event=1),
        "twos: took event 1 of numbers.out->twos.in; expected 2",
    ),
    (
        "an event left out",
        lambda book: book.change("twos", did.Took, 0, event=2),
        "twos: took event 2 of numbers.out->twos.in; expected 1",
    ),
    (
        "an event taken for the end",
        lambda book: book.replace("twos", did.Took, did.Ended(book.graph.channels[0], 1)),
        "twos: took event 1 of numbers.out->twos.in, which its sender never committed so",
    ),
    (
        "the end taken for an event",
        lambda book: book.replace("twos", did.Ended, did.Took(book.graph.channels[0], 6, Choices(0.0, 0))),
        "twos: took event 6 of numbers.out->twos.in, which its sender never committed so",
    ),
    (
        "an event that was never committed",
        lambda book: book.shelf("twos").journal.insert(-1, did.Took(book.graph.channels[0], 7, Choices(0.0, 0))),
        "twos: took event 7 of numbers.out->twos.in, which its sender never committed so",
    ),
    (
        "an event before ready() was asked",
        lambda book: book.shelf("twos").journal.pop(book.places("twos", did.Took)[1] - 1),
        "twos: Took(numbers.out->twos.in, 2) came before ready() was asked until it was empty",
    ),
    (
        "another answer of ready()",
        lambda book: book.change("twos", did.Asked, 0, group=(encode(7),)),
        "twos: ready() answered [7]; in a run without failures it answers None",
    ),
    (
        "another group than ready() gave",
        lambda book: book.change("twos", did.Made, 0, group=(encode(1),)),
        "twos: generated [1], but ready() had answered [0]",
    ),
    (
        "a generation that nobody asked about",
        lambda book: book.shelf("twos").journal.insert(0, did.Made((encode(0),), Choices(0.0, 0))),
        "twos: generated [0], but ready() had answered None",
    ),
    (
        "a timer that rang too early",
        lambda book: book.change("twos", did.Rang, 0, choices=Choices(1.0, 0)),
        "twos: timer 'bell' rang at 1.0; it was set for 17",
    ),
    (
        "a timer that was never set",
        lambda book: book.shelf("twos").journal.insert(0, did.Rang(encode("gong"), Choices(3.0, 0))),
        "twos: timer 'gong' rang at 3.0; it was set for None",
    ),
    (
        "a timer that rang before an earlier one",
        lambda book: book.change("twos", did.Rang, 0, name=encode("gong")),
        "twos: timer 'gong' rang before 'bell', which was due earlier",
    ),
    (
        "an event before a timer that was due",
        lambda book: book.remove("twos", did.Rang),
        "twos: Took(numbers.out->twos.in, 2) came before timer 'bell', due at 17",
    ),
    (
        "an operator that never finished",
        lambda book: book.remove("twos", did.Closed),
        "twos: the operator never finished",
    ),
    (
        "a decision after the end",
        lambda book: book.shelf("twos").journal.append(did.Asked(None, Choices(0.0, 0))),
        "twos: Asked(None) was decided after the operator had finished",
    ),
    (
        "a decision of a source",
        lambda book: book.shelf("twos").journal.insert(0, did.Read(1)),
        "twos: Read(1) is no decision of an operator",
    ),
    (
        "an end before all events were taken",
        lambda book: book.shelf("twos").journal.__delitem__(slice(0, book.places("twos", did.Closed)[0])),
        "twos: finished after 0 of 6 events of numbers.out->twos.in",
    ),
    (
        "lineage to another Input Set",
        lambda book: book.shelf("twos").lineage.__setitem__(("out", 2), [1]),
        "twos.out/2: captured lineage is ['numbers.out/1', 'numbers.out/2']; "
        "the inputs truly used are ['numbers.out/3', 'numbers.out/4']",
    ),
    (
        "no lineage",
        lambda book: book.shelf("twos").lineage.pop(("out", 1)),
        "twos.out/1: captured lineage is []; the inputs truly used are ['numbers.out/1', 'numbers.out/2']",
    ),
    (
        "another state in the end",
        lambda book: book.shelf("twos").state.update({encode("count"): encode(4)}),
        "twos: the durable state is {'count': 4",
    ),
    (
        "another state in the lineage",
        lambda book: book.shelf("twos").versions_used.update({1: 1}),
        "twos.out/1: another state is in its lineage than was used",
    ),
    (
        "a read action in the lineage that was not used",
        lambda book: book.shelf("twos").reads.update({1: [7]}),
        "twos.out/1: 1 read actions are in its lineage; 0 were used",
    ),
    (
        "lineage to one event too many",
        lambda book: book.shelf("twos").pairs[1].add((book.graph.channels[0], 3)),
        "twos.out/1: captured lineage is ['numbers.out/1', 'numbers.out/2', 'numbers.out/3']; ",
    ),
]

SOURCES: list[tuple[str, Change, str]] = [
    (
        "an offset that reading does not give",
        lambda book: book.change("numbers", did.Emitted, 1, offset=encode(9)),
        "numbers: logged offset 9; reading gives 2",
    ),
    (
        "the last event of an action lost",
        lambda book: (
            book.remove("numbers", did.Emitted, 2),
            book.shelf("numbers").outputs["out"].pop(2),
        ),
        "numbers: action 1 ended before all of its effect was read",
    ),
    (
        "another action than plan() gives",
        lambda book: book.change("numbers", did.Began, 1, description=encode(5)),
        "numbers: plan() gave another action than in a run without failures",
    ),
    (
        "a source that never finished",
        lambda book: book.remove("numbers", did.Began, 2),
        "numbers: the source never finished",
    ),
    (
        "an event with other contents",
        lambda book: book.rewrite("numbers", "out", 5, [{"x": 50}]),
        "numbers.out: event 5 is [{'x': 50}]; a run without failures produces [{'x': 5}]",
    ),
    (
        "an event too many",
        lambda book: book.shelf("numbers").outputs["out"].append(book.shelf("numbers").outputs["out"][0]),
        "numbers.out: 7 events were committed; a run without failures produces 6",
    ),
]

NOT_REPLAYABLE: list[tuple[str, Change, str]] = [
    (
        "two executions mixed",
        lambda book: book.change("numbers", did.Kept, 1, execution=99),
        "numbers: action 1 mixes two executions of one read",
    ),
    (
        "an event that was not what is stored",
        lambda book: book.change("numbers", did.Kept, 1, batch=as_batch([{"x": 20}])),
        "numbers: action 1 stored 3 batches; its reading gave 3, or others",
    ),
    (
        "a dropped part that became events all the same",
        lambda book: book.shelf("numbers").journal.insert(book.places("numbers", did.Read)[0], did.Dropped(1)),
        "numbers: action 1 stored 0 batches; its reading gave 3, or others",
    ),
]

WRITES: list[tuple[str, Change, str]] = [
    (
        "a write lost",
        lambda book: book.applied.pop(1),
        "save: outside, connection 'to' has the actions [1, 3]; expected 1 to 3, each once and in order",
    ),
    (
        "a write done twice",
        lambda book: book.applied.append(book.applied[-1]),
        "save: outside, connection 'to' has the actions [1, 2, 3, 3]; expected 1 to 3, each once and in order",
    ),
    (
        "writes out of order",
        lambda book: book.applied.reverse(),
        "save: outside, connection 'to' has the actions [3, 2, 1]; expected 1 to 3, each once and in order",
    ),
    (
        "a write with other contents",
        lambda book: book.applied.__setitem__(1, book.applied[1]._replace(batch=as_batch([{"sum": 0}]))),
        "save: write to/2 has other contents outside than in the log",
    ),
    (
        "writes of another log",
        lambda book: book.applied.__setitem__(1, book.applied[1]._replace(writer="other/save/0/to")),
        "save: outside, connection 'to' has the actions [1, 3]; expected 1 to 3, each once and in order",
    ),
]


def cases(listed: list[tuple[str, Change, str]]) -> Any:
    return pytest.mark.parametrize(("change", "words"), [case[1:] for case in listed], ids=[case[0] for case in listed])


def found(book: Book, change: Change) -> str:
    change(book)
    with pytest.raises(Violation) as caught:
        book.judge()
    return str(caught.value)


@cases(OPERATORS + SOURCES + WRITES)
def test_each_change_is_found_by_its_words(change: Change, words: str) -> None:
    assert found(Book(), change).startswith(words)


@cases(NOT_REPLAYABLE)
def test_each_change_of_a_source_that_is_not_replayable_is_found(change: Change, words: str) -> None:
    assert found(Book(replayable=False), change).startswith(words)


def test_a_dropped_part_and_a_second_execution_are_one_run() -> None:
    """What a crash leaves behind: part of an effect, dropped, then the whole of another execution."""
    book = Book(replayable=False)
    first = book.places("numbers", did.Kept)[0]
    kept = book.shelf("numbers").journal[first]
    lost = did.Kept(kept.action, kept.execution - 1, as_batch([{"x": 0}]))
    book.shelf("numbers").journal[first:first] = [lost, did.Dropped(kept.action)]
    book.judge()


def test_asking_again_after_a_crash_is_one_run() -> None:
    book = Book()
    journal = book.shelf("twos").journal
    place = book.places("twos", did.Asked)[1]
    journal.insert(place, journal[place])
    book.judge()
