"""The ready operators on event time, each from what it gathers and by which time windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew.errors import BuildError
from clew.model.operator import Operator
from clew.operators.aggregate import Aggregates, Spec
from clew.operators.gathered import Gatherer
from clew.operators.histogram import Counts, RunningCounts
from clew.operators.keyed import key_columns
from clew.operators.session import Sessions
from clew.operators.shape import Shape
from clew.operators.window import OnRecords
from clew.operators.window_join import Pairs, check_tumbling
from clew.operators.windowed import Windowed
from clew.operators.windows import Session, Windows

Keys = str | Sequence[str] | None


def window(
    windows: Windows | Session,
    f: Callable[[Any], Any],
    by: str = "ts",
    keys: Keys = None,
    *,
    shape: Shape = Shape.TABLE,
    **options: Any,
) -> Operator:
    """A function on all records of a time window, or of each key in it."""
    columns = key_columns("window", keys)
    return _gathered("window", OnRecords(f, columns, shape), windows, by, columns, options)


def aggregate(windows: Windows | Session, spec: Spec, keys: Keys = None, by: str = "ts", **options: Any) -> Operator:
    """Sums, counts, means and extremes of each key in a time window."""
    columns = key_columns("aggregate", keys)
    return _gathered("aggregate", Aggregates(spec, columns), windows, by, columns, options)


def histogram(
    column: str,
    windows: Windows | Session,
    by: str = "ts",
    keys: Keys = None,
    *,
    running: bool = False,
    **options: Any,
) -> Operator:
    """How often each value of a column occurs in a time window, or in all time up to its end."""
    columns = key_columns("histogram", keys)
    if running:
        check_tumbling("a running histogram", windows)
    gatherer = RunningCounts(column, columns) if running else Counts(column, columns)
    return _gathered("histogram", gatherer, windows, by, columns, options)


def join(
    on: str | Sequence[str],
    within: Windows,
    by: str | tuple[str, str] = "ts",
    how: str = "inner",
    *,
    suffix: str = "_right",
    **options: Any,
) -> Operator:
    """Pairs of records of two inputs with equal keys in the same time window."""
    return Windowed(Pairs(on, how, suffix), check_tumbling("join", within), by, **{"bounds": False, **options})


def _gathered(
    where: str,
    gatherer: Gatherer,
    windows: Windows | Session,
    by: str,
    keys: Sequence[str],
    options: dict[str, Any],
) -> Operator:
    if isinstance(windows, Session):
        return Sessions(gatherer, windows, by, keys, **options)
    if isinstance(windows, Windows):
        return Windowed(gatherer, windows, by, **options)
    raise BuildError(
        f"{where} was given {windows!r} as time windows; expected clew.tumbling(size), clew.sliding(size, every) or "
        f"clew.session(gap). Pass one of these."
    )
