"""Declaring one operator or source: its ports and connections as a node of the graph, checked by themselves."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.errors import BuildError, DuplicateName, UnsafeWriteConnection
from clew.model.connection import Kind, ReadConnection, WriteConnection
from clew.model.graph import DEAD, Node
from clew.model.names import check_name
from clew.model.operator import Operator
from clew.model.source import Source
from clew.model.stamps import Stamps

REPLICAS_MAX = 256
"""More replicas of one operator than anybody has processes for are a slip of the pen."""


def declare_source(name: str, source: Source, times: Stamps | None = None) -> Node:
    """The node of a source, whose events have times if it is said how they get them."""
    check_name("source", name)
    _check_made_of(f"source {name!r}", source, Source, ("read",))
    if times is not None:
        _check_made_of(f"times of source {name!r}", times, Stamps, ("stamp",))
        if not times.start:
            raise BuildError(
                f"times of source {name!r}: {type(times).__name__} holds nothing at the start, so the source could "
                f"send nothing. Set start to a tuple of the earliest times, such as (0,)."
            )
    node = Node(name, source, (), _ports(name, "output", source.outputs), stamps=times)
    check_node(node)
    return node


def declare_operator(
    name: str,
    operator: Operator,
    *,
    writes: Mapping[str, WriteConnection] | None = None,
    reads: Mapping[str, ReadConnection] | None = None,
    writes_first: bool | None = None,
    dead_letters: bool = False,
) -> Node:
    """The node of an operator, whose own connections are added to, or replaced by, the given ones."""
    check_name("operator", name)
    _check_made_of(f"operator {name!r}", operator, Operator, ("assign", "update", "generate"))
    outputs = _ports(name, "output", operator.outputs)
    node = Node(
        name,
        operator,
        _ports(name, "input", operator.inputs),
        (*outputs, DEAD) if dead_letters else outputs,
        writes={**operator.writes, **(writes or {})},
        reads={**operator.reads, **(reads or {})},
        writes_first=operator.writes_first if writes_first is None else writes_first,
        dead_letters=dead_letters,
        keeps=frozenset((DEAD,) if dead_letters else ()),
    )
    _check_dead(node)
    check_node(node)
    return node


def check_node(node: Node) -> None:
    """Raises if the node cannot be part of any pipeline."""
    check_name("operator", node.name)
    _check_names(node)
    _check_ends(node)
    check_replicas(f"operator {node.name!r}", node.replicas)
    if node.is_source and node.replicas > 1:
        raise BuildError(
            f"source {node.name!r} has {node.replicas} replicas; expected one, since each would read everything. "
            f"Declare several sources, or let operators behind it be parallel: stream.parallel(n)."
        )
    for name, connection in node.writes.items():
        _check_write(f"write connection {name!r} of operator {node.name!r}", connection)
    for name, reading in node.reads.items():
        if not isinstance(reading, ReadConnection):
            raise BuildError(
                f"read connection {name!r} of operator {node.name!r} is a {type(reading).__name__}; expected an object "
                f"of a subclass of clew.ReadConnection. Pass one in reads={{{name!r}: ...}}."
            )


def check_replicas(place: str, replicas: object) -> None:
    """Raises if an operator cannot have so many replicas."""
    if type(replicas) is not int or not 1 <= replicas <= REPLICAS_MAX:
        raise BuildError(
            f"{place} has {replicas!r} replicas; expected a whole number from 1 to {REPLICAS_MAX}. "
            f"Pass how many copies of the operator are to run."
        )


def nearest(name: str, names: Iterable[str]) -> str:
    """A sentence that suggests the most similar of the names, if one is similar.

    >>> nearest("hourli", ["orders", "hourly"])
    " Did you mean 'hourly'?"
    """
    found = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean {found[0]!r}?" if found else ""


def listed(names: Iterable[str]) -> str:
    """The names in a row.

    >>> listed(["b", "a"]), listed([])
    ('b, a', 'none')
    """
    return ", ".join(names) or "none"


def _ports(name: str, side: str, ports: Sequence[str]) -> tuple[str, ...]:
    if isinstance(ports, str) or not isinstance(ports, Sequence):
        raise BuildError(
            f"the {side}s of operator {name!r} are {ports!r}; expected a tuple of port names. "
            f"Write {side}s = ({ports!r},)."
        )
    return tuple(ports)


def _check_made_of(place: str, found: Any, kind: type, moves: Sequence[str]) -> None:
    """Raises unless the found thing is an object of a subclass that defines all of these moves."""
    if isinstance(found, type):
        raise BuildError(f"{place} is the class {found.__name__}; expected an object. Write {found.__name__}().")
    if not isinstance(found, kind):
        raise BuildError(
            f"{place} is a {type(found).__name__}; expected an object of a subclass of clew.{kind.__name__}. "
            f"Derive {type(found).__name__} from clew.{kind.__name__}."
        )
    missing = [move for move in moves if move not in vars(found) and getattr(type(found), move) is getattr(kind, move)]
    if missing:
        raise BuildError(
            f"{place} is a {type(found).__name__}, which lacks {', '.join(f'{move}()' for move in missing)}; "
            f"expected {', '.join(f'{move}()' for move in moves)}. "
            f"Define {'it' if len(missing) == 1 else 'them'} in {type(found).__name__}."
        )


def _check_names(node: Node) -> None:
    """Raises if a name of a port or connection is bad, or stands for two things: `operator.name` is an id."""
    named: list[tuple[str, str]] = [
        *(("an input port", port) for port in node.inputs),
        *(("an output port", port) for port in node.outputs),
        *(("a write connection", name) for name in node.writes),
        *(("a read connection", name) for name in node.reads),
    ]
    if isinstance(node.definition, Source):
        named.append(("a read connection", node.definition.connection))
    seen: dict[str, str] = {}
    for what, name in named:
        check_name(f"operator {node.name!r}: {what.split(' ', 1)[1]}", name)
        if name in seen:
            raise DuplicateName(
                f"operator {node.name!r} has two things named {name!r}, {seen[name]} and {what}; expected different "
                f"names, since {node.name}.{name} is an id. Rename one of them."
            )
        seen[name] = what


def _check_dead(node: Node) -> None:
    """Raises if something of the node has the name of the port for dead letters."""
    if type(node.dead_letters) is not bool:
        raise BuildError(
            f"operator {node.name!r} was declared with dead_letters={node.dead_letters!r}; expected True or False. "
            f"Pass dead_letters=True to set inputs that always fail aside on its port {DEAD!r}."
        )
    if node.dead_letters and DEAD in (*node.inputs, *node.made, *node.writes, *node.reads):
        raise DuplicateName(
            f"operator {node.name!r} has a port or connection named {DEAD!r}; with dead_letters=True that is the name "
            f"of the output port for dead letters. Rename yours."
        )


def _check_ends(node: Node) -> None:
    """Raises if the node has no ports where it needs some."""
    if node.is_source and len(node.outputs) != 1:
        raise BuildError(
            f"source {node.name!r} has the output ports {listed(node.outputs)}; expected one. Set outputs = ('out',) "
            f"in {type(node.definition).__name__}, and divide its events in an operator behind it, if need be."
        )
    if not node.is_source and not node.inputs:
        raise BuildError(
            f"operator {node.name!r} has no input ports; expected at least one. Set inputs = ('in',) in "
            f"{type(node.definition).__name__}, or derive it from clew.Source if it brings events in."
        )


def _check_write(place: str, connection: Any) -> None:
    """Raises unless an action on this connection can be done exactly once."""
    if not isinstance(connection, WriteConnection):
        raise UnsafeWriteConnection(
            f"{place} is a {type(connection).__name__}; expected an object of a subclass of clew.WriteConnection. "
            f"Wrap it in one that says of which kind it is."
        )
    kind, name = connection.kind, type(connection).__name__
    if kind not in tuple(Kind):
        shown = None if kind is None else str(kind)
        raise UnsafeWriteConnection(
            f"{place}, a {name}, is of kind {shown!r}; expected 'conditional', 'checkable' "
            f"or 'idempotent', since nothing else can be done exactly once across a crash. If its system can record "
            f"the id of an action atomically with its effect, let it and set kind = 'conditional'; if it can tell "
            f"whether an action is in, write is_in() and set kind = 'checkable'; if doing an action twice in a row is "
            f"like doing it once, set kind = 'idempotent'."
        )
    needed = ["execute", "is_in"] if kind == Kind.CHECKABLE else ["execute"]
    for method in needed:
        if getattr(type(connection), method) is getattr(WriteConnection, method) and method not in vars(connection):
            raise UnsafeWriteConnection(
                f"{place}, a {name} of kind {str(kind)!r}, lacks {method}(); expected a connection of this kind to "
                f"define {' and '.join(f'{each}()' for each in needed)}. Define {method}() in {name}."
            )
