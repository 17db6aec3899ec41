"""Simulated outside systems, which pipelines under test write to and read from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pyarrow as pa

from clew.errors import ClewError
from clew.model.connection import Kind, ReadConnection, WriteAction, WriteConnection
from clew.model.names import check_name

Answer = Callable[[Any, list[WriteAction]], Any]


class Outside:
    """An outside system of the simulator; handles of the same name share one.

    >>> shop = Outside("shop")
    >>> shop.writer().kind, shop.writer("checkable").system
    (<Kind.CONDITIONAL: 'conditional'>, 'shop')
    """

    def __init__(self, name: str) -> None:
        self.name = check_name("outside system", name)

    def writer(self, kind: Kind | str = Kind.CONDITIONAL) -> WriteConnection:
        """A write connection of some kind to this system."""
        return _Writer(self.name, Kind(kind) if kind in tuple(Kind) else kind)

    def reader(self, f: Answer | None = None, *, replayable: bool = False) -> ReadConnection:
        """A read connection that answers a query from the write actions applied so far: `f(query, applied)`.

        Unless told otherwise it answers every query with all rows written so far, in the order in which they came in.
        """
        return _Reader(self.name, f or _everything, replayable)

    def __repr__(self) -> str:
        return f"<Outside {self.name}>"


class _Writer(WriteConnection):
    def __init__(self, system: str, kind: Kind | str) -> None:
        self.system = system
        self.kind = kind

    def execute(self, action: WriteAction) -> None:
        _only_simulated(self.system, f"the write action {action.id}")

    def is_in(self, action: WriteAction) -> bool:
        _only_simulated(self.system, f"whether {action.id} is in")


class _Reader(ReadConnection):
    def __init__(self, system: str, f: Answer, replayable: bool) -> None:
        self.system = system
        self.f = f
        self.is_replayable = replayable

    def read(self, query: Any) -> Any:
        _only_simulated(self.system, f"the query {query!r}")

    def read_simulated(self, query: Any, applied: list[WriteAction]) -> Any:
        return self.f(query, applied)


def _everything(query: Any, applied: list[WriteAction]) -> pa.RecordBatch | pa.Table:
    if not applied:
        return pa.RecordBatch.from_pylist([])
    tables = [pa.Table.from_batches([action.batch]) for action in applied]
    return pa.concat_tables(tables, promote_options="permissive")


def _only_simulated(system: Any, what: str) -> NoReturn:
    raise ClewError(
        f"{what} reached the outside system {system!r} of clew.testing, which exists in the simulator only. Run this "
        f"pipeline with `clew verify`, or replace Outside({system!r}) by a real connection."
    )
