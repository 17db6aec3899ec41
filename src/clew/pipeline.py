"""Pipelines and streams: how a user declares operators and connects them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.errors import BuildError, UnknownPort
from clew.model.connection import ReadConnection, WriteConnection
from clew.model.declaration import check_replicas, declare_operator, declare_source
from clew.model.graph import Graph, Node, Scope
from clew.model.names import Channel, Replica, check_name, is_name, split_port
from clew.model.operator import Operator
from clew.model.source import Source
from clew.model.stamps import Stamps
from clew.model.validation import build_graph, check_input, check_new, check_output
from clew.operators.dispatch import Key, dispatcher, port_of
from clew.operators.loop import Again, EnterLoop, LeaveLoop
from clew.operators.merge import Merge, Merger
from clew.operators.shape import Shape, shape_of
from clew.progress.pipeline import topology_of
from clew.runtime.run import Run, start
from clew.runtime.spec import LOOPBACK, TUNING, LogPlace, Options, Tuning
from clew.sugar import Sugar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        self._exact: set[Channel] = set()
        """Those that lead to one replica; all others lead to every replica of their receiver."""
        self._scopes: list[Scope] = []
        self._groups: list[tuple[str, ...]] = []

    def source(self, name: str, source: Source, times: Stamps | None = None) -> Stream:
        """Declares a source; the stream is its first output port.

        With `times`, such as `clew.event_time("ts", late_by=5)`, its events have times, so that operators behind it
        know when all that belongs to a time has arrived.
        """
        return self._declare(declare_source(name, source, times))

    def operator(
        self,
        name: str,
        operator: Operator,
        inputs: Input | Mapping[str, Input] | None = None,
        *,
        writes: Mapping[str, WriteConnection] | None = None,
        reads: Mapping[str, ReadConnection] | None = None,
        writes_first: bool | None = None,
        dead_letters: bool = False,
    ) -> Stream:
        """Declares an operator; the stream is its first output port.

        `inputs` names the stream of each input port; a single stream goes to the first one. What is left out can be
        connected later. If an input is parallel, so is the operator, and every replica gets all of an input that is
        not; the stream is then the merger's. `writes` and `reads` add to the operator's own connections to outside
        systems, or replace those of the same name. With `dead_letters`, an input that always crashes the operator is
        set aside on one more output port, `stream["dead"]`, instead of stopping the run.
        """
        node = declare_operator(
            name, operator, writes=writes, reads=reads, writes_first=writes_first, dead_letters=dead_letters
        )
        by_port = inputs if isinstance(inputs, Mapping) else {} if inputs is None else {node.inputs[0]: inputs}
        return self._declare(node, by_port)

    def connect(self, output: Stream | str, input: str) -> None:
        """Connects an output port to an input port, of all replicas: `connect("orders.out", "hourly.in")`."""
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

    def run(
        self,
        spark: SparkSession | None = None,
        *,
        log: str | Path | LogPlace | None = None,
        recovery: str = "log",
        blocking: bool = True,
        restarts_max: int = 10,
        bind: str = LOOPBACK,
        tuning: Tuning = TUNING,
        trace: bool | str | Path = True,
        snapshot_every_s: float = 5.0,
    ) -> Run:
        """Runs the pipeline on Spark and returns its handle; when blocking, after it is over.

        Without a session a local Spark is started and stopped with the run. The log is a directory, by default named
        after the pipeline, or a PostgreSQL connection string; running again on the same log goes on where it was.
        With `recovery="snapshot"` all replicas go back together after a failure, to the last snapshot, of which one is
        taken every `snapshot_every_s`; with `recovery="off"` nothing is protected and nothing logged. A group that dies
        `restarts_max` times in a row without getting anything done fails the run. Hosts listen on `bind`. A trace, for
        `clew explain`, is written beside a log in a directory; `trace` can name another directory for it, or be False.
        """
        options = Options(log, recovery, restarts_max, bind, tuning, trace, snapshot_every_s)
        run = start(self.build(), spark, options)
        return run.wait() if blocking else run

    def build(self) -> Graph:
        """The graph, or an error that says what is wrong and what to do."""
        channels = [each for channel in self._channels for each in self._everywhere(channel)]
        graph = build_graph(self.name, self._nodes.values(), channels, self._scopes, self._groups)
        topology_of(graph)  # Every cycle must advance time.
        return graph

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}>"

    def _declare(self, node: Node, inputs: Mapping[str, Input] = NO_INPUTS) -> Stream:
        """Adds a node; what is refused leaves nothing behind.

        If an input is parallel, there are as many replicas, a dispatcher before them and a merger behind them.
        """
        node = replace(node, replicas=_replicas(node.name, inputs))
        nodes: list[Node] = []
        channels: list[Channel] = []
        exact: list[Channel] = []
        for port, stream in inputs.items():
            check_input(f"inputs of operator {node.name!r}", node, port)
            receiver, receiving, parts = node.name, port, list[Channel]()
            if isinstance(stream, Parallel):
                receiver, receiving = f"{node.name}-dispatch{f'-{port}' if nodes else ''}", "in"
                nodes.append(declare_operator(receiver, stream.dispatcher))
                for index in range(node.replicas):
                    parts.append(Channel(Replica(receiver), port_of(index), Replica(node.name, index), port))
                stream = stream.stream
            sender, output = self._output(stream)
            channels += [Channel(Replica(sender), output, Replica(receiver), receiving), *parts]
            exact += parts
        end = node
        if nodes and node.outputs:
            merger = declare_operator(f"{node.name}-merge", Merger(node.replicas, node.outputs))
            end = replace(merger, keeps=node.keeps)
            for port in node.outputs:
                for index in range(node.replicas):
                    merging = Merger.input(port, index)
                    channels.append(Channel(Replica(node.name, index), port, Replica(end.name), merging))
        nodes += [node] if end is node else [node, end]
        for each in nodes:
            check_new(self.name, self._nodes, each.name)
        self._nodes.update((each.name, each) for each in nodes)
        self._channels += channels
        self._exact.update(exact)
        return Stream(self, end.name, node.made[0] if node.made else None)

    def _everywhere(self, channel: Channel) -> list[Channel]:
        """A connection, once for every replica of its receiver, unless it is the dispatcher's to one of them."""
        node = self._nodes.get(channel.receiver.operator)
        if node is None or channel in self._exact:
            return [channel]
        return [channel._replace(receiver=Replica(node.name, index)) for index in range(node.replicas)]

    def _node(self, name: str) -> Node:
        return self._nodes[name]

    def _check_own(self, stream: Stream) -> None:
        if stream.pipeline is not self:
            raise BuildError(
                f"stream {stream} belongs to pipeline {stream.pipeline.name!r}; expected one of pipeline "
                f"{self.name!r}. Declare its operators in this pipeline."
            )

    def _output(self, stream: Input) -> tuple[str, str]:
        if isinstance(stream, Parallel):
            raise BuildError(
                f"{stream} is a parallel stream, which divides events over the replicas of one operator; expected a "
                f"stream. Declare the operator behind it, {stream}.operator(name, ...), and use the stream that this "
                f"returns."
            )
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


