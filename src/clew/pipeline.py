"""Pipelines and streams: how a user declares operators and connects them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clew.errors import BuildError, DoublyUsedPort, UnknownPort
from clew.model.connection import ReadConnection, WriteConnection
from clew.model.declaration import declare_operator, declare_source
from clew.model.graph import Graph, Node, Scope
from clew.model.names import Channel, Replica, check_name, is_name, split_port
from clew.model.operator import Operator
from clew.model.source import Source
from clew.model.validation import build_graph, check_input, check_new, check_output
from clew.operators.batch import Batch
from clew.operators.functions import Filter, FlatMap, Map
from clew.operators.merge import Merge
from clew.operators.shape import shape_of
from clew.operators.writer import writer

NO_INPUTS: Mapping[str, Any] = {}


class Pipeline:
    """A pipeline under construction; `build` checks it and makes its graph.

    >>> from clew.testing import Outside, scripted
    >>> pipeline = Pipeline("small")
    >>> numbers = pipeline.source("numbers", scripted([[{"x": 1}], [{"x": 2}]]))
    >>> numbers.filter(lambda row: row["x"] > 1, rows=True).write("report", Outside("report").writer())
    <Stream report>
    >>> [str(channel) for channel in pipeline.build().channels]
    ['numbers.out->filter-1.in', 'filter-1.out->report.in']
    """

    def __init__(self, name: str) -> None:
        self.name = check_name("pipeline", name)
        self._nodes: dict[str, Node] = {}
        self._channels: list[Channel] = []
        self._scopes: list[Scope] = []
        self._groups: list[tuple[str, ...]] = []

    def source(self, name: str, source: Source) -> Stream:
        """Declares a source; the stream is its first output port."""
        return self._declare(declare_source(name, source))

    def operator(
        self,
        name: str,
        operator: Operator,
        inputs: Stream | str | Mapping[str, Stream | str] | None = None,
        *,
        writes: Mapping[str, WriteConnection] | None = None,
        reads: Mapping[str, ReadConnection] | None = None,
        writes_first: bool | None = None,
    ) -> Stream:
        """Declares an operator; the stream is its first output port.

        `inputs` names the stream of each input port; a single stream goes to the first one. What is left out can be
        connected later. `writes` and `reads` add to the operator's own connections to outside systems, or replace
        those of the same name.
        """
        node = declare_operator(name, operator, writes=writes, reads=reads, writes_first=writes_first)
        by_port = inputs if isinstance(inputs, Mapping) else {} if inputs is None else {node.inputs[0]: inputs}
        return self._declare(node, by_port)

    def connect(self, output: Stream | str, input: str) -> None:
        """Connects an output port to an input port: `connect("orders.out", "hourly.in")`."""
        sender, port = self._output(output)
        receiver, receiving = split_port(input)
        self._channels.append(Channel(Replica(sender), port, Replica(receiver), receiving))

    def group(self, *operators: Stream | str) -> None:
        """Puts operators into one process, where they fail and recover together."""
        names = []
        for operator in operators:
            if isinstance(operator, Stream):
                self._check_own(operator)
                names.append(operator.name)
            else:
                names.append(check_name("operator", operator))
        if not names:
            raise BuildError("group() was given no operators; expected their names. Write group('one', 'other').")
        self._groups.append(tuple(names))

    def lineage(self, start: Stream | str, target: Stream | str, keep_s: float | None = None) -> None:
        """Captures which events on the start port made which events on the target, an output port or write connection.

        Lineage of target events is kept for `keep_s` seconds after they were made; None keeps it as long as the log.
        """
        starts, targets = self._output(start), self._output(target)
        self._scopes.append(Scope(".".join(starts), ".".join(targets), keep_s))

    def build(self) -> Graph:
        """The graph, or an error that says what is wrong and what to do."""
        return build_graph(self.name, self._nodes.values(), self._channels, self._scopes, self._groups)

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}>"

    def _declare(self, node: Node, inputs: Mapping[str, Stream | str] = NO_INPUTS) -> Stream:
        check_new(self.name, self._nodes, node.name)
        channels = []
        for port, stream in inputs.items():
            check_input(f"inputs of operator {node.name!r}", node, port)
            sender, output = self._output(stream)
            channels.append(Channel(Replica(sender), output, Replica(node.name), port))
        self._nodes[node.name] = node
        self._channels += channels
        return Stream(self, node.name, node.outputs[0] if node.outputs else None)

    def _node(self, name: str) -> Node:
        return self._nodes[name]

    def _check_own(self, stream: Stream) -> None:
        if stream.pipeline is not self:
            raise BuildError(
                f"stream {stream} belongs to pipeline {stream.pipeline.name!r}; expected one of pipeline "
                f"{self.name!r}. Declare its operators in this pipeline."
            )

    def _output(self, stream: Stream | str) -> tuple[str, str]:
        if not isinstance(stream, Stream):
            return split_port(stream)
        self._check_own(stream)
        if stream.port is None:
            node = self._nodes[stream.name]
            raise UnknownPort(
                f"{stream.name!r} is a sink and has no output port; expected a stream. Use the stream that is written, "
                f"or name a write connection where a lineage scope ends: "
                f"{', '.join(repr(f'{node.name}.{write}') for write in node.writes) or 'it has none'}."
            )
        return stream.name, stream.port

    def _free_name(self, kind: str, f: Callable[..., Any] | None, name: str | None) -> str:
        """The given name, or the function's, or the kind's with a number; the same in every run of the script."""
        if name is not None:
            return name
        own = getattr(f, "__name__", None)
        if is_name(own) and own not in self._nodes:
            return str(own)
        base, first = (own, 2) if is_name(own) else (kind, 1)
        return next(each for number in itertools.count(first) if (each := f"{base}-{number}") not in self._nodes)


class Stream:
    """An output port of an operator, to build on; `stream["port"]` is another output port of the same operator."""

    __slots__ = ("name", "pipeline", "port")

    def __init__(self, pipeline: Pipeline, name: str, port: str | None) -> None:
        self.pipeline = pipeline
        self.name = name
        """The operator."""
        self.port = port
        """The output port; a sink has none."""

    def __getitem__(self, port: str) -> Stream:
        check_output(f"stream {self}[{port!r}]", self.pipeline._node(self.name), port)
        return Stream(self.pipeline, self.name, port)

    __iter__ = None  # Otherwise Python would try stream[0], stream[1], ...

    def operator(
        self,
        name: str,
        operator: Operator,
        inputs: Mapping[str, Stream | str] | None = None,
        *,
        writes: Mapping[str, WriteConnection] | None = None,
        reads: Mapping[str, ReadConnection] | None = None,
        writes_first: bool | None = None,
    ) -> Stream:
        """Declares an operator behind this stream, which goes to the first input port that `inputs` does not name."""
        node = declare_operator(name, operator, writes=writes, reads=reads, writes_first=writes_first)
        named = inputs or {}
        free = next((port for port in node.inputs if port not in named), None)
        if free is None:
            raise DoublyUsedPort(
                f"operator {name!r} behind stream {self}: inputs names a stream for every input port "
                f"({', '.join(node.inputs)}); expected one port left for {self}. Leave its port out of inputs, or use "
                f"pipeline.operator()."
            )
        return self.pipeline._declare(node, {free: self, **named})

    def map(
        self, f: Callable[[Any], Any], name: str | None = None, *, rows: bool = False, pandas: bool = False
    ) -> Stream:
        """What a function makes of each event: of its Arrow table, with `pandas` its frame, with `rows` each row."""
        return self.operator(self._free_name("map", f, name), Map(f, shape_of(rows=rows, pandas=pandas)))

    def filter(
        self, f: Callable[[Any], Any], name: str | None = None, *, rows: bool = False, pandas: bool = False
    ) -> Stream:
        """The records for which a function is true: on the table or frame it gives one truth value per record."""
        return self.operator(self._free_name("filter", f, name), Filter(f, shape_of(rows=rows, pandas=pandas)))

    def flat_map(
        self, f: Callable[[Any], Any], name: str | None = None, *, rows: bool = False, pandas: bool = False
    ) -> Stream:
        """The events that a function makes of each event, any number of them; with `rows`, rows of each row."""
        return self.operator(self._free_name("flat_map", f, name), FlatMap(f, shape_of(rows=rows, pandas=pandas)))

    def batch(
        self,
        every: int,
        name: str | None = None,
        f: Callable[[Any], Any] | None = None,
        *,
        rows: bool = False,
        pandas: bool = False,
    ) -> Stream:
        """One event for every so many: their records together, or what a function makes of these."""
        return self.operator(self._free_name("batch", f, name), Batch(every, f, shape_of(rows=rows, pandas=pandas)))

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """The events of this and other streams, in the order in which they arrive."""
        streams = (self, *others)
        inputs = {f"in{number}": stream for number, stream in enumerate(streams, 1)}
        return self.pipeline.operator(self._free_name("merge", None, name), Merge(len(streams)), inputs)

    def write(
        self, name: str, connection: WriteConnection, columns: Sequence[str] | None = None, *, every: int = 1
    ) -> Stream:
        """Writes each event, or every so many events together, to an outside system; the connection is named `to`."""
        return self.operator(name, writer(connection, every, columns))

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name}.{self.port}"

    def __repr__(self) -> str:
        return f"<Stream {self}>"

    def _free_name(self, kind: str, f: Callable[..., Any] | None, name: str | None) -> str:
        return self.pipeline._free_name(kind, f, name)
