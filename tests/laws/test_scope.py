"""Laws of lineage scopes: reachability gives what enumerating the paths, naively, gives.

The oracle works on a plain list of port pairs and shares no code with what it judges.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from clew.model.event import Event
from clew.model.graph import Graph, Scope
from clew.model.operator import Context, Operator
from clew.model.scope import capture, paths, reachable
from clew.model.stamps import numbered
from clew.pipeline import Pipeline
from clew.testing import scripted
from clew.times import Add


class Pass(Operator):
    is_feedback = True

    def __init__(self, inputs: list[str], outputs: list[str]) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.summaries = dict.fromkeys(inputs, Add(1))

    def assign(self, event: Event, ctx: Context) -> list[int]:
        return [event.id]

    def update(self, input_set: Any, event: Event, note: Any = None) -> None: ...

    def generate(self, input_sets: Any, ctx: Context) -> Iterable[tuple[str, Any]]:
        return ()


class Case(NamedTuple):
    graph: Graph
    edges: list[tuple[str, str]]
    """From each output port to the input ports behind it, and from each input port through its operator."""
    start: str
    target: str


@st.composite
def cases(draw: st.DrawFn, cyclic: bool) -> Case:
    """A random graph of up to six operators, and two of its output ports."""
    count = draw(st.integers(2, 6))
    outputs = [[f"out{number}" for number in range(draw(st.integers(1, 2)))] for _ in range(count)]
    pipeline = Pipeline("random")
    pipeline.source("n0", scripted([]), times=numbered())
    edges: list[tuple[str, str]] = []
    all_outputs = [f"n{index}.{port}" for index in range(1, count) for port in outputs[index]]
    for index in range(1, count):
        earlier = ["n0.out", *(f"n{before}.{port}" for before in range(1, index) for port in outputs[before])]
        senders = draw(st.lists(st.sampled_from(earlier), min_size=1, max_size=3))
        if cyclic:
            senders += draw(st.lists(st.sampled_from(all_outputs), max_size=2))
        inputs = [f"in{number}" for number in range(len(senders))]
        pipeline.operator(f"n{index}", Pass(inputs, outputs[index]), dict(zip(inputs, senders, strict=True)))
        edges += [(sender, f"n{index}.{port}") for sender, port in zip(senders, inputs, strict=True)]
        edges += [(f"n{index}.{one}", f"n{index}.{other}") for one in inputs for other in outputs[index]]
    ends = st.sampled_from(["n0.out", *all_outputs])
    return Case(pipeline.build(), edges, draw(ends), draw(ends))


def oracle_paths(edges: list[tuple[str, str]], path: list[str], target: str) -> list[tuple[str, ...]]:
    """Every path on from the last port that visits no port twice and ends at the target."""
    found = []
    for port in {there for here, there in edges if here == path[-1]}:
        if port == target:
            found.append((*path, port))
        elif port not in path:
            found += oracle_paths(edges, [*path, port], target)
    return found


def oracle_closure(edges: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """Which port leads to which, in one step or more."""
    closure = set(edges)
    while True:
        more = {(one, four) for one, two in closure for three, four in closure if two == three} - closure
        if not more:
            return closure
        closure |= more


def captured(case: Case) -> set[str]:
    found = capture(case.graph, Scope(case.start, case.target))
    return {f"{name}.{port}" for name, each in found.items() for port in each.inputs | each.outputs}


@given(cases(cyclic=False))
def test_the_paths_are_all_paths(case: Case) -> None:
    found = list(paths(case.graph, Scope(case.start, case.target)))
    assert len(set(found)) == len(found)
    assert set(found) == set(oracle_paths(case.edges, [case.start], case.target))


@given(cases(cyclic=False))
def test_captured_ports_are_those_on_some_path(case: Case) -> None:
    on_paths = oracle_paths(case.edges, [case.start], case.target)
    assert captured(case) == {port for path in on_paths for port in path[1:]}


@given(cases(cyclic=False))
def test_captured_operators_are_those_that_a_path_leads_through(case: Case) -> None:
    on_paths = oracle_paths(case.edges, [case.start], case.target)
    passed: dict[str, tuple[set[str], set[str]]] = {}
    for path in on_paths:
        for entry, leave in zip(path[1::2], path[2::2], strict=True):
            name = entry.split(".")[0]
            assert leave.startswith(f"{name}.")
            inputs, outputs = passed.setdefault(name, (set(), set()))
            inputs.add(entry.split(".")[1])
            outputs.add(leave.split(".")[1])
    found = capture(case.graph, Scope(case.start, case.target))
    assert {name: (set(each.inputs), set(each.outputs)) for name, each in found.items()} == passed


@given(cases(cyclic=True))
def test_in_a_graph_with_cycles_captured_ports_are_those_that_a_walk_passes(case: Case) -> None:
    closure = oracle_closure(case.edges)
    ports = {port for edge in case.edges for port in edge}
    behind = {port for port in ports if (case.start, port) in closure}
    before = {port for port in ports if (port, case.target) in closure}
    walked = {port for port in behind if port in before or port == case.target}
    assert captured(case) == (walked if case.target in behind else set())


@given(cases(cyclic=True))
def test_in_a_graph_with_cycles_the_paths_are_all_paths(case: Case) -> None:
    found = list(paths(case.graph, Scope(case.start, case.target)))
    assert len(set(found)) == len(found)
    assert set(found) == set(oracle_paths(case.edges, [case.start], case.target))


@given(cases(cyclic=True))
def test_reachable_is_what_a_scope_can_end_at(case: Case) -> None:
    found = reachable(case.graph, case.start)
    assert len(set(found)) == len(found)
    outputs = {f"{name}.{port}" for name, node in case.graph.nodes.items() for port in node.outputs}
    assert set(found) == {port for port in outputs if (case.start, port) in oracle_closure(case.edges)}