class Stream(Sugar):
    """An output port of an operator, to build on; `stream["port"]` is another output port of the same operator."""

    __slots__ = ("name", "pipeline", "port")

    def __init__(self, pipeline: Pipeline, name: str, port: str | None) -> None:
        self.pipeline = pipeline
        self.name = name
        """The operator."""
        self.port = port
        """The output port; a sink has none."""

    def iterate(
        self, name: str, body: Callable[[Stream, Stream], tuple[Stream, Stream]], rounds_max: int | None = None
    ) -> Stream:
        """A loop: the body is given what enters and what comes round again, and returns what goes round and out.

        Inside, an event's time is a pair of its time outside and the number of its round, from 0 on. Its operators are
        told when a round is over (`on_frontier`), and the loop ends when nothing can go round any more: so inside it
        nothing may wait for the end of its input, as `batch` does with what does not fill it. With `rounds_max`,
        whatever goes round more often stops the run with an error.
        """
        pipeline = self.pipeline
        entered = self.operator(f"{name}-enter", EnterLoop())
        again = pipeline.operator(f"{name}-again", Again(rounds_max))
        try:
            round_again, out = body(entered, again)
            pipeline.connect(round_again, f"{name}-again.in")
            return out.operator(f"{name}-leave", LeaveLoop())
        except (TypeError, ValueError, AttributeError) as error:
            raise BuildError(
                f"the body of loop {name!r} did not return a pair of streams: {error}. Return what goes round again, "
                f"and what leaves the loop."
            ) from error

    def __getitem__(self, port: str) -> Stream:
        check_output(f"stream {self}[{port!r}]", self.pipeline._node(self.name), port)
        return Stream(self.pipeline, self.name, port)

    __iter__ = None  # Otherwise Python would try stream[0], stream[1], ...

    def parallel(self, n: int, key: Key = None, *, rows: bool = False, pandas: bool = False) -> Parallel:
        """This stream, divided over n replicas of the operator that is declared behind it.

        With a key, which is a column, a list of columns or a function, records with equal keys always go to the same
        replica. A function is given the Arrow table of an event, with `pandas` its frame, and gives one key for each
        record; with `rows` it is given one row at a time. Without a key whole events go to the replicas in turn, and a
        replica that is behind is passed over.
        """
        return Parallel(self, n, key, shape_of(rows=rows, pandas=pandas))

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """The events of this and other streams, in the order in which they arrive."""
        streams = (self, *others)
        inputs = {f"in{number}": stream for number, stream in enumerate(streams, 1)}
        return self.pipeline.operator(self._free_name("merge", None, name), Merge(len(streams)), inputs)

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name}.{self.port}"

    def __repr__(self) -> str:
        return f"<Stream {self}>"


