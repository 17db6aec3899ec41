"""Dead letters as a user declares them: one more output port, which nobody else may use."""

from __future__ import annotations

from typing import Any

import pytest

import clew
from clew.errors import BuildError, DuplicateName, MoveError, UnknownPort
from clew.model.declaration import declare_operator
from clew.model.graph import Graph
from clew.model.names import Replica
from clew.operators.stateless import Stateless
from clew.protocol import effects as does
from clew.protocol.moves import Moves
from clew.testing import Outside, run, scripted


class Pass(Stateless):
    """Passes everything on, to a port of any name."""

    def __init__(self, port: str = "out") -> None:
        self.port = port

    def apply(self, event: clew.Event, ctx: clew.Context) -> Any:
        yield self.port, event.batch


def build(*, dead_letters: bool, is_wired: bool = False) -> Graph:
    pipeline = clew.Pipeline("small")
    stream = pipeline.source("numbers", scripted([[{"x": 1}]]))
    passed = stream.operator("pass", Pass(), dead_letters=dead_letters)
    if is_wired:
        passed["dead"].write("aside", Outside("aside").writer())
    return pipeline.build()


def test_the_port_is_the_last_one_and_is_kept() -> None:
    node = build(dead_letters=True).nodes["pass"]
    assert (node.outputs, node.made, node.keeps, node.is_sink) == (("out", "dead"), ("out",), {"dead"}, False)
    node = build(dead_letters=False).nodes["pass"]
    assert (node.outputs, node.made, node.keeps) == (("out",), ("out",), frozenset())


def test_a_log_may_be_continued_with_dead_letters_as_long_as_nothing_is_connected_to_them() -> None:
    assert build(dead_letters=True).describe() == build(dead_letters=False).describe()
    assert build(dead_letters=True, is_wired=True).describe() != build(dead_letters=False).describe()


def test_a_sink_is_a_sink_and_its_dead_letters_a_stream() -> None:
    pipeline = clew.Pipeline("small")
    stream = pipeline.source("numbers", scripted([[{"x": 1}]]))
    sink = stream.write("report", Outside("report").writer(), dead_letters=True)
    assert (str(sink), str(sink["dead"])) == ("report", "report.dead")
    assert pipeline.build().nodes["report"].is_sink


@pytest.mark.parametrize(
    ("inputs", "outputs", "writes"),
    [(("dead",), ("out",), {}), (("in",), ("dead",), {}), (("in",), ("out",), {"dead": Outside("db").writer()})],
)
def test_the_name_is_reserved(inputs: Any, outputs: Any, writes: Any) -> None:
    operator = Pass()
    operator.inputs, operator.outputs = inputs, outputs
    declare_operator("pass", operator, writes=writes)
    with pytest.raises(DuplicateName) as caught:
        declare_operator("pass", operator, writes=writes, dead_letters=True)
    assert str(caught.value) == (
        "operator 'pass' has a port or connection named 'dead'; with dead_letters=True that is the name of the output "
        "port for dead letters. Rename yours."
    )


def test_it_is_a_switch() -> None:
    with pytest.raises(BuildError, match=r"^operator 'pass' was declared with dead_letters='yes'; expected True or F"):
        declare_operator("pass", Pass(), dead_letters="yes")  # type: ignore[arg-type]


def test_without_dead_letters_there_is_no_such_port() -> None:
    pipeline = clew.Pipeline("small")
    passed = pipeline.source("numbers", scripted([[{"x": 1}]])).operator("pass", Pass())
    with pytest.raises(UnknownPort, match="has no output port 'dead'"):
        passed["dead"]


class Nothing:
    """Surroundings in which nothing is."""

    def now(self) -> float:
        return 0.0

    def seed(self) -> int:
        return 0

    read = backlog = state = state_items = lambda *_: None


def test_an_operator_cannot_yield_to_it() -> None:
    node = declare_operator("pass", Pass("dead"), dead_letters=True)
    moves = Moves(node, node.definition, Nothing())  # type: ignore[arg-type]
    moves.open()
    event = clew.Event(Replica("up"), "out", 1, clew.model.event.as_batch([{"x": 1}]))
    graph = build(dead_letters=True)
    moves.perform(does.Fold(graph.inbound(Replica("pass"))[0], event))
    with pytest.raises(MoveError, match=r"yielded records for 'dead'; its output ports are out, its write connections"):
        moves.perform(does.Generate((clew.model.values.encode(1),)))


def test_of_a_parallel_operator_the_merger_has_them_all() -> None:
    def digest(row: dict[str, Any]) -> dict[str, Any]:
        return {"x": 1 // (row["x"] % 3)}

    pipeline = clew.Pipeline("small")
    stream = pipeline.source("numbers", scripted([[{"x": number}] for number in range(1, 7)]))
    digested = stream.parallel(2).map(digest, rows=True, dead_letters=True)
    digested["dead"].write("aside", Outside("aside").writer())
    result = run(pipeline)
    assert sorted(row["x"] for row in result.rows("aside.to")) == [3, 6]
    assert {about["operator"] for _, about in result.dead_letters("digest")} == {"digest", "digest/1"}