class Parallel(Sugar):
    """A stream that is divided over the replicas of the next operator; made by `Stream.parallel`.

    >>> from clew.testing import scripted
    >>> pipeline = Pipeline("small")
    >>> orders = pipeline.source("orders", scripted([[{"item": "a"}]]))
    >>> orders.parallel(2, key="item").batch(10, name="tens")
    <Stream tens-merge.out>
    >>> for channel in pipeline.build().channels:
    ...     print(channel)
    orders.out->tens-dispatch.in
    tens-dispatch.out-0->tens.in
    tens-dispatch.out-1->tens/1.in
    tens.out->tens-merge.out-0
    tens/1.out->tens-merge.out-1
    """

    __slots__ = ("dispatcher", "pipeline", "replicas", "stream")

    def __init__(self, stream: Stream, replicas: int, key: Key, shape: Shape) -> None:
        check_replicas(f"the operator behind stream {stream}.parallel({replicas!r})", replicas)
        self.pipeline = stream.pipeline
        self.stream = stream
        self.replicas = replicas
        self.dispatcher = dispatcher(replicas, key, shape)

    def __str__(self) -> str:
        return f"{self.stream}.parallel({self.replicas})"

    def __repr__(self) -> str:
        return f"<Parallel {self}>"


Input = Stream | Parallel | str
"""What an input port can be given: a stream, a parallel stream, or the name of an output port."""


def _replicas(name: str, inputs: Mapping[str, Input]) -> int:
    """How many replicas the inputs of an operator ask for."""
    counts = {port: stream.replicas for port, stream in inputs.items() if isinstance(stream, Parallel)}
    if len(set(counts.values())) > 1:
        raise BuildError(
            f"inputs of operator {name!r}: "
            f"{', '.join(f'port {port!r} is divided over {count} replicas' for port, count in counts.items())}; "
            f"expected the same number everywhere, since each replica has all ports. Pass the same n to parallel(); a "
            f"stream that is not parallel goes to every replica as a whole."
        )
    return next(iter(counts.values()), 1)
